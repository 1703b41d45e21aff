"""Sends notices of a run from a thread of its own. A notice that is not delivered is recorded, and never holds up a run."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Protocol

from rollout.app.ports import Journal, Note
from rollout.core.presentation.notices import Notice, lost
from rollout.core.run.events import Event
from rollout.core.run.state import Phase, RunState
from rollout.errors import RolloutError, StateError
from rollout.features.notices.rules import notices_of


class Postman(Protocol):
    """Delivers a notice, in a time of its own. ``RemoteError``: it was not delivered, or not everywhere."""

    def send(self, title: str, body: str) -> None: ...


MOST_WAITING = 64
FAREWELL = 10.0
"""Seconds after the end of a run in which the last notices may still be sent."""


class NoticeSender:
    """An observer of a run. ``page``: the address of `rollout serve`; ``""``: not known."""

    def __init__(
        self, postman: Postman, journal: Journal, who: str, page: str = "", farewell: float = FAREWELL
    ) -> None:
        self._postman = postman
        self._journal = journal
        self._who = who
        self._page = page
        self._farewell = farewell
        self._waiting: Queue[Notice | None] = Queue(MOST_WAITING)
        self._failed: deque[str] = deque()
        self._state: RunState | None = None
        self._thread = Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        self._state = after
        for notice in notices_of(event, before, after):
            self._put(notice)
        self._record(after.order.cluster)

    def tell(self, notice: Notice, state: RunState) -> None:
        """One that no event of the run has caused."""
        self._state = state
        self._put(notice)
        self._record(state.order.cluster)

    def on_end(self, state: RunState) -> None:
        self._state = state

    def close(self, why: str = "") -> None:
        """Send what is left, for a limited time. ``why``: the controller stops, perhaps before the run has ended."""
        state = self._state
        if state is not None and why and state.phase is not Phase.ENDED:
            self._put(lost(state, why))
        until = time.monotonic() + self._farewell
        with suppress(Full):
            self._waiting.put(None, timeout=self._farewell)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._failed.append(f"{self._waiting.qsize() + 1} or more were not sent within {self._farewell:g} s")
        if state is not None:
            self._record(state.order.cluster)

    def _put(self, notice: Notice) -> None:
        try:
            self._waiting.put_nowait(notice)
        except Full:
            self._failed.append(f"{notice.title}: too many notices wait")

    def _send_all(self) -> None:
        while (notice := self._waiting.get()) is not None:
            try:
                self._postman.send(notice.title, notice.body(self._page))
            except RolloutError as error:
                self._failed.append(f"{notice.title}: {error.message}")
            except Exception as error:  # noqa: BLE001 - a library's failure must not end the thread; its text may hold an address
                self._failed.append(f"{notice.title}: {type(error).__name__}")

    def _record(self, cluster: str) -> None:
        """On the run's own thread, because only that one writes its journal."""
        while self._failed:
            note = Note(time.time(), self._who, f"a notice was not delivered: {self._failed.popleft()}")
            with suppress(StateError):
                self._journal.note(cluster, note)
