"""An emergency by what nodes report: selected runs, pending recoveries, retries and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from threading import Event

import pytest

from rollout.app.emergencies import (
    WAITS,
    EmergencyOptions,
    EmergencyReadings,
    EmergencyRollback,
    LeftTo,
    Round,
    Told,
    Unfinished,
    Waiting,
)
from rollout.app.rollbacks import Emergency, RunsToRevert, emergency, pick
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import CONTROL_PLANE_WAVE
from rollout.core.model.playbook import EMERGENCY_LIMITS, Limits, Share
from rollout.core.model.proof import NodeProof, Proven
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState, Token
from rollout.core.model.surroundings import Listing, Manifests
from rollout.core.plans.estimate import BACK_SECONDS
from rollout.core.plans.receipt_history import on_nodes
from rollout.core.presentation.emergency_text import seen_lines
from rollout.core.presentation.rollback_time import NodeTime, NoTimeBack, TimeBack, node_time, time_back
from rollout.core.run.events import Answered
from rollout.core.run.facts import unavailable
from rollout.core.run.machine import opening
from rollout.core.run.state import Ending, NodeState, Phase, Reverted, RunState, Unreachable, Verb
from rollout.errors import UsageError
from tests.kubelet.nodes import inventory
from tests.plays import Drive, confirmed_before, leave_confirmed

NODES = tuple(f"tess-node-{at:04d}" for at in range(1, 7))
SILENT = "no banner within 10 s"


def said(name: str, *runs: str, state: str = "confirmed", live: str = "", token: int = 0) -> Report:
    """A node with one transaction of each of these runs, newest first. Run ``rN`` had token N.

    ``live``: the run that has a claim on it, with ``token``, or else with the token of its newest transaction.
    """
    receipts = [Receipt(f"{run}-1", run, int(run[1:]), ReceiptState.CONFIRMED) for run in runs]
    if receipts:
        receipts[0] = replace(receipts[0], state=ReceiptState(state))
    counter = max((receipt.counter for receipt in receipts), default=0)
    mark = Token(token or counter, live or "r0", live=bool(live))
    return Report(name, "status", Outcome.DONE, receipts=tuple(receipts), token=mark)


def silent(name: str) -> Report:
    return Report(name, "status", Outcome.UNREACHED, "no-banner", SILENT)


def reports(*said: Report) -> Mapping[str, Report]:
    return {report.node: report for report in said}


MIXED = reports(
    said(NODES[0], "r9", "r3"), said(NODES[1], "r9"), said(NODES[2], "r3"), said(NODES[3], "r2", state="reverted"),
    said(NODES[4]), silent(NODES[5]),
)  # fmt: skip


def found(wanted: RunsToRevert, of: Mapping[str, Report] = MIXED) -> Emergency:
    picked = pick(on_nodes(of), wanted)
    return emergency(of, "new", picked, inventory(6, per_rack=3), EMERGENCY_LIMITS, force=False)


# ------------------------------------------------------------------------------------------------ which runs are meant


@pytest.mark.parametrize(
    ("wanted", "taken", "already"),
    [
        (RunsToRevert(), {NODES[0]: "r9-1", NODES[1]: "r9-1"}, {}),
        (RunsToRevert(("r3",)), {NODES[2]: "r3-1"}, {}),
        (RunsToRevert(("r9", "r3")), {NODES[0]: "r9-1", NODES[1]: "r9-1", NODES[2]: "r3-1"}, {}),
        (RunsToRevert(every=True), {NODES[0]: "r9-1", NODES[1]: "r9-1", NODES[2]: "r3-1"}, {NODES[3]: "r2-1"}),
    ],
)
def test_only_nodes_with_their_newest_transaction_in_a_selected_run_are_touched(
    wanted: RunsToRevert, taken: dict[str, str], already: dict[str, str]
) -> None:
    made = found(wanted)
    assert made.order.transactions == taken
    assert made.already == already
    assert made.seen.silent == {NODES[5]: f"{SILENT} [no-banner]"}
    assert made.counter == 10, "above the highest token that any node has reported"


def test_other_runs_on_the_nodes_are_shown_with_the_command_that_reverts_them() -> None:
    made = found(RunsToRevert())
    lines = list(seen_lines(made.seen, made.picked, made.already, "rno"))
    assert lines == [
        "newest run on the nodes: run r9 on 2 nodes; 0 nodes already reverted",
        f"  not reverted: run r3 on 1 node {NODES[2]}; `rollout rollback r3 --cluster rno --emergency` reverts it too",
        "  --every-run reverts each node's newest transaction, whichever run made it",
        f"no answer from 1 node, pending recovery: {NODES[5]}: {SILENT} [no-banner]",
    ]


HONEST = tuple(said(name, "r3", "r2") for name in NODES[:5])


def forged(*receipts: Receipt) -> Report:
    """The answer of the last node, where an attacker is root."""
    return Report(
        NODES[5], "status", Outcome.DONE, receipts=receipts, token=Token(receipts[0].counter, "r0", live=False)
    )


def told(made: Emergency) -> str:
    return "\n".join(seen_lines(made.seen, made.picked, made.already, "rno"))


def test_one_node_cannot_make_an_old_run_the_newest() -> None:
    """Otherwise one false answer would revert a good change on every node and leave the broken one."""
    lie = forged(Receipt("r2-1", "r2", 999, ReceiptState.CONFIRMED))
    newest_on_all = found(RunsToRevert(), reports(*HONEST, lie))
    assert newest_on_all.picked == ("r3",)
    partly = reports(*(said(name, "r2") for name in NODES[:3]), *(said(name, "r3", "r2") for name in NODES[3:5]), lie)
    assert found(RunsToRevert(), partly).order.transactions == dict.fromkeys(NODES[3:5], "r3-1")


@pytest.mark.parametrize("copies", [1, 50])
def test_an_impossible_counter_is_shown_and_not_used(copies: int) -> None:
    """One node counts once, however many receipts it shows."""
    lies = (Receipt(f"x-{at}", f"x{at}", 10**14 - at, ReceiptState.CONFIRMED) for at in range(copies))
    made = found(RunsToRevert(), reports(*HONEST, forged(*lies)))
    assert made.picked == ("r3",)
    assert made.order.transactions == dict.fromkeys(NODES[:5], "r3-1")
    assert made.counter == 4, "the next token is above the true tokens, and not above the false one"
    assert f"WARNING: run x0 on 1 node has counter {10**14}, which no run can have" in told(made)
    assert NODES[5] in told(made)


def test_a_run_with_an_impossible_counter_can_be_named_and_is_reverted() -> None:
    made = found(RunsToRevert(("x",)), reports(*HONEST, forged(Receipt("x-1", "x", 10**14, ReceiptState.CONFIRMED))))
    assert made.order.transactions == {NODES[5]: "x-1"}
    assert told(made).startswith("reverting: run x on 1 node;")


def test_without_any_credible_counter_the_run_must_be_named() -> None:
    lies = reports(*(
        Report(name, "status", Outcome.DONE, receipts=(Receipt(f"x{at}-1", f"x{at}", 10**15 - at, ReceiptState.CONFIRMED),))
        for at, name in enumerate(NODES[:2])
    ))  # fmt: skip
    with pytest.raises(UsageError) as refused:
        found(RunsToRevert(), lies)
    assert refused.value.reference == "false-counters"
    assert "x0, x1" in str(refused.value)
    assert set(found(RunsToRevert(every=True), lies).order.nodes) == set(NODES[:2])


@pytest.mark.parametrize("state", ["confirmed", "reverted"])
def test_a_run_on_the_canary_alone_is_the_newest_with_a_warning_about_the_run_on_most_nodes(state: str) -> None:
    """A forged receipt a little above all others looks the same. The operator decides, and must see it."""
    made = found(RunsToRevert(), reports(*HONEST, said(NODES[5], "r4", "r3", state=state)))
    assert made.picked == ("r4",)
    assert "newest run on the nodes: run r4 on 1 node;" in told(made)
    assert "WARNING: run r3 on 5 nodes has more nodes than the newest run" in told(made)
    assert "If r3 caused the failure: rollout rollback r3 --cluster rno --emergency" in told(made)


def test_a_run_on_most_nodes_has_no_warning() -> None:
    assert "WARNING" not in told(found(RunsToRevert(), reports(*HONEST, said(NODES[5], "r2"))))
    assert "WARNING" not in told(found(RunsToRevert(("r2",)), reports(*HONEST, said(NODES[5], "r2"))))


def test_one_node_cannot_make_the_newest_run_look_old() -> None:
    canary = said(NODES[4], "r4", "r3")
    lie = forged(Receipt("r4-1", "r4", 0, ReceiptState.CONFIRMED))
    assert found(RunsToRevert(), reports(*HONEST[:4], canary, lie)).picked == ("r4",)


def test_a_run_that_is_not_selected_keeps_its_claims() -> None:
    """It was printed that this run stays. Only claims of selected or unknown runs are ended."""
    at_work = reports(
        said(NODES[0], "r3"),
        said(NODES[1], "r9", live="r9"),
        said(NODES[2], live="r9"),
        said(NODES[3], "r3", state="reverted", live="r9"),
        said(NODES[4], live="r3"),
        said(NODES[5], live="r5"),
    )
    made = found(RunsToRevert(("r3",)), at_work)
    assert made.order.transactions == {NODES[0]: "r3-1", NODES[4]: "r3-1", NODES[5]: "r5-1"}
    assert made.already == {NODES[3]: "r3-1"}, "its proof names the run that holds it"
    assert "not reverted: run r9 on 1 node" in told(made)
    newest = found(RunsToRevert(), at_work).order.transactions
    assert newest == {NODES[1]: "r9-1", NODES[2]: "r9-1", NODES[3]: "r9-1", NODES[5]: "r5-1"}


def test_a_controller_that_has_just_resumed_cannot_change_a_node_after_the_emergency() -> None:
    """It has claimed no node yet, so its claims are not seen. The nodes that its run claimed before are claimed first."""
    halted = reports(
        said(NODES[0], "r9"),
        ended(said(NODES[1], "r9", state="reverted"), "r9"),
        ended(said(NODES[2]), "r9"),
        ended(said(NODES[3], "r3"), "r3"),
    )
    made = found(RunsToRevert(), halted)
    assert made.order.transactions == {NODES[0]: "r9-1", NODES[1]: "r9-1", NODES[2]: "r9-1"}
    assert made.already == {}


def ended(report: Report, run: str) -> Report:
    """The run was the last to claim this node, and has ended."""
    return replace(report, token=Token(9, run, live=False))


def test_repeating_every_run_reverts_nothing_older() -> None:
    back = reports(*(said(name, "r9", "r3", state="reverted") for name in NODES))
    again = found(RunsToRevert(every=True), back)
    assert not again.order.nodes
    assert again.already == dict.fromkeys(NODES, "r9-1")


def test_a_run_that_no_node_reports_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="r10") as refused:
        found(RunsToRevert(("r10",)))
    assert refused.value.reference == "no-such-run"
    with pytest.raises(UsageError) as nothing:
        found(RunsToRevert(), reports(said(NODES[0]), silent(NODES[1])))
    assert nothing.value.reference == "nothing-to-take-back"
    assert f"1 node did not answer, {NODES[1]}: " in str(nothing.value), (
        "a node without an answer may have one; the reason is printed"
    )


# ------------------------------------------------------------------------------------------------------- limits, and time


def test_without_a_journal_nodes_that_show_the_control_plane_are_reverted_last_one_at_a_time() -> None:
    """By their static pods, or by the unit of a k3s server; the inventory says nothing of it."""
    of = inventory(6, per_rack=3)
    first, second, *rest = of.nodes
    api_server = (Manifests("/etc/kubernetes/manifests", Listing(("etcd.yaml", "kube-proxy.yaml"))),)
    proxies = (Manifests("/etc/kubernetes/manifests", Listing(("kube-proxy.yaml",))),)
    held = {
        first: replace(said(first, "r1"), static_pods=api_server, kubelet_unit="kubelet.service"),
        second: replace(said(second, "r1"), kubelet_unit="k3s.service"),
        **{name: replace(said(name, "r1"), static_pods=proxies, kubelet_unit="k3s-agent.service") for name in rest},
    }
    *_, last = emergency(held, "new", ("r1",), of, EMERGENCY_LIMITS, force=False).order.waves
    assert (last.name, sorted(last.nodes)) == (CONTROL_PLANE_WAVE, sorted([first, second]))


def zoned(count: int, zones: int) -> Inventory:
    """Racks of one node: a limit per rack alone would allow all of them at once."""
    plain = inventory(count, per_rack=1)
    nodes = {name: replace(node, zone=f"z{at % zones}") for at, (name, node) in enumerate(plain.nodes.items())}
    return replace(plain, nodes=nodes)


def most_away(of: Inventory, limits: Limits) -> Mapping[str, int]:
    """Zone → the most of its nodes that were unavailable at once while all were reverted."""
    held = {name: said(name, "r1") for name in of.nodes}
    order = emergency(held, "new", ("r1",), of, limits, force=False).order
    play = confirmed_before(order)
    most: dict[str, int] = {}

    def watch(state: RunState) -> bool:
        if state.phase is not Phase.OPENING:
            for zone in {node.zone for node in of.nodes.values()}:
                away = sum(unavailable(r, state.now) for name, r in state.nodes.items() if of.nodes[name].zone == zone)
                most[zone] = max(most.get(zone, 0), away)
        return False

    end = play.run(until=watch)
    assert {record.state for record in end.nodes.values()} == {NodeState.REVERTED}
    return most


@pytest.mark.parametrize(("limits", "most"), [(EMERGENCY_LIMITS, 4), (replace(EMERGENCY_LIMITS, per_zone=Share(2)), 2)])
def test_a_zone_never_exceeds_its_limit(limits: Limits, most: int) -> None:
    assert most_away(zoned(16, zones=2), limits) == {"z0": most, "z1": most}


def test_with_one_zone_only_racks_are_limited() -> None:
    assert most_away(zoned(16, zones=1), EMERGENCY_LIMITS) == {"z0": 16}


BEFORE_A_RESTART = 0.16
"""Seconds that a simulated node's revert takes in addition to its kubelet's start."""


@pytest.mark.no_cover
@pytest.mark.parametrize("count", [12, 240, 600])
@pytest.mark.parametrize("pace", [3.0, 30.0])
def test_the_predicted_time_is_the_time_that_it_takes(count: int, pace: float) -> None:
    """Over the real machine: its nodes answer at once, and a revert lasts a second."""
    of = inventory(count)
    held = {name: said(name, "r1") for name in of.nodes}
    order = emergency(held, "new", ("r1",), of, replace(EMERGENCY_LIMITS, pace=pace), force=False).order
    play = Drive(order, latency=0.0)
    leave_confirmed(play, order.nodes)
    play.grain = 0.0
    for node in play.nodes.values():
        node.kubelet.start = 1.0 - BEFORE_A_RESTART
    play.run()
    reverts = [event.seconds for event in play.journal if isinstance(event, Answered) and event.verb is Verb.REVERT]
    assert reverts == pytest.approx([1.0] * count)
    predicted = time_back(order, NodeTime(1.0, "as modelled"), reading=0.0).seconds
    assert predicted / 1.3 <= play.now <= predicted * 1.3


@pytest.mark.parametrize(
    ("pauses", "seconds"),
    [(("10s", "10s"), 14.0), (("100ms",), 3.11), (("1min 30s", "10s"), 102.0), (("infinity",), 20.0), ((), 20.0)],
)
def test_a_nodes_time_depends_on_its_restart_pause(pauses: tuple[str, ...], seconds: float) -> None:
    assert node_time(None, pauses).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "pause", ["9" * 26 + "x", "9" * 400, "9" * 400 + "s", "999999999999y", "1y", "\ud800", "\0", "1s" * 10**6]
)
def test_a_nodes_restart_pause_of_any_form_does_not_change_the_estimate(pause: str) -> None:
    assert node_time(None, (pause,)).seconds == BACK_SECONDS
    assert node_time(None, (pause, "10s")).seconds == pytest.approx(14.0)


# ---------------------------------------------------------------------------------------------------------- until done


@dataclass
class Script:
    """A fake ``EmergencyIO``: the answers of nodes for each reading, in turn; the last one repeats."""

    readings: list[Mapping[str, Report]]
    endings: list[Ending] = field(default_factory=list)
    unreachable: list[set[str]] = field(default_factory=list)  # for each run, the nodes that are unreachable in it
    stop_at: float = float("inf")
    asked_in: int = 0  # the reading, from the first, in which the operator asks to stop
    cut_in: str = ""  # what the operator stops at once
    read_count: int = 0
    prediction: Callable[[], TimeBack] | None = None
    changed: frozenset[str] = frozenset()  # nodes that the journal has as changed
    at: float = 0.0
    told: list[Told] = field(default_factory=list)
    orders: list[dict[str, str]] = field(default_factory=list)
    proofs: dict[str, Proven] = field(default_factory=dict)

    def read(self, names: Sequence[str]) -> EmergencyReadings:
        self.read_count += 1
        if self.cut_in == f"read {self.read_count}":
            raise KeyboardInterrupt
        now = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        return EmergencyReadings({name: now[name] for name in names}, 1.0)

    def predict(self, found: Emergency, heard: EmergencyReadings) -> TimeBack:
        if self.prediction is not None:
            return self.prediction()
        return time_back(found.order, NodeTime(1.0, "told"), heard.seconds)

    def confirm(self, count: int) -> None:
        assert count

    def carry_out(self, found: Emergency) -> Round:
        self.orders.append(dict(found.order.transactions))
        if self.cut_in == f"run {len(self.orders)}":
            raise KeyboardInterrupt
        away = self.unreachable.pop(0) if self.unreachable else set()
        state, _ = opening(found.order, found.counter, 0.0)
        records = {
            name: replace(record, current=Unreachable(), owed=True, reference="no-banner", message=SILENT)
            if name in away
            else replace(record, current=Reverted())
            for name, record in state.nodes.items()
        }
        ending = self.endings.pop(0) if self.endings else Ending.DONE
        ended = replace(state, nodes=records, phase=Phase.ENDED, ending=ending)
        read = (name for name in (*found.order.nodes, *found.already) if name not in away)
        return Round(ended, tuple(NodeProof(name, Proven.PROVEN) for name in read))

    def prove_lost(self, runs: Sequence[str], names: Sequence[str]) -> tuple[NodeProof, ...]:
        return tuple(NodeProof(name, Proven.UNKNOWN, tuple(runs)) for name in names if name in self.changed)

    def tell(self, what: Told) -> None:
        self.told.append(what)

    def prove(self, proofs: Sequence[NodeProof]) -> None:
        self.proofs = {proof.node: proof.proven for proof in proofs}

    def wait(self, seconds: float) -> bool:
        if self.cut_in == "wait":
            raise KeyboardInterrupt
        self.at += seconds
        return self.stopped()

    def stopped(self) -> bool:
        return self.at >= self.stop_at or 0 < self.asked_in <= self.read_count

    def now(self) -> float:
        return self.at

    def new_run_id(self) -> str:
        return f"e{len(self.orders)}"

    def waits(self) -> list[float]:
        return [what.seconds for what in self.told if isinstance(what, Waiting)]


NEWEST = RunsToRevert()


def rollback(script: Script, *, at_most: float | None = None, wanted: RunsToRevert = NEWEST) -> EmergencyRollback:
    asked = EmergencyOptions(inventory(6, per_rack=3), wanted, EMERGENCY_LIMITS, force=False, at_most=at_most)
    return EmergencyRollback(asked, script)


def go(
    script: Script, *, at_most: float | None = None, names: Sequence[str] = NODES[:2], wanted: RunsToRevert = NEWEST
) -> int:
    return rollback(script, at_most=at_most, wanted=wanted).run(names)


HERE, AWAY = said(NODES[0], "r9"), silent(NODES[1])


def _overflow() -> TimeBack:
    raise OverflowError("cannot convert float infinity to integer")


def _no_memory() -> TimeBack:
    raise MemoryError


@pytest.mark.parametrize(
    "prediction",
    [_overflow, _no_memory, lambda: TimeBack(2, inf, inf, NodeTime(inf, "told"), 1.0)],
    ids=["overflow", "no memory", "infinite"],
)
def test_an_estimate_that_fails_is_a_blank_and_the_nodes_are_reverted(prediction: Callable[[], TimeBack]) -> None:
    both = reports(HERE, said(NODES[1], "r9"))
    script = Script([both], prediction=prediction)
    assert go(script) == 0
    assert NoTimeBack(2) in script.told
    assert script.proofs == dict.fromkeys(NODES[:2], Proven.PROVEN)


@pytest.mark.timeout(120)  # without the limit it would wait until the safety net of all tests
def test_a_rescue_does_not_wait_for_an_estimate_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()

    def endless() -> TimeBack:
        over.wait()
        raise AssertionError("the emergency has ended by now")

    monkeypatch.setattr("rollout.app.emergencies.ESTIMATE_SECONDS", 0.01)
    script = Script([reports(HERE)], prediction=endless)
    try:
        assert go(script, names=NODES[:1]) == 0
        assert NoTimeBack(1) in script.told
    finally:
        over.set()


def test_an_unreachable_node_is_retried_with_longer_waits_and_reverted_when_it_answers() -> None:
    apart = reports(HERE, AWAY)
    script = Script([apart] * 8 + [reports(HERE, said(NODES[1], "r9"))])
    assert go(script) == 0
    assert script.waits() == [*WAITS, *[WAITS[-1]] * 3]
    assert script.orders == [{NODES[0]: "r9-1"}, {NODES[1]: "r9-1"}]
    assert script.proofs == dict.fromkeys(NODES[:2], Proven.PROVEN)


def test_a_node_that_becomes_unreachable_in_its_revert_has_a_pending_recovery() -> None:
    both = reports(HERE, said(NODES[1], "r9"))
    script = Script([both], unreachable=[{NODES[1]}])
    assert go(script) == 0
    assert script.orders == [{NODES[0]: "r9-1", NODES[1]: "r9-1"}, {NODES[1]: "r9-1"}]


def test_without_until_done_no_node_is_retried_and_pending_nodes_are_unknown() -> None:
    script = Script([reports(HERE, AWAY)])
    assert go(script, at_most=0.0) == 4
    assert script.proofs == {NODES[0]: Proven.PROVEN, NODES[1]: Proven.UNKNOWN}
    assert script.told[-1] == Unfinished(("r9",), {NODES[1]: f"{SILENT} [no-banner]"})


def test_it_ends_after_at_most() -> None:
    script = Script([reports(HERE, AWAY)])
    assert go(script, at_most=100.0) == 4
    assert sum(script.waits()[:-1]) < 100.0 <= sum(script.waits())


def test_no_wait_is_longer_than_the_time_that_is_left() -> None:
    script = Script([reports(HERE, AWAY)])
    assert go(script, at_most=18.0) == 4
    assert script.waits() == [5.0, 10.0, 3.0]


def test_ctrl_c_ends_the_wait_and_prints_how_to_continue() -> None:
    script = Script([reports(HERE, AWAY)], stop_at=20.0)
    assert go(script) == 130
    assert isinstance(script.told[-1], Unfinished)
    assert script.proofs[NODES[0]] is Proven.PROVEN, "completed reverts are still proven"


def test_ctrl_c_during_a_retry_counts_and_nothing_is_started_after_it() -> None:
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r9"))], asked_in=2)
    assert go(script) == 130
    assert script.orders == [{NODES[0]: "r9-1"}]
    assert script.told[-1] == Unfinished(("r9",), {NODES[1]: f"{SILENT} [no-banner]"})


@pytest.mark.parametrize("where", ["wait", "read 2", "run 2"])
def test_an_immediate_stop_after_reverts_prints_how_to_continue(where: str) -> None:
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r9"))], cut_in=where)
    assert go(script) == 130
    last = script.told[-1]
    assert isinstance(last, Unfinished)
    assert set(last.owed) == {NODES[1]}
    assert script.proofs == {NODES[0]: Proven.PROVEN, NODES[1]: Proven.UNKNOWN}


def test_an_immediate_stop_in_the_first_run_lists_the_nodes_not_seen_reverted() -> None:
    script = Script([reports(HERE, AWAY)], cut_in="run 1")
    assert go(script) == 130
    last = script.told[-1]
    assert isinstance(last, Unfinished)
    assert set(last.owed) == set(NODES[:2])


def test_a_stop_before_the_first_run_prints_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        go(Script([reports(HERE, AWAY)], cut_in="read 1"))


@pytest.mark.parametrize(
    ("came", "why"),
    [
        (said(NODES[1], "r12"), "its newest transaction is of run r12"),
        (said(NODES[1], "r9", state="reverted", live="r13", token=13), "run r13 has claimed it"),
        (said(NODES[1], "r3", live="r3"), "run r3 has claimed it"),
        (said(NODES[1]), "it has no transaction of rollout"),
    ],
)
def test_a_node_that_another_run_holds_by_now_is_left_alone(came: Report, why: str) -> None:
    """A command that was forgotten in a terminal must not revert tomorrow's change."""
    script = Script([reports(HERE, AWAY), reports(HERE, came)])
    assert go(script) == 0
    assert script.orders == [{NODES[0]: "r9-1"}]
    assert LeftTo({NODES[1]: why}) in script.told


@pytest.mark.parametrize("token", [10, 13])
def test_a_node_that_a_newer_run_holds_with_the_change_on_it_is_unknown(token: int) -> None:
    """The newer run decides about the change. No reading has shown it reverted."""
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r9", live="r13", token=token))])
    assert go(script) == 4
    assert script.orders == [{NODES[0]: "r9-1"}]
    assert LeftTo({NODES[1]: "run r13 has claimed it"}) in script.told
    assert script.proofs == {NODES[0]: Proven.PROVEN, NODES[1]: Proven.UNKNOWN}


def test_a_node_with_the_claim_of_an_older_emergency_is_taken_over() -> None:
    """Its controller was killed, so nothing else would revert that node."""
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r9", live="e-before", token=9))])
    assert go(script) == 0
    assert script.orders == [{NODES[0]: "r9-1"}, {NODES[1]: "r9-1"}]
    assert script.proofs == dict.fromkeys(NODES[:2], Proven.PROVEN)


def test_an_impossible_token_does_not_make_other_claims_look_older() -> None:
    lie = said(NODES[1], "r9", token=10**13)
    script = Script(
        [
            reports(HERE, AWAY, silent(NODES[2])),
            reports(HERE, lie, silent(NODES[2])),
            reports(HERE, lie, said(NODES[2], "r9", live="r13", token=13)),
        ]
    )
    assert go(script, names=NODES[:3]) == 4
    assert LeftTo({NODES[2]: "run r13 has claimed it"}) in script.told


@pytest.mark.parametrize(("ending", "code"), [(Ending.INTERRUPTED, 130), (Ending.CLAIMED, 5)])
def test_no_round_follows_a_run_that_did_not_end_as_done(ending: Ending, code: int) -> None:
    script = Script([reports(HERE, AWAY)], endings=[ending])
    assert go(script) == code
    assert not script.waits()


# ------------------------------------------------------------------------------------------------------ others' cordons


def test_runs_that_still_hold_a_node_keep_their_cordons() -> None:
    """Cordons of selected runs, of dead runs that it took over, and of ended runs are not needed any more."""
    at_work = reports(
        said(NODES[0], "r9"), said(NODES[1], "r3", live="r3"), said(NODES[2], "r2"), said(NODES[3], live="r5"),
        said(NODES[4], live="r9"), silent(NODES[5]),
    )  # fmt: skip
    work = rollback(Script([at_work]), at_most=0.0)
    assert work.run(NODES) == 4
    assert work.has_them
    assert work.others() == {"r3"}
    later = rollback(Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r9", live="r13", token=13))]))
    assert later.run(NODES[:2]) == 4
    assert later.others() == {"r13"}


@pytest.mark.parametrize("ending", [Ending.CLAIMED, Ending.PREFLIGHT])
def test_a_run_that_lost_its_nodes_lifts_no_cordon(ending: Ending) -> None:
    work = rollback(Script([reports(HERE, AWAY)], endings=[ending]))
    work.run(NODES[:2])
    assert not work.has_them
    cut = rollback(Script([reports(HERE, AWAY)], cut_in="run 1"))
    cut.run(NODES[:2])
    assert not cut.has_them


def test_every_run_includes_runs_of_nodes_that_were_unreachable_at_first() -> None:
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r3"))])
    assert go(script, wanted=RunsToRevert(every=True)) == 0
    assert script.orders == [{NODES[0]: "r9-1"}, {NODES[1]: "r3-1"}]
    assert script.proofs == dict.fromkeys(NODES[:2], Proven.PROVEN)


def test_every_run_excludes_runs_that_started_after_the_emergency() -> None:
    script = Script([reports(HERE, AWAY), reports(HERE, said(NODES[1], "r12"))])
    assert go(script, wanted=RunsToRevert(every=True)) == 0
    assert script.orders == [{NODES[0]: "r9-1"}]
    assert LeftTo({NODES[1]: "its newest transaction is of run r12"}) in script.told


@pytest.mark.parametrize(("changed", "code"), [(True, 4), (False, 0)])
@pytest.mark.parametrize("at_first", [True, False])
def test_a_node_that_answers_without_a_receipt_is_no_success_if_the_journal_has_it_as_changed(
    *, changed: bool, code: int, at_first: bool
) -> None:
    lost = reports(HERE, said(NODES[1]))
    script = Script(
        [lost] if at_first else [reports(HERE, AWAY), lost], changed=frozenset(NODES[1:2] if changed else ())
    )
    assert go(script) == code
    assert script.proofs == {NODES[0]: Proven.PROVEN} | ({NODES[1]: Proven.UNKNOWN} if changed else {})
    first = script.told[0]
    assert isinstance(first, Emergency)
    assert first.without == (NODES[1:2] if at_first else ())
