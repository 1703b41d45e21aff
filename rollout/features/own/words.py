"""What ``own`` reports: the owned settings of a cluster, and which later runs replaced them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import WantedSetting
from rollout.core.presentation.notices import Notice, NoticeKind, notice_of
from rollout.core.presentation.owned_text import OwnedNodes, OwnedRun, OwnedValue, ReplacedBy, owned_run_lines
from rollout.core.run.state import RunState
from rollout.core.text.diff import redacted
from rollout.core.text.nodesets import fold, left_of
from rollout.core.text.terminal import counted, printable
from rollout.features.own.rules import CountingRun


@dataclass(frozen=True, slots=True)
class OwnedDocument:
    """The owned settings of a cluster."""

    cluster: str
    runs: tuple[OwnedRun, ...]


def wanted_text(wanted: Iterable[WantedSetting]) -> str:
    """As the journal's note has it."""
    parts = (f"{each.name}: {each.value}{f' on {each.selection}' if each.selection else ''}" for each in wanted)
    return redacted(printable("; ".join(parts), 900))


def owned_runs(runs: Sequence[CountingRun], inventory: Inventory | None = None) -> tuple[OwnedRun, ...]:
    """``runs``: the oldest first. ``inventory``: as it is now, if it was read."""
    return tuple(
        OwnedRun(
            run.run,
            run.playbook,
            run.limit,
            tuple(OwnedValue(each.name, each.value, each.selection) for each in run.wanted),
            tuple(_replaced(run, runs[at + 1 :])),
            selects_none=inventory is not None and _selects_none(run, inventory),
        )
        for at, run in enumerate(runs)
        if run.is_owned
    )


def _selects_none(run: CountingRun, inventory: Inventory) -> bool:
    return not any(run.nodes(inventory) & left_of(each.selection, inventory) for each in run.wanted)


def _replaced(run: CountingRun, later: Iterable[CountingRun]) -> Iterator[ReplacedBy]:
    values = {each.name: each.value for each in run.wanted}
    for other in later:
        names = tuple(each.name for each in other.wanted if values.get(each.name, each.value) != each.value)
        if names:
            whole = other.limit in ("", run.limit) and other.within is None and not other.reverted
            yield ReplacedBy(other.run, tuple(dict.fromkeys(names)), other.limit, whole)


def owned_document_lines(document: OwnedDocument) -> Iterator[str]:
    if not document.runs:
        yield f"{document.cluster} owns no setting; `rollout own RUN` owns what a finished run brought"
    for run in document.runs:
        yield from owned_run_lines(run)


def nodes_lack(state: RunState, found: OwnedNodes) -> Notice:
    """Nodes lack a setting that the cluster owns. ``state``: of the newest owned run."""
    said = f"{counted(len(found.lacking), 'node')} without an owned setting: {fold(found.lacking)}"
    return notice_of(
        NoticeKind.OWNED_LACKING,
        state,
        "is not on nodes that must have it",
        said,
        f"rollout verify --cluster {found.cluster}",
    )


@dataclass(frozen=True, slots=True)
class OwnedUnderOldName:
    """Settings of ``runs`` that are owned under a cluster without an inventory. ``nodes`` have receipts of that cluster's runs."""

    cluster: str
    runs: tuple[str, ...]
    nodes: tuple[str, ...]


def old_name_lines(cluster: str, found: Iterable[OwnedUnderOldName]) -> Iterator[str]:
    """``cluster``: the one that has the nodes now."""
    for each in found:
        yield (
            f"settings are owned under cluster {printable(each.cluster, 80)}, which no inventory here names: runs of it changed "
            f"{counted(len(each.nodes), 'node')} of {cluster}: {printable(fold(each.nodes), 160)}"
        )
        ends = " and ".join(f"`rollout own --end {run}`" for run in each.runs)
        yield f"  nothing compares nodes with them: {ends} ends that; then `rollout own` the next run of {cluster} that changes nodes"
