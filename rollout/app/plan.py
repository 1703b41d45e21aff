"""Planning: inventory, playbook and snapshot in, a frozen plan out. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.inventory import Inventory, Node
from rollout.core.plan import Left, Plan, Standing
from rollout.core.planning import Decided, Preflight, plan_of, preflight
from rollout.core.playbook import Policy
from rollout.core.settings import Setting
from rollout.core.snapshot import FleetSnapshot, Unread
from rollout.errors import InputError, Problem
from rollout.kubelet import homes
from rollout.kubelet.changes import Proposal, change_for
from rollout.kubelet.fitness import SICK


def build_plan(
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    settings: Mapping[str, Mapping[str, Setting]],
    selection: tuple[str, ...],
    limit: str,
) -> Plan:
    """The plan for the selected nodes (names of the inventory). Mistakes in settings are one ``InputError``."""
    _check_fleet(inventory, fleet)
    _check_settings(settings, selection)
    decided: list[Decided] = []
    left: list[Left] = []
    blobs: dict[str, bytes] = {}
    for name in selection:
        found = _decide(inventory.nodes[name], fleet, settings.get(name, {}), policy)
        if isinstance(found, Left):
            left.append(found)
            continue
        machine_id, proposal = found
        decided.append(Decided(inventory.nodes[name], machine_id, proposal.change, proposal.label))
        blobs |= proposal.blobs
    return plan_of(inventory, policy, fleet, limit, decided, left, blobs)


def check_preflight(plan: Plan) -> Preflight:
    """Was the cluster already too sick to begin?"""
    return preflight(plan, SICK)


def _decide(
    node: Node, fleet: FleetSnapshot, settings: Mapping[str, Setting], policy: Policy
) -> tuple[str, Proposal] | Left:
    snapshot = fleet.nodes.get(node.name)
    if snapshot is None:
        return Left(
            node.name, node.rack, Standing.UNREACHABLE, "not-in-snapshot", "the snapshot does not hold this node"
        )
    if isinstance(snapshot, Unread):
        return Left(node.name, node.rack, Standing.UNREACHABLE, snapshot.reference, snapshot.message)
    found = change_for(snapshot, settings, policy, node)
    return found if isinstance(found, Left) else (snapshot.machine_id, found)


def _check_fleet(inventory: Inventory, fleet: FleetSnapshot) -> None:
    if fleet.cluster != inventory.cluster:
        message = f"the snapshot is of cluster {fleet.cluster!r}, the inventory of {inventory.cluster!r}"
        raise InputError((Problem("snapshot-of-another-cluster", message),))
    if fleet.inventory_digest != inventory.digest:
        hint = "read the nodes again"
        raise InputError(
            (Problem("snapshot-of-another-inventory", "the snapshot was taken with another inventory", hint=hint),)
        )


def _check_settings(settings: Mapping[str, Mapping[str, Setting]], selection: tuple[str, ...]) -> None:
    """Each distinct set of settings is checked once; the same mistake on many nodes is one mistake."""
    seen: set[str] = set()
    problems: dict[Problem, None] = {}
    for name in selection:
        mine = settings.get(name, {})
        key = repr(mine)
        if key not in seen:
            seen.add(key)
            problems |= dict.fromkeys(homes.check(mine))
    if problems:
        raise InputError(tuple(problems))
