"""The references that a run may give for an affected node: those that the fault explains, and no others."""

from __future__ import annotations

from typing import cast

import pytest

from rollout.core.run.state import NodeRecord, NodeState
from tests.bed.node import Node
from tests.chaos.draws import Kind, draw
from tests.chaos.fault import Fault
from tests.chaos.faults import FAULTS
from tests.chaos.site import Site
from tests.orders import in_state

PATH = "/var/lib/kubelet/config.yaml"


class _Site:
    """A fake site: its nodes, and the files that a change exchanges."""

    nodes = (cast(Node, "n1"),) * 3

    @staticmethod
    def targets(_: Node) -> frozenset[str]:
        return frozenset({PATH})


def fault(kind: Kind) -> Fault:
    drawn = next(
        each for each in (draw(1, number) for number in range(4 * len(Kind))) if each.kind is kind and each.nodes == 3
    )
    return FAULTS[kind](cast(Site, _Site()), drawn)


def record(state: NodeState, reference: str, message: str = "") -> NodeRecord:
    return in_state(state, reference=reference, message=message)


EXPLAINED = [
    (Kind.IMMUTABLE, record(NodeState.FAILED, "not-given-back", f"{PATH} is immutable")),
    (Kind.SYNC, record(NodeState.FAILED, "not-durable")),
    (Kind.SLOW_SYNC, record(NodeState.FAILED, "durability-unknown")),
    (Kind.FORKS, record(NodeState.REVERTED, "not-confirmed-in-time")),
    (Kind.MASKED, record(NodeState.REFUSED, "unit-masked")),
    (Kind.SESSIONS, record(NodeState.CONFIRMED, "no-channel")),  # it was only a hitch
    (Kind.PROXY, record(NodeState.REVERTED, "taken-back-with-others")),
]
NOT_EXPLAINED = [
    (Kind.IMMUTABLE, record(NodeState.FAILED, "not-given-back", "it cannot be renamed")),
    (Kind.IMMUTABLE, record(NodeState.FAILED, "unhealthy-with-old-files", "a rename failed")),
    (Kind.SYNC, record(NodeState.REFUSED, "no-room")),
    (Kind.SLOW_SYNC, record(NodeState.REFUSED, "drifted")),
    (Kind.FORKS, record(NodeState.FAILED, "not-durable")),
    (Kind.FORKS, record(NodeState.REFUSED, "drifted")),
    (Kind.MASKED, record(NodeState.REFUSED, "need-daemon-reload")),
    (Kind.SESSIONS, record(NodeState.UNREACHABLE, "no-channel")),
    (Kind.PROXY, record(NodeState.REVERTED, "unhealthy")),
    (Kind.BASTION, record(NodeState.REVERTED, "not-confirmed-in-time")),
]


@pytest.mark.parametrize(("kind", "said"), EXPLAINED)
def test_a_reference_that_the_fault_explains_is_no_finding(kind: Kind, said: NodeRecord) -> None:
    assert fault(kind).unexplained(said) == ""


@pytest.mark.parametrize(("kind", "said"), NOT_EXPLAINED)
def test_a_reference_that_the_fault_does_not_explain_is_a_finding(kind: Kind, said: NodeRecord) -> None:
    assert said.reference in fault(kind).unexplained(said)


@pytest.mark.parametrize(
    ("kind", "sick"),
    [(Kind.MANAGER, True), (Kind.MASKED, True), (Kind.ISOLATE, True), (Kind.SYNC, False), (Kind.DISK, False)],
)
def test_only_a_fault_that_the_health_checks_see_may_exceed_the_limits(kind: Kind, sick: bool) -> None:
    assert fault(kind).makes_unhealthy() == sick
