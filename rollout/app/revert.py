"""Reverts a run by its journal: what later runs did since, the run that reverts, and the proof on every node."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import replace

from rollout.app.call import CallPorts, CordonsResult, Operator
from rollout.app.chosen_run import chosen_run
from rollout.app.config_map_restores import to_restore
from rollout.app.following import LOOK_BACK, headers_of, last_revert_times, order_of, plan_of, replay, silences_left
from rollout.app.freezes import freeze_in
from rollout.app.ports import Journal, Nodes
from rollout.app.proofs import promised_files, prove
from rollout.app.reverted_elsewhere import NOWHERE, reverted_elsewhere
from rollout.app.rollbacks import NOTHING_SINCE, SinceRun, control_plane_of, rollback_order, since_run
from rollout.app.runs import Tools, highest_counter, listed_nodes, start_revert
from rollout.app.start_times import PASSES, closed_lines
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.fleet_changes import is_their_list
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Limits, RevertTimes
from rollout.core.model.proof import NodeProof, Proven, as_before
from rollout.core.plans.required_back_ends import Needs
from rollout.core.presentation.emergency_text import predicted_lines
from rollout.core.presentation.freeze_text import noted_line
from rollout.core.presentation.left_silences import left_silences_lines
from rollout.core.presentation.nothing_to_do import NothingToRevertDocument, not_reverted_lines, nothing_to_revert
from rollout.core.presentation.rollback_time import node_time, time_back
from rollout.core.presentation.summary import exit_code
from rollout.core.run.facts import may_hold
from rollout.core.run.state import Ending, NodeState, Order, RunState
from rollout.core.text.nodesets import limited
from rollout.core.text.terminal import counted
from rollout.errors import StateError


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as it ended. ``cordons`` of the run that it reverts; ``proofs``: ``None`` without a rollback that is done."""

    state: RunState
    cordons: CordonsResult | None = None
    proofs: tuple[NodeProof, ...] | None = None

    @property
    def exit_code(self) -> int:
        return exit_code(self.state) or (0 if self.proofs is None or as_before(self.proofs) else 4)


@dataclass(frozen=True, slots=True)
class NothingReverted:
    """No node was touched. The run's cordons are lifted all the same."""

    cordons: CordonsResult
    document: NothingToRevertDocument


def revert_run(
    call: CallPorts, operator: Operator, run: str, limit: str, limits: Limits, *, force: bool
) -> RunResult | NothingReverted:
    """Revert what no other run has reverted since, on the nodes of ``limit`` (``""``: on all)."""
    journal = call.past()
    source = replay(journal, chosen_run(call, journal, run))
    inventory = call.inventory_or_remembered(source.order.cluster)
    chosen = frozenset(limited(limit, inventory))
    with closing(call.nodes()) as nodes:
        since = since_by_nodes(call, journal, source, inventory, nodes, chosen)
        back = {by: mine for by, names in since.rolled_back.items() if (mine := tuple(sorted(chosen & set(names))))}
        order = rollback_order(
            source, call.new_run_id(), chosen if limit else None, inventory, limits, since, force=force
        )
        operator.show(not_reverted_lines(back, since.elsewhere, order.left_out))
        if not order.nodes and order.config_map is None:
            cordons = call.lift_cordons_of(journal, inventory, source, chosen)  # the run may have left some
            found = nothing_to_revert(source.order.run, back, since.elsewhere, order.left_out)
            return NothingReverted(cordons, found)
        operator.tell(passed_lines(call, inventory, plan_of(journal.header(source.order.run))))
        if freeze := freeze_in(journal, order.cluster):
            operator.tell((f"{noted_line(freeze)}; {PASSES}",))
        operator.show(predicted_lines(time_back(order, node_time(known_revert_times(call, order.cluster)))))
        now = call.clock.now()
        if left := silences_left(journal, source.order.run, now):
            said = left_silences_lines(left, source.order.run, now)
            operator.show(("the run's silences are not lifted; they expire by themselves:", *said))
        if order.config_map is not None:
            operator.show(
                (
                    f"restores {order.config_map.title} before the first revert, if it is as {_written_by(source, order.config_map)} wrote it",
                )
            )
        operator.confirm(order.cluster, will_be_reverted(order))
        return revert_by_journal(call, journal, source, order, inventory, chosen, since, nodes)


def will_be_reverted(order: Order) -> str:
    if not order.nodes and order.config_map is not None:
        return f"only {order.config_map.title}, of {order.cluster} will be restored"
    return f"{counted(len(order.nodes), 'node')} of {order.cluster} will be reverted"


def _written_by(source: RunState, change: ConfigMapChange) -> str:
    """``change``: what restores it."""
    mine = source.order.config_map
    if mine is None or change.before == mine.after:
        return "this run"
    return "the newest run (what newer runs wrote there without a change of nodes is undone with it)"


def passed_lines(call: CallPorts, inventory: Inventory, plan: Plan | None) -> tuple[str, ...]:
    """A rollback waits for nothing and nobody: what a run would wait for here."""
    conditions = (*inventory.conditions, *(plan.conditions if plan is not None else ()))
    passed = dict.fromkeys(each.passed for each in conditions if each.passed)
    return (*closed_lines(conditions, call.start_times, PASSES), *passed)


def since_by_nodes(
    call: CallPorts, journal: Journal, source: RunState, inventory: Inventory, nodes: Nodes, chosen: Collection[str]
) -> SinceRun:
    """What later runs did to the nodes of a run, by the journal and by the receipts of those that may have its change."""
    held = (name for name, record in source.nodes.items() if may_hold(record))
    there = tuple(name for name in held if name in chosen and name in inventory.nodes)
    elsewhere = NOWHERE
    if there:
        access = call.access(inventory, there)
        elsewhere = reverted_elsewhere(journal, source.order.cluster, access, nodes, call.keep)
    return replace(since_run(journal, source.order.run, elsewhere), config_map=to_restore(journal, source))


def known_revert_times(call: CallPorts, cluster: str) -> RevertTimes | None:
    """``None`` if the journal cannot be read: an emergency does not wait for it."""
    try:
        return last_revert_times(call.past(), cluster)
    except StateError:
        return None


def known_control_plane(call: CallPorts, cluster: str) -> frozenset[str]:
    """The nodes that the last runs have seen to be of the control plane; none if the journal cannot be read.

    A run that another version of rollout wrote tells nothing.
    """
    seen: set[str] = set()
    with suppress(StateError):
        past = call.past()
        for known in headers_of(past, cluster)[:LOOK_BACK]:
            with suppress(StateError):
                seen.update(control_plane_of(order_of(past.header(known.run)).waves))
    return frozenset(seen)


def other_fleet_lines(call: CallPorts, inventory: Inventory) -> tuple[str, ...]:
    """For emergencies, which go on all the same: the list of nodes may be of another cluster. Nothing if the journal cannot be read."""
    try:
        past = call.past()
        newest = next(iter(headers_of(past, inventory.cluster)), None)
        names = order_of(past.header(newest.run)).nodes if newest is not None else {}
    except StateError:
        return ()
    if newest is None or is_their_list(names, inventory.nodes):
        return ()
    there = sum(name in inventory.nodes for name in names)
    run = f"the {len(names)} nodes of {newest.run}, the newest run of {inventory.cluster}"
    return (f"the inventory lists {listed_nodes(inventory)}, and {there} of {run}: it may list another cluster",)


def revert_by_journal(
    call: CallPorts, journal: Journal, source: RunState, order: Order, inventory: Inventory, chosen: Collection[str],
    since: SinceRun = NOTHING_SINCE, nodes: Nodes | None = None,
) -> RunResult:  # fmt: skip
    """Revert ``source`` as ordered, lift its cordons on the ``chosen`` nodes and prove the nodes.

    ``since``: nodes that it lists as reverted elsewhere are only released. ``nodes``: open connections (``None``: new ones).
    """
    counter = max(highest_counter(journal, order.cluster), source.counter, source.highest) + 1
    already = frozenset(name for names in since.elsewhere.values() for name in names)
    with (
        call.back_ends(inventory, Needs()) as back_ends,
        call.tools(journal, order.limits.in_flight, back_ends, nodes=nodes) as tools,
    ):
        state = start_revert(order, counter, call.access(inventory, tuple(order.nodes)), tools)
        cordons = call.lift_cordons_of(journal, inventory, source, chosen)
        if state.ending is not Ending.DONE:
            return RunResult(state, cordons)
        return RunResult(state, cordons, proofs_of(call, journal, state, inventory, tools, already))


def proofs_of(
    call: CallPorts,
    journal: Journal,
    state: RunState,
    inventory: Inventory,
    tools: Tools,
    already: Collection[str] = (),
) -> tuple[NodeProof, ...]:
    """Read every node that a rollback has reached, and compare it with what the rollback promises.

    Nodes that left since are not read: only what is in the fleet has an address. ``already``: nodes that had no change of the
    run before the rollback; it does not count them as reverted.
    """
    asked = {name: tx for name, tx in to_be_proven(state).items() if name in inventory.nodes}
    access = call.access(inventory, tuple(asked))
    proofs = prove(access, tools.nodes, asked, left_behind(state), tools.keep, promised_files(journal, asked))
    return tuple(
        replace(proof, proven=Proven.UNCHANGED) if proof.node in already and proof.proven is Proven.PROVEN else proof
        for proof in proofs
    )


def to_be_proven(state: RunState) -> Mapping[str, str]:
    """Node → transaction, of nodes that were reached. The others have a pending recovery and an unknown state."""
    away = (NodeState.UNREACHABLE, NodeState.UNKNOWN)
    return {name: state.transaction(name) for name, record in state.nodes.items() if record.state not in away}


def left_behind(state: RunState | None) -> Mapping[str, tuple[str, ...]]:
    return {name: record.leftovers for name, record in state.nodes.items()} if state else {}
