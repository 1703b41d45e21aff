"""What is to be taken back: a run by its journal, or the newest one that the nodes alone know of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.app.reading import highest_token
from rollout.app.runs import check_in_inventory
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Limits
from rollout.core.model.report import Outcome, Report
from rollout.core.model.roles import Role, role_of
from rollout.core.plans.planning import rack_sizes
from rollout.core.run.order import revert_order
from rollout.core.run.state import LeftOut, NodeState, Order, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

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
    return revert_order(
        run, inventory.cluster, transactions, rack_of, racks, limits, left_out, force=force, singly=singly
    )


@dataclass(frozen=True, slots=True)
class Emergency:
    """What the nodes alone say: which run is the newest, who is to be taken back, who did not answer."""

    source: str
    order: Order
    counter: int
    silent: tuple[str, ...]
    already: tuple[str, ...]


def emergency(
    reports: Mapping[str, Report], run: str, source: str, inventory: Inventory, limits: Limits, *, force: bool
) -> Emergency:
    """Pick the newest run on the nodes (or ``source``) and only those nodes whose newest transaction is in it.

    Taking it back makes that transaction ``reverted``, still the newest: repeating steps no further back. Nodes that a
    run holds and has not touched are set free: asked for a transaction that they do not have. So are those that took
    their change back by themselves, while nobody could reach them.
    """
    newest = {name: report.receipts[0] for name, report in reports.items() if report.receipts}
    silent = tuple(name for name, report in reports.items() if report.outcome is not Outcome.DONE)
    if not newest:
        raise UsageError("nothing-to-take-back", "no node that answered holds a transaction of ours")
    known = {receipt.run for report in reports.values() for receipt in report.receipts}
    if source and source not in known:
        hint = did_you_mean(source, known)
        raise UsageError(
            "no-such-run", f"no node that answered holds a transaction of `{printable(source)}`", hint=hint
        )
    last = source or max(newest.values(), key=lambda receipt: receipt.counter).run
    held = {name: receipt for name, receipt in newest.items() if receipt.run == last}
    todo = {name: receipt.tx for name, receipt in held.items() if receipt.state != "reverted"}
    todo |= {name: receipt.tx for name, receipt in held.items() if name not in todo and _held_by(reports[name])}
    already = tuple(name for name in held if name not in todo)
    todo |= {
        name: f"{run_of}-1" for name, report in reports.items() if name not in held and (run_of := _held_by(report))
    }
    counter = highest_token(reports) + 1
    unasked = (LeftOut("silent", "did not answer; owed", fold(silent), len(silent)),) if silent else ()
    order = _revert_order(run, inventory, todo, limits, unasked, force=force)
    return Emergency(last, order, counter, silent, already)


def _held_by(report: Report) -> str:
    """The run that still has a claim on a node, or ``""``."""
    return report.token.run if report.token is not None and report.token.live else ""
