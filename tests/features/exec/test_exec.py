"""A command on nodes without a command line: what is run, what the operator sees, and what the journal keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.app.operator_commands import OperatorCommand
from rollout.app.ports import Target
from rollout.core.model.report import CommandResult, RemoteAnswer, RemoteCommand
from rollout.errors import StateError, UsageError
from rollout.features.exec.asking import CommandEnd, open_shell, run_command
from tests.app.call import CLUSTER, FakeCall, OneByOne, elsewhere

UPTIME = OperatorCommand("uptime", 60.0)


@dataclass
class Nodes:
    """``statuses``: other exit statuses than 0. ``then``: what happens while a node runs the command."""

    statuses: dict[str, int] = field(default_factory=dict)
    then: dict[str, Callable[[], object]] = field(default_factory=dict)
    commands: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        self.commands.append((target.name, command.line))
        self.then.get(target.name, lambda: None)()
        return RemoteAnswer(self.statuses.get(target.name, 0), b"up", b"", started=True)

    def release(self, target: Target) -> None:
        """Nothing is open."""

    def close(self) -> None:
        self.closed = True


@dataclass
class CommandCall(FakeCall):
    remote: Nodes = field(default_factory=Nodes)
    shells: list[Target] = field(default_factory=list)

    @property
    def zones(self) -> OneByOne:
        return self.engine

    def command_nodes(self) -> Nodes:
        return self.remote

    def interactive_shell(self, target: Target) -> int:
        self.shells.append(target)
        return 7


@dataclass
class Screen:
    """What the operator sees. ``at_end``: what happens once the end is shown. ``confirms``: the answer to each question."""

    at_end: Callable[[], object] = lambda: None
    confirms: bool = True
    warnings: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    shown: list[CommandEnd] = field(default_factory=list)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def confirm(self, cluster: str, what: str) -> None:
        self.questions.append(f"{cluster}: {what}")
        if not self.confirms:
            raise UsageError("not-confirmed", "the operator typed another name")

    def heard(self, result: CommandResult) -> None:
        self.results[result.node] = result.reference

    def ended(self, end: CommandEnd) -> None:
        self.shown.append(end)
        self.at_end()


def interrupt() -> None:
    """The second Ctrl-C."""
    raise KeyboardInterrupt


def run(call: CommandCall, screen: Screen, nodeset: str = "n[1-3]", in_flight: int | None = None) -> CommandEnd:
    return run_command(call, screen, CLUSTER, nodeset, UPTIME, in_flight)


def test_each_node_of_the_nodeset_runs_it_and_the_journal_has_the_start_and_the_end(tmp_path: Path) -> None:
    call, screen = CommandCall(tmp_path), Screen()
    end = run(call, screen, "n[1,3]")
    assert sorted(call.remote.commands) == [("n1", "uptime"), ("n3", "uptime")]
    assert (end.exit_code, end.unstarted, call.remote.closed) == (0, (), True)
    assert (screen.results, screen.shown, screen.warnings) == ({"n1": "", "n3": ""}, [end], [])
    assert call.notes() == [
        'exec r1: command on n[1,3] (2 nodes), at most 60 s each: "uptime"; reason: slow pulls',
        "exec r1 ended: exit status 0 on n[1,3] (2 nodes)",
    ]


def test_without_a_confirmation_no_node_runs_it_and_the_journal_has_no_record(tmp_path: Path) -> None:
    call, screen = CommandCall(tmp_path), Screen(confirms=False)
    with pytest.raises(UsageError):
        run(call, screen, "n[1,3]")
    assert screen.questions == [f"{CLUSTER}: `uptime` will run on 2 nodes of {CLUSTER}"]
    assert (call.remote.commands, call.notes()) == ([], [])


def test_another_exit_status_is_a_failure_of_the_command(tmp_path: Path) -> None:
    call = CommandCall(tmp_path, remote=Nodes({"n2": 3}))
    assert run(call, Screen()).exit_code == 4
    assert call.notes()[-1].endswith("exit status 0 on n[1,3] (2 nodes); exit status 3 on n2 (1 node)")


@pytest.mark.parametrize("alive", [True, False])
def test_only_a_run_at_work_is_named(tmp_path: Path, *, alive: bool) -> None:
    call, screen = CommandCall(tmp_path), Screen()
    call.held(elsewhere("r0", alive=alive))
    assert run(call, screen).exit_code == 0
    warning = "WARNING: run r0 is at work on c; its nodes in flight are not counted here"
    assert screen.warnings == ([warning] if alive else [])


def test_an_interrupt_lets_the_node_in_flight_finish_and_starts_no_other(tmp_path: Path) -> None:
    call, screen = CommandCall(tmp_path), Screen()
    call.remote.then["n1"] = call.engine.stop
    end = run(call, screen, in_flight=1)
    assert (end.exit_code, end.unstarted, call.remote.closed) == (130, ("n2", "n3"), True)
    assert screen.results == {"n1": "", "n2": "not-started", "n3": "not-started"}
    assert screen.warnings == ["stopping: finishing nodes in flight first; interrupt again to stop at once"]
    assert call.notes()[-1] == "exec r1 ended: exit status 0 on n1 (1 node); not-started on n[2-3] (2 nodes)"


def test_a_second_interrupt_waits_for_no_node(tmp_path: Path) -> None:
    call, screen = CommandCall(tmp_path), Screen()
    call.remote.then["n1"] = interrupt
    assert run(call, screen, in_flight=1).exit_code == 130
    assert screen.results == {"n1": "not-waited-for", "n2": "not-started", "n3": "not-started"}
    assert call.notes()[-1] == "exec r1 ended: not-started on n[2-3] (2 nodes); not-waited-for on n1 (1 node)"


def test_the_end_is_shown_also_if_it_cannot_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CommandCall(tmp_path)
    journal = call.journal()

    def away(*_: object) -> None:
        raise StateError("journal-away", "the server does not answer")

    screen = Screen(at_end=lambda: monkeypatch.setattr(journal, "note", away))
    with pytest.raises(StateError):
        run(call, screen)
    assert [end.exit_code for end in screen.shown] == [0]


def test_a_nodeset_without_a_known_node_leaves_no_record(tmp_path: Path) -> None:
    call, screen = CommandCall(tmp_path), Screen()
    with pytest.raises(UsageError):
        run(call, screen, "n9")
    assert (call.remote.commands, call.notes(), screen.shown) == ([], [], [])


def test_without_a_journal_no_node_is_reached(tmp_path: Path) -> None:
    call = CommandCall(tmp_path, broken=StateError("journal-unusable", "no space left"))
    with pytest.raises(StateError):
        run(call, Screen())
    assert call.remote.commands == []


def test_a_shell_is_of_one_node(tmp_path: Path) -> None:
    call = CommandCall(tmp_path)
    assert open_shell(call, CLUSTER, "n2") == 7
    with pytest.raises(UsageError, match=r"n\[1-3\] is 3 nodes, not one"):
        open_shell(call, CLUSTER, "n[1-3]")
    assert [target.name for target in call.shells] == ["n2"]
