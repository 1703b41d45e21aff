"""A number of a seed always names the same run. The kinds have equal shares, and every kind can be carried out."""

from __future__ import annotations

from collections import Counter

from tests.chaos.draws import (
    ANSWERS,
    BY_SYSTEMD,
    DASK_TIMEOUT,
    DEFAULT_GUARD,
    GUARD,
    KINDS,
    MANY_NODES,
    STEPS,
    VARIANTS,
    WITH_REGIONS,
    Kind,
    draw,
)
from tests.chaos.faults import FAULTS

MANY = [draw(7, number) for number in range(60 * len(KINDS))]


def test_the_same_number_of_the_same_seed_is_the_same_run() -> None:
    assert [draw(7, number) for number in range(len(MANY))] == MANY
    assert [draw(8, number) for number in range(len(MANY))] != MANY


def test_every_kind_has_an_equal_share_of_any_number_of_runs() -> None:
    for runs in (len(KINDS), 200, 600):
        counts = Counter(each.kind for each in MANY[:runs])
        assert set(counts) == set(KINDS)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_every_variant_every_moment_and_every_node_is_drawn() -> None:
    assert {(each.kind, each.variant) for each in MANY} == {(kind, v) for kind in KINDS for v in VARIANTS[kind]}
    assert {each.moment for each in MANY} == {"", *STEPS, *ANSWERS}
    assert {number for each in MANY for number in each.struck} == set(range(MANY_NODES))


def test_half_of_the_instants_are_aimed() -> None:
    aimed = sum(bool(each.moment) for each in MANY)
    assert len(MANY) * 0.4 < aimed < len(MANY) * 0.6


def test_a_short_fault_leaves_the_guard_time_and_a_long_one_outlasts_it() -> None:
    for each in MANY:
        if each.kind is Kind.LINK_SHORT or each.variant.startswith("shorter"):
            assert each.seconds <= GUARD - 3
        if each.kind is Kind.LINK_LONG or each.variant.startswith("longer"):
            assert each.seconds > each.guard


def test_on_a_slow_machine_they_do_so_too() -> None:
    for each in MANY:
        guard = 3 * GUARD if each.guard == GUARD else each.guard
        there = each.for_guard(3 * GUARD)
        if each.kind is Kind.LINK_SHORT or each.variant.startswith("shorter"):
            assert there.seconds < guard
        if each.kind is Kind.LINK_LONG or each.variant.startswith("longer"):
            assert there.seconds > guard


def test_late_confirms_come_on_either_side_of_the_deadline() -> None:
    late = [each.late for each in MANY if each.kind is Kind.LATE]
    assert min(late) < 0 < max(late)


def test_a_run_of_ten_has_the_default_guard_and_a_run_of_twenty_many_nodes_and_every_kind_has_both() -> None:
    long = [each for each in MANY if each.guard == DEFAULT_GUARD]
    many = [each for each in MANY if each.nodes == MANY_NODES]
    assert (len(long), len(many)) == (len(MANY) // 10, len(MANY) // 20)
    assert {each.kind for each in long} == {each.kind for each in many} == set(KINDS)
    assert max(number for each in many for number in each.struck) == MANY_NODES - 1


def test_only_nodes_with_a_unit_that_can_be_masked_are_masked() -> None:
    assert {number % 2 for each in MANY if each.kind in BY_SYSTEMD for number in each.struck} == {0}


def test_every_kind_and_variant_of_runs_through_regions_is_drawn_and_long_cuts_outlast_the_timeout() -> None:
    drawn = [draw(7, number, WITH_REGIONS) for number in range(60 * len(WITH_REGIONS))]
    counts = Counter(each.kind for each in drawn)
    assert counts == dict.fromkeys(WITH_REGIONS, 60)
    assert {(each.kind, each.variant) for each in drawn} == {(kind, v) for kind in WITH_REGIONS for v in VARIANTS[kind]}
    assert all(each.seconds > DASK_TIMEOUT for each in drawn if each.variant == "longer than the timeouts")


def test_every_kind_has_a_fault() -> None:
    assert set(FAULTS) == set(Kind)
