"""Registry load: how much the nodes together may pull from each registry, before and after a plan, and the playbook's caps.

A kubelet that serializes pulls has one at a time; else ``maxParallelImagePulls``, or no bound. Pulls started per second are
``registryPullQPS``; 0 is no bound (pkg/kubelet/images). Sums include all nodes that were read, also those left alone:
they load the registry, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.plan import PullRate, RegistryLoad, Sum
from rollout.core.model.playbook import RegistryCap
from rollout.core.text.terminal import counted
from rollout.errors import Problem


@dataclass(frozen=True, slots=True)
class NodePulls:
    """One node and its pull rate before and after the plan; ``None``: not known."""

    node: Node
    before: PullRate | None
    after: PullRate | None


def registry_loads(asking: Iterable[NodePulls]) -> tuple[RegistryLoad, ...]:
    """For each registry the fleet's load, then each zone's where there is more than one; registries by name."""
    by_registry: dict[str, list[NodePulls]] = {}
    for each in asking:
        by_registry.setdefault(each.node.registry, []).append(each)
    return tuple(load for registry in sorted(by_registry) for load in _scopes(registry, by_registry[registry]))


def beyond_caps(loads: Iterable[RegistryLoad], caps: Iterable[RegistryCap]) -> Iterator[Problem]:
    """The caps that a plan would exceed with a higher load than before. A plan that lowers a load passes, even if it stays above the cap."""
    known = tuple(loads)
    for cap in caps:
        for load in known:
            if cap.registry in ("", load.registry) and cap.per_zone == bool(load.zone):
                yield from _beyond(load, cap)


def _scopes(registry: str, asking: list[NodePulls]) -> Iterator[RegistryLoad]:
    yield _load(registry, "", asking)
    zones: dict[str, list[NodePulls]] = {}
    for each in asking:
        zones.setdefault(each.node.zone, []).append(each)
    yield from (_load(registry, zone, zones[zone]) for zone in sorted(zones) if zone)


def _load(registry: str, zone: str, asking: list[NodePulls]) -> RegistryLoad:
    known = [(each.before, each.after) for each in asking if each.before is not None and each.after is not None]
    return RegistryLoad(
        registry=registry,
        zone=zone,
        nodes=len(known),
        unknown=len(asking) - len(known),
        parallel_before=_sum(before.parallel for before, _ in known),
        parallel_after=_sum(after.parallel for _, after in known),
        qps_before=_sum(before.qps for before, _ in known),
        qps_after=_sum(after.qps for _, after in known),
    )


def _sum(rates: Iterable[int | None]) -> Sum:
    each = list(rates)
    return Sum(sum(rate for rate in each if rate is not None), sum(rate is None for rate in each))


def _beyond(load: RegistryLoad, cap: RegistryCap) -> Iterator[Problem]:
    pairs: tuple[tuple[str, int | None, Sum, Sum], ...] = (
        ("pulls at once", cap.parallel_pulls, load.parallel_before, load.parallel_after),
        ("pulls a second", cap.qps, load.qps_before, load.qps_after),
    )
    for what, most, before, after in pairs:
        if most is not None and after.beyond(most) and after.more_than(before):
            message = f"{scope_text(load)} could ask for {sum_text(after)} {what} ({sum_text(before)} before); the cap is {most}"
            yield Problem("registry-cap", message, hint="lower the setting, or the playbook's cap must allow it")


def scope_text(load: RegistryLoad) -> str:
    """``2,000 nodes of zone a, of registry harbor,``"""
    registry = f"of registry {load.registry}" if load.registry else "of any registry"
    zone = f" of zone {load.zone}" if load.zone else ""
    return f"{counted(load.nodes, 'node')}{zone}, {registry},"


def sum_text(found: Sum) -> str:
    """``5,000``, or for how many nodes there is no bound."""
    return f"no bound on {counted(found.unbounded, 'node')}, {found.total}" if found.unbounded else str(found.total)
