"""Hypothesis draws the faults and, when a law breaks, finds the smallest set.

A law that is broken on purpose proves that.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, find, given, settings
from hypothesis import strategies as st

from rollout.simulator.draw import dice_of, drawn_fault, drawn_order
from rollout.simulator.fleet_laws import LawWatch, broken
from rollout.simulator.machine import Restart
from rollout.simulator.node import ModelNode
from rollout.simulator.play import Play
from rollout.simulator.scenario import Fault, FaultKind, Scenario
from rollout.simulator.tally import law_of, smallest

SLOWER_THAN_PATIENCE = Fault(FaultKind.LATENT, "a10", amount=160_000.0)
"""Four slow links of a node, one on top of the other: a law broke because the model waited hours for a connection."""


@st.composite
def scenarios(draw: st.DrawFn, most: int = 5) -> Scenario:
    """A drawn order, and faults each of which can be left out or made simpler by itself."""
    seed = draw(st.integers(0, 400))
    order = drawn_order(dice_of(seed))
    names = tuple(order.nodes)
    faults = draw(st.lists(st.integers(0, 400).map(lambda number: drawn_fault(dice_of(number), names)), max_size=most))
    return Scenario(seed, order, tuple(faults))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
@example(Scenario(0, drawn_order(dice_of(0)), ()))
@example(Scenario(0, drawn_order(dice_of(0)), (SLOWER_THAN_PATIENCE,)))
def test_no_drawn_faults_break_a_law(scenario: Scenario) -> None:
    outcome = Play(scenario).run()
    assert outcome.broken == "", "\n".join(map(str, outcome.story))


def intolerant(_watch: LawWatch, node: ModelNode, restart: Restart) -> None:
    """A law that only serves to fail: no guard ever fires."""
    if restart.why == "guard":
        broken(f"law 99: the guard of {node.name} has fired")


def test_a_broken_law_is_shrunk_to_the_faults_that_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LawWatch, "restarted", intolerant)
    found = find(
        scenarios(most=2), lambda scenario: law_of(Play(scenario).run().broken) == "law 99",
        settings=settings(max_examples=2000, deadline=None, database=None),
    )  # fmt: skip
    assert found.faults, "without faults no guard fires"
    for fault in found.faults:
        without = tuple(other for other in found.faults if other is not fault)
        assert not law_of(Play(replace(found, faults=without)).run().broken), f"{fault} is not needed for it"


def test_a_seed_is_reported_with_the_relevant_faults_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LawWatch, "restarted", intolerant)
    order = drawn_order(dice_of(1))
    name = next(iter(order.nodes))
    noise = (
        Fault(FaultKind.LATENT, name, amount=2.0),
        Fault(FaultKind.STORE_SLOW, lasting=20.0, amount=0.3),
        Fault(FaultKind.PAUSED, at=3.0),
    )
    told = smallest(Scenario(1, order, (noise[0], Fault(FaultKind.KILLED, at=40.0, lasting=200.0), *noise[1:])))
    assert [fault.kind for fault in told.scenario.faults] == [FaultKind.KILLED]
    assert "guard" in str(told.story[-1])
