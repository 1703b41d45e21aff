"""Waves: every changed node in exactly one, spread over the racks, the same every time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.playbook import WaveKind, WaveRule
from rollout.core.plans.planning import Candidate, name_of, positions, round_robin, waves

CANARY, REST = WaveRule(WaveKind.CANARY), WaveRule(WaveKind.REST)
ONE_PER_RACK = WaveRule(WaveKind.PER_RACK, count=1)


def fleet(racks: int, each: int, kinds: int = 1) -> list[Candidate]:
    return [Candidate(f"r{r}n{n}", f"r{r}", f"k{n % kinds}") for r in range(racks) for n in range(each)]


def test_round_robin_fills_racks_evenly() -> None:
    assert [candidate.name for candidate in round_robin(fleet(2, 2))] == ["r0n0", "r1n0", "r0n1", "r1n1"]
    assert round_robin([]) == ()


def test_the_default_waves() -> None:
    rules = (
        CANARY,
        ONE_PER_RACK,
        WaveRule(WaveKind.UP_TO, percent=5.0),
        WaveRule(WaveKind.UP_TO, percent=25.0, soak=9.0),
        REST,
    )
    made = waves(fleet(10, 20, kinds=3), rules, 60.0)
    assert [(wave.name, len(wave.nodes), wave.soak) for wave in made] == [
        ("canary", 3, 60.0),
        ("1 per rack", 10, 60.0),
        ("25 %", 37, 9.0),
        ("rest", 150, 60.0),
    ]  # 5 % of 200 were already done: an empty wave is dropped


def test_canaries_are_in_different_racks_if_possible() -> None:
    made = waves(fleet(2, 6, kinds=3), (CANARY,), 0.0)
    assert made[0].nodes == ("r0n0", "r1n1", "r0n2")
    assert Counter(name[:2] for name in made[0].nodes) == {"r0": 2, "r1": 1}


def test_nodes_without_a_rule_come_last() -> None:
    made = waves(fleet(1, 3), (CANARY,), 1.0)
    assert [(wave.name, wave.nodes) for wave in made] == [("canary", ("r0n0",)), ("rest", ("r0n1", "r0n2"))]
    assert positions(made) == {"r0n0": 0, "r0n1": 1, "r0n2": 1}


def test_nothing_to_change_makes_no_wave() -> None:
    assert waves([], (CANARY, REST), 1.0) == ()


def test_names() -> None:
    assert name_of(WaveRule(WaveKind.PER_RACK, count=2)) == "2 per rack"
    assert name_of(WaveRule(WaveKind.UP_TO, percent=2.5)) == "2.5 %"


RULES = st.lists(
    st.one_of(
        st.just(CANARY), st.builds(WaveRule, st.just(WaveKind.PER_RACK), st.integers(1, 3)),
        st.builds(WaveRule, st.just(WaveKind.UP_TO), st.just(1), st.floats(0.1, 100)), st.just(REST),
    ), max_size=5,
)  # fmt: skip


@given(st.integers(0, 6), st.integers(1, 9), st.integers(1, 4), RULES)
def test_every_node_is_in_exactly_one_wave(racks: int, each: int, kinds: int, rules: list[WaveRule]) -> None:
    candidates = fleet(racks, each, kinds)
    made = waves(candidates, rules, 0.0)
    placed = [name for wave in made for name in wave.nodes]
    assert sorted(placed) == sorted(candidate.name for candidate in candidates)
    assert all(wave.nodes for wave in made)
    assert made == waves(candidates, rules, 0.0)
    racks_of = {candidate.name: candidate.rack for candidate in candidates}
    for wave in made:
        if wave.name.endswith("per rack"):
            assert max(Counter(racks_of[name] for name in wave.nodes).values()) <= int(wave.name.split()[0])
