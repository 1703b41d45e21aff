"""The answers of a worker that one controller has not received yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from threading import Condition

MOST_BYTES = 4_000_000
"""Bytes of the answers of one exchange, or one answer if it is larger. The others follow."""


class Mailbox:
    """An answer is kept until the controller has received it: an exchange that is repeated or lost loses none.

    Thread-safe. Only the newest exchange of the controller is given answers.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._newest = 0
        self._answers: dict[str, bytes] = {}  # nonce → encoded answer

    def put(self, nonce: str, answer: bytes) -> None:
        with self._changed:
            self._answers[nonce] = answer
            self._changed.notify_all()

    def take(self, number: int, received: Iterable[str], seconds: float) -> Sequence[bytes]:
        """The answers for this exchange, as soon as there is one. None after ``seconds``, or if a newer exchange came."""
        with self._changed:
            for nonce in received:
                self._answers.pop(nonce, None)
            self._newest = max(self._newest, number)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answers or self._newest > number, seconds)
            return () if self._newest > number else _first(list(self._answers.values()))


def _first(answers: Sequence[bytes]) -> Sequence[bytes]:
    """As many as are within the limit, and at least one if there is one."""
    sizes = accumulate(map(len, answers))
    return answers[: max(1, sum(size <= MOST_BYTES for size in sizes))]
