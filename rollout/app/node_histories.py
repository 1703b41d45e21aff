"""What runs did to each node, from the journal alone: the same transactions as the node's receipts, a run for each.

Ended runs are read from their summaries, so a hundred of them take no time. Files come from plans. Plans are read only for
nodes where a run was reverted below a newer one: there a file decides which of the two is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from rollout.app.following import headers_of, plan_of, rolled_back_directly, summary_of
from rollout.app.ports import PastRuns
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.transactions import UNDER_WAY, FileVersions, NodeTransaction, in_force, undone_at
from rollout.core.model.verification import KUBEADM_CONFIG
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.state import Goal, NodeState
from rollout.core.text.nodesets import expand
from rollout.errors import UsageError

Histories = Mapping[str, tuple[NodeTransaction, ...]]
"""Node → its transactions, the oldest first. A transaction is named by its run."""

FilesOf = Callable[[str], Mapping[str, tuple[FileVersions, ...]]]
"""Run → node → what the run's plan replaces there; nothing for a plan of another version."""

NOTHING_READ: Histories = MappingProxyType({})

_PERHAPS = (NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING, NodeState.UNREACHABLE, NodeState.UNKNOWN)
"""States in which a run may have changed a node: what its files should hold is not known."""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """One run: the nodes that it confirmed, and those that it may have changed; of a rollback: run → nodes reverted."""

    run: str
    confirmed: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    reverted: Mapping[str, tuple[str, ...]] | None = None


def histories(runs: Iterable[RunChanges]) -> Histories:
    """``runs``: the oldest first. The places of applies and reverts are those of the runs."""
    nodes: dict[str, dict[str, NodeTransaction]] = {}  # node → run → its transaction
    for place, changes in enumerate(runs, 1):
        for names, state in ((changes.confirmed, ReceiptState.CONFIRMED), (changes.perhaps, ReceiptState.ARMED)):
            for name in names:
                nodes.setdefault(name, {})[changes.run] = NodeTransaction(changes.run, state, place, ())
        for run, names in (changes.reverted or {}).items():
            for name in names:
                if (transaction := nodes.get(name, {}).get(run)) is not None:
                    nodes[name][run] = replace(transaction, state=ReceiptState.REVERTED, reverted_at=place)
    return {name: tuple(transactions.values()) for name, transactions in nodes.items()}


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The transactions of the nodes of a cluster.

    * ``runs``: the run that each place is of, the place 1 first.
    * ``undone``: run → rollback → nodes where that rollback reverted another run, and with it took this one out of force.
    * ``restored``: run → nodes where it is reverted, and the forced revert of a newer run wrote its files again.
    """

    nodes: Histories
    runs: tuple[str, ...]
    undone: Mapping[str, Mapping[str, tuple[str, ...]]]
    restored: Mapping[str, frozenset[str]]

    def rolled_back(self, run: str, directly: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Rollback → nodes without the change of ``run`` since, the oldest rollback first. ``directly``: those that reverted it."""
        undone = self.undone.get(run, {})
        elsewhere = self.restored.get(run, frozenset()).union(*undone.values())
        without = {by: tuple(name for name in names if name not in elsewhere) for by, names in directly.items()}
        for by, names in undone.items():
            without[by] = (*without.get(by, ()), *names)
        return {by: without[by] for by in sorted(without, key=self._place) if without[by]}

    def _place(self, run: str) -> int:
        return self.runs.index(run) if run in self.runs else -1


def cluster_history(
    journal: PastRuns, cluster: str, spared: Collection[str] = (), read: Histories = NOTHING_READ
) -> ClusterHistory:
    """What the runs of a cluster did, with the files of nodes where they decide. ``spared``: as for ``changes_of_runs``.

    ``read``: nodes with receipts that count more than the journal.
    """
    changes = changes_of_runs(journal, cluster, spared)
    runs = tuple(change.run for change in changes)
    recorded = {name: transactions for name, transactions in histories(changes).items() if name not in read}
    mixed = [name for name, transactions in recorded.items() if _reverted_below(transactions)]
    concerned = {transaction.tx for name in mixed for transaction in recorded[name]}
    filled = with_files(recorded, mixed, concerned, files_of_plans(journal)) if mixed else {}
    undone: dict[str, dict[str, tuple[str, ...]]] = {}
    restored: dict[str, frozenset[str]] = {}
    for name, transactions in filled.items():
        for run, place in undone_at(transactions).items():
            by = undone.setdefault(run, {})
            by[runs[place - 1]] = (*by.get(runs[place - 1], ()), name)
    for name, transactions in {**filled, **read}.items():
        for transaction in in_force(transactions):
            if transaction.state is ReceiptState.REVERTED:
                restored[transaction.tx] = restored.get(transaction.tx, frozenset()) | {name}
    return ClusterHistory({**recorded, **filled, **read}, runs, undone, restored)


def _reverted_below(transactions: Sequence[NodeTransaction]) -> bool:
    """Whether one was reverted while a newer one was not."""
    applies = [(each.applied_at, False, each.tx) for each in transactions]
    reverts = [(each.reverted_at, True, each.tx) for each in transactions if each.reverted_at]
    standing: list[str] = []
    for _, is_revert, tx in sorted((*applies, *reverts)) if reverts else ():
        if not is_revert:
            standing.append(tx)
        elif standing.pop() != tx:
            return True
    return False


def rolled_back_since(journal: PastRuns, run: str) -> Mapping[str, tuple[str, ...]]:
    """Later rollback → the nodes where the change of ``run`` is not in force since, oldest first, as far as this journal knows."""
    history = cluster_history(journal, journal.header(run).cluster)
    return history.rolled_back(run, rolled_back_directly(journal, run))


def with_files(without: Histories, nodes: Collection[str], runs: Collection[str], files_of: FilesOf) -> Histories:
    """The histories of ``nodes``, with the files of ``runs``. Files that a node has reported itself are kept."""

    def filled(name: str, transaction: NodeTransaction) -> NodeTransaction:
        if transaction.tx not in runs or transaction.files:
            return transaction
        return replace(transaction, files=files_of(transaction.tx).get(name, ()))

    return {name: tuple(filled(name, each) for each in without[name]) for name in nodes if name in without}


def changes_of_runs(journal: PastRuns, cluster: str, spared: Collection[str] = ()) -> tuple[RunChanges, ...]:
    """The runs of a cluster, oldest first, from the first that can be read: an unreadable one may have reverted any before it.

    ``spared``: runs that are not looked at, because they are at work.
    """
    newest_first: list[RunChanges] = []
    for header in headers_of(journal, cluster):
        if header.run in spared:
            continue
        summary = summary_of(journal, header.run)
        if summary is None:
            break
        newest_first.append(_changes(header.run, header.goal, summary))
    return tuple(reversed(newest_first))


def _changes(run: str, goal: str, summary: RunSummary) -> RunChanges:
    if goal == Goal.REVERT:
        return RunChanges(run, reverted={of: expand(nodes) for of, nodes in summary.reverted.items()})
    owed = set(_nodes(summary.owed))
    failed = (name for name in _of(summary, NodeState.FAILED) if name in owed)
    perhaps = (*(name for state in _PERHAPS for name in _of(summary, state)), *failed)
    return RunChanges(run, _of(summary, NodeState.CONFIRMED), perhaps)


def _of(summary: RunSummary, state: NodeState) -> tuple[str, ...]:
    count = summary.nodes.get(state.value)
    return _nodes(count.nodes) if count else ()


def _nodes(nodeset: str) -> tuple[str, ...]:
    return expand(nodeset) if nodeset else ()


def files_of_plans(journal: PastRuns) -> FilesOf:
    """Reads each plan once."""

    @cache
    def files(run: str) -> Mapping[str, tuple[FileVersions, ...]]:
        plan = plan_of(journal.header(run))
        return files_of(plan) if plan is not None else {}

    return files


def files_of(plan: Plan) -> Mapping[str, tuple[FileVersions, ...]]:
    """Node → what the plan replaces there."""
    groups = {
        group.name: tuple(FileVersions(file.path, file.digest_before, file.digest_after) for file in group.change.files)
        for group in plan.groups
    }
    return {name: groups[node.group] for name, node in plan.nodes.items()}


def newest_in_force(nodes: Histories) -> Mapping[str, str]:
    """Node → the newest run with a change in force there; none for a node that a newer run may have changed."""
    newest: dict[str, str] = {}
    for name, transactions in nodes.items():
        confirmed = in_force(transactions)
        if confirmed and not any(
            each.state in UNDER_WAY and each.applied_at > confirmed[0].applied_at for each in transactions
        ):
            newest[name] = confirmed[0].tx
    return newest


def nodes_by_run(nodes: Histories, path: str) -> Mapping[str, tuple[str, ...]]:
    """Run → the nodes with its change in force on a file (all that it changed, if its files are not read)."""
    names_of: dict[str, list[str]] = {}
    for name, transactions in nodes.items():
        for transaction in in_force(transactions, path):
            names_of.setdefault(transaction.tx, []).append(name)
    return {run: tuple(names) for run, names in names_of.items()}


def newer_than(run: str, nodes: Histories) -> Mapping[str, tuple[str, ...]]:
    """Newer run → the nodes where its change and that of ``run`` are both in force, the oldest of these runs first."""
    names_of: dict[str, list[str]] = {}
    for name, transactions in nodes.items():
        standing = in_force(transactions)
        below = next((transaction for transaction in standing if transaction.tx == run), None)
        if below is None:
            continue
        for above in reversed(standing):
            if above.applied_at > below.applied_at:
                names_of.setdefault(above.tx, []).append(name)
    return {newer: tuple(names) for newer, names in names_of.items()}


def topmost_above(nodes: Histories) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Run → the newest run in force above it → the nodes where both are in force."""
    names_of: dict[str, dict[str, list[str]]] = {}
    for name, transactions in nodes.items():
        standing = in_force(transactions)
        for below in standing[1:]:
            names_of.setdefault(below.tx, {}).setdefault(standing[0].tx, []).append(name)
    return {run: {top: tuple(names) for top, names in above.items()} for run, above in names_of.items()}


def plans_in_force(
    journal: PastRuns, cluster: str, path: str = KUBEADM_CONFIG
) -> tuple[tuple[Plan, tuple[str, ...]], ...]:
    """The plans with a change in force on a file, the oldest first, each with its nodes. ``path`` ``""``: on all its files.

    ``UsageError`` ``no-plan``: no run has a plan, or none that can be read.
    """
    history = cluster_history(journal, cluster)
    headers = {run: journal.header(run) for run in history.runs}
    if all(header.goal == Goal.REVERT for header in headers.values()):
        unread = next((header.run for header in headers_of(journal, cluster) if header.run not in headers), "")
        why = f"run {unread} of {cluster} and what it did cannot be read, so no plan is known to be in force"
        raise UsageError("no-plan", why if unread else f"no run of {cluster} has a plan", hint="name a plan file")
    nodes = nodes_by_run(history.nodes, path)
    plans = {run: plan_codec.decode_journaled(header.plan, run) for run, header in headers.items() if run in nodes}
    names = {run: nodes[run] if path else _whole(plan, run, nodes[run], history.nodes) for run, plan in plans.items()}
    return tuple((plan, names[run]) for run, plan in plans.items() if names[run])


def _whole(plan: Plan, run: str, names: Iterable[str], nodes: Histories) -> tuple[str, ...]:
    """The nodes where a plan's change is in force on each file: in part is no state that the plan describes."""
    files = {group.name: [file.path for file in group.change.files] for group in plan.groups}
    there = {path: frozenset(nodes_by_run(nodes, path).get(run, ())) for paths in files.values() for path in paths}
    return tuple(
        name
        for name in names
        if name in plan.nodes and all(name in there[path] for path in files[plan.nodes[name].group])
    )
