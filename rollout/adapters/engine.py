"""The local engine: bounded pools of threads that do the machine's commands and hand the answers back.

What changes a node has a pool of its own: a node that is to go back at once does not wait until a thousand others were
measured, and what the pace let go does not begin in a heap later.
"""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

from rollout.app.ports import Worker
from rollout.core.run.commands import Command, is_change
from rollout.core.run.events import Event


class ThreadEngine:
    """``width`` changes side by side, and as many looks. A worker that raises is a bug of ours: it is raised again in ``collect``."""

    def __init__(self, width: int) -> None:
        self._changes = ThreadPoolExecutor(max_workers=width, thread_name_prefix="change")
        self._looks = ThreadPoolExecutor(max_workers=width, thread_name_prefix="look")
        self._answers: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()

    def submit(self, worker: Worker, command: Command) -> None:
        pool = self._changes if is_change(command) else self._looks
        pool.submit(self._do, worker, command)

    def _do(self, worker: Worker, command: Command) -> None:
        try:
            self._answers.put(worker(command))
        except BaseException as exc:  # noqa: BLE001 - carried to the loop, which raises it
            self._answers.put(exc)

    def collect(self, timeout: float) -> tuple[Event, ...]:
        answers = []
        try:
            answers.append(self._answers.get(timeout=timeout))
            while True:
                answers.append(self._answers.get_nowait())
        except queue.Empty:
            pass
        return tuple(_event(answer) for answer in answers)

    def close(self) -> None:
        """Forget what has not begun; do not wait for what hangs (its deadline ends it)."""
        for pool in (self._changes, self._looks):
            pool.shutdown(wait=False, cancel_futures=True)


def _event(answer: Event | BaseException) -> Event:
    if isinstance(answer, BaseException):
        raise answer
    return answer
