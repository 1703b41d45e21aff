"""The stream of a run: it sends the nodes and the parts of the page that changed since its last message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any

from starlette.concurrency import run_in_threadpool

from rollout.app.live_run import LiveRun, Look
from rollout.core.presentation.glance import glance
from rollout.core.presentation.pages.charts import CHARGED, SIGNS, state_class
from rollout.core.presentation.pages.markup import Html, with_texts
from rollout.core.presentation.pages.parts import story_parts
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.waiting import standing
from rollout.core.run.state import NodeRecord, NodeState, Phase, RunState
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable
from rollout.errors import StateError
from rollout.features.serve.words.live_page import now_parts

LONGEST = 300
"""Characters of a node's message in the table; its own page has more."""


@dataclass
class RenderedParts:
    """The parts of the newest look, made once for all readers of a run. Thread-safe.

    ``secret``: see ``controls``. ``carried`` completes proposed commands.
    """

    secret: str = ""
    carried: Callable[[str], str] = str
    story: Story | None = None
    parts: dict[str, Html] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def of(self, look: Look) -> dict[str, Html]:
        with self.lock:
            if look.story is not self.story:
                self.parts = self._completed(story_parts(look.story))
                self.story = look.story
            return {**self.parts, **self._completed(now_parts(look.story, look.after, look.at, self.secret))}

    def _completed(self, parts: dict[str, Html]) -> dict[str, Html]:
        return {name: with_texts(part, self.carried) for name, part in parts.items()}


@dataclass
class Browser:
    """What one browser has. ``seen``: the number of the look of its nodes; 0: it has none.

    ``last``: the identity of the last event that it got before its connection was lost; ``""``: it begins.
    """

    last: str = ""
    seen: int = 0
    parts: dict[str, Html] = field(default_factory=dict)

    def message(self, look: Look, parts: dict[str, Html]) -> str:
        """An event for the browser; ``""`` when it has everything. The state of this reader is the newest afterwards."""
        update: dict[str, Any] = {}
        source, _, number = self.last.rpartition("/")
        if not self.seen and source == look.source and number.isascii() and number.isdigit():
            self.seen = min(int(number[:12]), look.number)
        if new := {name: part for name, part in parts.items() if self.parts.get(name) != part}:
            update["parts"] = new
            self.parts = parts
        if look.number != self.seen:
            if not self.seen:
                update["layout"] = _layout(look.story.state)
            state = look.story.state
            update["nodes"] = [_row(state, name) for name, number in look.changed.items() if number > self.seen]
            self.seen = look.number
        if not update:
            return ""
        update["standing"] = _standing(look)
        update["title"] = title_of(look)
        return f"id: {look.source}/{look.number}\ndata: {json.dumps(update, separators=(',', ':'))}\n\n"


def _standing(look: Look) -> str:
    state = look.story.state
    if state.phase is Phase.ENDED:
        return f"ended: {state.ending}"
    return standing(state) if look.after.controller.alive else "no controller"


def title_of(look: Look) -> str:
    """The title of the page: how the run stands and why."""
    state = look.story.state
    return glance(state, look.after).title(state.order.cluster)


def _layout(state: RunState) -> dict[str, Any]:
    """The racks by zone with their nodes, the waves, and how each state is drawn."""
    racks: dict[tuple[str, str], list[str]] = {}
    for name, node in state.order.nodes.items():
        racks.setdefault((node.zone, node.rack), []).append(name)
    return {
        "run": state.order.run,
        "racks": [[zone, rack, sorted(racks[zone, rack])] for zone, rack in sorted(racks)],
        "waves": [wave.name for wave in state.order.waves],
        "states": {kind.value: [state_class(kind), SIGNS[kind]] for kind in NodeState},
        "charged": CHARGED,
    }


def _row(state: RunState, name: str) -> list[Any]:
    """``[name, wave, state, message, charged, pending recovery]``"""
    record = state.nodes[name]
    text = f"{record.message} [{record.reference}]" if record.reference else record.message
    return [
        name,
        state.order.nodes[name].wave,
        record.state.value,
        printable(without_secrets(text), LONGEST),
        *_marks(record),
    ]


def _marks(record: NodeRecord) -> Iterator[int]:
    yield int(record.cause is not None)
    yield int(record.owed)


EVERY = 0.5
"""Least seconds between two snapshots."""

SHARE = 4
"""A snapshot that takes long to make is followed by a pause of so many times its time."""

HERE_EVERY = 10.0
"""Seconds after which a comment shows that the stream still lives."""

MOST_STREAMS = 32


async def snapshots(
    live: LiveRun, rendered: RenderedParts, reader: Browser, stopping: Callable[[], bool]
) -> AsyncIterator[str]:
    """Events for one browser, until the server stops."""

    def message() -> str:
        look = live.look()
        return reader.message(look, rendered.of(look))

    said = monotonic()
    yield "retry: 1000\n\n"
    while not stopping():
        began = monotonic()
        try:
            text = await run_in_threadpool(message)
        except StateError as error:
            reader.parts = {}  # sent again after the outage: with them goes how the run stands
            text = f"event: trouble\ndata: {' '.join(rendered.carried(str(error)).split())}\n\n"
        if text or monotonic() - said > HERE_EVERY:
            yield text or ": here\n\n"
            said = monotonic()
        await _pause(max(EVERY, SHARE * (monotonic() - began)), stopping)


async def _pause(seconds: float, stopping: Callable[[], bool]) -> None:
    ends = monotonic() + seconds
    while not stopping() and (left := ends - monotonic()) > 0:
        await asyncio.sleep(min(left, EVERY))
