"""Whether a node is still in the fleet, by its inventory read anew: asked about nodes that do not answer before their change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from rollout.app.ports import Clock
from rollout.core.model.fleet_changes import IS_GONE, is_their_list
from rollout.core.text.terminal import counted
from rollout.errors import RolloutError

EVERY = 15.0
"""Seconds for which one reading of the inventory counts: a whole rack may stop answering at once."""

Lists = Callable[[str, Collection[str]], str]
"""What shows that a node left (``""``: it is listed, or this is not known). Asked with the nodes of its run."""


class RollCall:
    """``read``: the names of the inventory's nodes now. Thread-safe. An inventory that cannot be read removes no node.

    Nor does one with fewer than half of the run's nodes, without those that left earlier: it may be of another cluster.
    """

    def __init__(self, read: Callable[[], Collection[str]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._names: Collection[str] | None = None
        self._left: set[str] = set()

    def __call__(self, node: str, run_nodes: Collection[str]) -> str:
        with self._lock:
            if self._clock.now() - self._at >= EVERY:
                try:
                    self._names = frozenset(self._read())
                except RolloutError:
                    self._names = None
                self._at = self._clock.now()
            names = self._names
            if names is None or node in names:
                self._left.discard(node)
                return ""
            others = [name for name in run_nodes if name != node and name not in self._left]
            if not others or not is_their_list(others, names):
                return ""
            self._left.add(node)
            there = sum(name in names for name in run_nodes)
            return f"{IS_GONE}: it lists {counted(len(names), 'node')}, {there} of the {len(run_nodes)} of the run"


def lists_all(_node: str, _run_nodes: Collection[str]) -> str:
    """For runs that read no inventory again, such as rollbacks."""
    return ""
