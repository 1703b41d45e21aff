"""What one pod takes of a node, as the kubelet's admission computes it.

Source: scheduler ``noderesources/fit.go`` and, newer, component-helpers. A pod takes its overhead and the larger of
two: the sum of its containers, or the most that an init container takes. From 1.28 on a restartable init container
counts with the containers, and with each init container after it. Requests of the pod as a whole override that
(``spec.resources``; the API has it only where the feature is on).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import ceil

from rollout.core.model.pods import ContainerRequest, Pairs, PlacedPod
from rollout.kubelet.configuration.quantities import parse

# Kubernetes quantities as whole numbers, rounded up as the kubelet's admission does.


@lru_cache(maxsize=4096)
def milli(text: str) -> int:
    """In thousandths, as ``Quantity.MilliValue``; ``ValueError`` for an invalid quantity."""
    return ceil(parse(text).amount * 1000)


@lru_cache(maxsize=4096)
def whole(text: str) -> int:
    """As ``Quantity.Value``; ``ValueError`` for an invalid quantity."""
    return ceil(parse(text).amount)


RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""What a kubelet's configuration takes from pods, in the order of admission. CPU in thousandths, others in bytes."""

Amounts = tuple[int, int, int]
"""One number for each of ``RESOURCES``."""

NOTHING: Amounts = (0, 0, 0)
SIDECARS = 28
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a host port's address, not one to listen on


def taken(pod: PlacedPod, minor: int) -> Amounts:
    """The pod's requests; ``ValueError`` for an invalid quantity."""
    running, most, staying = NOTHING, NOTHING, NOTHING
    for ask in pod.asks:
        asked = amounts(ask.requests)
        if not ask.init:
            running = plus(running, asked)
        elif ask.stays and minor >= SIDECARS:
            staying = plus(staying, asked)
            most = _larger(most, staying)
        else:
            most = _larger(most, plus(staying, asked))
    return plus(_said(_larger(plus(running, staying), most), pod.requests), amounts(pod.overhead))


@lru_cache(maxsize=4096)
def amounts(pairs: Pairs) -> Amounts:
    """The requests in a list that count here."""
    said = dict(pairs)
    cpu, memory, storage = (said.get(name, "0") for name in RESOURCES)
    return milli(cpu), whole(memory), whole(storage)


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Their sum, resource by resource."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def ports(asks: Iterable[ContainerRequest]) -> Iterable[tuple[str, str, int]]:
    """The node's ports that its containers (not its init containers) use: address, protocol, port."""
    for ask in asks:
        if not ask.init:
            yield from ((each.address or ALL_ADDRESSES, each.protocol or "TCP", each.port) for each in ask.ports)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _said(added: Amounts, whole_pod: Pairs) -> Amounts:
    said, names = amounts(whole_pod), dict(whole_pod)
    first, second, third = (said[at] if name in names else added[at] for at, name in enumerate(RESOURCES))
    return first, second, third
