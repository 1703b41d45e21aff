"""A run's stream of snapshots: about two a second, however many events there are.

The kernel drops a browser that does not read (see ``server``); when it connects again, it gets what changed since its last snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic

from starlette.concurrency import run_in_threadpool

from rollout.app.live_run import LiveRun
from rollout.errors import StateError
from rollout.web.snapshots import Browser, RenderedParts

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
