"""The proof of a rollback: reads every node again and judges it by its own receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from rollout.app.following import replay_if_readable
from rollout.app.isolation import READING_FAILED, Keep, attempt, keep_nothing, run_snapshot, run_verification
from rollout.app.node_access import NodeAccess
from rollout.app.node_histories import files_of_plans, rolled_back_since
from rollout.app.node_worker import READ_SECONDS, UNIT
from rollout.app.ports import Nodes, PastRuns, Target
from rollout.app.reading import each
from rollout.core.model.frozen import dataclass
from rollout.core.model.proof import BOOT_UNIT, NOTHING_PROMISED, NodeProof, proof_of
from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import Verification
from rollout.core.run.facts import may_hold
from rollout.core.run.state import NodeState
from rollout.kubelet.agent import agent_call
from rollout.kubelet.node.served import DEFAULT_HEALTHZ_PORT, healthz_port

NO_PLAN: Mapping[str, Mapping[str, str]] = MappingProxyType({})

_UNTOUCHED = frozenset({NodeState.PENDING, NodeState.SKIPPED, NodeState.REFUSED})

_NOT_THERE = frozenset({"refused", "timeout", "no-answer"})


def prove(
    access: NodeAccess,
    nodes: Nodes,
    transactions: Mapping[str, str],
    left: Mapping[str, tuple[str, ...]],
    keep: Keep = keep_nothing,
    promised: Mapping[str, Mapping[str, str]] = NO_PLAN,
) -> tuple[NodeProof, ...]:
    """Prove each node of ``access``. ``transactions``: node → what was reverted; ``left``: what cleanup could not remove.

    ``promised``: node → path → digest before the change, for nodes of which it is known. ``keep`` stores the trace of an answer that rollout fails on. That node is not proven.
    """

    def judged(target: Target, found: Verification | Unread) -> NodeProof:
        name = target.name
        return proof_of(found, transactions[name], left.get(name, ()), promised.get(name))

    def read(target: Target) -> NodeProof:
        name = target.name
        return attempt(
            name,
            lambda: judged(target, _found(access, nodes, target, tuple(promised.get(name, ())), keep)),
            lambda why: judged(target, Unread(name, READING_FAILED, why)),
            keep,
        )

    return tuple(each(access, nodes, read).values())


def promised_files(journal: PastRuns, transactions: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Node → path → digest before the change (``""``: absent), by the plan of each run; no path if the run has not touched the node.

    Nodes of runs that this journal does not have, or not a readable plan of, are left out.
    """
    files, touched = files_of_plans(journal), _touched(journal)
    found: dict[str, Mapping[str, str]] = {}
    for name, transaction in transactions.items():
        run = transaction.rpartition("-")[0]
        match touched(run).get(name):
            case False:
                found[name] = NOTHING_PROMISED
            case True if changed := files(run).get(name):
                found[name] = {file.path: file.before for file in changed}
    return found


@dataclass(frozen=True, slots=True)
class HeldWithoutReceipt:
    """Node → the transaction that the journal has there, and that no later run has reverted. ``promised`` as for ``prove``.

    ``unread``: runs that this journal does not show.
    """

    transactions: Mapping[str, str]
    promised: Mapping[str, Mapping[str, str]]
    unread: tuple[str, ...]


def held_without_receipt(journal: PastRuns, runs: Sequence[str], names: Sequence[str]) -> HeldWithoutReceipt:
    """``runs``, the newest first. ``names``: nodes that have no receipt."""
    listed = {header.run for header in journal.listed()}
    states = {run: replay_if_readable(journal, run) if run in listed else None for run in runs}
    transactions: dict[str, str] = {}
    for run, state in states.items():
        if state is None:
            continue
        back = {name for names in rolled_back_since(journal, run).values() for name in names}
        for name in names:
            record = state.nodes.get(name)
            if record is not None and may_hold(record) and name not in back and name not in transactions:
                transactions[name] = state.transaction(name)
    unread = tuple(run for run, state in states.items() if state is None)
    return HeldWithoutReceipt(transactions, promised_files(journal, transactions), unread)


def _touched(journal: PastRuns) -> Callable[[str], Mapping[str, bool]]:
    """Run → its nodes, and whether it may have changed them. None of a run that cannot be read."""

    @cache
    def touched(run: str) -> Mapping[str, bool]:
        if all(header.run != run for header in journal.listed()):
            return {}
        state = replay_if_readable(journal, run)
        return (
            {name: record.state not in _UNTOUCHED or record.owed for name, record in state.nodes.items()}
            if state
            else {}
        )

    return touched


def _found(
    access: NodeAccess, nodes: Nodes, target: Target, paths: tuple[str, ...], keep: Keep
) -> Verification | Unread:
    found = _asked(access, nodes, target, paths, DEFAULT_HEALTHZ_PORT, keep)
    if isinstance(found, Verification) and found.measurement.healthz in _NOT_THERE:
        return _asked_where_it_is(access, nodes, target, paths, found, keep)
    return found


def _asked_where_it_is(
    access: NodeAccess, nodes: Nodes, target: Target, paths: tuple[str, ...], found: Verification, keep: Keep
) -> Verification | Unread:
    """The kubelet may serve healthz on another port: its files contain the port."""
    command = agent_call.snapshot(access.program, unit=UNIT, sudo=access.sudo[target.name], deadline=READ_SECONDS)
    snapshot = run_snapshot(nodes, target, command, keep)
    if isinstance(snapshot, Unread):
        return replace(found, measurement=replace(found.measurement, healthz=None))
    port = healthz_port(snapshot)
    return found if port == DEFAULT_HEALTHZ_PORT else _asked(access, nodes, target, paths, port, keep)


def _asked(
    access: NodeAccess, nodes: Nodes, target: Target, paths: tuple[str, ...], port: int, keep: Keep
) -> Verification | Unread:
    command = agent_call.verify(
        access.program,
        unit=UNIT,
        paths=(BOOT_UNIT, *paths),
        sudo=access.sudo[target.name],
        deadline=READ_SECONDS,
        healthz_port=port,
    )
    return run_verification(nodes, target, command, keep)
