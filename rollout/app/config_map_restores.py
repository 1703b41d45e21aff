"""What a rollback has to restore in the ConfigMap of runs, by the journal alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from dataclasses import replace

from rollout.app.following import headers_of, order_of, plan_of, replay_if_readable
from rollout.app.ports import PastRuns, RunHeader
from rollout.core.model.config_map import NOT_SENT, RENAMED, ConfigMapChange, ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.frozen import dataclass
from rollout.core.run.state import Goal, Order, Phase, RunState
from rollout.errors import StateError


@dataclass(frozen=True, slots=True)
class RunWithConfigMap:
    """What one run did to a ConfigMap. ``change`` ``None``: its order has none. ``has_ended``: this stays so."""

    change: ConfigMapChange | None = None
    standing: ConfigMapStanding = NOT_SENT
    reverts: bool = False
    has_nodes: bool = True
    has_ended: bool = True


KnownRuns = MutableMapping[str, RunWithConfigMap]
"""Run → what it did, as far as it was read before."""


def to_restore(journal: PastRuns, source: RunState) -> ConfigMapChange | None:
    """What restores the ConfigMap of a run; ``None``: it was never asked to write one, or is restored: by its halt, or by a later rollback.

    What newer runs without nodes have written over it is undone with it: the old text can be restored only as a whole.
    """
    run, known = source.order.run, dict[str, RunWithConfigMap]()
    past = _since(journal, source.order.cluster, (run,), known)
    mine = _undone(past, run)
    together = _together(past, (run,))
    return together if mine is None or (together is not None and together.after == mine.after) else mine


def _since(
    journal: PastRuns, cluster: str, runs: Collection[str], known: KnownRuns, *, applies: bool = True
) -> Mapping[str, RunWithConfigMap | None]:
    """The runs of a cluster, newest first, down to the oldest of ``runs``. ``None``: what it did cannot be read.

    ``applies`` ``False``: of an apply only what it was to write.
    """
    names = [header.run for header in headers_of(journal, cluster)]
    oldest = max((at for at, run in enumerate(names) if run in runs), default=-1)
    return {run: _what_it_did(journal, run, known, applies=applies) for run in names[: oldest + 1]}


def _what_it_did(journal: PastRuns, run: str, known: KnownRuns, *, applies: bool) -> RunWithConfigMap | None:
    """Only a run with a ConfigMap and with another end than success is replayed, because that takes long with very many nodes."""
    if run not in known:
        found = _read(journal, run, applies=applies)
        if found is None or not found.has_ended:
            return found
        known[run] = found
    return known[run]


def _read(journal: PastRuns, run: str, *, applies: bool) -> RunWithConfigMap | None:
    try:
        header = journal.header(run)
        order = order_of(header)
    except StateError as error:
        had_none = error.reference == "another-version" and _had_none(header)
        return RunWithConfigMap() if had_none else None
    reverts = order.goal is Goal.REVERT
    if order.config_map is None:
        return RunWithConfigMap()
    found = RunWithConfigMap(order.config_map, reverts=reverts, has_nodes=bool(order.nodes))
    if not (reverts or applies):
        return found
    summary = journal.summary(run)
    if summary is not None and summary.exit_code == 0:  # only if it was read back as wanted
        written = ConfigMapStanding(sent=True, restores=reverts, outcome=ConfigMapOutcome.WRITTEN)
        return replace(found, standing=written)
    state = replay_if_readable(journal, run)
    return (
        replace(found, standing=state.config_map, has_ended=state.phase is Phase.ENDED) if state is not None else None
    )


def _undone(past: Mapping[str, RunWithConfigMap | None], run: str) -> ConfigMapChange | None:
    """``past``: newest first, down to ``run`` at least. One that cannot be read restored nothing that we know of."""
    found = past.get(run)
    if found is None or found.change is None or found.reverts or not found.standing.sent or _restored(found.standing):
        return None
    return None if _restorer(past, run, found.change) else found.change.undone


def _restorer(past: Mapping[str, RunWithConfigMap | None], run: str, mine: ConfigMapChange) -> str:
    """The oldest later rollback that has restored it; ``""``: none."""
    # The texts of this run and of those that follow it: a rollback from there to another text restores both.
    over = {mine.after}
    for later, each in reversed(tuple(past.items())[: list(past).index(run)]):
        if each is None or each.change is None or not _same_object(each.change, mine) or each.change.before not in over:
            continue
        if not each.reverts:
            over.add(each.change.after)
        elif _restored(each.standing) and each.change.after not in over:
            return later
    return ""


def restored_by(journal: PastRuns, state: RunState) -> str:
    """The later rollback that has restored the ConfigMap of a run; ``""``: none, or it wrote none."""
    mine, run = state.order.config_map, state.order.run
    if mine is None or not state.config_map.sent or state.order.goal is Goal.REVERT:
        return ""
    return _restorer(_since(journal, state.order.cluster, (run,), {}, applies=False), run, mine)


def restored_runs(journal: PastRuns, rollback: Order) -> tuple[str, ...]:
    """The runs over which a rollback without nodes goes back, newest first, by their orders: what each wrote leads to the next. ``()``: not known."""
    mine = rollback.config_map
    if mine is None:
        return ()
    names = [header.run for header in headers_of(journal, rollback.cluster)]
    text, found = mine.before, list[str]()
    for run in names[names.index(rollback.run) + 1 :] if rollback.run in names else ():
        try:
            order = order_of(journal.header(run))
        except StateError:
            return ()
        change = order.config_map
        if order.goal is Goal.REVERT or change is None or not _same_object(change, mine) or change.after != text:
            continue
        found.append(run)
        text = change.before
        if text == mine.after:
            return tuple(found)
    return ()


def _restored(standing: ConfigMapStanding) -> bool:
    """Also where an upgrade has made another ConfigMap, which kubeadm reads instead."""
    is_there = standing.outcome is ConfigMapOutcome.WRITTEN or standing.reference == RENAMED
    return standing.restores and is_there


def _together(past: Mapping[str, RunWithConfigMap | None], runs: Collection[str]) -> ConfigMapChange | None:
    """Newer runs that changed no node are of it, too: no node has a receipt of them."""
    chosen = (run for run, each in past.items() if each is not None and (run in runs or not each.has_nodes))
    return to_restore_together(change for run in chosen if (change := _undone(past, run)) is not None)


def _same_object(one: ConfigMapChange, other: ConfigMapChange) -> bool:
    return (one.namespace, one.name, one.key, one.uid) == (other.namespace, other.name, other.key, other.uid)


def to_restore_together(changes: Iterable[ConfigMapChange]) -> ConfigMapChange | None:
    """What restores several runs' ConfigMap at once. ``changes``: what restores each, the newest run first.

    As far as they follow one another: what another run has written in between is not undone.
    """
    together: ConfigMapChange | None = None
    for change in changes:
        if together is None:
            together = change
        elif _same_object(change, together) and change.before == together.after:
            together = replace(together, after=change.after)
    return together


@dataclass(frozen=True, slots=True)
class RestoreOfRuns:
    """What restores the ConfigMap of several runs. ``unknown``: the runs of which the journal does not show whether they wrote one."""

    change: ConfigMapChange | None
    unknown: tuple[str, ...]


def to_restore_of(
    journal: PastRuns, cluster: str, runs: Collection[str], known: KnownRuns | None = None
) -> RestoreOfRuns:
    """By the journal alone. It may be another controller's, or have runs of another version.

    ``known``: runs that were read before, and gets those that are read now.
    """
    past = _since(journal, cluster, runs, {} if known is None else known)
    return RestoreOfRuns(_together(past, runs), tuple(run for run in runs if past.get(run) is None))


def _had_none(header: RunHeader) -> bool:
    """Whether the plan of a run that cannot be replayed had no ConfigMap."""
    plan = plan_of(header)
    return plan is not None and plan.config_map is None
