"""The live display of a run on a terminal: a log of events that scrolls, and a region below it.

Its own thread redraws the region twice a second; the driver only stores the newest state and the lines of the log here.
At the end the region is removed and the summary is printed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rollout.core.model.playbook import Scope
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.event_log import EventLog, LogLine, Tone
from rollout.core.presentation.summary import Trouble, summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, region_lines, summary_lines
from rollout.core.presentation.view import Counts, RackView, View, WaveStanding, WaveView, view
from rollout.core.presentation.watch_keys import (
    GateReading,
    Keyboard,
    Panel,
    gate_lines,
    key_list,
    newest_readings,
    node_lines,
    question,
)
from rollout.core.run.events import Event
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text.terminal import counted, hanging, printable, seconds_text

# A view of a run as rich renders it. The only module that draws with rich; ``live`` shows it, the picture
# exports it.
#
# Every text is added as ``Text``, never as markup. The view has passed texts from nodes through ``printable``.
# States differ in sign and colour, for monochrome screens and colour-blind people.


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
    NodeState.GONE: ("×", "dim"),
    NodeState.PENDING: ("·", "dim"),
}
_SIGNS = {
    WaveStanding.PASSED: "✓",
    WaveStanding.OVER: "–",
    WaveStanding.NOW: "▶",
    WaveStanding.TO_COME: " ",
    WaveStanding.STOPPED: "■",
}


def screen(seen: View, elapsed: float | None = None, carried: Callable[[str], str] = str) -> RenderableType:
    """The whole region, a few dozen lines at most. ``elapsed``: seconds since the start, if known; ``carried`` completes proposed commands."""
    widest = max((min(20, len(wave.name)) for wave in seen.waves), default=0)
    what = "rollback" if seen.goal is Goal.REVERT else "run"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{what} {seen.run}", "bold").append(f" on {seen.cluster}", "bold")
    waits = seen.standing in ("on hold", "paused", "window closed")
    text.append(f"   {seen.standing}", "bold red" if seen.halt else "bold yellow" if waits else "bold cyan")
    text.append(f"   {seen.done:,} of {counted(seen.total, 'node')}")
    waves = Group(*(_wave(wave, widest) for wave in seen.waves))
    parts: list[RenderableType] = [text, waves, _facts(seen, elapsed, carried)]
    return Group(*parts)


def _wave(wave: WaveView, widest: int) -> Text:
    now = wave.standing in (WaveStanding.NOW, WaveStanding.STOPPED)
    style = "bold" if now else "dim" if wave.standing is WaveStanding.TO_COME else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{_SIGNS[wave.standing]} ", "red" if wave.standing is WaveStanding.STOPPED else "cyan")
    text.append(f"{printable(wave.name, 20):<{widest}} {wave.total:>6,} ", style)
    return text.append_text(bar(wave.counts, BAR)).append(" ").append_text(counts(wave.counts))


def bar(numbers: Counts, width: int) -> Text:
    """States in proportion; each state with at least one node gets a column."""
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


def _facts(seen: View, elapsed: float | None, carried: Callable[[str], str]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=9)
    table.add_column(overflow="fold")
    # Not in the title, because a narrow screen would cut it.
    so_far = [] if elapsed is None else [f"{seconds_text(elapsed)} so far"]
    if time := Text(", ".join([*so_far, *([seen.left] if seen.left else [])])):
        table.add_row("time", time)
    for title, text in _rows(seen, carried):
        table.add_row(title, text)
    return table


def _rows(seen: View, carried: Callable[[str], str]) -> Iterator[tuple[str, Text]]:
    yield from _standing(seen)
    yield from _titled("racks", [_rack(rack) for rack in seen.racks])
    if seen.more_racks:
        yield "", Text(seen.more_racks, "dim")
    yield from _titled("problems", [_trouble(trouble) for trouble in seen.troubles])
    if seen.more_troubles:
        yield "", Text(carried(f"and {counted(seen.more_troubles, 'more kind')}: `rollout status` lists all"), "dim")
    if seen.owed:
        yield "to recover", Text(printable(seen.owed, 160), "yellow")


def _titled(title: str, lines: list[Text]) -> Iterator[tuple[str, Text]]:
    return ((title if not at else "", line) for at, line in enumerate(lines))


def _standing(seen: View) -> Iterator[tuple[str, Text]]:
    if seen.halt:
        yield "halted", Text(seen.halt, "bold red")
    if seen.phase is not Phase.ENDED:
        title = "stopped" if seen.standing in ("paused", "on hold", "window closed") else "waits for"
        yield title, Text(seen.waits, "" if seen.halt else "bold")
    for told in seen.silent:
        yield "", Text(told, "yellow")
    if seen.distances and not seen.halt:
        text = Text(" · ".join(found.short for found in seen.distances))
        near = seen.distances[0]
        gone = any(found.wrong for found in seen.distances)
        text.append(f": halts at {counted(near.left, 'more failed node')}", "bold yellow" if gone else "")
        yield "budgets", (text if near.scope is Scope.FLEET else text.append(f" in {near.place}"))
    if seen.rehearsal:
        yield "rehearsal", Text(str(seen.rehearsal).removeprefix("rehearsal: "))


def _rack(rack: RackView) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{printable(rack.name, 16):<10} ", "red" if rack.wrong else "")
    return text.append_text(bar(rack.counts, BAR - 8)).append("  ").append_text(counts(rack.counts))


def _trouble(trouble: Trouble) -> Text:
    text = Text(f"{trouble.count:,} {trouble.state} ", _LOOKS[trouble.state][1])
    text.append(f"{printable(trouble.nodes, 60)}: {printable(trouble.message, 160) or 'no message'}")
    return text.append(f" [{printable(trouble.reference, 60)}]" if trouble.reference else "", "dim")


_TONES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "red"}
_STAMP = 10
"""Columns of a time."""


def log_texts(line: LogLine, at: float, width: int) -> Iterator[Text]:
    """A line of the log with its time (``at``, seconds since the epoch); what is wrapped is indented."""
    first, *rest = hanging(f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}  {line.text}", width, _STAMP + 2)
    yield Text(first[:_STAMP], "dim").append(first[_STAMP:], _TONES[line.tone])
    yield from (Text(each, _TONES[line.tone]) for each in rest)


# The keys of ``watch``, below the region.


class _Fitted:
    """``body``, cut so that ``foot`` is on the screen."""

    def __init__(self, body: RenderableType, foot: RenderableType) -> None:
        self._body, self._foot = body, foot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        foot = console.render_lines(self._foot, options, pad=False)[: console.height - 1]
        body = console.render_lines(self._body, options, pad=False)
        room = console.height - 1 - len(foot)
        for line in (*body[:room], *foot):
            yield from line
            yield Segment.line()


def _foot(keyboard: Keyboard, state: RunState) -> Text:
    if keyboard.asking is not None:
        return Text(question(keyboard.asking, state), "bold yellow")
    message = f"\n{printable(keyboard.said, 300)}" if keyboard.said else ""
    return Text(key_list(state), "dim").append(message, "not dim yellow")


def _panel(keyboard: Keyboard, state: RunState, readings: Mapping[str, GateReading]) -> Iterator[RenderableType]:
    if keyboard.panel is None:
        return
    lines = node_lines(state) if keyboard.panel is Panel.NODES else gate_lines(state, readings)
    yield Text(keyboard.panel.value, "bold")
    table = Table.grid()
    table.add_column(min_width=2)
    table.add_column(no_wrap=keyboard.panel is Panel.NODES, overflow="ellipsis")
    for line in lines:
        table.add_row("", Text(line))
    yield table


EVERY = 0.5
"""Seconds between two frames."""


class LiveDisplay:
    """The region, inside the ``with`` block. ``show`` draws one state; other output scrolls above it.

    ``keyboard``: the keys of ``watch``; ``None``: there are none.
    """

    def __init__(self, console: Console, carried: Callable[[str], str] = str) -> None:
        self._console = console
        self._carried = carried
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="ellipsis")
        self._began: float | None = None
        self._day = ""
        self.keyboard: Keyboard | None = None
        self.regions: tuple[RegionStanding, ...] = ()

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone
            self._live.stop()

    def show(self, state: RunState, now: float, readings: Mapping[str, GateReading] | None = None) -> None:
        """Draw a state at time ``now`` (in the seconds of its events)."""
        with suppress(OSError, ValueError):
            self._live.update(self.region(state, now, readings), refresh=True)

    def region(self, state: RunState, now: float, readings: Mapping[str, GateReading] | None = None) -> RenderableType:
        if self._began is None:
            self._began = now
        whole = screen(view(state, now), now - self._began, self._carried)
        if self.regions:
            whole = Group(whole, *(Text(line) for line in region_lines(self.regions)))
        if self.keyboard is not None:
            below = Group(whole, *_panel(self.keyboard, state, readings or {}))
            return _Fitted(below, _foot(self.keyboard, state))
        return whole

    def log(self, line: LogLine, at: float) -> None:
        """Print a line of the log above the region, and the day where it changes."""
        day = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d} UTC"
        with suppress(OSError, ValueError):
            if day != self._day:
                self._day = day
                self._console.print(Text(day, "dim"))
            for text in log_texts(line, at, self._console.width):
                self._console.print(text)

    def conclude(self, state: RunState, after: Afterwards = NOTHING_SINCE) -> None:
        """End the region and leave the summary."""
        self.__exit__(None, None, None)
        with suppress(OSError, ValueError):
            for line in summary_lines(summarize(state), after):
                for part in hanging(self._carried(line), self._console.width):
                    self._console.print(Text(part))


def watch(states: Iterable[tuple[RunState, float]], console: Console) -> RunState | None:
    """Show each state at its time until there are no more; then print the summary of the last one."""
    last = None
    with LiveDisplay(console) as display:
        for last, now in states:
            display.show(last, now)
        if last is not None:
            display.conclude(last)
    return last


class _Visible(Console):
    """Never hides the cursor: a process that Ctrl-Z stops, or that is killed, could not show it again."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002, FBT001, FBT002 - rich's signature
        return False


class LiveProgress:
    """The observer of a run: keeps the newest state, the lines of its log, and a thread that draws them."""

    def __init__(
        self,
        out: TextIO,
        carried: Callable[[str], str] = str,
        known: Callable[[RunState], Afterwards] = lambda _: NOTHING_SINCE,
    ) -> None:
        self._known = known  # what the events of a run do not show
        self._display = LiveDisplay(_Visible(file=out, highlight=False), carried)
        self._log = EventLog(details=True)
        self._lines: deque[tuple[float, LogLine]] = deque()
        self._readings: Mapping[str, GateReading] = {}
        self._latest: tuple[RunState, float] | None = None
        self._ended = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        """Only assignments: the driver is not delayed."""
        self._lines.extend((event.at, line) for line in self._log.lines(event, before, after))
        self._readings = newest_readings(self._readings, event)
        self._latest = (after, time.monotonic())
        if self._thread is None and not self._ended.is_set():
            self._display.__enter__()
            self._thread = threading.Thread(target=self._draw, name="live display", daemon=True)
            self._thread.start()

    def show_keys(self, keyboard: Keyboard) -> None:
        """Draw the keys of ``watch`` in this state, at once."""
        self._display.keyboard = keyboard
        self._news.set()

    def show_regions(self, regions: tuple[RegionStanding, ...]) -> None:
        """Draw the regions of the controller with the next frame."""
        self._display.regions = regions

    def on_end(self, state: RunState) -> None:
        self.close()
        self._display.conclude(state, self._known(state))

    def close(self) -> None:
        """Restore the terminal, also after an error."""
        self._ended.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._display.__exit__(None, None, None)
            self._print_log()

    def _draw(self) -> None:
        while not self._ended.is_set():
            self._news.clear()
            self._print_log()
            if self._latest is not None:
                state, heard = self._latest
                self._display.show(state, state.now + time.monotonic() - heard, self._readings)
            self._news.wait(EVERY)

    def _print_log(self) -> None:
        while self._lines:
            at, line = self._lines.popleft()
            self._display.log(line, at)
