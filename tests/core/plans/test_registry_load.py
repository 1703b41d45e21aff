"""Registry load: sums over nodes by registry, zone and fleet, and their comparison with caps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.inventory import Node
from rollout.core.model.plan import PullRate, RegistryLoad, Sum
from rollout.core.model.playbook import RegistryCap
from rollout.core.plans.registry_load import NodePulls, beyond_caps, registry_loads

SERIAL, FIVE, UNBOUNDED = PullRate(1, 5), PullRate(5, 5), PullRate(None, None)


def node(at: int, zone: str = "a", registry: str = "") -> Node:
    return Node(f"n{at}", f"10.0.0.{at}", "rack", zone, registry=registry)


def asking(at: int, before: PullRate | None, after: PullRate | None, zone: str = "a", registry: str = "") -> NodePulls:
    return NodePulls(node(at, zone, registry), before, after)


def scopes(loads: tuple[RegistryLoad, ...]) -> list[tuple[str, str, int]]:
    return [(load.registry, load.zone, load.nodes) for load in loads]


def test_the_fleet_and_each_zone_of_each_registry() -> None:
    given_ = (
        asking(1, SERIAL, FIVE, "a", "harbor"),
        asking(2, SERIAL, FIVE, "b", "harbor"),
        asking(3, SERIAL, SERIAL, "b"),
    )
    loads = registry_loads(given_)
    assert scopes(loads) == [("", "", 1), ("", "b", 1), ("harbor", "", 2), ("harbor", "a", 1), ("harbor", "b", 1)]
    fleet = loads[2]
    assert (fleet.parallel_before, fleet.parallel_after) == (Sum(2, 0), Sum(10, 0))
    assert fleet.qps_before == fleet.qps_after == Sum(10, 0)


def test_nodes_without_a_bound_are_counted_apart() -> None:
    (load, _) = registry_loads([asking(1, SERIAL, UNBOUNDED), asking(2, SERIAL, FIVE)])
    assert (load.parallel_after, load.qps_after) == (Sum(5, 1), Sum(5, 1))


def test_unknown_nodes_are_in_no_sum() -> None:
    (load, _) = registry_loads([asking(1, None, None), asking(2, SERIAL, FIVE)])
    assert (load.nodes, load.unknown, load.parallel_after) == (1, 1, Sum(5, 0))


def test_a_plan_beyond_a_cap_is_a_problem_that_names_sum_and_cap() -> None:
    loads = registry_loads([asking(at, SERIAL, FIVE, "a", "harbor") for at in range(3)])
    (problem,) = beyond_caps(loads, [RegistryCap("harbor", parallel_pulls=14, qps=15)])
    assert problem.reference == "registry-cap"
    assert problem.message == "3 nodes, of registry harbor, could ask for 15 pulls at once (3 before); the cap is 14"
    assert not list(beyond_caps(loads, [RegistryCap("harbor", parallel_pulls=15)]))


def test_a_cap_is_for_its_registry_and_its_scope() -> None:
    loads = registry_loads([asking(1, SERIAL, FIVE, "a"), asking(2, SERIAL, FIVE, "b")])
    assert not list(beyond_caps(loads, [RegistryCap("harbor", parallel_pulls=1)]))
    assert not list(beyond_caps(loads, [RegistryCap(per_zone=True, parallel_pulls=5)]))
    assert len(list(beyond_caps(loads, [RegistryCap(per_zone=True, parallel_pulls=4)]))) == 2
    assert len(list(beyond_caps(loads, [RegistryCap(parallel_pulls=9)]))) == 1


def test_no_bound_is_beyond_every_cap() -> None:
    loads = registry_loads([asking(1, SERIAL, UNBOUNDED)])
    (problem,) = beyond_caps(loads, [RegistryCap(parallel_pulls=10**9)])
    assert "no bound on 1 node" in problem.message


def test_a_plan_that_lowers_or_keeps_a_load_passes() -> None:
    for before, after in ((FIVE, SERIAL), (FIVE, FIVE), (UNBOUNDED, FIVE)):
        loads = registry_loads([asking(1, before, after)])
        assert not list(beyond_caps(loads, [RegistryCap(parallel_pulls=0, qps=0)]))


RATES = st.builds(PullRate, st.none() | st.integers(1, 50), st.none() | st.integers(1, 50))


@given(st.lists(st.tuples(RATES, RATES, st.sampled_from("ab"), st.sampled_from(["", "x"])), max_size=12))
def test_zones_add_up_to_the_fleet(rates: list[tuple[PullRate, PullRate, str, str]]) -> None:
    loads = registry_loads(
        asking(at, before, after, zone, registry) for at, (before, after, zone, registry) in enumerate(rates)
    )
    for fleet in (load for load in loads if not load.zone):
        zones = [load for load in loads if load.zone and load.registry == fleet.registry]
        for name in ("parallel_before", "parallel_after", "qps_before", "qps_after"):
            sums = [getattr(load, name) for load in zones]
            together = Sum(sum(each.total for each in sums), sum(each.unbounded for each in sums))
            assert together == getattr(fleet, name)
        assert sum(load.nodes for load in zones) == fleet.nodes
