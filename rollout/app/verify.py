"""Compares nodes with what was last confirmed on them. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import field, replace
from types import MappingProxyType

from rollout.app.call import CallPorts
from rollout.app.following import plan_of
from rollout.app.isolation import READING_FAILED, Keep, attempt, keep_nothing, run_verification
from rollout.app.node_access import NodeAccess
from rollout.app.node_histories import FilesOf, cluster_history, files_of_plans, newest_in_force
from rollout.app.node_worker import READ_SECONDS, UNIT
from rollout.app.ports import Nodes, PastRuns, RunHeader, Target
from rollout.app.reading import access_within, each, snapshot_reader
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.model.transactions import has_gaps, in_force, unchecked_paths
from rollout.core.model.verification import (
    ChangeStanding,
    Drift,
    NodeCheck,
    Undone,
    Verification,
    by_kubeadm,
    change_standing,
    drifts,
)
from rollout.core.presentation.drift_text import has_drift
from rollout.kubelet.agent import agent_call

DRIFTED = 10
"""The exit code."""


@dataclass(frozen=True, slots=True)
class VerifiedCluster:
    """Node → its differences; and the nodes that were not read. ``snapshots``: as a plan reads nodes, if that was asked for.

    ``told``: node → the runs that it has a receipt of.
    """

    checks: Mapping[str, NodeCheck]
    unread: tuple[Unread, ...]
    snapshots: Mapping[str, Snapshot | Unread] = field(default_factory=dict)
    told: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return DRIFTED if has_drift(self.checks) else 4 if self.unread else 0


def verify_cluster(call: CallPorts, cluster: str, limit: str) -> VerifiedCluster:
    """The nodes of ``limit`` (``""``: all) against what the journal last recorded of them."""
    return verify_nodes(call, cluster, access_within(call, cluster, limit))


def verify_nodes(
    call: CallPorts, cluster: str, access: NodeAccess, named: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> VerifiedCluster:
    """The nodes of ``access``, over one connection each. ``named``: its nodes are also read as for a plan, with these files."""
    journal = call.past_runs()
    known = last_confirmed(journal, cluster)
    with closing(call.nodes()) as nodes:
        return verify_fleet(access, nodes, known, call.keep, files_of_plans(journal), named)


@dataclass(frozen=True, slots=True)
class Known:
    """What the journal last recorded of a node: confirmed in ``run`` on the machine ``machine_id``.

    ``at`` is when the run began, in seconds since the epoch; ``replaced`` is path → the digest of what its change
    replaced. ``standing``: all runs with a change in force there, ``run`` too.
    """

    run: str
    machine_id: str
    at: float = 0.0
    replaced: Mapping[str, str] = field(default_factory=dict)
    standing: frozenset[str] = frozenset()


def last_confirmed(journal: PastRuns, cluster: str) -> Mapping[str, Known]:
    """Node → the newest run of the journal with a change in force there. A node that was reverted to an older one has that."""
    histories = cluster_history(journal, cluster).nodes
    newest = newest_in_force(histories)
    headers = {run: journal.header(run) for run in dict.fromkeys(newest.values())}
    plans = {run: plan_of(header) for run, header in headers.items()}
    standing = {name: frozenset(each.tx for each in in_force(histories[name])) for name in newest}
    found = {
        name: _known(headers[run], plan, name, standing[name]) for name, run in newest.items() if (plan := plans[run])
    }
    return {name: known for name, known in found.items() if known is not None}


def _known(header: RunHeader, plan: Plan, name: str, standing: frozenset[str]) -> Known | None:
    node = plan.nodes.get(name)
    if node is None:
        return None
    change = next(group.change for group in plan.groups if group.name == node.group)
    return Known(
        header.run, node.machine_id, header.at, {file.path: file.digest_before for file in change.files}, standing
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """``told``: the runs that the node has a receipt of. ``expected``: the paths that were compared."""

    check: NodeCheck
    told: frozenset[str]
    expected: frozenset[str]


def verify_fleet(
    access: NodeAccess,
    nodes: Nodes,
    known: Mapping[str, Known],
    keep: Keep,
    files_of: FilesOf,
    named: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> VerifiedCluster:
    """Each node's differences from its receipts and the journal, and the nodes that were not read. Changes nothing.

    ``keep`` stores the trace of an answer that rollout fails on. ``files_of`` names the files of runs with a change in force,
    for a node that has removed their receipts. ``named``: nodes to take a snapshot of as well, with the paths in it. A node
    that does not answer is not contacted again for its snapshot.
    """
    snapshot = snapshot_reader(access, nodes, keep, named)

    def read(target: Target) -> tuple[_Compared | Unread, Snapshot | Unread | None]:
        name = target.name
        answer = _verified(access, nodes, target, keep)
        compared = attempt(
            name, lambda: _compared(answer, known.get(name)), lambda why: Unread(name, READING_FAILED, why), keep
        )
        if name not in named:
            return compared, None
        return compared, compared if isinstance(compared, Unread) else snapshot(target)

    answers = each(access, nodes, read)
    unread = tuple(answer for answer, _ in answers.values() if isinstance(answer, Unread))
    compared = {name: answer for name, (answer, _) in answers.items() if not isinstance(answer, Unread)}
    checks = {name: _checked(name, found, known.get(name), files_of) for name, found in compared.items()}
    snapshots = {name: seen for name, (_, seen) in answers.items() if seen is not None}
    return VerifiedCluster(checks, unread, snapshots, {name: found.told for name, found in compared.items()})


def _checked(name: str, found: _Compared, known: Known | None, files_of: FilesOf) -> NodeCheck:
    """With the files of changes in force that have no receipt any more, if no newer receipt names them."""
    if known is None or not found.told:
        return found.check
    gone = {file.path for run in known.standing - found.told for file in files_of(run).get(name, ())}
    return replace(found.check, not_checked=tuple(sorted({*found.check.not_checked, *gone} - found.expected)))


def verifications(access: NodeAccess, nodes: Nodes, keep: Keep = keep_nothing) -> Mapping[str, Verification | Unread]:
    """Node → its receipts and the files that they name, as they are now. Changes nothing; the connections are kept."""
    return each(access, nodes, lambda target: _verified(access, nodes, target, keep), keep=True)


def _verified(access: NodeAccess, nodes: Nodes, target: Target, keep: Keep) -> Verification | Unread:
    command = agent_call.verify(access.program, unit=UNIT, sudo=access.sudo[target.name], deadline=READ_SECONDS)
    return run_verification(nodes, target, command, keep)


def _compared(answer: Verification | Unread, known: Known | None) -> _Compared | Unread:
    if isinstance(answer, Unread):
        return answer
    drifted = _against_journal(answer, known)
    # A node removes old receipts, and the change of such a run may be in force again after newer ones were reverted.
    # The receipts that it has are newer than the journal: another machine may have reverted their runs.
    told = {*(each.run for each in answer.receipts), *(each.tx.rpartition("-")[0] for each in answer.transactions)}
    is_changed = known is not None and not drifted and not known.standing <= told
    standing = ChangeStanding.CHANGED if is_changed else change_standing(answer)
    check = NodeCheck(
        (*drifted, *_named(answer, known)),
        standing,
        tuple(sorted(unchecked_paths(answer.transactions))),
        has_gaps(answer.transactions),
    )
    return _Compared(check, frozenset(told), frozenset(each.path for each in answer.expected))


def _named(answer: Verification, known: Known | None) -> tuple[Drift, ...]:
    """The differences from the node's own receipts, with their author if it is known."""
    differences = drifts(answer)
    return by_kubeadm(differences, answer, Undone(known.run, known.at, known.replaced)) if known else differences


def _against_journal(answer: Verification, known: Known | None) -> tuple[Drift, ...]:
    if known is None:
        return ()
    if answer.machine_id != known.machine_id:
        text = f"another machine than the one run {known.run} confirmed (other machine-id)"
        return (Drift("machine-replaced", "node", text),)
    if not answer.receipts:
        text = (
            f"run {known.run} confirmed it, but the node has no receipt any more; `rollout uninstall` removes receipts"
        )
        return (Drift("receipts-gone", "node", text),)
    return ()
