"""The laws as the model nodes see them: each is broken once on purpose, and allowed effects pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from rollout.app.ports import RunHeader
from rollout.core.model.playbook import Limits, Share, SoakData
from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, Event, Ticked, Trigger, WaveJudged
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.machine import opening, step
from rollout.core.run.state import Ending, NodeRecord, NodeState, Phase, RunState, Verb
from rollout.simulator.fleet import ModelFleet, ModelLink, Sender
from rollout.simulator.fleet_laws import (
    Discipline,
    LawBrokenError,
    LawWatch,
    Replay,
    is_away,
    untruths,
    went_back,
)
from rollout.simulator.journal import ModelJournal
from rollout.simulator.machine import FOREIGN, NEW, OLD, Restart, Transaction
from rollout.simulator.node import ModelNode
from rollout.simulator.timeline import Timeline
from tests.orders import in_state, make_order

NAMES = ("a-1", "a-2", "b-1", "b-2")
ORDER = make_order(
    {"a": 2, "b": 2},
    limits=Limits(per_rack=Share(count=1), in_flight=3, pace=2.0),
    drain=20.0,
    drained=lambda name: name == "b-2",
)
BY = Token(1, "r1", live=True)
GUARD = 30.0


class Site:
    """Four nodes in two racks, and their checks."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.nodes = {name: ModelNode(name, self.timeline, token=BY) for name in NAMES}
        self.fleet = ModelFleet(self.timeline, self.nodes, {name: ModelLink() for name in NAMES}, Random(0))  # noqa: S311 - reproducible on purpose
        self.watch = LawWatch(self.fleet, {"r1": ORDER})
        self.journal = ModelJournal(self.timeline)

    def restart(self, name: str, asked_at: float = 0.0, why: str = "apply") -> None:
        self.watch.restarted(self.nodes[name], Restart(self.timeline.now, why, (1, "r1"), asked_at))

    def arm(self, name: str, guard: float = GUARD, tx: str = "r1-1") -> None:
        """An apply that has finished, and waits to be confirmed."""
        node = self.nodes[name]
        node.begin("apply", node.apply(tx, BY, guard), _forget)
        self.timeline.run(self.timeline.now + 10)
        assert node.under_way is not None


def _forget(_report: Report | None) -> None:
    """No controller reads the answers."""


@pytest.fixture
def site() -> Site:
    return Site()


# --------------------------------------------------------------------------------------------------- nodes that are away


def test_a_node_is_away_while_it_is_armed_cordoned_or_restarting(site: Site) -> None:
    node = site.nodes["a-1"]
    assert not is_away(node)
    node.cordoned = True
    assert is_away(node)
    node.cordoned = False
    node.away_until = 5.0
    assert is_away(node)
    site.timeline.run(5.0)
    assert not is_away(node)
    site.arm("a-1")
    assert is_away(node), "its kubelet is healthy, but it is not confirmed"


@pytest.mark.parametrize("strike", [lambda node: node.lose_power(float("inf")), lambda node: node.freeze(5.0)])
def test_a_machine_that_is_off_or_frozen_is_away_by_itself(site: Site, strike: Callable[[ModelNode], None]) -> None:
    site.arm("a-1")
    strike(site.nodes["a-1"])
    assert not is_away(site.nodes["a-1"])


def test_a_node_that_thaws_before_its_guard_fires_counts_again(site: Site) -> None:
    site.arm("a-1")
    site.nodes["a-1"].freeze(5.0)
    site.timeline.run(site.timeline.now + 6)
    assert is_away(site.nodes["a-1"])


def test_a_node_frozen_past_its_guards_time_is_away_by_itself_until_it_is_changed_again(site: Site) -> None:
    node, started = site.nodes["a-1"], []
    site.arm("a-1")
    node.freeze(2 * GUARD)
    node.restarted = lambda _, restart: started.append((restart.why, is_away(node)))
    site.timeline.run(site.timeline.now + 3 * GUARD)
    assert (started, node.files) == ([("guard", False)], OLD)
    site.arm("a-1", tx="r1-2")
    assert is_away(node), "it was late for the guard of another change"


# --------------------------------------------------------------------------------------------------------------- limits


def test_one_more_in_a_rack_than_its_limit_is_detected(site: Site) -> None:
    site.arm("a-1")
    site.restart("b-1")
    site.nodes["a-2"].away_until = 1_000.0
    with pytest.raises(LawBrokenError, match="law 4: 2 nodes away in rack a: a-1, a-2; the limit is 1"):
        site.restart("a-2", asked_at=9.0)


def test_one_more_in_a_zone_than_its_limit_is_detected(site: Site) -> None:
    limits = replace(ORDER.limits, per_zone=Share(count=1))
    site.watch.orders["r1"] = replace(ORDER, limits=limits)
    site.restart("a-1")
    site.nodes["b-1"].away_until = 1_000.0
    site.nodes["a-1"].away_until = 1_000.0
    with pytest.raises(LawBrokenError, match="law 4: 2 nodes away in zone none: a-1, b-1; the limit is 1"):
        site.restart("b-1", asked_at=9.0)


def test_one_more_in_flight_than_the_limit_is_detected(site: Site) -> None:
    for name in NAMES:
        site.nodes[name].cordoned = True
    with pytest.raises(LawBrokenError, match="law 4: 4 nodes away in the fleet, including a-1; the limit is 3"):
        site.restart("a-1")


def test_effects_of_another_run_do_not_count_for_this_one(site: Site) -> None:
    site.nodes["a-2"].cordoned, site.nodes["a-2"].token = True, Token(2, "r2", live=True)
    site.restart("a-1")


def test_more_restarts_within_a_second_than_the_pace_are_detected(site: Site) -> None:
    for at, name in enumerate(("a-1", "b-1", "a-1")):
        site.restart(name, asked_at=0.46 * at, why="asked")
    with pytest.raises(LawBrokenError, match="law 4: more than 2 nodes restarted within 1 s"):
        site.restart("b-1", asked_at=0.93, why="asked")


def test_a_restart_by_the_node_itself_does_not_count_for_the_pace(site: Site) -> None:
    for _ in range(9):
        site.watch.restarted(site.nodes["a-1"], Restart(0.0, "guard"))


def test_a_restart_with_pods_on_a_drained_node_is_detected(site: Site) -> None:
    node = site.nodes["b-2"]
    node.cordoned, node.pods_gone_at = True, 4.0
    with pytest.raises(LawBrokenError, match="drains: b-2 is restarted with pods on it"):
        site.restart("b-2")
    site.timeline.run(4.0)
    site.restart("b-2", asked_at=4.0)


# -------------------------------------------------------------------------------------------- confirms, fences and gates

CONFIRM = Ask("a-1", Verb.CONFIRM, 3, "r1-1", 1)


def test_a_confirm_without_a_durable_passed_measurement_is_detected(site: Site) -> None:
    sender = Sender("r1", ORDER, take_over=False, listens=lambda: True, now=lambda: 0.0)
    with pytest.raises(LawBrokenError, match="law 2: a confirm reached a-1 before its journal entry was durable"):
        site.watch.begun(sender, CONFIRM, site.journal)
    site.journal.answers.add(("r1", "a-1", 2))
    with pytest.raises(LawBrokenError, match="law 5: a-1 is confirmed and its gates have not passed"):
        site.watch.begun(sender, CONFIRM, site.journal)
    site.fleet.passed.add(("r1", "a-1", 2))
    site.watch.begun(sender, CONFIRM, site.journal)


def running(phase: Phase = Phase.RUNNING, **records: NodeRecord) -> RunState:
    start, _ = opening(ORDER, 1, 0.0)
    known = {name.replace("_", "-"): record for name, record in records.items()}
    return replace(start, phase=phase, nodes={**start.nodes, **known})


def test_a_controller_that_continues_after_it_was_fenced_is_detected(site: Site) -> None:
    site.journal.lines["r1"] = []
    discipline = Discipline(site.journal, "r1", told=0)
    state = running(a_1=in_state(NodeState.APPLYING, asked=Verb.APPLY, serial=2))
    fenced = Answered(1.0, "a-1", 2, Verb.APPLY, Trigger.REFUSED, "fenced", "by run r2")
    discipline.submitted(replace(CONFIRM, node="b-1"))
    discipline.settled()
    discipline.on_event(fenced, state, state)
    with pytest.raises(LawBrokenError, match="law 7: a-1 reported another run's claim, and b-1 still gets confirm"):
        discipline.submitted(replace(CONFIRM, node="b-1"))


def test_a_node_released_after_a_gate_that_did_not_pass_is_detected(site: Site) -> None:
    site.journal.lines["r1"] = []
    discipline = Discipline(site.journal, "r1", told=0)
    soaking = running(Phase.SOAKING)
    discipline.on_event(WaveJudged(1.0, 0, Verdict.UNKNOWN, "down"), soaking, soaking)
    with pytest.raises(LawBrokenError, match="law 5: the gates of wave 0 returned unknown, and b-1 is released"):
        discipline.submitted(replace(CONFIRM, verb=Verb.APPLY, node="b-1"))


def test_a_soak_that_ends_without_its_data_is_detected(site: Site) -> None:
    site.journal.lines["r1"] = []
    discipline = Discipline(site.journal, "r1", fleet=site.fleet, told=0)
    soaking = running(Phase.SOAKING, a_1=in_state(NodeState.CONFIRMED))
    for data, said in ((SoakData(1), "0 of 1 pod starts"), (SoakData(pulls=1), "0 of 1 pulls")):
        needs = replace(ORDER, waves=tuple(replace(wave, data=data) for wave in ORDER.waves))
        short = replace(soaking, order=needs)
        with pytest.raises(LawBrokenError, match=f"soak: wave 0 passed with {said}"):
            discipline.on_event(Ticked(1.0), short, replace(short, wave=1, phase=Phase.RUNNING))


def test_a_command_before_its_event_is_durable_is_detected(site: Site) -> None:
    site.journal.lines["r1"] = []
    discipline = Discipline(site.journal, "r1", told=0)
    state = running()
    discipline.submitted(replace(CONFIRM, verb=Verb.MEASURE))
    with pytest.raises(LawBrokenError, match="law 1: a command was given before its event was durable"):
        discipline.on_event(Answered(1.0, "b-1", 9, Verb.MEASURE, Trigger.GATES_PASSED), state, state)


def journaled(site: Site, *events: Event) -> Replay:
    """A journal of run r1 with these events, checked like the journal of a controller."""
    site.journal.headers["r1"] = RunHeader("r1", "test", "apply", encode_order(ORDER), 1, b"", 0.0, "ann@desk", "")
    site.journal.lines["r1"] = [encode_event(event) for event in events]
    return Replay(site.journal, "r1")


READ = Answered(1.0, "a-1", 1, Verb.READ, Trigger.UNTOUCHED)


def test_a_journal_that_leads_to_another_state_is_detected(site: Site) -> None:
    replay = journaled(site, READ)
    before, _ = opening(ORDER, 1, 0.0)
    live, _ = step(before, READ)
    replay.on_event(READ, before, live)
    replay.on_end(live)
    with pytest.raises(LawBrokenError, match="law 10: heard is 7 in the run, 0 in a replay of its journal"):
        journaled(site, READ).on_event(READ, before, replace(live, heard=7))
    with pytest.raises(LawBrokenError, match=r"law 10: .* changed the run and is not in its journal"):
        journaled(site).on_event(READ, before, live)
    with pytest.raises(LawBrokenError, match=r"law 10: a replay stops at .*is not outstanding"):
        journaled(site, replace(READ, serial=9)).on_event(replace(READ, serial=9), before, live)


# ------------------------------------------------------------------------------------------------------------ at the end

CONFIRMED = in_state(NodeState.CONFIRMED)
REVERTED = in_state(NodeState.REVERTED)
OWED = replace(REVERTED, owed=True)
NAMED = replace(OWED, leftovers=("its cordon",))


def kept(node: ModelNode, state: ReceiptState = ReceiptState.CONFIRMED) -> None:
    node.files = NEW
    node.transactions["r1-1"] = Transaction("r1-1", "r1", 1, 1, 0.0, state)


def half(node: ModelNode) -> None:
    kept(node, ReceiptState.ARMED)


def bare(node: ModelNode) -> None:
    node.files = NEW


def foreign(node: ModelNode) -> None:
    node.files = FOREIGN


def guarded(node: ModelNode) -> None:
    node.guards.add("r1-1")


def cordoned(node: ModelNode) -> None:
    node.cordoned = True


def claimed(node: ModelNode) -> None:
    node.token = BY


def as_it_was(_node: ModelNode) -> None:
    """A node without changes."""


UNTRUE = "law 1: the journal has"
GUARD_LEFT, CORDON_LEFT, CLAIM_LEFT = (
    f"law 8: {what}" for what in ("a guard is", "a cordon of ours is", "the claim of")
)


@pytest.mark.parametrize(
    ("record", "done", "found"),
    [
        (CONFIRMED, kept, []),
        (CONFIRMED, as_it_was, [UNTRUE]),
        (CONFIRMED, bare, [UNTRUE]),
        (CONFIRMED, half, [UNTRUE, GUARD_LEFT]),
        (REVERTED, as_it_was, []),
        (REVERTED, kept, [UNTRUE]),
        (in_state(NodeState.UNREACHABLE), as_it_was, [UNTRUE]),
        (REVERTED, foreign, []),
        (REVERTED, guarded, [GUARD_LEFT]),
        (REVERTED, cordoned, [CORDON_LEFT]),
        (REVERTED, claimed, [CLAIM_LEFT]),
        (OWED, half, []),
        (OWED, guarded, []),
        (OWED, claimed, []),
        (OWED, cordoned, [CORDON_LEFT]),
        (NAMED, cordoned, []),
        (replace(REVERTED, leftovers=("its claim",)), claimed, []),
    ],
)
def test_the_journal_must_match_the_node_or_record_a_pending_recovery(
    site: Site, record: NodeRecord, done: Callable[[ModelNode], None], found: list[str]
) -> None:
    for node in site.nodes.values():
        node.token = Token(1, "r1", live=False)
    done(site.nodes["a-1"])
    state = running(Phase.ENDED, **{name.replace("-", "_"): REVERTED for name in NAMES[1:]}, a_1=record)
    said = untruths(replace(state, ending=Ending.DONE), site.nodes)
    assert len(said) == len(found)
    assert all(text.startswith(law) and "a-1" in text for text, law in zip(said, found, strict=True)), said


def test_a_node_claimed_by_another_run_keeps_its_cordon_and_claim(site: Site) -> None:
    site.nodes["a-1"].cordoned = True
    state = running(Phase.ENDED, **{name.replace("-", "_"): REVERTED for name in NAMES})
    assert untruths(replace(state, ending=Ending.CLAIMED), site.nodes) == []


def test_a_node_that_was_not_reverted_must_be_reported(site: Site) -> None:
    kept(site.nodes["a-1"])
    kept(site.nodes["b-1"])
    assert went_back(site.nodes, frozenset({"b-1"})) == ["law 1: a-1 still has the new files, and is not reported"]
