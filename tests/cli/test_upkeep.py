"""What the commands of upkeep say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.app.claims import released
from rollout.app.ports import Target
from rollout.app.unlock import UnlockDocument
from rollout.cli.main import run
from rollout.cli.upkeep import unlocked_lines
from rollout.composition.wiring import Session
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.presentation.drift_text import NotAsked
from tests.cli.test_plan import site

__all__ = ["site"]


def test_a_cluster_without_any_claim_is_unlocked_too() -> None:
    nobody, still = released([])
    (line,) = unlocked_lines(UnlockDocument("rno", nobody, still, ()))
    assert line == "unlocked: 0 nodes released, 0 not released, 0 did not answer"


def test_nodes_without_an_answer_are_named() -> None:
    silent = NotAsked("n2", "unreachable", "no route")
    lines = list(unlocked_lines(UnlockDocument("rno", "n1", {"n3": "it is armed"}, (silent,))))
    assert lines[0] == "n3: it is armed"
    assert lines[1] == "unlocked: 1 node released, 1 not released, 1 did not answer"
    assert "n2" in lines[2]
    assert "[unreachable]" in lines[2]


@dataclass
class Nameless:
    """Nodes with names that no name service knows. Each error has the node's own name."""

    def run(self, target: Target, _command: RemoteCommand) -> RemoteAnswer:
        message = f"the name does not resolve (at {target.name}): Name or service not known"
        return RemoteAnswer(None, b"", b"", started=False, reference="name-not-known", message=message)

    def release(self, _target: Target) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--cluster", "small"),
        ("uninstall", "--cluster", "small", "--yes"),
        ("cluster", "unlock", "--cluster", "small", "--yes", "--reason", "gone"),
        ("plan", "--cluster", "small", "--out", "p.json"),
        ("rollback", "--cluster", "small", "--emergency", "--yes"),
        ("cluster", "freeze", "--cluster", "small", "--reason", "why"),
        ("exec", "n[1-3]", "uptime", "--cluster", "small", "--yes"),
        ("diagnose", "--cluster", "small"),
        ("doctor", "--cluster", "small"),
    ],
    ids=lambda words: words[0],
)
def test_an_error_with_the_nodes_own_name_is_one_line_for_all_nodes(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert site
    monkeypatch.setattr(Session, "nodes", lambda _session: Nameless())
    run(list(words))
    printed = capsys.readouterr()
    lines = [line for line in (printed.out + printed.err).splitlines() if "does not resolve" in line]
    assert lines, printed
    for line in lines:
        assert "n[1-3]" in line + printed.out, printed
        assert "(at the address of NODE)" in line, printed
    assert len(lines) == len(set(lines)), printed


@dataclass
class StoppedAt:
    """Nodes that answer nothing. The operator types Ctrl-C while the command is at the ``last`` one."""

    last: str

    def run(self, target: Target, _command: RemoteCommand) -> RemoteAnswer:
        if target.name == self.last:
            raise KeyboardInterrupt
        return RemoteAnswer(None, b"", b"", started=False, reference="unreachable", message="no route")

    def release(self, target: Target) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("command", ["uninstall", "cluster unlock"])
@pytest.mark.parametrize("last", ["n1", "n3"])
def test_a_command_that_was_interrupted_among_its_nodes_does_not_claim_that_nothing_is_done(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, last: str
) -> None:
    assert site
    monkeypatch.setattr(Session, "nodes", lambda _session: StoppedAt(last))
    reason = ("--reason", "gone") if command == "cluster unlock" else ()
    assert run([*command.split(), "--cluster", "small", "--yes", *reason]) == 130
    assert capsys.readouterr().err == "\ninterrupted; a part may be done already; the same command does the rest\n"
