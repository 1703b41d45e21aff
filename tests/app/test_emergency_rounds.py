"""The rounds of an emergency: with a journal that cannot be written, and with Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from rollout.adapters.no_journal import NoJournal
from rollout.app import emergency_rounds as module
from rollout.app.emergency_rounds import EmergencyRounds
from rollout.app.node_access import NodeAccess
from rollout.app.ports import Journal, RunHeader
from rollout.app.rollbacks import Emergency, emergency
from rollout.app.runs import Tools
from rollout.cli.rollback import EmergencyTerminal
from rollout.composition.wiring import Session
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.model.regions import RegionStanding
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState, Token
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.events import Answered, Ticked, Trigger
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.machine import opening
from rollout.core.run.state import RULES, Ending, Goal, Order, Phase, RunState, Verb
from rollout.errors import StateError
from tests.app.test_node_worker import PLAN
from tests.kubelet.nodes import inventory
from tests.orders import make_order

NODE = "tess-node-0001"


@dataclass
class Broken(NoJournal):
    """A journal that was opened, but fails at this operation."""

    part: str
    reference: str = "journal-unusable"

    def acquire(self, cluster: str, run: str) -> None:
        self._may("acquire")

    def begin(self, header: RunHeader) -> None:
        self._may("begin")

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        self._may("append")

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        self._may("renew")

    def _may(self, part: str) -> None:
        if part == self.part:
            raise StateError(self.reference, "database or disk is full")


@dataclass(frozen=True)
class Having(Session):
    """A call with a given journal."""

    kept: Journal | None = None

    def journal_if_any(self) -> Journal:
        assert self.kept is not None
        return self.kept


@pytest.fixture
def journals(monkeypatch: pytest.MonkeyPatch) -> list[Journal]:
    """The journals that runs were started with. Each run writes like a real one and ends at once, without nodes."""
    given: list[Journal] = []

    def run(order: Order, counter: int, _way: NodeAccess, tools: Tools) -> RunState:
        given.append(tools.journal)
        tools.journal.acquire(order.cluster, order.run)
        tools.journal.begin(RunHeader(order.run, order.cluster, Goal.REVERT, "", counter, b"", 0.0, "ann", ""))
        tools.journal.append(order.run, ["event"])
        state, _ = opening(order, counter, 0.0)
        tools.observers[-1].on_event(Ticked(0.0), state, state)
        tools.journal.renew(order.cluster, order.run)
        return replace(state, phase=Phase.ENDED, ending=Ending.INTERRUPTED if tools.interrupted() else Ending.DONE)

    monkeypatch.setattr(module, "start_revert", run)
    monkeypatch.setattr(module, "prove", lambda *_: ())
    return given


@pytest.fixture
def signals() -> Iterator[None]:
    """Restores pytest's signal handlers at the end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


pytestmark = pytest.mark.usefixtures("signals")


def terminal(folder: Path, journal: Journal) -> EmergencyRounds:
    session = Having(folder, None, accept_new=False, output="text", kept=journal)
    return EmergencyRounds(session, EmergencyTerminal(session), inventory(6), session.interruption())


def found(run: str) -> Emergency:
    receipt = Receipt("r9-1", "r9", 9, ReceiptState.CONFIRMED)
    report = Report(NODE, "status", Outcome.DONE, receipts=(receipt,), token=Token(9, "r9", live=False))
    return emergency({NODE: report}, run, ("r9",), inventory(6), EMERGENCY_LIMITS, force=False)


@pytest.mark.parametrize("reference", ["journal-unusable", "journal-away"])
@pytest.mark.parametrize("part", ["acquire", "begin", "append"])
def test_an_emergency_continues_with_a_journal_that_opens_but_cannot_be_written(
    part: str, reference: str, journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Broken(part, reference)
    mine = terminal(tmp_path, broken)
    for name in ("e1", "e2"):
        state = mine.carry_out(found(name)).state
        assert state is not None
        assert state.ending is Ending.DONE
    assert journals[0] is broken
    assert [type(each) for each in journals[1:]] == [NoJournal, NoJournal], "the next run does not try it again"
    said = capsys.readouterr().err
    assert said.count("continuing with what the nodes report") == 1
    assert f"database or disk is full [{reference}]" in said


@pytest.mark.parametrize("broken", [Broken("renew", "journal-away"), Broken("begin", "journal-broken")])
def test_a_run_with_journaled_events_or_a_changed_journal_is_not_started_twice(
    broken: Broken, journals: list[Journal], tmp_path: Path
) -> None:
    with pytest.raises(StateError, match="is full"):
        terminal(tmp_path, broken).carry_out(found("e1"))
    assert journals == [broken]


def test_ctrl_c_counts_at_any_time_since_the_first_run(journals: list[Journal], tmp_path: Path) -> None:
    """Also while nodes are read: nothing checks for it then, but a later check must still see it."""
    mine = terminal(tmp_path, NoJournal())
    mine.carry_out(found("e1"))
    assert not mine.wait(0.01)
    assert not mine.stopped()
    os.kill(os.getpid(), signal.SIGTERM)
    assert mine.stopped()
    assert mine.wait(86400.0), "and not after a day"
    state = mine.carry_out(found("e2")).state
    assert state is not None
    assert state.ending is Ending.INTERRUPTED, "a run that is begun all the same ends at once"
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert len(journals) == 2


def test_stopping_one_run_at_once_ends_the_whole_emergency(
    monkeypatch: pytest.MonkeyPatch, journals: list[Journal], tmp_path: Path
) -> None:
    def stopped(*_: object) -> RunState:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "start_revert", stopped)
    with pytest.raises(KeyboardInterrupt):
        terminal(tmp_path, NoJournal()).carry_out(found("e1"))
    assert not journals


NOT_KNOWN = "whether r9 wrote kubeadm's ConfigMap is not known"


def test_without_a_journal_it_is_said_once_that_the_config_map_is_not_known(
    journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = terminal(tmp_path, NoJournal())
    mine.carry_out(found("e1"))
    mine.carry_out(found("e2"))
    assert capsys.readouterr().out.count(NOT_KNOWN) == 1


@dataclass
class Hanging(NoJournal):
    """A journal that does not answer in time."""

    over: Event = field(default_factory=Event)

    def listed(self) -> tuple[RunHeader, ...]:
        self.over.wait()
        return ()


def test_of_a_journal_that_does_not_answer_in_time_it_is_said_too(
    journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOURNAL_SECONDS", 0.01)
    hanging = Hanging()
    try:
        terminal(tmp_path, hanging).carry_out(found("e1"))
        assert NOT_KNOWN in capsys.readouterr().out
    finally:
        hanging.over.set()


CHANGE = ConfigMapChange("kube-system", "kubelet-config", "kubelet", "old", "new", "uid-1")


@dataclass
class Knowing(NoJournal):
    """A journal with a run of the nodes, which has written a ConfigMap. ``readable``: its events are of this version."""

    change: ConfigMapChange | None = CHANGE
    readable: bool = True

    def listed(self) -> tuple[RunHeader, ...]:
        return (self.header("r9"),)

    def header(self, run: str) -> RunHeader:
        order = replace(make_order({"r": 1}, goal=Goal.APPLY), run="r9", config_map=self.change)
        text = encode_order(order if self.readable else replace(order, rules=RULES - 1))
        plan = plan_codec.encode(replace(PLAN, config_map=self.change))
        return RunHeader("r9", "rno", Goal.APPLY, text, 9, plan, 0.0, "ann", "")

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        said = (Answered(1.0, "r-1", 1, Verb.READ, Trigger.GONE), Ticked(2.0))
        return tuple(encode_event(each) for each in said)[after:]


def test_each_round_has_what_restores_it_because_only_the_newest_run_can_be_recovered(
    journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = terminal(tmp_path, Knowing())
    states = [mine.carry_out(found(name)).state for name in ("e1", "e2")]
    assert [state and state.order.config_map for state in states] == [CHANGE.undone, CHANGE.undone]
    assert NOT_KNOWN not in capsys.readouterr().out


def test_a_journal_that_does_not_answer_in_a_later_round_takes_no_restore_away(
    journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = terminal(tmp_path, Knowing())
    mine.carry_out(found("e1"))
    mine.journal = NoJournal()
    state = mine.carry_out(found("e2")).state
    assert state is not None
    assert state.order.config_map == CHANGE.undone
    assert NOT_KNOWN not in capsys.readouterr().out


def test_where_no_node_is_to_be_reverted_the_rollback_that_restores_it_is_named(
    journals: list[Journal], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = found("e1")
    nothing = replace(nothing, order=replace(nothing.order, nodes={}, waves=(), transactions={}))
    assert terminal(tmp_path, Knowing()).carry_out(nothing).state is None
    assert "is still to be restored: `rollout rollback r9`" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "known"), [(CHANGE, False), (None, True)])
def test_of_a_run_of_another_version_the_plan_shows_whether_it_has_one(
    change: ConfigMapChange | None,
    known: bool,
    journals: list[Journal],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal(tmp_path, Knowing(change, readable=False)).carry_out(found("e1"))
    assert (NOT_KNOWN not in capsys.readouterr().out) is known
