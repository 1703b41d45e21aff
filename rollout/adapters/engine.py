"""The local engine: bounded pools of threads that run the machine's commands and return the answers.

Commands that change a node have their own pool. So an urgent revert does not wait for a thousand measurements. A
command that the pace releases starts at once, not later together with others.
"""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor

from rollout.app.ports import Worker
from rollout.core.run.commands import Command, is_change
from rollout.core.run.events import Event

MANY = 24
"""Commands under way from which on answers are gathered."""

GATHER = 0.02
"""Seconds for which answers are gathered after the first one: what takes them writes and decides once for all of them."""


class ThreadEngine:
    """``width`` parallel changes, and as many reads. An exception in a worker is a bug: ``collect`` raises it again."""

    def __init__(self, width: int) -> None:
        self._changes = ThreadPoolExecutor(max_workers=width, thread_name_prefix="change")
        self._looks = ThreadPoolExecutor(max_workers=width, thread_name_prefix="look")
        self._answers: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._under_way = 0

    def submit(self, worker: Worker, command: Command) -> None:
        self._under_way += 1
        pool = self._changes if is_change(command) else self._looks
        pool.submit(self._do, worker, command)

    def _do(self, worker: Worker, command: Command) -> None:
        try:
            self._answers.put(worker(command))
        except BaseException as exc:  # noqa: BLE001 - passed to the loop, which raises it
            self._answers.put(exc)

    def collect(self, timeout: float) -> tuple[Event, ...]:
        answers = []
        try:
            answers.append(self._answers.get(timeout=timeout))
            if self._under_way > MANY:
                time.sleep(GATHER)
            while True:
                answers.append(self._answers.get_nowait())
        except queue.Empty:
            self._under_way -= len(answers)
        return tuple(_event(answer) for answer in answers)

    def close(self) -> None:
        """Drop commands that have not started; do not wait for hanging ones (their deadline ends them)."""
        for pool in (self._changes, self._looks):
            pool.shutdown(wait=False, cancel_futures=True)


def _event(answer: Event | BaseException) -> Event:
    if isinstance(answer, BaseException):
        raise answer
    return answer
