"""An apply or a rollback that begins no run because there is nothing to do: as lines for people and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from rollout.core.model.fleet_changes import UNCHANGED, FleetChanges
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary_text import RolledBack, rolled_back
from rollout.core.run.order import left_out
from rollout.core.run.state import LeftOut
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, wall_of


class Why(StrEnum):
    """Why no run is begun."""

    ALREADY_APPLIED = "already-applied"  # every node of the plan was read and has the plan's files
    AS_WANTED = "as-wanted"  # the plan changes no node and leaves out none that should be changed
    NONE_CAN = "none-can-be-changed"  # every node that should be changed is left out


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """``runs``: the runs of this journal that applied the plan, newest first. ``changes``: in the fleet since the plan.

    ``read_at``: when the nodes were read, if that was not just now.
    """

    plan: Plan
    why: Why
    runs: Sequence[str] = ()
    changes: FleetChanges = UNCHANGED
    read_at: str = ""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return left_out(self.plan, self.changes.unplanned)

    @property
    def exit_code(self) -> int:
        return 4 if self.left_out else 0


def nothing_to_change(plan: Plan, *, fresh: bool) -> NothingToDo:
    """For a plan without nodes. ``fresh``: it was made just now."""
    why = Why.NONE_CAN if plan.left_out else Why.AS_WANTED
    return NothingToDo(plan, why, read_at="" if fresh else plan.taken)


def nothing_lines(nothing: NothingToDo) -> Iterator[str]:
    then = f", as the nodes were at {wall_of(nothing.read_at)}; none was read now" if nothing.read_at else ""
    match nothing.why:
        case Why.ALREADY_APPLIED:
            runs = f"{'run' if len(nothing.runs) == 1 else 'runs'} {', '.join(nothing.runs)}"
            by = runs if nothing.runs else "no run of this journal"
            every = "every node that is still there" if nothing.changes.left else "every node"
            yield f"nothing to do: already applied by {by}; {every} has the plan's files"
        case Why.AS_WANTED:
            yield f"nothing to do{then}"
        case Why.NONE_CAN:
            yield f"no node can be changed{then}"
    for left in nothing.left_out:
        yield f"not in the plan, {left.words} ({left.count}) {left.nodes}: {printable(left.reason, 400)}"


@dataclass(frozen=True, slots=True)
class NothingToDoDocument:
    """The only line of such an apply. ``plan``: its digest; ``runs``: the runs that applied it, newest first.

    ``read_at``: when the nodes were read for the plan, if none was read now.
    """

    cluster: str
    plan: str
    why: Why
    runs: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    exit_code: int
    read_at: str


def nothing_document(nothing: NothingToDo) -> NothingToDoDocument:
    plan = nothing.plan
    runs = tuple(nothing.runs)
    return NothingToDoDocument(
        plan.cluster, plan_codec.digest(plan), nothing.why, runs, nothing.left_out, nothing.exit_code, nothing.read_at
    )


ANOTHER_RUN = ""
"""In place of the run of another journal that claimed a node last: the journal has that run, or more was done to the node since."""


def not_reverted_lines(
    back: Mapping[str, tuple[str, ...]], elsewhere: Mapping[str, tuple[str, ...]], left_out: Sequence[LeftOut]
) -> Iterator[str]:
    """``back``: rollback → nodes that it has already reverted; ``elsewhere``: the nodes with a receipt that is reverted
    though no run of the journal did it, by the run that claimed them last. A node does not record which run reverted its change.
    ``left_out``: nodes that the rollback does not touch.
    """
    for run, names in back.items():
        yield f"already rolled back by run {run} on {counted(len(names), 'node')}: {printable(fold(names), 300)}"
    for run, names in elsewhere.items():
        last = "" if run == ANOTHER_RUN else f"; run {printable(run, 80)} claimed it last"
        yield f"already reverted by a run of another journal on {counted(len(names), 'node')}: {printable(fold(names), 300)}{last}"
    for each in left_out:
        yield f"not reverted, {each.what}: {counted(each.count, 'node')} {printable(each.nodes, 300)}: {printable(each.reason, 300)}"


@dataclass(frozen=True, slots=True)
class NothingToRevertDocument:
    """The only line of a rollback that touches no node. ``rolled_back``: the rollbacks that have already reverted the run.

    ``elsewhere``: the nodes that a run of another journal has reverted, by the run that claimed them last, as the nodes record it.
    """

    run: str
    rolled_back: tuple[RolledBack, ...]
    left_out: tuple[LeftOut, ...]
    exit_code: int
    elsewhere: tuple[RolledBack, ...] = ()


def nothing_to_revert(
    run: str,
    back: Mapping[str, tuple[str, ...]],
    elsewhere: Mapping[str, tuple[str, ...]],
    left_out: tuple[LeftOut, ...],
) -> NothingToRevertDocument:
    return NothingToRevertDocument(run, rolled_back(back), left_out, 4 if left_out else 0, rolled_back(elsewhere))
