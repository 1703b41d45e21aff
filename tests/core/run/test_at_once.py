"""How many nodes an operator's command may run on at once: every rack, zone and the fleet within their limits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Limits, Share
from rollout.core.run.at_once import AtOnce, at_once, may_start

NAMES = [f"n{number:02d}" for number in range(12)]


def node(number: int) -> Node:
    """Racks of six; zone ``x`` is rack 0, zone ``y`` is rack 1."""
    return Node(NAMES[number], "127.0.0.1", f"r{number // 6}", "xy"[number // 6])


FLEET = [node(number) for number in range(12)]


def bounds(limits: Limits, in_flight: int | None = None) -> AtOnce:
    return at_once(FLEET, FLEET, limits, in_flight)


def test_the_default_limits_are_one_node_of_a_small_rack() -> None:
    assert may_start(bounds(Limits()), NAMES, ()) == ("n00", "n06")


def test_a_rack_of_sixty_has_room_for_three() -> None:
    rack = [Node(f"n{number}", "127.0.0.1", "r", "z") for number in range(60)]
    found = at_once(rack, rack, Limits(), None)
    assert may_start(found, [node.name for node in rack], ()) == ("n0", "n1", "n2")


def test_the_share_is_of_the_whole_rack_also_if_few_of_its_nodes_are_selected() -> None:
    rack = [Node(f"n{number}", "127.0.0.1", "r", "z") for number in range(60)]
    few = rack[:5]
    found = at_once(few, rack, Limits(), None)
    assert len(may_start(found, [node.name for node in few], ())) == 3


def test_busy_nodes_keep_their_room() -> None:
    limits = Limits(per_rack=Share(count=2))
    assert may_start(bounds(limits), NAMES[1:], {"n00"}) == ("n01", "n06", "n07")
    assert may_start(bounds(limits), NAMES[2:], {"n00", "n01", "n06", "n07"}) == ()


def test_in_flight_lowers_the_limit_and_never_raises_it() -> None:
    limits = Limits(per_rack=Share(count=6), in_flight=4)
    assert may_start(bounds(limits, 1), NAMES, ()) == ("n00",)
    assert len(may_start(bounds(limits, 100), NAMES, ())) == 4


def test_zones_count_if_they_have_a_limit() -> None:
    limits = Limits(per_rack=Share(count=6), per_zone=Share(count=2))
    assert may_start(bounds(limits), NAMES, ()) == ("n00", "n01", "n06", "n07")


@given(
    st.sets(st.sampled_from(NAMES)),
    st.integers(1, 6),
    st.none() | st.integers(1, 6),
    st.integers(1, 12),
)
def test_starting_what_may_start_never_exceeds_a_limit(
    waiting: set[str], rack: int, zone: int | None, in_flight: int
) -> None:
    limits = Limits(Share(count=rack), None if zone is None else Share(count=zone), in_flight)
    found, busy, left = bounds(limits), set[str](), sorted(waiting)
    while left:
        going = may_start(found, left, busy)
        assert going or busy, "with nothing busy, something may start"
        busy |= {*going}
        left = [name for name in left if name not in going]
        assert len(busy) <= in_flight
        for area, count in Counter(area for name in busy for area in found.areas[name]).items():
            assert count <= found.most[area]
        busy.pop()
