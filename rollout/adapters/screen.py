"""A view of a run as rich renders it. The only module that draws with rich; ``live`` shows it, the picture exports it.

Every text goes in as ``Text``, never as markup, and what came from nodes went through ``printable`` in the view. States
differ in their sign as well as in their colour, for screens and eyes without colours.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rollout.core.model.playbook import Scope
from rollout.core.presentation.summary import Trouble
from rollout.core.presentation.view import Counts, RackView, Standing, View, WaveView
from rollout.core.run.state import Goal, NodeState, Phase
from rollout.core.text.terminal import counted, printable, seconds_text

BAR = 30
"""Columns of a wave's bar."""

_LOOKS: dict[NodeState, tuple[str, str]] = {
    NodeState.CONFIRMED: ("█", "green"),
    NodeState.APPLIED: ("▓", "cyan"),
    NodeState.APPLYING: ("▒", "cyan"),
    NodeState.REVERTING: ("◂", "magenta"),
    NodeState.REVERTED: ("◁", "magenta"),
    NodeState.FAILED: ("✗", "bold red"),
    NodeState.REFUSED: ("!", "yellow"),
    NodeState.UNREACHABLE: ("?", "red"),
    NodeState.UNKNOWN: ("?", "yellow"),
    NodeState.SKIPPED: ("-", "dim"),
    NodeState.PENDING: ("·", "dim"),
}
_SIGNS = {Standing.PASSED: "✓", Standing.NOW: "▶", Standing.TO_COME: " ", Standing.STOPPED: "■"}


def screen(seen: View, elapsed: float | None = None) -> RenderableType:
    """The whole region, a few dozen lines at most. ``elapsed``: seconds since it was begun, where that is known."""
    parts: list[RenderableType] = [_title(seen), _waves(seen), _facts(seen, elapsed)]
    return Group(*parts)


def _title(seen: View) -> Text:
    what = "rollback" if seen.goal is Goal.REVERT else "run"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{what} {seen.run}", "bold").append(f" on {seen.cluster}", "bold")
    text.append(f"   {_phase(seen)}", "bold red" if seen.halt else "bold cyan")
    text.append(f"   {seen.done:,} of {counted(seen.total, 'node')}")
    return text


def _time(seen: View, elapsed: float | None) -> Text:
    """Not in the title, which a narrow screen would cut."""
    so_far = [] if elapsed is None else [f"{seconds_text(elapsed)} so far"]
    return Text(", ".join([*so_far, *([seen.left] if seen.left else [])]))


def _phase(seen: View) -> str:
    return "taking back" if seen.phase is Phase.HALTING and seen.goal is Goal.REVERT else seen.phase.value


def _waves(seen: View) -> Group:
    widest = max((min(20, len(wave.name)) for wave in seen.waves), default=0)
    return Group(*(_wave(wave, widest) for wave in seen.waves))


def _wave(wave: WaveView, widest: int) -> Text:
    now = wave.standing in (Standing.NOW, Standing.STOPPED)
    style = "bold" if now else "dim" if wave.standing is Standing.TO_COME else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{_SIGNS[wave.standing]} ", "red" if wave.standing is Standing.STOPPED else "cyan")
    text.append(f"{printable(wave.name, 20):<{widest}} {wave.total:>6,} ", style)
    return text.append_text(bar(wave.counts, BAR)).append(" ").append_text(counts(wave.counts))


def bar(numbers: Counts, width: int) -> Text:
    """States in proportion; whatever there is one of gets a column at least."""
    total = sum(count for _, count in numbers)
    ranked = sorted(numbers, key=lambda pair: list(_LOOKS).index(pair[0]))
    widths = [max(1, round(count * width / total)) for _, count in ranked]
    while sum(widths) != width and widths:
        most = widths.index(max(widths))
        widths[most] += 1 if sum(widths) < width else -1
    text = Text()
    for (kind, _), columns in zip(ranked, widths, strict=True):
        sign, style = _LOOKS[kind]
        text.append(sign * columns, style)
    return text


def counts(numbers: Counts) -> Text:
    """``12 confirmed, 3 applying``, each in its colour."""
    text = Text()
    for at, (kind, count) in enumerate(sorted(numbers, key=lambda pair: list(_LOOKS).index(pair[0]))):
        text.append(", " if at else "").append(f"{count:,} {kind}", _LOOKS[kind][1])
    return text


def _facts(seen: View, elapsed: float | None) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=9)
    table.add_column(overflow="fold")
    if time := _time(seen, elapsed):
        table.add_row("time", time)
    for title, text in _rows(seen):
        table.add_row(title, text)
    return table


def _rows(seen: View) -> Iterator[tuple[str, Text]]:
    yield from _standing(seen)
    yield from _titled("racks", [_rack(rack) for rack in seen.racks])
    if seen.more_racks:
        yield "", Text(seen.more_racks, "dim")
    yield from _titled("wrong", [_trouble(trouble) for trouble in seen.troubles])
    if seen.more_troubles:
        yield "", Text(f"and {counted(seen.more_troubles, 'more kind')}: `rollout status` says them all", "dim")
    if seen.owed:
        yield "owed", Text(printable(seen.owed, 160), "yellow")


def _titled(title: str, lines: list[Text]) -> Iterator[tuple[str, Text]]:
    return ((title if not at else "", line) for at, line in enumerate(lines))


def _standing(seen: View) -> Iterator[tuple[str, Text]]:
    if seen.halt:
        yield "halted", Text(seen.halt, "bold red")
    if seen.phase is not Phase.ENDED:
        yield "waits for", Text(seen.waits, "" if seen.halt else "bold")
    for told in seen.silent:
        yield "", Text(told, "yellow")
    if seen.distances and not seen.halt:
        yield "budgets", _budgets(seen)
    if seen.rehearsal:
        yield "rehearsal", Text(str(seen.rehearsal).removeprefix("rehearsal: "))


def _budgets(seen: View) -> Text:
    text = Text(" · ".join(found.short for found in seen.distances))
    near = seen.distances[0]
    gone = any(found.wrong for found in seen.distances)
    text.append(f": halts at {near.left} more", "bold yellow" if gone else "")
    return text if near.scope is Scope.FLEET else text.append(f" in {near.place}")


def _rack(rack: RackView) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{printable(rack.name, 16):<10} ", "red" if rack.wrong else "")
    return text.append_text(bar(rack.counts, BAR - 8)).append("  ").append_text(counts(rack.counts))


def _trouble(trouble: Trouble) -> Text:
    text = Text(f"{trouble.count:,} {trouble.state} ", _LOOKS[trouble.state][1])
    text.append(f"{printable(trouble.nodes, 60)}: {printable(trouble.message, 160) or 'no word'}")
    return text.append(f" [{printable(trouble.reference, 60)}]" if trouble.reference else "", "dim")
