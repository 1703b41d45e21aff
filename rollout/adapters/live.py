"""The live display of a run on a terminal: one calm region, redrawn twice a second by a thread of its own.

The driver only leaves the newest state here. At the end the region goes and the summary stays.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rollout.adapters.screen import screen
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import summary_lines
from rollout.core.presentation.view import view
from rollout.core.run.events import Event
from rollout.core.run.state import RunState

EVERY = 0.5
"""Seconds between two pictures."""


def shows_live(out: TextIO) -> bool:
    """Whether a region can be redrawn there: a terminal that knows how."""
    return out.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


class LiveDisplay:
    """The region, for as long as the ``with`` lasts. ``show`` draws one state; what else is printed scrolls above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="ellipsis")
        self._began: float | None = None

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone
            self._live.stop()

    def show(self, state: RunState, now: float) -> None:
        """Draw a state as it is at ``now`` (in the seconds of its events)."""
        if self._began is None:
            self._began = now
        with suppress(OSError, ValueError):
            self._live.update(screen(view(state, now), now - self._began), refresh=True)

    def conclude(self, state: RunState) -> None:
        """End the region and leave the summary."""
        self.__exit__(None, None, None)
        with suppress(OSError, ValueError):
            for line in summary_lines(summarize(state)):
                self._console.print(Text(line))


def watch(states: Iterable[tuple[RunState, float]], console: Console) -> RunState | None:
    """Show states, each with the time it is shown at, until there are no more; the last one leaves its summary."""
    last = None
    with LiveDisplay(console) as display:
        for last, now in states:
            display.show(last, now)
        if last is not None:
            display.conclude(last)
    return last


class LiveProgress:
    """The observer of a run: keeps the newest state, and a thread that draws it."""

    def __init__(self, out: TextIO) -> None:
        self._display = LiveDisplay(Console(file=out, highlight=False))
        self._latest: tuple[RunState, float] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def on_event(self, _event: Event, _before: RunState, after: RunState) -> None:
        """Costs the driver an assignment."""
        self._latest = (after, time.monotonic())
        if self._thread is None and not self._ended.is_set():
            self._display.__enter__()
            self._thread = threading.Thread(target=self._draw, name="live display", daemon=True)
            self._thread.start()

    def on_end(self, state: RunState) -> None:
        self.close()
        self._display.conclude(state)

    def close(self) -> None:
        """Give the terminal back; also when the run ends by an error."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._display.__exit__(None, None, None)

    def _draw(self) -> None:
        while not self._ended.is_set():
            if self._latest is not None:
                state, heard = self._latest
                self._display.show(state, state.now + time.monotonic() - heard)
            self._ended.wait(EVERY)
