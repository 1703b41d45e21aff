"""Releases a cluster from a run without a controller: the journal's lease, and the claims on nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType

from rollout.app.call import CallPorts, Operator
from rollout.app.claims import holders, littered, released, set_free, under_way
from rollout.app.following import other_cluster
from rollout.app.node_access import only
from rollout.app.ports import Holder, Note, PastRuns
from rollout.app.reading import access_within, read_receipts
from rollout.app.runs import highest_counter
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Report
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.drift_text import NotAsked, no_answer_lines, not_done
from rollout.core.presentation.emergency_text import of_other
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import StateError, UsageError


@dataclass(frozen=True, slots=True)
class UnlockDocument:
    """``released``: the nodeset; ``not_released``: node → why its claim remains; ``no_answer``: nodes that gave no answer."""

    cluster: str
    released: str
    not_released: Mapping[str, str]
    no_answer: tuple[NotAsked, ...]

    @property
    def exit_code(self) -> int:
        return 4 if self.no_answer or self.not_released else 0


def unlock_cluster(call: CallPorts, operator: Operator, cluster: str, limit: str, *, force: bool) -> UnlockDocument:
    """Release the cluster, and the nodes of ``limit`` (``""``: all).

    ``StateError`` ``locked``: the controller is alive, or may be and ``force`` is not given.
    """
    if not call.reason:
        raise UsageError(
            "no-reason", "unlock needs --reason", hint="the journal records it with your name and the time"
        )
    journal = call.journal()
    check_holder(journal.holder(cluster), force=force)
    access = access_within(call, cluster, limit)
    with closing(call.nodes()) as nodes:
        reports = read_receipts(access, nodes, keep=call.keep, strays=True)
        held, dirty = holders(reports), littered(reports)
        both = {**dirty, **held}
        others = {run: other for run in held.values() if (other := other_cluster(journal, cluster, run))}
        operator.tell(what_is_held(journal.holder(cluster), reports, held, dirty, others))
        _check_others(journal, others, force=force)
        operator.confirm(cluster, f"{cluster} will be unlocked, {counted(len(both), 'node')} released")
        check_holder(journal.holder(cluster), force=force)  # a run may have started before the confirmation
        _check_others(journal, others, force=force)
        journal.unlock(cluster, Note(call.clock.now(), call.who, f"unlocked: {call.reason}"))
        counter = max(highest_token(reports), highest_counter(journal, cluster)) + 1
        known = {header.run for header in journal.runs(cluster)}
        freed = set_free(only(access, tuple(both)), nodes, both, known, call.new_run_id(), counter, call.keep)
    return UnlockDocument(cluster, *released(freed), not_done(reports))


def check_holder(holder: Holder | None, *, force: bool, cluster: str = "") -> None:
    """``cluster``: of the run, if it is another one than is unlocked."""
    if holder is None or not holder.alive:
        return
    if holder.here:
        hint = f"`rollout abort {holder.run}`, or stop that process"
        raise StateError("locked", f"run {holder.run}{of_other(cluster)} is in progress on this machine", hint=hint)
    if not force:
        text = f"run {holder.run}{of_other(cluster)} on {holder.host} sent its last heartbeat {holder.silent:.0f} s ago"
        raise StateError("locked", text, hint="wait 30 s, or use --force if that machine is known to be gone")


def _check_others(journal: PastRuns, others: Mapping[str, str], *, force: bool) -> None:
    """Two inventories list a machine: the run of the other cluster may be at work there. ``others``: such a run → its cluster."""
    for run, cluster in others.items():
        holder = journal.holder(cluster)
        check_holder(holder if holder is not None and holder.run == run else None, force=force, cluster=cluster)


def what_is_held(
    holder: Holder | None,
    reports: Mapping[str, Report],
    held: Mapping[str, str],
    dirty: Collection[str],
    others: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[str]:
    """What an unlock ends, told before the confirmation. ``held``: node → the run with its claim. ``dirty``: nodes with leftovers.

    ``others``: run → its cluster, if that is another one.
    """
    lines = [f"lease: run {holder.run} on {holder.host}, last heartbeat {holder.silent:.0f} s ago"] if holder else []
    for run in sorted(set(held.values())):
        names = [name for name, by in held.items() if by == run]
        lines.append(
            f"run {run}{of_other(others.get(run, ''))} has claimed {counted(len(names), 'node')}: {printable(fold(names), 160)}"
        )
    armed = under_way(reports)
    if armed:
        lines.append(f"armed or being reverted, left to their guards: {printable(fold(armed), 160)}")
    away = not_done(reports)
    answered = (
        f", and no claim on the {counted(len(reports) - len(away), 'node')} that answered" if away else " and no claim"
    )
    lines = lines or [f"no lease{answered}"]
    lines += no_answer_lines(away)
    left = folded({name: "; ".join(report.leftovers) for name, report in reports.items() if name in dirty})
    for files, names in left.items():
        lines.append(
            f"left behind on {printable(fold(names), 160)}, to be removed: {printable(for_all(files, names), 300)}"
        )
    return lines
