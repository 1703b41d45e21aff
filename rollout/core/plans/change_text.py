"""The changes of a plan as text: groups of nodes with the same change, its reasons and its diffs.

Groups that differ only in bytes that rollout does not change are shown once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, ChangeGroup, FileChange, Plan, kind_of
from rollout.core.text import diff, nodesets
from rollout.core.text.terminal import counted, printable

MOST_KINDS = 12
_LONGEST_NODESET = 160


@dataclass(frozen=True, slots=True)
class DiffStyle:
    """``context``: unchanged lines around a change; ``most``: lines of one file."""

    context: int = diff.CONTEXT
    most: int = 24


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """Groups with changes that differ only in bytes that rollout does not change. The first one is shown."""

    groups: tuple[ChangeGroup, ...]
    nodes: tuple[str, ...]

    @property
    def first(self) -> ChangeGroup:
        return self.groups[0]


def kinds(plan: Plan) -> tuple[ShownGroup, ...]:
    """The plan's groups folded, largest first."""
    groups: dict[str, list[ChangeGroup]] = {}
    for group in plan.groups:
        groups.setdefault(kind_of(group.label, group.change), []).append(group)
    members: dict[str, list[str]] = {}
    for node in plan.nodes.values():
        members.setdefault(node.group, []).append(node.name)
    made = [
        ShownGroup(tuple(entries), tuple(name for entry in entries for name in members.get(entry.name, ())))
        for entries in groups.values()
    ]
    return tuple(sorted(made, key=lambda kind: -len(kind.nodes)))


def group_lines(plan: Plan, style: DiffStyle, *, diffs: bool = True) -> Iterator[str]:
    found = kinds(plan)
    left_out = 0
    changes: dict[tuple[str, ...], str] = {}
    seen: dict[tuple[str, ...], str] = {}
    for at, kind in enumerate(found[:MOST_KINDS]):
        if diffs or not at:
            yield ""
        yield from _header(kind)
        change = kind.first.change
        body = (*_reasons_and_diffs(change, style), *then_lines(change))
        where = changes.setdefault(tuple(body), kind.first.name)
        if where != kind.first.name:
            yield f"    the same change as {where}"
            continue
        for file in change.files:
            yield from _file(kind.first.name, file, seen, style) if diffs else _file_in_short(file)
            left_out += not diffs
        yield from (f"    {line}" for line in then_lines(change))
    rest = found[MOST_KINDS:]
    if rest:
        yield ""
        nodes = sum(len(kind.nodes) for kind in rest)
        yield f"… {counted(len(rest), 'more group')} with {counted(nodes, 'node')}: see them all with -o json"
    if left_out:
        yield f"… {counted(left_out, 'diff')} not shown: see them with -v"


def _header(kind: ShownGroup) -> Iterator[str]:
    first = kind.first
    yield f"{first.name}  {first.label}: {counted(len(kind.nodes), 'node')}  {folded(kind.nodes)}"
    if len(kind.groups) > 1:
        more = counted(len(kind.groups) - 1, "group")
        yield f"    and {more} more that differ only in bytes that rollout does not change; shown for {first.name}"


def _reasons_and_diffs(change: Change, style: DiffStyle) -> Iterator[str]:
    for file in change.files:
        yield from file.reasons
        yield from diff_lines(file, style.context)


def diff_lines(file: FileChange, context: int = diff.CONTEXT) -> tuple[str, ...]:
    """Of one file, without secrets."""
    return diff.unified(file.before, file.after, file.path, context)


def _file(group: str, file: FileChange, seen: dict[tuple[str, ...], str], style: DiffStyle) -> Iterator[str]:
    yield from (f"    {printable(reason)}" for reason in file.reasons)
    lines = diff_lines(file, style.context)
    where = seen.setdefault(lines, group)
    if where != group:
        yield f"      {file.path}: the same lines as in {where}"
        return
    yield from (f"      {line}" for line in lines[: style.most])
    if len(lines) > style.most:
        yield f"      … {len(lines) - style.most} more lines"


def _file_in_short(file: FileChange) -> Iterator[str]:
    """Its reasons, and after the last one how many lines the file gains and loses."""
    *reasons, last = file.reasons or ("",)
    yield from (f"    {printable(reason)}" for reason in reasons)
    lines = diff_lines(file)[2:]
    more, fewer = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    yield f"    {printable(last)}  {file.path}{' (new)' if file.before is None else ''}: +{more} −{fewer} lines"


def config_map_lines(plan: Plan, style: DiffStyle, *, diffs: bool = True) -> Iterator[str]:
    """What nodes that join later get."""
    change = plan.config_map
    if change is None:
        return
    yield ""
    yield f"Nodes that join later: {printable(change.title, 200)} is written after the last wave; kubeadm gives it to them"
    lines = config_map_diff(change, style.context)
    if diffs:
        yield from (f"      {line}" for line in lines[: style.most])
    if not diffs or len(lines) > style.most:
        yield f"      … {counted(len(lines) - (style.most if diffs else 0), 'more line')}: see them with -v"


def config_map_diff(change: ConfigMapChange, context: int = diff.CONTEXT) -> tuple[str, ...]:
    return diff.unified(change.before.encode(), change.after.encode(), change.title, context)


def then_lines(change: Change) -> Iterator[str]:
    """What is done after the files are written, its disruption class, and notes."""
    doing = [
        *(["systemctl daemon-reload"] if change.reload else []),
        *(f"SIGHUP to {unit}" for unit in change.hangups),
        *([f"restart {', '.join(change.units)}"] if change.units else []),
    ]
    yield f"then: {', '.join(doing) or 'nothing is restarted'} ({change.disruption.value})"
    yield from (f"note: {printable(note, 400)}" for note in change.notes)


def folded(names: Iterable[str]) -> str:
    """A nodeset for a line."""
    return printable(nodesets.fold(names), _LONGEST_NODESET)
