"""Owned settings in the journal, as notes on their cluster, and what operators read about them.

A setting is owned when nodes must have it for as long as they exist, also nodes that join later. The note names the run that
brought it; what that run wanted is in its plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256

from rollout.core.model.frozen import dataclass
from rollout.core.model.owned import UNREAD, ComparedNode, OwnedStanding
from rollout.core.text.diff import redacted
from rollout.core.text.documents import Moment, seconds_of
from rollout.core.text.message_folding import folded
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.terminal import counted, printable, seconds_text, wall

# The notes. Their texts are read again, so they do not change.

_OWNED = re.compile(r"settings of run ([A-Za-z0-9_.@-]+) are (owned|not owned any more)(?:: .*)?", re.DOTALL)
_COMPARED = re.compile(
    r"compared with owned settings: (\d{1,9}) with them, without them: (\S+), not compared: (\S+)"
    r"(?:; nodes that only the API server lists not compared: (.+))?"
)
_NONE = "-"
_MANY = re.compile(r"~(\d{1,9}):[0-9a-f]{12}")
_LONGEST = 16_384


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    """A comparison of a whole cluster with its owned settings. ``without`` and ``not_compared`` are nodesets; ``""``: none.

    ``unlisted``: see ``OwnedNodes``; ``""`` also if no kubeconfig is set.
    """

    at: Moment
    as_wanted: int
    without: str
    not_compared: str
    unlisted: str = ""

    @property
    def lacking(self) -> int:
        return _number(self.without)

    @property
    def unread(self) -> int:
        return _number(self.not_compared)


@dataclass(frozen=True, slots=True)
class OwnedNoted:
    """``runs``: those with owned settings, the oldest first. ``compared`` ``None``: never since they are owned."""

    runs: tuple[str, ...]
    compared: ComparedNodes | None


def owned_note(run: str, said: str) -> str:
    return f"settings of run {run} are owned: {said}"


def ended_note(run: str, reason: str) -> str:
    return f"settings of run {run} are not owned any more: {reason or 'no reason given'}"


def compared_note(as_wanted: int, without: str, not_compared: str, unlisted: str = "") -> str:
    """The nodes as ``kept_nodes`` has them; ``""``: no node. ``unlisted`` as in ``ComparedNodes``."""
    said = f"compared with owned settings: {as_wanted} with them, without them: {without or _NONE}, not compared: {not_compared or _NONE}"
    return said + (
        f"; nodes that only the API server lists not compared: {printable(unlisted, 200)}" if unlisted else ""
    )


def kept_nodes(names: Collection[str]) -> str:
    """Nodes as a note has them: their nodeset; of very many with unlike names the number, and a digest that tells others apart."""
    nodes = fold(names)
    return nodes if len(nodes) <= _LONGEST else f"~{len(names)}:{sha256(nodes.encode()).hexdigest()[:12]}"


def _number(kept: str) -> int:
    many = _MANY.fullmatch(kept)
    return int(many[1]) if many else len(expand(kept)) if kept else 0


def _nodes_said(kept: str, number: str = "") -> str:
    """``number``: of the nodes, if it is told before them."""
    many = _MANY.fullmatch(kept)
    if many:
        return number or f"{many[1]} nodes"
    return f"{number}: {printable(kept, 160)}" if number else printable(kept, 160)


def owned_noted(notes: Iterable[tuple[float, str]]) -> OwnedNoted | None:
    """``None``: no setting is owned. ``notes``: time and text, the oldest first."""
    runs: dict[str, None] = {}
    compared: ComparedNodes | None = None
    for at, text in notes:
        if owned := _OWNED.fullmatch(text):
            runs.pop(owned[1], None)
            if owned[2] == "owned":
                runs[owned[1]] = None
            compared = None
        elif match := _COMPARED.fullmatch(text):
            without, missing = ("" if nodes == _NONE else nodes for nodes in (match[2], match[3]))
            compared = ComparedNodes(at, int(match[1]), without, missing, match[4] or "")
    return OwnedNoted(tuple(runs), compared) if runs else None


def owned_lines(cluster: str, noted: OwnedNoted | None) -> Iterator[str]:
    """What the last comparison found; nothing if no setting is owned."""
    if noted is None:
        return
    runs = f"owned settings of {cluster} (run {', '.join(noted.runs)})"
    if noted.compared is None:
        yield f"  {runs}: no comparison yet; `rollout verify --cluster {cluster}` reads the nodes"
        return
    compared = noted.compared
    yield f"  {runs}: {compared_line(compared)}"
    if compared.without or compared.unlisted:
        yield f"      rollout verify --cluster {cluster}"


def compared_line(found: ComparedNodes) -> str:
    said = f"{counted(found.as_wanted, 'node')} as wanted"
    lacking = f"{counted(found.lacking, 'node')} without them"
    said += f", {_nodes_said(found.without, lacking)}" if found.without else ""
    said += f", not compared: {_nodes_said(found.not_compared)}" if found.not_compared else ""
    said += (
        f", nodes that only the API server lists not compared: {printable(found.unlisted, 200)}"
        if found.unlisted
        else ""
    )
    return f"{said}; as `rollout verify` found at {wall(found.at)}"


# What a verification of an owned cluster reports.


@dataclass(frozen=True, slots=True)
class OwnedValue:
    """``value`` is JSON. ``selection`` is the nodeset that must have it; ``""``: every node of the run's selection."""

    setting: str
    value: str
    selection: str


@dataclass(frozen=True, slots=True)
class ReplacedBy:
    """A later run that changed some of these settings on ``selection`` (``""``: on every node of the cluster)."""

    run: str
    settings: tuple[str, ...]
    selection: str
    whole: bool


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run with owned settings. ``selection``: the limit of its plan; ``""``: every node of the cluster.

    ``selects_none``: no node of the inventory is in it now, or in the selections of its values.
    """

    run: str
    playbook: str
    selection: str
    values: tuple[OwnedValue, ...]
    replaced_by: tuple[ReplacedBy, ...]
    selects_none: bool = False


@dataclass(frozen=True, slots=True)
class OwnedNodes:
    """Live nodes of a cluster against its owned settings.

    ``unlisted``: why nodes that only the API server lists were not compared; ``""``: they were, or none of them must have the settings.
    ``misses_nodes``: they were not, although a kubeconfig is named.
    ``ages_unknown``: why it is not known when nodes joined; ``""``: the API server told it. ``listed``: when the nodes were
    listed, if their source did not answer now.
    """

    cluster: str
    runs: tuple[OwnedRun, ...]
    nodes: tuple[ComparedNode, ...]
    ages_unknown: str
    listed: str
    unlisted: str = ""
    misses_nodes: bool = False

    @property
    def is_partial(self) -> bool:
        return bool(self.unread) or self.misses_nodes

    @property
    def lacking(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.nodes if each.lacks)

    @property
    def newcomers(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.nodes if each.is_newcomer)

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.nodes if each.standing in UNREAD)

    @property
    def as_wanted(self) -> tuple[str, ...]:
        having = (OwnedStanding.AS_WANTED, OwnedStanding.REPLACED)
        return tuple(each.name for each in self.nodes if each.standing in having and not each.lacks)


_TOLD = {
    OwnedStanding.DRIFTED: "drifted",
    OwnedStanding.NEVER_CHANGED: "never changed by rollout",
    OwnedStanding.REPLACED: "replaced (same name, another machine-id)",
    OwnedStanding.GONE: "gone",
    OwnedStanding.NOT_READABLE: "not readable",
    OwnedStanding.NOT_COMPARED: "not compared",
    OwnedStanding.LEFT_ALONE: "left alone",
}


def owned_run_lines(run: OwnedRun) -> Iterator[str]:
    """What is owned, and which later runs replaced it."""
    where = printable(run.selection, 160) or "every node"
    yield f"owned settings of run {run.run} (playbook {run.playbook}) on {where}, also on nodes that join later:"
    for each in run.values:
        only = f" on {printable(each.selection, 160)}" if each.selection else ""
        yield f"  {redacted(printable(f'{each.setting}: {each.value}', 300))}{only}"
    if run.selects_none:
        yield "  no node is in its selection now: a group or nodes were renamed, or are gone"
    for later in run.replaced_by:
        there = "there" if later.whole else f"on {printable(later.selection, 160)}"
        yield f"  run {later.run} changed {', '.join(later.settings)} since: its value counts {there}"


def owned_nodes_lines(found: OwnedNodes, now: float) -> Iterator[str]:
    """For people, after what the receipts say. ``now``: seconds since the epoch."""
    for run in found.runs:
        yield from owned_run_lines(run)
    well, lacking, unread = len(found.as_wanted), len(found.lacking), len(found.unread)
    yield f"{counted(well, 'node')} as wanted, {lacking} without an owned setting, {unread} not compared"
    for standing, word in _TOLD.items():
        nodes = {each.name: each for each in found.nodes if each.standing is standing}
        said = {name: _said(each) for name, each in nodes.items()}
        for why, names in folded(said).items():
            joined = _joined([nodes[name].joined for name in names], now)
            yield f"  {word}: {counted(len(names), 'node')} {printable(fold(names), 160)}{joined}{why}"
    if found.listed:
        yield f"  the nodes are those of {found.listed}: nodes that joined since are not seen"
    yield from unlisted_lines(found)
    if found.newcomers:
        if found.ages_unknown:
            yield f"  when nodes joined is not known: {printable(found.ages_unknown, 300)}"
        yield f"plan the nodes that were never changed: rollout plan --newcomers --cluster {found.cluster}"


def unlisted_lines(found: OwnedNodes) -> Iterator[str]:
    if found.unlisted:
        yield f"  nodes that only the API server lists were not compared: {printable(found.unlisted, 300)}"


def _said(node: ComparedNode) -> str:
    has = "" if node.standing is not OwnedStanding.REPLACED else ": lacks them" if node.lacks else ": has them"
    reference = f" [{node.reference}]" if node.reference else ""
    evidence = f": {redacted(printable(node.evidence, 300))}" if node.evidence else ""
    return f"{has}{reference}{evidence}"


def _joined(created: Sequence[str], now: float) -> str:
    """``, joined 5 min ago``; ``""``: not known of all of them."""
    times = [at for at in map(seconds_of, created) if at is not None]
    if not times or len(times) < len(created):
        return ""
    oldest, newest = _age(now - min(times)), _age(now - max(times))
    return f", joined {oldest} ago" if oldest == newest else f", joined {oldest} to {newest} ago"


def _age(seconds: float) -> str:
    return f"{seconds / 86_400:.0f} days" if seconds >= 2 * 86_400 else seconds_text(max(0.0, seconds))
