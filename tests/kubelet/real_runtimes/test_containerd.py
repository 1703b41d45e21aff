"""Our configuration for containerd, read by containerd: our key is in force, and nothing else has changed."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.containerd.configuration import CRI_V2, CRI_V3, TRANSFER
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import regular
from tests.kubelet.real_runtimes.conftest import Program, need
from tests.kubelet.runtimes.nodes import changed, directory, node, wanted, with_files, with_service

pytestmark = pytest.mark.process

need("containerd")

UNIT = "containerd.service"
TABLES = {2: 'plugins."io.containerd.grpc.v1.cri"', 3: "plugins.'io.containerd.cri.v1.images'"}
KEY = "image_pull_progress_timeout"
HEADS = (
    "version = {}\n",
    "version = {}\nimports = ['HERE/conf.d/*.toml']\n",
    "version = {}\nimports = ['conf.d/50-site.toml']\n",
)
MAINS = (
    "",
    "[{0}]\n  # ours\n  {1} = '9m0s'  # nine\n",
    "[{0}]\n  max_concurrent_downloads = 4\n",
    "[{0}]\n[{0}.registry]\n  config_path = '/etc/containerd/certs.d'\n",
)
IMPORTED = ("", "version = {2}\n[{0}]\n  {1} = '8m0s'\n", "version = {2}\n[ttrpc]\n  uid = 0\n")
FILES = [
    (version, head, main, imported)
    for version, head, main, imported in itertools.product((2, 3), HEADS, MAINS, IMPORTED)
    if ("imports" in head and imported) or ("conf.d/50" not in head and not imported)
]


def written(root: Path, version: int, head: str, main: str, imported: str) -> Path:
    """The files of one node below ``root``; the path of the main one."""
    (root / "conf.d").mkdir()
    config = root / "config.toml"
    config.write_text(head.format(version).replace("HERE", str(root)) + main.format(TABLES[version], KEY))
    if imported:
        (root / "conf.d/50-site.toml").write_text(imported.format(TABLES[version], KEY, version))
    return config


def one(intent: str, value: Value) -> dict[str, Setting]:
    return {intent: Setting(intent, value, source="playbook p")}


def told(containerd: Program, config: Path) -> Snapshot:
    """A node that runs this containerd with these files."""
    states: list[FileState] = [directory(str(config.parent / "conf.d")), *(_state(path) for path in _files(config))]
    found = with_files(node(Runtime.CONTAINERD, containerd.version), *states)
    command = f"/usr/bin/containerd --config {config}"
    return with_service(found, UNIT, f"[Service]\nExecStart={command}\n", command)


def _files(config: Path) -> Iterator[Path]:
    yield config
    yield from sorted((config.parent / "conf.d").iterdir())


def _state(path: Path) -> FileState:
    return regular(str(path), path.read_text())


def dump(containerd: Program, config: Path) -> dict[str, Any]:
    """The configuration in force in containerd; containerd must be able to load it."""
    done = containerd.run("--config", str(config), "config", "dump")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = tomllib.loads(done.stdout)
    return {**found, "imports": sorted(found["imports"])}  # 1.6 lists them in an order of chance


def in_force(found: dict[str, Any], *tables: tuple[str, ...], key: str) -> Any:
    """The key's value in the first existing one of the tables, removed from ``found``."""
    for table in tables:
        inner: Any = found
        for name in table:
            inner = inner.get(name, {})
        if key in inner:
            return inner.pop(key)
    return None


@pytest.mark.parametrize(("version", "head", "main", "imported"), FILES)
@pytest.mark.parametrize(
    ("intent", "value", "shown"), [("imagePullProgressDeadline", "7m", "7m"), ("maxConcurrentDownloads", 6, 6)]
)
def test_our_key_is_in_force_and_nothing_else_has_changed(
    tmp_path: Path,
    containerd: Program,
    version: int,
    head: str,
    main: str,
    imported: str,
    intent: str,
    value: Value,
    shown: object,
) -> None:
    config = written(tmp_path, version, head, main, imported)
    loads = containerd.run("--config", str(config), "config", "dump").returncode == 0
    snapshot = told(containerd, config)
    too_old = intent == "imagePullProgressDeadline" and containerd.version < "1.7"
    too_new = version == 3 and containerd.version < "2"  # 1.6 takes it for version 2, 1.7 does not start
    if not loads or too_old or too_new:
        with pytest.raises(LayoutError):
            changed(snapshot, Runtime.CONTAINERD, one(intent, value))
        return
    before = dump(containerd, config)
    change = changed(snapshot, Runtime.CONTAINERD, one(intent, value))
    for edit in change.files:
        Path(edit.path).write_bytes(edit.after)
    after = dump(containerd, config)
    assert str(value) in "".join(edit.after.decode() for edit in change.files)
    tables, key = _where(intent, containerd, before)
    assert in_force(after, *tables, key=key) == shown
    in_force(before, *tables, key=key)
    assert after == before
    again = changed(told(containerd, config), Runtime.CONTAINERD, one(intent, value))
    assert again.files == ()


@pytest.mark.parametrize(
    ("main", "imported", "of"), [*itertools.product((2, 3), ("", "version = 2\n", "version = 3\n"), (2, 3))]
)
@pytest.mark.parametrize("sets", [(), ("main",), ("imported",), ("main", "imported")])
def test_with_files_of_several_versions_our_key_is_in_force_or_the_node_is_refused(
    tmp_path: Path, containerd: Program, main: int, imported: str, of: int, sets: tuple[str, ...]
) -> None:
    """2.0 to 2.2 read all files as the version that is given last, so that a table may have no effect."""
    first = f"[{TABLES[main]}]\n  {KEY} = '9m0s'\n" if "main" in sets else ""
    second = f"[{TABLES[of]}]\n  {KEY} = '8m0s'\n" if "imported" in sets else "[ttrpc]\n  uid = 0\n"
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/50-site.toml").write_text(imported + second)
    config = tmp_path / "config.toml"
    config.write_text(f"version = {main}\nimports = ['conf.d/50-site.toml']\n{first}")
    try:
        change = changed(told(containerd, config), Runtime.CONTAINERD, one("imagePullProgressDeadline", "7m"))
    except LayoutError:
        return
    for edit in change.files:
        Path(edit.path).write_bytes(edit.after)
    assert in_force(dump(containerd, config), CRI_V3, CRI_V2, key=KEY) == "7m"


def _where(intent: str, containerd: Program, before: dict[str, Any]) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The table that containerd uses: from 2.1 on it pulls through the transfer service, unless a key prevents it."""
    if intent == "imagePullProgressDeadline":
        return (CRI_V3, CRI_V2), KEY
    key = "max_concurrent_downloads"
    images = before["plugins"].get(CRI_V3[1], {})
    transfers = containerd.version >= "2.1" and images[key] == 3
    return ((TRANSFER,) if transfers else (CRI_V3, CRI_V2)), key


def test_a_node_without_config_toml_gets_one_that_containerd_loads(tmp_path: Path, containerd: Program) -> None:
    if containerd.version < "1.7":
        pytest.skip("containerd 1.6 has no such key; it is refused above")
    change = changed(
        node(Runtime.CONTAINERD, containerd.version), Runtime.CONTAINERD, wanted(imagePullProgressDeadline="7m")
    )
    (edit,) = change.files
    config = tmp_path / "config.toml"
    config.write_bytes(edit.after)
    assert in_force(dump(containerd, config), CRI_V3, CRI_V2, key=KEY) == "7m"


def test_the_default_in_the_table_is_in_force(tmp_path: Path, containerd: Program) -> None:
    """A value equal to the default is not written: that depends on the right default."""
    if containerd.version < "1.7":
        pytest.skip("containerd 1.6 has no such key")
    config = tmp_path / "config.toml"
    config.write_text("version = 2\n")
    default = in_force(dump(containerd, config), CRI_V3, CRI_V2, key=KEY)
    change = changed(
        node(Runtime.CONTAINERD, containerd.version), Runtime.CONTAINERD, wanted(imagePullProgressDeadline=default)
    )
    assert change.files == ()
