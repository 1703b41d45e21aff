"""One run with its fault: it is healed and resumed to its end, every node is judged, and everything is reverted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rollout.core.run.state import Ending, Phase, RunState
from tests.chaos.draws import Draw, Kind
from tests.chaos.fault import Fault
from tests.chaos.faults import FAULTS, OTHER_STATE
from tests.chaos.findings import Finding, Harm, Seen, fenced, findings, is_new, repeated
from tests.chaos.instants import LOOK_EVERY, let_go, reach, set_up
from tests.chaos.look import is_under_way, renames
from tests.chaos.site import CLUSTER, PATIENCE, Site
from tests.chaos.watch import Watch
from tests.controllers import Process, until

QUICK = ("--per-rack", "100%", "--yes")
"""The limits of the final rollback: no one uses these nodes."""

MOST_TURNS = 6
LEASE = 30.0
MOMENT = 5.0


@dataclass
class Result:
    """The result of one run."""

    draw: Draw
    reached: bool = False  # the fault began while the run was in progress
    at: float = 0.0  # seconds after its begin
    resumed: int = 0
    saved_themselves: int = 0
    confirmed: int = 0
    applied: int = 0  # changes of a node by the run, counted on the nodes
    longest: float = 0.0  # seconds until all nodes that were armed or being reverted at the fault had ended that
    took: float = 0.0
    words: Mapping[str, str] = field(default_factory=dict)  # node → its state and reference at the end of the run
    findings: tuple[Finding, ...] = ()
    seen: tuple[Seen, ...] = field(default=(), repr=False)

    def count(self, harm: Harm) -> int:
        return sum(finding.harm is harm for finding in self.findings)


def trial(site: Site, draw: Draw) -> Result:
    """Carry it out. The result contains the findings. Without findings the nodes are as before afterwards."""
    result, began = Result(draw), time.monotonic()
    site.fresh(f"run-{draw.number}")
    site.plan_for(draw)
    fault = FAULTS[draw.kind](site, draw)
    unhealthy = frozenset(node.name for node in fault.nodes) if fault.makes_unhealthy() else frozenset()
    with Watch(site.nodes, site.limits, unhealthy) as watch:
        try:
            found = _disturbed(site, draw, fault, watch, result)
            found += _judged(site, draw, fault, result)
        except Exception as error:  # noqa: BLE001 - any exception is a finding of this run, and the other runs continue
            found = (Finding(Harm.BROKEN, "run", f"{type(error).__name__}: {error}"),)
    if not found:
        found = _taken_back(site, draw, fault)
    found += tuple(Finding(Harm.LEFT, "cluster", text) for text in fault.left())
    fault.end()
    result.saved_themselves, result.longest = watch.saved_themselves(), watch.longest()
    result.findings = (*found, *watch.findings())
    result.took = time.monotonic() - began
    return result


def _disturbed(site: Site, draw: Draw, fault: Fault, watch: Watch, result: Result) -> tuple[Finding, ...]:
    """The run from its start to its end, with all commands that were needed to finish it."""
    fault.prepare()
    set_up(site, draw)
    began = time.monotonic()
    with site.begun("apply", "p.json", "--yes") as controller:
        fault.controller = controller
        result.reached = reach(site, draw, controller)
        result.at = time.monotonic() - began
        watch.strike()
        fault.strike()
        let_go(site, draw)
        found: tuple[Finding, ...] = ()
        if draw.kind is Kind.FROZEN and controller.poll() is None:
            found = _thawed(site, draw, fault, controller)
        elif fault.throughout:
            _wait(controller)
        else:
            _sleep(draw.seconds)
        fault.heal()
        _wait(controller)
    if draw.alone:
        _saved(site, fault)
    result.resumed = _to_its_end(site)
    return found


def _saved(site: Site, fault: Fault) -> None:
    """Wait until every armed node has reverted its change, and do what its operator is told to do."""

    def have_saved_themselves() -> bool:
        fault.mend()
        return not any(map(is_under_way, site.nodes))

    until(have_saved_themselves, site.guard + PATIENCE, "the nodes save themselves")


def _sleep(seconds: float) -> None:
    """Wait while the fault lasts."""
    time.sleep(seconds)


def _wait(controller: Process) -> None:
    """Wait until it has ended in any way; a killed one has."""
    controller.wait(PATIENCE)


def _thawed(site: Site, draw: Draw, fault: Fault, controller: Process) -> tuple[Finding, ...]:
    """Another machine takes over while the controller is frozen.

    Then the first one is thawed, in the middle or afterwards.
    """
    if draw.variant == "unlocked":
        reason = ("--reason", "its machine is gone")
        with site.begun(
            "cluster", "unlock", "--cluster", CLUSTER, "--force", "--yes", *reason, host="elsewhere"
        ) as unlock:
            unlock.wait(PATIENCE)
    else:
        _sleep(LEASE + 1.0)
    with site.begun("resume", "--yes", host="elsewhere") as other:
        if not _takes_over(site, other):  # frozen before it had journaled a run: after the thaw it begins the run
            fault.heal()
            _wait(controller)
            return ()
        if draw.fraction < 0.5:
            _sleep(draw.seconds)
            fault.heal()
            _wait(controller)
            _wait(other)
            return fenced(controller.wait(), site.said(), (), ())
        _wait(other)
    _saved(
        site, fault
    )  # the other controller may leave armed nodes to their guards: such reverts are not the thawed controller's
    before = site.look()
    fault.heal()
    _wait(controller)
    return fenced(controller.wait(), site.said(), before, site.look())


def _takes_over(site: Site, other: Process) -> bool:
    """Whether the other machine gets the lease before the run ends."""
    while other.poll() is None:
        holder = site.journal().holder(CLUSTER)
        if holder is not None and holder.host == "elsewhere":
            return True
        time.sleep(LOOK_EVERY)
    return False


END_CLAIMS = ("cluster", "unlock", "--cluster", CLUSTER, "--yes", "--reason", "its run has ended")
RECOVER = ("resume", "--recover-only", "--yes")


def next_words(run: RunState | None, resumed: int, said: Collection[tuple[str, ...]] = ()) -> tuple[str, ...]:
    """The command that rollout prints for the newest run; nothing if it has ended. ``said``: the commands given so far.

    Leftovers are still reported for a run that has ended; the nodes show whether that is true.
    """
    if run is None:
        return ("apply", "p.json", "--yes")
    if run.phase is not Phase.ENDED:
        return ("resume", "--yes")
    if any(record.leftovers for record in run.nodes.values()) and END_CLAIMS not in said:
        return END_CLAIMS
    if run.ending is Ending.PREFLIGHT:
        return ("apply", "p.json", "--yes")
    if run.ending is Ending.DONE:
        owed = any(record.owed for record in run.nodes.values()) and RECOVER not in said
        return RECOVER if owed else ()
    if run.ending is Ending.HALTED and resumed >= 2:
        return ()  # it was accepted twice, and halts again
    return ("resume", "--yes")


def _to_its_end(site: Site) -> int:
    """How often the run had to be resumed."""
    said: list[tuple[str, ...]] = []
    for turn in range(MOST_TURNS):
        words = next_words(site.newest(), turn, said)
        if not words:
            return turn
        said.append(words)
        site.rollout(*words)
    raise RuntimeError(f"after {MOST_TURNS} times it has still not ended")


def _judged(site: Site, draw: Draw, fault: Fault, result: Result) -> tuple[Finding, ...]:
    others = _others(draw)
    result.seen, found = _lasting(site, fault, lambda seen: site.word(seen, others))
    result.confirmed = sum(is_new(seen, site.known[seen.node]) for seen in result.seen)
    run = site.newest()
    result.words = {name: f"{record.state} [{record.reference}]" for name, record in run.nodes.items()} if run else {}
    said = [(node.name, fault.unexplained(run.nodes[node.name])) for node in fault.nodes] if run else []
    for node in site.nodes:
        applied = renames(node)
        result.applied += len(applied)
        found += repeated(node.name, applied)
    return (*found, *(Finding(Harm.UNTRUE, name, text) for name, text in said if text))


def _lasting(site: Site, fault: Fault, word: Callable[[Seen], str]) -> tuple[tuple[Seen, ...], tuple[Finding, ...]]:
    """The findings that remain a few seconds later: a process that was just told to end needs a moment."""
    end = time.monotonic() + max(
        MOMENT, site.undisturbed
    )  # less than the guard's time, so that a revert by the guard is a finding
    while True:
        every = _own(site, fault)
        found = tuple(each for seen in every for each in findings(seen, site.known[seen.node], word(seen)))
        if not found or time.monotonic() > end:
            return every, found
        _sleep(0.5)


def _own(site: Site, fault: Fault) -> tuple[Seen, ...]:
    return tuple(fault.own(seen, site.known[seen.node]) for seen in site.look())


def _others(draw: Draw) -> Sequence[str]:
    return (OTHER_STATE,) if draw.kind is Kind.TWO and "another journal" in draw.variant else ()


def _taken_back(site: Site, draw: Draw, fault: Fault) -> tuple[Finding, ...]:
    """Revert everything, by the journal or by what the nodes report. Then every node is as it was found."""
    changed = [seen for seen in _own(site, fault) if is_new(seen, site.known[seen.node])]
    if not changed:
        return ()
    runs = {seen.receipts[-1]["run"] for seen in changed}  # a later run may have changed nothing
    if draw.emergency or _others(draw) or len(runs) > 1:
        back = site.rollout("rollback", "--cluster", CLUSTER, "--emergency", *QUICK, state="emergency")
    else:
        back = site.rollout("rollback", *runs, *QUICK)
    _, found = _lasting(site, fault, lambda _: "reverted")
    if back.code != 0:
        found = (Finding(Harm.BROKEN, "rollback", f"it ended with {back.code}: {back.all[-400:]}"), *found)
    return found
