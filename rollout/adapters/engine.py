"""The local engine: a bounded pool of threads that does the machine's commands and hands the answers back."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

from rollout.app.ports import Worker
from rollout.core.run.commands import Command
from rollout.core.run.events import Event


class ThreadEngine:
    """``width`` commands side by side. A worker that raises is a bug of ours: it is raised again in ``collect``."""

    def __init__(self, width: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=width, thread_name_prefix="node")
        self._answers: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()

    def submit(self, worker: Worker, command: Command) -> None:
        self._pool.submit(self._do, worker, command)

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
        self._pool.shutdown(wait=False, cancel_futures=True)


def _event(answer: Event | BaseException) -> Event:
    if isinstance(answer, BaseException):
        raise answer
    return answer
