"""The pods that the lab's ReplicaSets keep: evicted pods end like on a kubelet, and are recreated elsewhere.

The state is updated on each request: ended pods are removed, and pending ones go to the next ready node with room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.kubelet.restarts.termination import budget
from rollout.lab import pods
from rollout.lab.objects import NodeMoment
from rollout.lab.service import UnitPhase

HEEDS = 0.2
"""Seconds until a pod that handles SIGTERM has ended."""


@dataclass(slots=True)
class Replica:
    """One pod. ``home`` is its first node, ``node`` its current one, ``""`` while it is pending."""

    home: str
    name: str
    node: str
    made: float | None = None  # ``None``: it was there when the lab began
    placed: float = 0.0
    boots: int = 0  # its node's value when the pod arrived
    deleted: float | None = None
    grace: int = 0
    ends: float = 0.0

    @property
    def first(self) -> bool:
        return self.made is None


class Replicas:
    """The places of all replicas. Like all of the lab's state, used in one thread only."""

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = homes
        self._numbers = {home: number for number, home in enumerate(homes)}
        self._on: dict[str, dict[str, Replica]] = {}
        self._made: Counter[str] = Counter()
        self._unplaced: list[Replica] = []
        self._leaving: list[Replica] = []
        for home in homes:
            first = Replica(home, f"{pods.NAMES[1][1]}-{home}", home)
            self._on[home] = {first.name: first}

    def on(self, node: str) -> list[Replica]:
        return list(self._on[node].values())

    def waiting(self, home: str) -> list[Replica]:
        """Pending pods of ``home``."""
        return [each for each in self._unplaced if each.home == home]

    def find(self, name: str, node: str) -> Replica | None:
        return self._on.get(node, {}).get(name)

    def named(self, name: str) -> Replica | None:
        """On any node."""
        nodes = (there[name] for there in self._on.values() if name in there)
        return next(nodes, None) or next((each for each in self._unplaced if each.name == name), None)

    def delete(self, replica: Replica, seen: NodeMoment) -> None:
        """Start its termination and create another pod; idempotent. ``seen`` is its node, or its home if it has none."""
        if replica.deleted is not None:
            return
        self._made[replica.home] += 1
        name = f"{pods.NAMES[1][1]}-{replica.home}-{self._made[replica.home]}"
        self._unplaced.append(Replica(replica.home, name, "", seen.now))
        if not replica.node:
            self._unplaced.remove(replica)
            return
        state = seen.machine.pods
        over = bool(state.low) or (replica.first and state.rejected)
        replica.deleted, replica.grace = seen.now, 0 if over else state.grace
        replica.ends = seen.now + (0.0 if over else _takes(replica, seen))
        state.changes += 1
        self._leaving.append(replica)

    def settle(self, see: Callable[[str], NodeMoment]) -> None:
        """Remove ended pods, place pending ones."""
        for replica in list(self._leaving):
            seen = see(replica.node)
            # Whether a running kubelet would notice.
            if (
                seen.now >= replica.ends
                and any(service.phase is UnitPhase.RUNNING and service.pid for service in seen.machine.kubelets())
                and seen.machine.pods.ending != pods.HELD
            ):
                self._leaving.remove(replica)
                del self._on[replica.node][replica.name]
                seen.machine.pods.changes += 1
        for replica in list(self._unplaced):
            self._place(replica, see)

    def _place(self, replica: Replica, see: Callable[[str], NodeMoment]) -> None:
        begin = self._numbers[replica.home] + 1
        for name in (*self._homes[begin:], *self._homes[:begin]):
            seen = see(name)
            if seen.ready == "True" and not seen.cordoned and 1 + len(self._on[name]) < seen.room:
                replica.node, replica.placed, replica.boots = name, seen.now, seen.machine.pods.boots
                self._on[name][replica.name] = replica
                self._unplaced.remove(replica)
                return


def _takes(replica: Replica, seen: NodeMoment) -> float:
    """Seconds until its last container has ended, by the arithmetic of the node's kubelet."""
    grace, slow = seen.machine.pods.grace, seen.machine.pods.ending == pods.SLOW
    if not slow:
        return HEEDS
    leaving = LeavingPod("", replica.name, grace, grace, containers=(ContainerEnd("web", hook=True),))
    return budget(leaving, seen.spec.minor).seconds or 0.0
