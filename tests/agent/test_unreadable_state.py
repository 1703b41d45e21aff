"""Each file that the agent keeps on a node is empty, torn or cannot be opened, and each verb and trigger comes: whatever it answers is so.

The files are found by looking, so one that comes later is tried, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Token
from rollout.core.run.events import Trigger, trigger_of
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import FLAGS, NEW, OLD, Node
from tests.agent.test_second_chances import asked_since, wrap
from tests.sampling import sample

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800)]

SAYS_OLD = {Trigger.UNTOUCHED, Trigger.REVERTED_BY_GUARD, Trigger.REVERTED_ON_REQUEST, Trigger.REVERTED_UNHEALTHY}


def _no_file(path: Path) -> None:
    """For root no mode forbids to open it: a folder in its place cannot be read either."""
    path.unlink()
    path.mkdir()


def _shortened(path: Path) -> None:
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) * 5 // 8]) or content[: len(content) * 3 // 4])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is empty": lambda path: path.write_bytes(b""),
    "is torn": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "lost its last lines": _shortened,
    "lost its last byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cannot be opened": _no_file,
}


def _boot(node: Node) -> None:
    node.reboot()
    node.trigger("boot")


ABOUT_IT = {"status", "confirm", "revert"}
"""The answers of these verbs are about the transaction."""
ACTS: dict[str, Callable[[Node], object]] = {
    "status": lambda node: node.status("t1"),
    "claim": lambda node: node.status(claim=Claim(2, "run-1")),
    "confirm": lambda node: node.confirm(),
    "revert": lambda node: node.revert(),
    "cleanup": lambda node: node.cleanup(),
    "guard": lambda node: node.trigger("guard"),
    "watch": lambda node: node.trigger("watch"),
    "boot": _boot,
}


def _armed(node: Node) -> None:
    """A file has another name; and the node was frozen once."""
    node.at("/srv").mkdir(exist_ok=True)
    os.link(node.at(FLAGS), node.at("/srv/other"))
    assert node.freeze(1).outcome is Outcome.DONE
    assert node.unfreeze(2).outcome is Outcome.DONE
    assert node.apply().healthy


def _armed_beside(node: Node) -> None:
    """Its files are on another file system."""
    wrap(node, "ln", 'case "$*" in -s*) ;; *) exit 1 ;; esac')
    assert node.apply().healthy


def _confirmed(node: Node) -> None:
    _armed(node)
    assert node.confirm().outcome is Outcome.DONE


def _confirmed_beside(node: Node) -> None:
    _armed_beside(node)
    assert node.confirm().outcome is Outcome.DONE


SCENES = {
    "armed": _armed,
    "armed beside": _armed_beside,
    "confirmed": _confirmed,
    "confirmed beside": _confirmed_beside,
}


def kept(node: Node) -> list[Path]:
    """What the agent keeps: its own folder, and the copies near the files."""
    found = {path for path in node.at("/var/lib/rollout").rglob("*") if path.is_file()}
    return sorted(path.relative_to(node.root) for path in found | set(node.root.rglob(".rollout-*")))


def state(node: Node) -> str:
    receipt = node.tx() / "receipt"
    lines = receipt.read_text().splitlines() if receipt.is_file() else []
    return next((line.removeprefix("state=") for line in lines if line.startswith("state=")), "")


def check(node: Node, answer: Report | None, what: str) -> None:
    """What the node's files are, against what was answered and what is kept for a later revert."""
    files = node.files()
    trigger = None if answer is None else trigger_of(answer)
    assert files == OLD or trigger not in SAYS_OLD, f"{what}: it says {trigger}"
    assert files == NEW or trigger is not Trigger.CONFIRMED, f"{what}: it says {trigger}"
    assert files == OLD or state(node) != "reverted", f"{what}: the receipt says reverted"
    if answer is not None:
        assert answer.token in (None, Token(1, "run-1", live=True)), f"{what}: it says {answer.token}"
    for number, (path, old) in enumerate(OLD.items(), 1):
        assert files[path] in (old, NEW[path]), f"{what}: {path} has neither its old nor its new bytes"
        copies = [node.tx() / f"old.{number}", *node.root.rglob(f".rollout-t1.{number}.old")]
        assert files[path] == old or old is None or any(copy.exists() for copy in copies), (
            f"{what}: {path} is not the old one, and its copy is gone"
        )


def check_restarted(node: Node, before: list[str], act: str, what: str) -> None:
    """At boot the units start later."""
    if act != "boot" and state(node) == "reverted":
        assert "restart kubelet.service" in asked_since(node, before), f"{what}: it says reverted"


@pytest.mark.parametrize("scene", SCENES)
def test_whatever_cannot_be_read_nothing_untrue_is_said_and_no_old_copy_is_lost(
    node: Node, tmp_path: Path, scene: str
) -> None:
    SCENES[scene](node)
    before = node.calls()
    cases = [
        (path, damage, act)
        for path in kept(node)
        for damage in DAMAGES
        if damage == "cannot be opened" or (node.root / path).stat().st_size
        for act in ACTS
    ]
    found = []
    for number, (path, damage, act) in enumerate(sample(f"unreadable, {scene}", cases, 20)):
        tried = node.copy(tmp_path / str(number))
        DAMAGES[damage](tried.root / path)
        what = f"{scene}, {path} {damage}, {act}, {node.shell}"
        try:
            answer = ACTS[act](tried)
            check(tried, answer if act in ABOUT_IT and isinstance(answer, Report) else None, what)
            check_restarted(tried, before, act, what)
        except AssertionError as error:
            found.append(str(error).splitlines()[0])
    assert found == []
