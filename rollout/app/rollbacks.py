"""What is to be taken back: a run by its journal, or the runs that the nodes alone know of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from rollout.app.runs import check_in_inventory
from rollout.core.model.inventory import Inventory, Role, role_of
from rollout.core.model.playbook import Limits, Share
from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.plans.planning import rack_sizes, zone_sizes
from rollout.core.plans.receipt_history import OnNodes, highest_token, on_nodes
from rollout.core.run.order import revert_order
from rollout.core.run.state import LeftOut, NodeState, Order, Phase, RunState
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError

EMERGENCY_ZONE = Share(percent=50.0)
"""How much of a zone may be away at once where nothing else is said, and where there is more than one zone."""

_HOLDING = frozenset(
    {
        NodeState.CONFIRMED, NodeState.APPLIED, NodeState.APPLYING, NodeState.REVERTING, NodeState.UNKNOWN,
        NodeState.UNREACHABLE,
    }
)  # fmt: skip


def rollback_order(
    state: RunState, run: str, chosen: frozenset[str], inventory: Inventory, limits: Limits, *, force: bool
) -> Order:
    """The order that takes a run back from those of its nodes that may hold its change.

    A run that has not ended holds all its nodes: who was not touched yet is only set free.
    """
    claimed = state.phase is not Phase.ENDED
    transactions = {
        name: state.transaction(name)
        for name, record in state.nodes.items()
        if name in chosen and (claimed or record.state in _HOLDING or record.owed)
    }
    return _revert_order(run, inventory, transactions, limits, force=force)


def _revert_order(
    run: str,
    inventory: Inventory,
    transactions: Mapping[str, str],
    limits: Limits,
    left_out: tuple[LeftOut, ...] = (),
    *,
    force: bool,
) -> Order:
    check_in_inventory(transactions, inventory, "use --limit")
    racks = rack_sizes(inventory)
    rack_of = {name: inventory.nodes[name].rack for name in transactions}
    singly = [name for name in transactions if role_of(inventory.nodes[name].labels) is Role.CONTROL_PLANE]
    zones = zone_sizes(inventory)
    if limits.per_zone is None and len(zones) > 1:
        limits = replace(limits, per_zone=EMERGENCY_ZONE)
    zone_of = {name: inventory.nodes[name].zone for name in transactions}
    return revert_order(
        run,
        inventory.cluster,
        transactions,
        rack_of,
        racks,
        limits,
        left_out,
        force=force,
        singly=singly,
        zone_of=zone_of,
        zones=zones,
    )


@dataclass(frozen=True, slots=True)
class RunsToRevert:
    """Which runs an emergency is to take back: those named, ``every`` one (each node's newest), or else the newest."""

    runs: tuple[str, ...] = ()
    every: bool = False


@dataclass(frozen=True, slots=True)
class Emergency:
    """What the nodes alone say: which runs are meant, who is to be taken back, who is back already, who did not answer."""

    picked: tuple[str, ...]
    order: Order
    counter: int
    seen: OnNodes
    already: Mapping[str, str]  # node → its transaction, taken back already


def emergency(
    reports: Mapping[str, Report],
    run: str,
    picked: tuple[str, ...],
    inventory: Inventory,
    limits: Limits,
    *,
    force: bool,
    known: frozenset[str] = frozenset(),
) -> Emergency:
    """Take back the ``picked`` runs from those nodes only whose newest transaction is in them.

    Taking it back makes that transaction ``reverted``, still the newest: repeating steps no further back. Nodes that a
    run holds and has not touched are set free: asked for a transaction that they do not have. So are those that took
    their change back by themselves, while nobody could reach them. Not those that a run holds which is on nodes and
    stays: it was said so. (An emergency that died is on none.) ``known``: runs that were on nodes read before.
    """
    seen = on_nodes(reports)
    others = (known | seen.known_runs).difference(picked)
    held = {name: receipt for name, receipt in seen.newest.items() if receipt.run in picked}
    todo = {name: receipt.tx for name, receipt in held.items() if receipt.state is not ReceiptState.REVERTED}
    todo |= {name: receipt.tx for name, receipt in held.items() if name not in todo and held_by(reports[name], others)}
    already = {name: receipt.tx for name, receipt in held.items() if name not in todo}
    todo |= {
        name: f"{run_of}-1"
        for name, report in reports.items()
        if name not in held and (run_of := held_by(report, others))
    }
    unasked = tuple(
        LeftOut("silent", f"did not answer; owed: {for_all(why, names)}", fold(names), len(names))
        for why, names in folded(seen.silent).items()
    )
    order = _revert_order(run, inventory, todo, limits, unasked, force=force)
    return Emergency(picked, order, highest_token(reports) + 1, seen, already)


def pick(seen: OnNodes, wanted: RunsToRevert) -> tuple[str, ...]:
    """The runs that are meant, by what the nodes that answered know of. Raises ``UsageError``.

    Where none is said, the newest that can be one. It may be on few nodes, or on one: a rollout that has reached its canary
    looks so, and a forged receipt too; ``seen_lines`` says then what most nodes hold.
    """
    if not seen.newest:
        away = [
            f"{counted(len(names), 'node')} did not answer, {fold(names)}: {for_all(why, names)}"
            for why, names in folded(seen.silent).items()
        ]
        raise UsageError(
            "nothing-to-take-back",
            "no node that answered holds a transaction of ours",
            hint=printable("; ".join(away), 600),
        )
    for run in wanted.runs:
        if not seen.known(run):
            hint = did_you_mean(run, [each.run for each in seen.runs])
            raise UsageError(
                "no-such-run", f"no node that answered holds a transaction of `{printable(run)}`", hint=hint
            )
    if wanted.every:
        return tuple(each.run for each in seen.runs)
    if wanted.runs:
        return wanted.runs
    if seen.newest_run is None:
        raise UsageError(
            "false-counters",
            "what the nodes say of their runs cannot be true, so none of them is known to be the newest",
            hint="say RUN, or --every-run: " + printable(", ".join(each.run for each in seen.runs), 300),
        )
    return (seen.newest_run.run,)


def held_by(report: Report, others: Collection[str]) -> str:
    """The run that still has a claim on a node, unless it is one of ``others``, who keep theirs; or ``""``."""
    token = report.token
    return token.run if token is not None and token.live and token.run not in others else ""
