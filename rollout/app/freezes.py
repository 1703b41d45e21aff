"""A freeze of a cluster as the journal has it, which stops this controller. ``frozen_nodes`` is what stops every other."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app.ports import PastRuns
from rollout.core.model.freeze import FROZEN, NodeFreeze
from rollout.core.presentation.freeze_text import FreezeNoted, frozen_lines, noted, noted_line
from rollout.errors import StateError


def freeze_in(journal: PastRuns, cluster: str) -> FreezeNoted | None:
    """The freeze in force, by the journal, or one that nodes may still have because they missed its unfreeze."""
    return noted((note.at, note.who, note.text) for note in journal.notes(cluster))


def check_not_frozen(journal: PastRuns, cluster: str) -> None:
    """``StateError`` ``frozen``: nothing may be applied."""
    freeze = freeze_in(journal, cluster)
    if freeze is not None and not freeze.lifted:
        raise _error(cluster, noted_line(freeze))


def check_nodes_not_frozen(cluster: str, found: Mapping[str, NodeFreeze | None]) -> None:
    """The same by what nodes report: another controller with another journal may have frozen them."""
    lines = tuple(frozen_lines(found))
    if lines:
        raise _error(cluster, f"frozen: {'; '.join(lines)}")


def _error(cluster: str, frozen: str) -> StateError:
    hint = f"`rollout cluster unfreeze --cluster {cluster} --reason …` lifts it; a rollback passes it"
    return StateError(FROZEN, f"nothing was touched: {cluster} is {frozen}", hint=hint)
