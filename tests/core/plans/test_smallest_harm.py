"""The smallest harm that a gate could see: the number of nodes below which it cannot fail, by the gate's own verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import Verdict
from rollout.core.plans.smallest_harm import SmallestHarm, harm_words, smallest_harms
from rollout.gates.agent_checks.query import AgentCheck
from rollout.gates.prometheus.comparison import SampleGroup, compare
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from rollout.simulator.draw import dice_of, drawn_plan

COMPARED = PrometheusQuery('latency{node=~"$nodes"}', worse=Worse.HIGHER)
CONTROL = SampleGroup("control", (1.0, 1.1, 0.9, 1.0))


def plan_of(nodes: int, *gates: Gate) -> Plan:
    """One wave with this many nodes of one kind."""
    drawn = drawn_plan(dice_of(1))
    one = replace(next(iter(drawn.nodes.values())), group="g1", wave=0)
    names = tuple(f"n{n}" for n in range(nodes))
    wave = replace(drawn.waves[0], nodes=names)
    return replace(drawn, nodes={name: replace(one, name=name) for name in names}, waves=(wave,), gates=gates)


def of(query: PrometheusQuery) -> Gate:
    return Gate(query, GateScope.WAVE, "latency")


@pytest.mark.parametrize("nodes", range(1, 9))
def test_a_comparison_of_medians_sees_as_many_harmed_nodes_as_it_says_and_not_fewer(nodes: int) -> None:
    plan = plan_of(nodes, of(COMPARED))
    (harm,) = smallest_harms(plan, plan.waves[0])
    assert harm.nodes is not None

    def verdict(harmed: int) -> Verdict:
        samples = (1e9,) * harmed + (1.0,) * (nodes - harmed)
        return compare(SampleGroup("touched", samples), CONTROL, Worse.HIGHER, 0.2)[0]

    assert verdict(harm.nodes) is Verdict.FAIL
    assert verdict(harm.nodes - 1) is Verdict.PASS


def test_each_gate_has_its_own_smallest_harm() -> None:
    unit = Gate(AgentCheck("unit"), GateScope.NODE, "unit")
    bound = replace(of(replace(COMPARED, at_most=2.0)), name="bound")
    whole = replace(of(PrometheusQuery("errors", at_most=0.0)), name="whole")
    plan = plan_of(4, unit, of(COMPARED), bound, whole)
    assert smallest_harms(plan, plan.waves[0]) == (
        SmallestHarm("unit", 1),
        SmallestHarm("latency", 2),
        SmallestHarm("bound", 1),
        SmallestHarm("whole", None),
    )
    said = "smallest harm noticed: on 1 of 4 nodes by unit, bound; on 2 of 4 nodes by latency; not known of whole"
    assert harm_words(plan, plan.waves[0]) == said
