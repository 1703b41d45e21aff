"""Progress of a run: plain lines for people, NDJSON for programs. Only observes.

Prints one line for each wave, one for a halt, and one for the first node of each kind of failure. The summary at the
end has the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from rollout.core.presentation.event_documents import event_document
from rollout.core.presentation.event_log import EventLog
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, SummaryDocument, summary_lines
from rollout.core.run.events import Event
from rollout.core.run.state import RunState
from rollout.core.text import documents


def shows_live(out: TextIO) -> bool:
    """Whether the output is a terminal that can redraw a region."""
    return out.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


class PlainProgress:
    """Prints lines on ``out`` while the run proceeds. Each line begins with ``label``; ``carried`` completes proposed commands.

    ``known``: what the events of a run do not show.
    """

    def __init__(
        self,
        out: TextIO,
        label: str = "",
        carried: Callable[[str], str] = str,
        known: Callable[[RunState], Afterwards] = lambda _: NOTHING_SINCE,
    ) -> None:
        self._out = out
        self._known = known
        self._label = label
        self._carried = carried
        self._log = EventLog()

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        for line in self._log.lines(event, before, after):
            _print(f"{self._label}{self._carried(line.text)}", self._out)

    def on_end(self, state: RunState) -> None:
        for line in summary_lines(summarize(state), self._known(state)):
            _print(f"{self._label}{self._carried(line)}", self._out)


class JsonProgress:
    """One document per line: every journaled event, then the summary."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def on_event(self, event: Event, _before: RunState, after: RunState) -> None:
        self._say(event_document(event, after))

    def on_end(self, state: RunState) -> None:
        self._say(SummaryDocument(summarize(state)))

    def _say(self, document: object) -> None:
        _print(documents.line(document), self._out)


def _print(line: str, out: TextIO) -> None:
    """The reader may be gone: the run continues anyway, and the journal has everything."""
    with suppress(OSError, ValueError):
        print(line, file=out, flush=True)
