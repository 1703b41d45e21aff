"""Settings with values that can be right on one node only: with another node's name or address a node is lost to its
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollout.core.model.inventory import Level
from rollout.core.model.settings import Setting
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted
from rollout.errors import Problem

OWN_VALUES: Mapping[str, str] = {
    "--hostname-override": "all but one of them would register as another node",
    "--node-ip": "pods and services would reach only one of them",
    "providerID": "the cloud provider would see the same machine for all of them",
}
"""Name → what the same value on several nodes would do."""


def shared(settings: Mapping[str, Mapping[str, Setting]], nodes: Iterable[str]) -> tuple[Problem, ...]:
    """A mistake for each such setting that has one value on several of the nodes."""
    having: dict[tuple[str, str], list[str]] = {}
    said: dict[tuple[str, str], Setting] = {}
    for node in nodes:
        mine = settings.get(node, {})
        for name in OWN_VALUES:
            if name in mine:
                key = (name, repr(mine[name].value))
                having.setdefault(key, []).append(node)
                said[key] = mine[name]
    return tuple(
        _problem(said[key], f"{counted(len(names), 'node')}: {fold(names)}")
        for key, names in having.items()
        if len(names) > 1
    )


def shared_by_level(level: Level) -> tuple[Problem, ...]:
    """The same for a level of the inventory, before it is known which nodes are selected."""
    if level.nodes is not None and len(level.nodes) <= 1:
        return ()
    whom = "every node" if level.nodes is None else counted(len(level.nodes), "node")
    return tuple(_problem(setting, whom) for name, setting in level.settings.items() if name in OWN_VALUES)


def _problem(setting: Setting, whom: str) -> Problem:
    source = f" ({setting.source})" if setting.source else ""
    return Problem(
        "one-nodes-own",
        f"{setting.name} has one value for {whom}{source}: {OWN_VALUES[setting.name]}",
        setting.place,
        hint="set it under `nodes` for each node, or let a template build it from the node's name or address",
    )
