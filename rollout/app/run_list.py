"""Lists runs by their summaries. Only a run without one is replayed, so a hundred ended runs take no time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial

from rollout.app.config_map_restores import ReadRuns, restored_by
from rollout.app.following import recovered_since, replay_if_readable
from rollout.app.node_histories import cluster_history, topmost_above
from rollout.app.ports import PastRuns
from rollout.app.run_changes import change_of
from rollout.core.presentation.headline import NodesDone, WhatChanged, nodes_done
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.run_list import ListedRun, RunStanding, standing_at_work
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.presentation.summary_text import newer_runs, rolled_back
from rollout.core.run.facts import MAY_HOLD, may_hold
from rollout.core.run.state import Goal, Phase, RunState
from rollout.core.text.nodesets import expand, fold

LaterRollbacks = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Run → the later runs that reverted it, the oldest first → nodes."""


StateOf = Callable[[str], RunState | None]
"""Run → its state; ``None``: it cannot be read."""

Changes = MutableMapping[str, WhatChanged]


def listed_runs(
    journal: PastRuns, cluster: str = "", replayed: StateOf | None = None, changes: Changes | None = None
) -> Iterator[ListedRun]:
    """The newest first; ``cluster`` ``""``: of every cluster.

    ``replayed``: from elsewhere than the journal. ``changes``: what ended runs change, as far as it was read before.
    """
    replayed = replayed or partial(replay_if_readable, journal)
    changes = {} if changes is None else changes
    headers = tuple(header for header in journal.listed() if cluster in ("", header.cluster))
    clusters = dict.fromkeys(header.cluster for header in headers)
    holders = (journal.holder(name) for name in clusters)
    at_work = {holder.run for holder in holders if holder is not None and holder.alive}
    history = {name: cluster_history(journal, name, at_work) for name in clusters}
    above = {run: newer for name in clusters for run, newer in topmost_above(history[name].nodes).items()}
    later: LaterRollbacks = {}
    config_maps = ReadRuns()
    rolled_back_later: set[str] = set()  # clusters with a rollback that is newer than the run
    for header in headers:
        alive = header.run in at_work
        summary = None if alive else journal.summary(header.run)
        # without a summary it has not ended, or cordons were lifted after its end
        state = replayed(header.run) if summary is None else None
        if state is not None and not alive and state.phase is Phase.ENDED:
            summary = run_summary(state)
        change = changes.get(header.run) or change_of(journal, journal.header(header.run))
        if summary is not None:  # what a rollback reverts stands fast only at its end
            changes[header.run] = change
        newer = newer_runs(above.get(header.run, {}))
        reverted = history[header.cluster].rolled_back(header.run, later.get(header.run, {}))
        progress = _progress(header.goal, summary, state)
        may_be_restored = (
            not reverted and not alive and header.goal == Goal.APPLY and header.cluster in rolled_back_later
        )
        if may_be_restored and progress is not None and not progress.total:  # a run without nodes: its ConfigMap alone
            by = restored_by(journal, header.cluster, header.run, config_maps)
            reverted = {by: ()} if by else {}
        pending = _pending(journal, header.run, summary, may_be_settled=header.cluster in rolled_back_later)
        yield ListedRun(
            change=change,
            progress=progress,
            run=header.run,
            cluster=header.cluster,
            goal=header.goal,
            began=header.at,
            ended=summary.ended if summary else None,
            who=header.who,
            reason=header.reason,
            state=_standing(summary, state, alive=alive),
            why=_why(summary, state),
            exit_code=summary.exit_code if summary else None,
            pending_recovery=PendingNodes(pending),
            rolled_back=rolled_back(reverted),
            on_top=newer,
            is_rolled_back=bool(reverted) and not pending and _all_reverted(reverted, summary, state),
        )
        if header.goal == Goal.REVERT:
            rolled_back_later.add(header.cluster)
        if header.goal == Goal.REVERT and summary is not None:
            later = {**later, **_with(later, header.run, summary)}


def _all_reverted(reverted: Mapping[str, tuple[str, ...]], summary: RunSummary | None, state: RunState | None) -> bool:
    """Whether later rollbacks reverted each node that may have the change of a run."""
    held: set[str] = set()
    if summary is not None:
        held.update(*(expand(summary.nodes[kind].nodes) for kind in MAY_HOLD if kind in summary.nodes))
    elif state is not None:
        held.update(name for name, record in state.nodes.items() if may_hold(record))
    is_known = summary is not None or state is not None
    return is_known and held <= {name for names in reverted.values() for name in names}


def _pending(journal: PastRuns, run: str, summary: RunSummary | None, *, may_be_settled: bool) -> str:
    """The nodeset pending recovery that no later run has reverted. A replay takes long: it is only for what may be settled."""
    owed = summary.owed if summary is not None else ""
    state = replay_if_readable(journal, run) if owed and may_be_settled else None
    done = recovered_since(journal, state) if state is not None else frozenset()
    return fold(name for name in expand(owed) if name not in done) if done else owed


def _progress(goal: str, summary: RunSummary | None, state: RunState | None) -> NodesDone | None:
    if summary is not None:
        return nodes_done(goal, {kind: found.count for kind, found in summary.nodes.items()})
    return nodes_done(goal, Counter(record.state.value for record in state.nodes.values())) if state else None


def _standing(summary: RunSummary | None, state: RunState | None, *, alive: bool) -> RunStanding:
    if alive:
        return standing_at_work(state) if state is not None else RunStanding.AT_WORK
    if summary is None:
        return RunStanding.NO_CONTROLLER
    return RunStanding(summary.ending) if summary.ending in set(RunStanding) else RunStanding.UNKNOWN


def _why(summary: RunSummary | None, state: RunState | None) -> str:
    """Of a halt, else of a pause; ``""``: there is none."""
    if summary is not None:
        return summary.why
    return str((state.halt or state.paused or state.closed) or "") if state is not None else ""


def _with(known: LaterRollbacks, rollback: str, summary: RunSummary) -> LaterRollbacks:
    """``rollback`` is older than those that are known."""
    return {run: {rollback: expand(nodes), **known.get(run, {})} for run, nodes in summary.reverted.items()}
