"""What a rollback has to restore in the ConfigMap of runs, by the journal alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field, replace

from rollout.app.following import headers_of, order_of, plan_of, replay_if_readable
from rollout.app.ports import PastRuns, RunHeader
from rollout.core.model.config_map import RENAMED, ConfigMapChange, ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.frozen import dataclass
from rollout.core.run.state import Goal, Order, Phase, RunState
from rollout.errors import StateError


@dataclass(frozen=True, slots=True)
class OrderedConfigMap:
    """What a run was to do to a ConfigMap. ``change`` ``None``: nothing."""

    change: ConfigMapChange | None = None
    reverts: bool = False
    has_nodes: bool = True


@dataclass(slots=True)
class ReadRuns:
    """What was read of runs before, and does not change: their orders, and how the ConfigMap stood at their end."""

    orders: dict[str, OrderedConfigMap] = field(default_factory=dict)
    ends: dict[str, ConfigMapStanding] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Past:
    """``runs`` of a cluster, newest first. What one of them did is read when it counts."""

    journal: PastRuns
    runs: tuple[str, ...]
    read: ReadRuns

    def order(self, run: str) -> OrderedConfigMap | None:
        """``None``: it cannot be read."""
        found = self.read.orders.get(run) or _order(self.journal, run)
        if found is not None:
            self.read.orders[run] = found
        return found

    def standing(self, run: str) -> ConfigMapStanding | None:
        """Of a run with a ConfigMap; ``None``: it cannot be read. Only one with another end than success is replayed: that takes long with very many nodes."""
        if run in self.read.ends:
            return self.read.ends[run]
        order, summary = self.order(run), self.journal.summary(run)
        if order is not None and summary is not None and summary.exit_code == 0:  # only if it was read back as wanted
            found = ConfigMapStanding(sent=True, restores=order.reverts, outcome=ConfigMapOutcome.WRITTEN)
        else:
            state = replay_if_readable(self.journal, run)
            if state is None or state.phase is not Phase.ENDED:
                return state.config_map if state is not None else None
            found = state.config_map
        self.read.ends[run] = found
        return found


def _since(journal: PastRuns, cluster: str, runs: Collection[str], read: ReadRuns) -> _Past:
    """Down to the oldest of ``runs``."""
    names = tuple(header.run for header in headers_of(journal, cluster))
    oldest = max((at for at, run in enumerate(names) if run in runs), default=-1)
    return _Past(journal, names[: oldest + 1], read)


def _order(journal: PastRuns, run: str) -> OrderedConfigMap | None:
    try:
        header = journal.header(run)
        order = order_of(header)
    except StateError as error:
        had_none = error.reference == "another-version" and _had_none(header)
        return OrderedConfigMap() if had_none else None
    return OrderedConfigMap(order.config_map, order.goal is Goal.REVERT, bool(order.nodes))


def to_restore(journal: PastRuns, source: RunState) -> ConfigMapChange | None:
    """What restores the ConfigMap of a run; ``None``: it was never asked to write one, or is restored: by its halt, or by a later rollback.

    What newer runs without nodes have written over it is undone with it: the old text can be restored only as a whole.
    """
    run = source.order.run
    past = _since(journal, source.order.cluster, (run,), ReadRuns())
    mine = _undone(past, run)
    together = _together(past, (run,))
    return together if mine is None or (together is not None and together.after == mine.after) else mine


def _undone(past: _Past, run: str) -> ConfigMapChange | None:
    """A later run that cannot be read restored nothing that we know of."""
    change = _written(past, run)
    return change.undone if change is not None and not _restorer(past, run, change) else None


def _written(past: _Past, run: str) -> ConfigMapChange | None:
    """What a run may have written, and has not restored itself."""
    order = past.order(run) if run in past.runs else None
    if order is None or order.change is None or order.reverts:
        return None
    standing = past.standing(run)
    return order.change if standing is not None and standing.sent and not _restored(standing) else None


def _restorer(past: _Past, run: str, mine: ConfigMapChange) -> str:
    """The oldest later rollback that has restored it; ``""``: none."""
    # The texts of this run and of those that follow it: a rollback from there to another text restores both.
    over = {mine.after}
    for later in reversed(past.runs[: past.runs.index(run)]):
        each = past.order(later)
        if each is None or each.change is None or not _same_object(each.change, mine) or each.change.before not in over:
            continue
        if not each.reverts:
            over.add(each.change.after)
        elif each.change.after not in over and (ended := past.standing(later)) is not None and _restored(ended):
            return later
    return ""


def restored_by(journal: PastRuns, cluster: str, run: str, read: ReadRuns) -> str:
    """The later rollback that has restored the ConfigMap of a run; ``""``: none, or it wrote none."""
    past = _since(journal, cluster, (run,), read)
    change = _written(past, run)
    return _restorer(past, run, change) if change is not None else ""


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


def _together(past: _Past, runs: Collection[str]) -> ConfigMapChange | None:
    """Newer runs that changed no node are of it, too: no node has a receipt of them."""
    orders = {run: order for run in past.runs if (order := past.order(run)) is not None}
    chosen = (run for run, order in orders.items() if run in runs or not order.has_nodes)
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
    journal: PastRuns, cluster: str, runs: Collection[str], read: ReadRuns | None = None
) -> RestoreOfRuns:
    """By the journal alone. It may be another controller's, or have runs of another version. ``read``: gets what is read now."""
    past = _since(journal, cluster, runs, ReadRuns() if read is None else read)
    return RestoreOfRuns(_together(past, runs), tuple(run for run in runs if not _is_known(past, run)))


def _is_known(past: _Past, run: str) -> bool:
    order = past.order(run) if run in past.runs else None
    return order is not None and (order.change is None or past.standing(run) is not None)


def _had_none(header: RunHeader) -> bool:
    """Whether the plan of a run that cannot be replayed had no ConfigMap."""
    plan = plan_of(header)
    return plan is not None and plan.config_map is None
