"""Pulls by hand without a command line: what is read, asked, pulled and recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import StateError, UsageError
from rollout.features.diagnose.asking.hand_pulls import HandPulls, HandPullsEnd, pull_by_hand
from rollout.features.diagnose.asking.prepulls import NotPulled
from rollout.features.diagnose.rules.timed_pulls import TimedPull
from tests.app.agents import SILENT
from tests.app.call import CLUSTER, FakeCall, OneByOne
from tests.app.site import NAMES
from tests.app.stacked_agents import StackedAgents
from tests.features.own.kubelets import machine

IMAGE = "reg.example/team/big:1"
PULLED = "-- tool crictl\n-- status 0\n-- took 420\n-- end\n"
FAILED = "-- tool crictl\n-- status 1\n-- took 100\n-- last no such image\n-- end\n"


@dataclass
class Runtimes:
    """``prints``: what is printed on a node where the pull does not succeed. ``then``: what happens while a node pulls."""

    prints: dict[str, str] = field(default_factory=dict)
    then: Callable[[], object] = lambda: None
    pulled: list[str] = field(default_factory=list)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        assert IMAGE in command.line
        self.pulled.append(target.name)
        self.then()
        return RemoteAnswer(0, self.prints.get(target.name, PULLED).encode(), b"", started=True)

    def release(self, target: Target) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class PullCall(FakeCall):
    """Kubelets 1.23 that answer; ``silent`` ones do not."""

    runtimes: Runtimes = field(default_factory=Runtimes)
    silent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        FakeCall.__post_init__(self)
        self.agents = StackedAgents({name: machine(name, version="1.23.17") for name in NAMES})
        self.agents.says |= {(name, "snapshot"): SILENT for name in self.silent}

    @property
    def zones(self) -> OneByOne:
        return self.engine

    def command_nodes(self) -> Runtimes:
        return self.runtimes


@dataclass
class PullScreen:
    """``confirms``: the answer to each question. ``at_end``: what happens once the end is shown."""

    confirms: bool = True
    at_end: Callable[[], object] = lambda: None
    begun: list[tuple[str, int]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    results: list[TimedPull | NotPulled] = field(default_factory=list)
    shown: list[HandPullsEnd] = field(default_factory=list)

    def begins(self, what: str, pulls: int) -> None:
        self.begun.append((what, pulls))

    def confirm(self, cluster: str, what: str) -> None:
        self.questions.append(f"{cluster}: {what}")
        if not self.confirms:
            raise UsageError("not-confirmed", "the operator typed another name")

    def warn(self, text: str) -> None:
        raise AssertionError(text)

    def heard(self, found: TimedPull | NotPulled) -> None:
        self.results.append(found)

    def ended(self, end: HandPullsEnd) -> None:
        self.shown.append(end)
        self.at_end()


def pull(call: PullCall, screen: PullScreen, limit: str = "", nodes_per_kind: int | None = None) -> HandPullsEnd:
    wanted = HandPulls("prepull", (IMAGE,), limit, 60.0, 10, nodes_per_kind)
    return pull_by_hand(call, screen, call.inventory(CLUSTER), wanted)


def test_each_node_of_the_limit_pulls_and_the_journal_has_the_start_and_the_end(tmp_path: Path) -> None:
    call, screen = PullCall(tmp_path), PullScreen()
    end = pull(call, screen, "n[1,3]")
    assert (sorted(call.runtimes.pulled), end.exit_code, end.counts) == (["n1", "n3"], 0, "2 pulls: 2 pulled")
    assert screen.begun == [("n[1,3] (2 nodes) will pull 1 image", 2)]
    assert screen.questions == [f"{CLUSTER}: 2 nodes of {CLUSTER} will pull 1 image"]
    assert (len(screen.results), screen.shown) == (2, [end])
    assert call.notes() == [
        f"prepull r1: 1 image on n[1,3] (2 nodes): {IMAGE}; reason: slow pulls",
        "prepull r1: ended: 2 pulls: 2 pulled",
    ]


def test_without_a_confirmation_no_node_pulls_and_the_journal_has_no_record(tmp_path: Path) -> None:
    call = PullCall(tmp_path)
    with pytest.raises(UsageError):
        pull(call, PullScreen(confirms=False))
    assert (call.runtimes.pulled, call.notes()) == ([], [])


def test_a_probe_takes_a_few_nodes_of_each_kind(tmp_path: Path) -> None:
    call = PullCall(tmp_path)
    assert pull(call, PullScreen(), nodes_per_kind=1).exit_code == 0
    assert len(call.runtimes.pulled) == 1


def test_a_failed_pull_and_a_node_that_was_not_read_are_no_success(tmp_path: Path) -> None:
    call = PullCall(tmp_path, runtimes=Runtimes({"n1": FAILED}), silent=("n2",))
    end = pull(call, PullScreen())
    assert (end.exit_code, end.counts) == (4, "3 pulls: 1 pulled, 1 failed, 1 unknown")


def test_where_no_node_was_read_nothing_is_asked_and_the_attempt_is_recorded(tmp_path: Path) -> None:
    call, screen = PullCall(tmp_path, silent=tuple(NAMES)), PullScreen()
    end = pull(call, screen)
    assert (end.exit_code, screen.questions, call.runtimes.pulled) == (4, [], [])
    assert call.notes()[-1] == "prepull r1: ended: 3 pulls: 3 unknown"


def test_a_second_interrupt_ends_it_and_what_was_heard_is_shown(tmp_path: Path) -> None:
    call, screen = PullCall(tmp_path), PullScreen()

    def interrupt() -> None:
        raise KeyboardInterrupt

    call.runtimes.then = interrupt
    end = pull(call, screen)
    assert (end.exit_code, end.pulled.pulls, screen.shown) == (130, [], [end])
    assert call.notes()[-1] == "prepull r1: ended: 3 pulls: 3 not started"


def test_the_end_is_shown_also_if_it_cannot_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = PullCall(tmp_path)
    journal = call.journal()

    def away(*_: object) -> None:
        raise StateError("journal-away", "the server does not answer")

    screen = PullScreen(at_end=lambda: monkeypatch.setattr(journal, "note", away))
    with pytest.raises(StateError):
        pull(call, screen)
    assert [end.exit_code for end in screen.shown] == [0]
