"""Groups, counters, preflight: a plan made from the decision for each node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.inventory import Role
from rollout.core.model.plan import Change, ExcludedNode, FileChange, Standing, kind_of
from rollout.core.model.playbook import Disruption, Limits, Share, WaveKind, WaveRule
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot, Token, Unread
from rollout.core.plans.planning import (
    Candidate,
    Decided,
    groups,
    name_of,
    plan_of,
    positions,
    preflight,
    round_robin,
    waves,
)
from tests.kubelet.nodes import POLICY, fleet, inventory, kubeadm

CHANGE = Change(
    files=(FileChange("/c", b"1", b"2", ("x: 1 → 2",)),),
    units=("kubelet.service",),
    reload=False,
    disruption=Disruption.RESTART_KUBELET,
    arguments=(),
    config_path="/c",
    healthz_port=10248,
    settle=20.0,
)
OTHER_BYTES = replace(CHANGE, files=(replace(CHANGE.files[0], before=b"3"),))
FOUND = inventory(6, per_rack=3)
NODES = tuple(FOUND.nodes.values())


def decided(at: int, change: Change = CHANGE, label: str = "a") -> Decided:
    return Decided(NODES[at], f"m{at}", change, label)


def test_groups_are_named_by_size_then_label() -> None:
    found, names = groups([decided(0, label="z"), decided(1, label="b"), decided(2, label="z"), decided(3, label="a")])
    assert [(group.name, group.label) for group in found] == [("g1", "z"), ("g2", "a"), ("g3", "b")]
    assert names[NODES[2].name] == "g1"


def test_other_bytes_are_another_group_but_the_same_kind() -> None:
    found, _ = groups([decided(0), decided(1, OTHER_BYTES)])
    assert len(found) == 2
    assert kind_of("a", CHANGE) == kind_of("a", OTHER_BYTES) != kind_of("b", CHANGE)
    assert kind_of("a", CHANGE) != kind_of("a", replace(CHANGE, files=(replace(CHANGE.files[0], before=None),)))


def test_a_plan() -> None:
    snapshots: dict[str, Snapshot | Unread] = {
        NODES[0].name: replace(kubeadm(), token=Token(3, "r", live=True)),
        NODES[1].name: replace(kubeadm(), receipts=(Receipt("t", "r", 7, ReceiptState.CONFIRMED),)),
        NODES[2].name: Unread(NODES[2].name, "ssh-timeout", "late"),
    }
    lefts = [
        ExcludedNode(NODES[5].name, "rack02", Standing.REFUSED, "kubelet-not-running", "sick"),
        ExcludedNode(NODES[2].name, "rack01", Standing.UNREACHABLE, "ssh-timeout", "late"),
        ExcludedNode(NODES[4].name, "rack02", Standing.REFUSED, "layout-drifted", "edited"),
    ]
    plan = plan_of(
        FOUND,
        POLICY,
        fleet(FOUND, snapshots),
        "@rack01",
        [decided(3), decided(0), decided(1, OTHER_BYTES)],
        lefts,
    )
    assert plan.counter == 7
    assert list(plan.nodes) == [NODES[0].name, NODES[1].name, NODES[3].name]
    assert [wave.nodes for wave in plan.waves] == [(NODES[0].name,), (NODES[3].name, NODES[1].name)]
    assert plan.nodes[NODES[3].name].wave == 1
    assert plan.racks == {"rack01": 3, "rack02": 3}
    assert [entry.name for entry in plan.left] == [NODES[2].name, NODES[4].name, NODES[5].name]

    found = preflight(plan, frozenset({"kubelet-not-running"}))
    assert (found.selected, found.unhealthy, found.most) == (6, (NODES[2].name, NODES[5].name), 1)
    assert found.refused
    assert not preflight(
        replace(plan, limits=Limits(preflight=Share(count=2))), frozenset({"kubelet-not-running"})
    ).refused


def test_without_a_read_node_the_counter_is_zero() -> None:
    assert plan_of(FOUND, POLICY, fleet(FOUND, {}), "", [], []).counter == 0


# Waves: every changed node in exactly one, spread over the racks, the same every time.


CANARY, REST = WaveRule(WaveKind.CANARY), WaveRule(WaveKind.REST)
ONE_PER_RACK = WaveRule(WaveKind.PER_RACK, count=1)


def candidates_of(racks: int, each: int, kinds: int = 1) -> list[Candidate]:
    return [Candidate(f"r{r}n{n}", f"r{r}", f"k{n % kinds}") for r in range(racks) for n in range(each)]


def test_round_robin_fills_racks_evenly() -> None:
    assert [candidate.name for candidate in round_robin(candidates_of(2, 2))] == ["r0n0", "r1n0", "r0n1", "r1n1"]
    assert round_robin([]) == ()


def test_the_default_waves() -> None:
    rules = (
        CANARY,
        ONE_PER_RACK,
        WaveRule(WaveKind.UP_TO, percent=5.0),
        WaveRule(WaveKind.UP_TO, percent=25.0, soak=9.0),
        REST,
    )
    made = waves(candidates_of(10, 20, kinds=3), rules, 60.0)
    assert [(wave.name, len(wave.nodes), wave.soak) for wave in made] == [
        ("canary", 3, 60.0),
        ("1 per rack", 10, 60.0),
        ("25 %", 37, 9.0),
        ("rest", 150, 60.0),
    ]  # 5 % of 200 were already done: an empty wave is dropped


def test_canaries_are_in_different_racks_if_possible() -> None:
    made = waves(candidates_of(2, 6, kinds=3), (CANARY,), 0.0)
    assert made[0].nodes == ("r0n0", "r1n1", "r0n2")
    assert Counter(name[:2] for name in made[0].nodes) == {"r0": 2, "r1": 1}


def test_nodes_without_a_rule_come_last() -> None:
    made = waves(candidates_of(1, 3), (CANARY,), 1.0)
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
    candidates = candidates_of(racks, each, kinds)
    made = waves(candidates, rules, 0.0)
    placed = [name for wave in made for name in wave.nodes]
    assert sorted(placed) == sorted(candidate.name for candidate in candidates)
    assert all(wave.nodes for wave in made)
    assert made == waves(candidates, rules, 0.0)
    racks_of = {candidate.name: candidate.rack for candidate in candidates}
    for wave in made:
        if wave.name.endswith("per rack"):
            assert max(Counter(racks_of[name] for name in wave.nodes).values()) <= int(wave.name.split()[0])


def test_nodes_that_lose_devices_by_the_change_come_after_all_workers_one_of_each_kind_first() -> None:
    """The control plane is last all the same, and one at a time."""
    workers = candidates_of(2, 2)
    at_risk = [Candidate(f"gpu{n}", f"r{n % 2}", f"gpu kind {n // 2}", takes_devices=True) for n in range(4)]
    labelled = [Candidate("labelled", "r0", "devices", Role.DEVICES)]
    control = [Candidate("cp", "r0", "cp", Role.CONTROL_PLANE, takes_devices=True)]
    made = waves([*at_risk, *control, *labelled, *workers], (REST,), 60.0)
    assert [(wave.name, wave.nodes, wave.at_once) for wave in made] == [
        ("rest", ("r0n0", "r1n0", "r0n1", "r1n1"), 0),
        ("devices", ("labelled",), 0),
        ("devices at risk, canary", ("gpu0", "gpu3"), 0),
        ("devices at risk", ("gpu1", "gpu2"), 0),
        ("control plane", ("cp",), 1),
    ]
