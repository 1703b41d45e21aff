"""Reverts that the journal does not have: an emergency rollback with another journal is known only to the receipts of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace

from rollout.app.following import headers_of, replay_if_readable, rollbacks_of
from rollout.app.isolation import Keep, keep_nothing
from rollout.app.node_access import NodeAccess, only
from rollout.app.node_histories import Histories, cluster_history
from rollout.app.ports import Nodes, PastRuns
from rollout.app.reading import read_receipts
from rollout.app.verify import verifications
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.model.transactions import NodeTransaction
from rollout.core.model.verification import Verification
from rollout.core.presentation.nothing_to_do import ANOTHER_RUN

READERS = 256
"""Nodes read in parallel: a thousand nodes that hang must not delay the others for minutes."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The nodes with a revert that the journal does not have.

    ``nodes``: their transactions as their receipts record them, a run for each. ``by``: node → the run that claimed it last,
    or ``ANOTHER_RUN`` if the journal has that run.
    """

    nodes: Histories = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)


NOWHERE = Elsewhere()


def reverted_elsewhere(
    journal: PastRuns, cluster: str, access: NodeAccess, nodes: Nodes, keep: Keep = keep_nothing
) -> Elsewhere:
    """Read every node of ``access``, without a claim. A node that does not answer is as the journal has it.

    The connections are kept. ``keep`` stores the trace of an answer that rollout fails on.
    """
    reports = read_receipts(access, nodes, READERS, keep=keep)
    history = cluster_history(journal, cluster).nodes
    known = {header.run for header in headers_of(journal, cluster)}
    unexpected = {name: tuple(_unexpected(history.get(name, ()), report, known)) for name, report in reports.items()}
    ours = {run: _ordered(journal, run) for runs in unexpected.values() for run in runs}
    odd = [name for name, runs in unexpected.items() if any(name not in ours[run] for run in runs)]
    found = verifications(only(access, odd), nodes, keep) if odd else {}
    there = {name: each for name, each in found.items() if isinstance(each, Verification)}
    by = {
        name: each.token.run if each.token.run and each.token.run not in known else ANOTHER_RUN
        for name, each in there.items()
    }
    return Elsewhere({name: tuple(_by_run(each)) for name, each in there.items()}, by)


def _unexpected(history: tuple[NodeTransaction, ...], report: Report, known: Collection[str]) -> Iterator[str]:
    """The runs with a newest receipt that is reverted, and with a change that the journal takes to be there.

    A run without a controller may have reverted it itself, unless another journal's run has claimed the node since.
    """
    newest: dict[str, Receipt] = {}
    for receipt in report.receipts:
        newest.setdefault(receipt.run, receipt)
    claimed_by_another = report.token is not None and report.token.run not in known
    there = {
        each.tx
        for each in history
        if each.state is ReceiptState.CONFIRMED or (each.state is ReceiptState.ARMED and claimed_by_another)
    }
    for run in newest.keys() & there:
        if newest[run].state is ReceiptState.REVERTED and newest[run].cause == "asked":
            yield run


def _ordered(journal: PastRuns, run: str) -> Collection[str]:
    """The nodes where a rollback of this journal was to revert a run: it may have, without an answer."""
    found: set[str] = set()
    for rollback in rollbacks_of(journal, run):
        state = replay_if_readable(journal, rollback)
        if state is None:  # of another version: of no node it is known whether it was to revert it
            source = replay_if_readable(journal, run)
            found.update(source.nodes if source is not None else ())
            continue
        found.update(name for name in state.nodes if state.transaction(name).rpartition("-")[0] == run)
    return found


def _by_run(found: Verification) -> Iterator[NodeTransaction]:
    """The oldest first; of a run that changed the node more than once, the last."""
    seen: dict[str, NodeTransaction] = {}
    for each in found.transactions:
        seen.setdefault(each.tx.rpartition("-")[0], each)
    yield from (replace(each, tx=run) for run, each in reversed(seen.items()))
