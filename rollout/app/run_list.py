"""Lists runs by their summaries. Only a run without one is replayed, so a hundred ended runs take no time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout.app.following import recovered_since, replay_if_readable
from rollout.app.node_histories import cluster_history, topmost_above
from rollout.app.ports import PastRuns, RunHeader
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.run_list import ListedRun, RunStanding
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.presentation.summary_text import NewerRun, RolledBack, newer_runs, rolled_back
from rollout.core.run.state import Goal, Phase
from rollout.core.text.nodesets import expand, fold

LaterRollbacks = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Run → the later runs that reverted it, the oldest first → nodes."""


def listed_runs(journal: PastRuns, cluster: str = "") -> Iterator[ListedRun]:
    """The newest first; ``cluster`` ``""``: of every cluster."""
    headers = tuple(header for header in journal.listed() if cluster in ("", header.cluster))
    clusters = dict.fromkeys(header.cluster for header in headers)
    holders = (journal.holder(name) for name in clusters)
    at_work = {holder.run for holder in holders if holder is not None and holder.alive}
    history = {name: cluster_history(journal, name, at_work) for name in clusters}
    above = {run: newer for name in clusters for run, newer in topmost_above(history[name].nodes).items()}
    later: LaterRollbacks = {}
    for header in headers:
        summary = None if header.run in at_work else _summary(journal, header.run)
        standing = RunStanding.AT_WORK if header.run in at_work else _standing(summary)
        newer = newer_runs(above.get(header.run, {}))
        back = rolled_back(history[header.cluster].rolled_back(header.run, later.get(header.run, {})))
        pending = _pending(journal, header.run, summary)
        yield _listed(header, summary, standing, back, newer, pending)
        if header.goal == Goal.REVERT and summary is not None:
            later = {**later, **_with(later, header.run, summary)}


def _summary(journal: PastRuns, run: str) -> RunSummary | None:
    """``None``: the run has not ended. Cordons that were lifted after its end make its summary out of date."""
    found = journal.summary(run)
    state = replay_if_readable(journal, run) if found is None else None
    return run_summary(state) if state is not None and state.phase is Phase.ENDED else found


def _pending(journal: PastRuns, run: str, summary: RunSummary | None) -> str:
    """The nodeset pending recovery that no later run has reverted."""
    owed = summary.owed if summary is not None else ""
    state = replay_if_readable(journal, run) if owed else None
    done = recovered_since(journal, state) if state is not None else frozenset()
    return fold(name for name in expand(owed) if name not in done) if done else owed


def _listed(
    header: RunHeader,
    summary: RunSummary | None,
    state: RunStanding,
    back: tuple[RolledBack, ...],
    on_top: tuple[NewerRun, ...],
    pending: str,
) -> ListedRun:
    return ListedRun(
        run=header.run,
        cluster=header.cluster,
        goal=header.goal,
        began=header.at,
        ended=summary.ended if summary else None,
        who=header.who,
        reason=header.reason,
        state=state,
        exit_code=summary.exit_code if summary else None,
        pending_recovery=PendingNodes(pending),
        rolled_back=back,
        on_top=on_top,
    )


def _standing(summary: RunSummary | None) -> RunStanding:
    if summary is None:
        return RunStanding.NO_CONTROLLER
    return RunStanding(summary.ending) if summary.ending in set(RunStanding) else RunStanding.UNKNOWN


def _with(known: LaterRollbacks, rollback: str, summary: RunSummary) -> LaterRollbacks:
    """``rollback`` is older than those that are known."""
    return {run: {rollback: expand(nodes), **known.get(run, {})} for run, nodes in summary.reverted.items()}
