"""Watches nodes during a run: how many are armed or being reverted at one instant, and for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.bed.node import Node
from tests.chaos.findings import Finding, Harm, Limits, Transaction, beyond, held_to_limits
from tests.chaos.look import STATE, UNDER_WAY, receipts

EVERY = 0.05


class Watch:
    """A context manager. Reads the receipts on the nodes' disks. A node without power counts as it was last seen.

    ``unhealthy``: nodes that the fault may make so.
    """

    def __init__(self, nodes: Sequence[Node], limits: Limits, unhealthy: frozenset[str]) -> None:
        self._nodes = nodes
        self._limits = limits
        self._unhealthy = unhealthy
        self._under_way: dict[Transaction, str] = {}  # → its state
        self._last: dict[Transaction, float] = {}
        self._timed: frozenset[Transaction] = frozenset()
        self._struck = 0.0
        self._beyond: set[str] = set()
        self._causes: set[Transaction] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def findings(self) -> tuple[Finding, ...]:
        return tuple(Finding(Harm.LIMIT, "fleet", text) for text in sorted(self._beyond))

    def saved_themselves(self) -> int:
        """The number of transactions that a guard or a boot unit reverted."""
        return len(self._causes)

    def strike(self) -> None:
        """Start timing the nodes that are armed or being reverted now."""
        self._struck = time.monotonic()
        self._timed = frozenset(self._under_way)

    def longest(self) -> float:
        """Seconds from the fault until the last of them was confirmed or had its old files."""
        return max((self._last[each] - self._struck for each in self._timed), default=0.0)

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            for node in self._nodes:
                self._look(node)
            if text := beyond(self._limits, held_to_limits(self._under_way, self._unhealthy)):
                self._beyond.add(text)

    def _look(self, node: Node) -> None:
        found = receipts(node)
        self._causes |= {(node.name, each["tx"]) for each in found if each["cause"] in ("guard", "boot")}
        if not (node.root / STATE).is_dir():
            return  # without power it counts as it was last seen
        away = {(node.name, each["tx"]): each["state"] for each in found if each["state"] in UNDER_WAY}
        self._under_way = {each: state for each, state in self._under_way.items() if each[0] != node.name} | away
        self._last |= dict.fromkeys(away, time.monotonic())
