"""Whether a node is still in the fleet, by its inventory read anew: asked about nodes that do not answer before their change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from rollout.app.ports import Clock
from rollout.errors import RolloutError

EVERY = 15.0
"""Seconds for which one reading of the inventory counts: a whole rack may stop answering at once."""


class RollCall:
    """``read``: the names of the inventory's nodes now. Thread-safe. An inventory that cannot be read removes no node."""

    def __init__(self, read: Callable[[], Collection[str]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._names: Collection[str] | None = None

    def __call__(self, node: str) -> bool:
        """Whether the inventory lists the node, or this is not known."""
        with self._lock:
            if self._clock.now() - self._at >= EVERY:
                try:
                    self._names = frozenset(self._read())
                except RolloutError:
                    self._names = None
                self._at = self._clock.now()
            return self._names is None or node in self._names


def lists_all(_node: str) -> bool:
    """For runs that read no inventory again, such as rollbacks."""
    return True
