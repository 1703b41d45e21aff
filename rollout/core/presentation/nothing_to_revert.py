"""What ``rollback RUN`` prints of nodes that it does not revert: an earlier rollback did, or a newer run is on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.presentation.summary_text import RolledBack, rolled_back
from rollout.core.run.state import LeftOut
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

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
