"""Only reviewed packages are installed: each one pinned with its hashes, and none that pyproject does not require."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from functools import cache

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.hostile.parts import NotALockError, Pin, differences, locked, without_addresses
from tests.places import ROOT
from tests.release.__main__ import PARTS

LOCKS = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))
OTHER_PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@cache
def lock(name: str) -> tuple[Pin, ...]:
    return locked((ROOT / "requirements" / name).read_text())


def wanted(extra: str) -> Iterable[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    texts = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    texts += project["project"]["optional-dependencies"].get(extra, [])
    return map(Requirement, texts)


def test_the_lock_for_building_matches_pyproject() -> None:
    """The tool that makes the lock files reads dependencies from pyproject.toml, but not its build requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "requirements/build.in").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == project["build-system"]["requires"]


def test_there_are_locks_for_running_developing_and_tools() -> None:
    assert LOCKS == ["dev.txt", "fuzz.txt", "peers.txt", "record.txt", "run.txt", "tools.txt"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_contains_pins_with_hashes_and_no_address(name: str) -> None:
    assert lock(name)
    text = (ROOT / "requirements" / name).read_text()
    assert "://" not in text
    assert "/opt/" not in text


@pytest.mark.parametrize("version", OTHER_PYTHONS)
@pytest.mark.parametrize(
    ("name", "extra"), [("run.txt", ""), ("run.txt", "page"), ("dev.txt", "dev"), ("dev.txt", "page")]
)
def test_a_lock_satisfies_pyproject_on_every_python_that_it_allows(name: str, extra: str, version: str) -> None:
    environment = {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
    here = [pin for pin in lock(name) if not pin.marker or Marker(pin.marker).evaluate(environment)]
    by_name = {pin.name: pin for pin in here}
    assert len(by_name) == len(here), "one version of each package"
    for requirement in wanted(extra):
        pin = by_name[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version, prereleases=True), f"{requirement}: {pin.version}; make lock"


def test_the_packages_for_running_are_among_the_tested_ones() -> None:
    assert set(lock("run.txt")) <= set(lock("dev.txt"))


@pytest.mark.parametrize(
    "line",
    [
        "a==1\n",
        "a>=1 --hash=sha256:" + "0" * 64 + "\n",
        "a @ file:///x --hash=sha256:" + "0" * 64 + "\n",
        "--extra-index-url x\n",
        "-e .\n",
        "a==1 \\\n    --hash=md5:00\n",
    ],
)
def test_a_line_that_is_no_pin_with_a_hash_is_found(line: str) -> None:
    with pytest.raises(NotALockError):
        locked(line)


def test_a_list_of_parts_with_a_missing_or_invented_part_is_found() -> None:
    text = (ROOT / "requirements/run.txt").read_text()
    parts = [{"name": pin.name, "version": pin.version} for pin in lock("run.txt")]
    assert differences(json.dumps({"components": parts}), text) == []
    gone = parts[0]
    assert differences(json.dumps({"components": parts[1:]}), text) == [
        f"not in the list of parts: {gone['name']} {gone['version']}"
    ]
    made = [*parts, {"name": "left-pad", "version": "1"}]
    assert differences(json.dumps({"components": made}), text) == ["not in the lock file: left-pad 1"]


def test_the_list_of_parts_has_the_hashes_of_each_part_and_no_address() -> None:
    kept = json.loads((ROOT / f"requirements/{PARTS}").read_text())
    assert without_addresses(kept) == kept
    assert [part["name"] for part in kept["components"] if not part["hashes"]] == []


def test_make_setup_installs_nothing_without_a_hash() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installs = [line for line in makefile.splitlines() if "pip install" in line]
    assert len(installs) >= 2
    for line in installs:
        # --no-deps: a lock names every package, so pip never asks an index what is newest (2026-11: a new release broke the setup).
        assert "--require-hashes --no-deps" in line or "--no-deps --no-build-isolation" in line, line


def test_commit_hooks_are_local() -> None:
    """Remote hooks would run whatever their repository contains on that day."""
    configured = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [repository["repo"] for repository in configured["repos"]] == ["local"]
    for hook in configured["repos"][0]["hooks"]:
        command, target = hook["entry"].split()
        assert (hook["language"], command) == ("system", "make")
        assert target in targets
        assert "additional_dependencies" not in hook


_PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
_PINNED_IMAGE = re.compile(r"docker://\S+@sha256:[0-9a-f]{64}")


def loose(text: str) -> list[str]:
    """What a workflow uses by a name that somebody can move to other code: a tag or a branch."""
    used = re.findall(r"^\s*(?:-\s*)?[\"']?uses[\"']?\s*:\s*(.*?)\s*$", text, re.MULTILINE)
    return [each for each in used if not (_PINNED.fullmatch(each) or _PINNED_IMAGE.fullmatch(each) or each[:2] == "./")]


def test_every_action_is_pinned_by_the_hash_of_a_named_version() -> None:
    """In every file of the project that has any, and each action in one version."""
    files = [
        path
        for suffix in ("yml", "yaml", "md")
        for path in ROOT.rglob(f"*.{suffix}")
        if not {".git", ".venv", ".cache", "node_modules"} & set(path.relative_to(ROOT).parts)
    ]
    texts = {path: path.read_text(errors="replace") for path in files}
    workflows = [path for path, text in texts.items() if re.search(r"^\s*(- )?uses:", text, re.MULTILINE)]
    assert {ROOT / ".github/workflows/release.yml", ROOT / "examples/github-actions.yml"} <= set(workflows)
    assert {str(path.relative_to(ROOT)): found for path in workflows if (found := loose(texts[path]))} == {}
    pins = {pin for path in workflows for pin in re.findall(r"uses:\s*(\S+)@(\S+)", texts[path])}
    assert len({action for action, _ in pins}) == len(pins), "one version of each action"


@pytest.mark.parametrize(
    "used",
    ["actions/checkout@v4", "actions/checkout@v4 # v4.2.2", "a/b@main", "a/b@11bd719 # v4.2.2", "docker://alpine:3",
     "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683"],
)  # fmt: skip
def test_an_action_that_is_not_pinned_is_found(used: str) -> None:
    assert loose(f"    steps:\n      - uses: {used}\n        with: {{}}\n") == [used]
    assert loose(f"      - name: x\n        uses: {used}\n") == [used]
