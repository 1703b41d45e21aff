"""Inventories and playbooks by name, through the Files port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from rollout.adapters.files import FolderFiles
from rollout.app.load import load_cluster
from rollout.app.load_playbook import load_policy, load_templates
from rollout.app.ports import Files
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.errors import InputError, RolloutError, UsageError
from tests.places import ROOT

TEMPLATES = {f"templates/{path.name}": path.read_text() for path in (ROOT / "templates").glob("*.j2")}
INVENTORY = "cluster: c\napiServer: v1.23.17\nnodes: {'n[1-2]': }\n"
PLAYBOOK = "name: p\nsettings: {maxPods: 3}\n"


class FakeFiles:
    """A folder as a dictionary."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def read(self, path: str) -> str:
        return self.texts[path]

    def exists(self, path: str) -> bool:
        return path in self.texts

    def at(self, path: str) -> str:
        return path

    def list(self, folder: str, suffix: str) -> tuple[str, ...]:
        names = (path.removeprefix(f"{folder}/") for path in self.texts if path.startswith(f"{folder}/"))
        return tuple(sorted(name for name in names if name.endswith(suffix)))


class FakeSources:
    """An Ansible inventory's output and an API server's nodes. ``trouble`` is raised instead of either."""

    def __init__(
        self, printed: str = "{}", live: tuple[LiveNode, ...] = (), trouble: RolloutError | None = None
    ) -> None:
        self._printed = printed
        self._live = live
        self._trouble = trouble
        self.asked: list[tuple[str, ...]] = []
        self.values: Mapping[str, Mapping[str, object]] = {}

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        return self.values

    def ansible(self, path: str) -> str:
        self.asked.append((path,))
        if self._trouble:
            raise self._trouble
        return self._printed

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        self.asked.append((kubeconfig, context))
        if self._trouble:
            raise self._trouble
        return self._live


def load(files: Files, name: str) -> Inventory:
    return load_cluster(files, FakeSources(), name)


FILES = FakeFiles({"inventories/c.yaml": INVENTORY, "playbooks/p.yaml": PLAYBOOK, **TEMPLATES})


def test_a_cluster_is_a_file_of_its_name() -> None:
    assert tuple(load(FILES, "c").nodes) == ("n1", "n2")


def test_a_policy_comes_with_its_templates() -> None:
    policy = load_policy(FILES, "p")
    assert policy.templates.drop_in == TEMPLATES["templates/kubelet-drop-in.conf.j2"]
    assert sorted(load_templates(FILES)) == [
        "kubelet-config.yaml.j2",
        "kubelet-drop-in.conf.j2",
        "kubelet-flags.env.j2",
    ]


def test_a_project_without_templates_uses_the_shipped_ones_and_its_own_win() -> None:
    own = {"templates/kubelet-flags.env.j2": "{{ variable }}={{ arguments | join(' ') }} --v=4\n"}
    bare, mixed = (
        load_policy(FakeFiles({"playbooks/p.yaml": PLAYBOOK, **files}), "p").templates for files in ({}, own)
    )
    assert bare == load_policy(FILES, "p").templates
    assert mixed.flags_env == own["templates/kubelet-flags.env.j2"]
    assert mixed.drop_in == bare.drop_in


Load = Callable[[Files, str], object]


@pytest.mark.parametrize(
    ("read", "texts", "name", "complaint"),
    [
        (load, {"inventories/rno.yaml": ""}, "rmo", "there is no cluster `rmo` (did you mean `rno`?) [unknown-cluster]"),
        (load, {"inventories/rno.yaml": ""}, "paris", "there is no cluster `paris` (choose one of: rno) [unknown-cluster]"),
        (load, {}, "rno", "there is no cluster `rno` (inventories/ has no .yaml file) [unknown-cluster]"),
        (load, {"inventories/rno.yaml": ""}, "../etc/rno", "there is no cluster `../etc/rno` (choose one of: rno) [unknown-cluster]"),
        (load_policy, {"playbooks/pulls.yaml": ""}, "puls", "there is no playbook `puls` (did you mean `pulls`?) [unknown-playbook]"),
        (load, {"inventories/d.yaml": INVENTORY}, "d", "inventories/d.yaml:1:1: `cluster` is c, but the file is inventories/d.yaml (rename one of them) [wrong-name]"),
        (load_policy, {"playbooks/q.yaml": PLAYBOOK, **TEMPLATES}, "q", "playbooks/q.yaml:1:1: `name` is p, but the file is playbooks/q.yaml (rename one of them) [wrong-name]"),
    ],
)  # fmt: skip
def test_refused(read: Load, texts: dict[str, str], name: str, complaint: str) -> None:
    with pytest.raises(RolloutError) as caught:
        read(FakeFiles(texts), name)
    assert str(caught.value) == complaint
    assert isinstance(caught.value, UsageError | InputError)
    assert caught.value.exit_code == 2


class TestFolderFiles:
    """The real file system: small regular text files only."""

    def test_reads_and_lists(self, tmp_path: Path) -> None:
        (tmp_path / "b.yaml").write_text("é")
        (tmp_path / "a.yaml").write_text("")
        (tmp_path / "c.txt").write_text("")
        (tmp_path / "d.yaml").mkdir()
        files = FolderFiles(tmp_path)
        assert files.read("b.yaml") == "é"
        assert files.list(".", ".yaml") == ("a.yaml", "b.yaml")
        assert files.list("nowhere", ".yaml") == ()
        assert files.exists("a.yaml")
        assert not files.exists("d.yaml")

    @pytest.mark.parametrize(
        ("path", "complaint"),
        [
            ("none", "none: there is no such file [file-missing]"),
            ("folder", "folder: Is a directory [file-unreadable]"),
            ("/dev/zero", "/dev/zero: not a regular file [file-unreadable]"),
            ("pipe", "pipe: not a regular file [file-unreadable]"),
            ("binary", "binary: not UTF-8 at byte 1 [file-not-text]"),
            ("large", "large: larger than 8 bytes [file-too-large]"),
            ("a\0b", "ab: embedded null byte [file-unreadable]"),
            ("binary/x", "binary/x: Not a directory [file-unreadable]"),
        ],
    )
    def test_refused(self, tmp_path: Path, path: str, complaint: str) -> None:
        import os

        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "binary").write_bytes(b"a\xff")
        (tmp_path / "large").write_text("123456789")
        with pytest.raises(InputError) as caught:
            FolderFiles(tmp_path, max_bytes=8).read(path)
        assert str(caught.value) == complaint
