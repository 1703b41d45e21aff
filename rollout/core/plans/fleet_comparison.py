"""Compares a plan with the fleet of today. A plan binds its own nodes only, so a fleet may grow and shrink around it.

Of each node of its waves, a plan binds the name, the address, the port, the user, the bastions, the machine-id, the rack, the
zone and the settings of the inventory. Nodes that left are charged to nothing. Nodes that joined are not part of the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from rollout.core.model.areas import Sized
from rollout.core.model.fleet_changes import (
    GONE,
    IS_GONE,
    IS_REPLACED,
    REPLACED,
    FieldChange,
    FleetChanges,
    Leaver,
    fewer,
)
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan, PlannedNode
from rollout.core.model.settings import Setting
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.text.nodesets import fold, left_of
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, Problem

Jumps = Mapping[str, tuple[str, ...]]
"""Node → the bastions on the way to it, the nearest to us first. Nodes with a way that is not known here are missing."""

ANOTHER_INVENTORY = "plan-for-another-inventory"
_MOST_NAMED = 20
_SETTINGS_DIGITS = 16


def fleet_changes(plan: Plan, inventory: Inventory, jumps: Jumps) -> FleetChanges:
    """Every difference between the plan's nodes and the inventory. Says nothing about their content."""
    found = run_changes(plan.nodes, plan.nodes, plan, inventory, jumps)
    unplanned = frozenset(entry.name for entry in plan.left if entry.name not in inventory.nodes)
    return replace(found, joined=_joined(plan, inventory), unplanned=unplanned)


def run_changes(
    names: Iterable[str], planned: Mapping[str, PlannedNode], sized: Sized, inventory: Inventory, jumps: Jumps
) -> FleetChanges:
    """The same for the nodes of a run, as far as its plan is known. ``sized``: the plan or the order."""
    settings = inventory_settings(inventory)
    left: dict[str, Leaver] = {}
    fields: list[FieldChange] = []
    for name in names:
        machine, known = inventory.machines.get(name, ""), planned.get(name)
        if name not in inventory.nodes:
            left[name] = Leaver(GONE, IS_GONE)
        elif known is not None and machine and known.machine_id and machine != known.machine_id:
            why = f"{IS_REPLACED}: {machine}; the plan is for {known.machine_id}"
            left[name] = Leaver(REPLACED, printable(why, 200))
        elif known is not None:
            fields += _fields(known, inventory, settings.get(name, ""), jumps.get(name))
    return FleetChanges(left, fields=tuple(fields), sizes=fewer(sized, inventory.nodes.values()))


def _fields(
    planned: PlannedNode, inventory: Inventory, settings: str, jumps: tuple[str, ...] | None
) -> Iterator[FieldChange]:
    now = inventory.nodes[planned.name]
    both: list[tuple[str, object, object]] = [
        ("address", planned.address, now.address),
        ("port", planned.port, now.port),
        ("user", planned.user, now.user),
        ("rack", planned.rack, now.rack),
        ("zone", planned.zone, now.zone),
    ]
    if planned.jumps is not None and jumps is not None:
        both.append(("jumps", ",".join(planned.jumps) or None, ",".join(jumps) or None))
    if planned.settings is not None:
        both.append(("settings", planned.settings, settings))
    for field, before, after in both:
        if before != after:
            yield FieldChange(planned.name, field, _shown(field, before), _shown(field, after))


def _shown(field: str, value: object) -> str:
    return "" if field == "settings" else printable(str(value), 120) if value is not None else "not set"


def _joined(plan: Plan, inventory: Inventory) -> tuple[str, ...]:
    """The nodes that the plan's selection has now and did not have. A selection may name nodes and groups that are gone."""
    known = plan.nodes.keys() | {entry.name for entry in plan.left}
    chosen = left_of(plan.limit, inventory)
    return tuple(name for name in inventory.nodes if name in chosen and name not in known)


def inventory_settings(inventory: Inventory) -> Mapping[str, str]:
    """Node → a digest of the settings that the inventory gives to it; nodes without any are missing.

    The order in which groups are written counts only where two of them give one setting.
    """
    merged: dict[str, dict[str, Setting]] = {}
    for level in inventory.levels:
        for name in inventory.nodes if level.nodes is None else level.nodes:
            if level.settings:
                merged.setdefault(name, {}).update(level.settings)
    known: dict[str, str] = {}
    return {name: _digest(settings, known) for name, settings in merged.items()}


def _digest(settings: Mapping[str, Setting], known: dict[str, str]) -> str:
    written = [[key, one.value, one.if_unsupported, one.pin] for key, one in sorted(settings.items())]
    text = json.dumps(written, sort_keys=True)
    if text not in known:
        known[text] = sha256(text.encode()).hexdigest()[:_SETTINGS_DIGITS]
    return known[text]


def check_fleet(plan: Plan, inventory: Inventory, changes: FleetChanges, file: str) -> None:
    """``InputError``: a node of the plan is reached otherwise, sits elsewhere or gets other settings; or none is left.

    Each difference is named. Nodes that left or joined are no reason to refuse the others.
    """
    hint = f"plan again, {SAME_SETTINGS}: {plan_again(inventory.cluster, plan.limit, plan.playbook)}"
    if plan.cluster != inventory.cluster:
        _refuse([f"{file} was made for {plan.cluster}, not for {inventory.cluster}"], hint)
    only_config_map = plan.config_map is not None and not plan.nodes  # for the whole cluster, and every setting of it
    is_bound = only_config_map or any(node.settings is None for node in plan.nodes.values())
    if is_bound and plan.inventory_digest != inventory.digest:
        _refuse([f"{file} was made with another version of the inventory of {plan.cluster}"], hint)
    for condition in inventory.conditions:
        if condition.not_the_plans and condition not in plan.conditions:
            _refuse([f"{file}: {condition.not_the_plans}"], hint)
    if plan.nodes and len(changes.left) == len(plan.nodes):
        leavers = "; ".join(change_lines(changes))
        _refuse([f"{file}: none of its {counted(len(plan.nodes), 'node')} is left: {leavers}"], hint)
    _refuse([f"{file}: {said}" for said in field_lines(changes.fields)], hint)


def _refuse(messages: Sequence[str], hint: str) -> None:
    problems = [Problem(ANOTHER_INVENTORY, message, hint=hint) for message in messages[:_MOST_NAMED]]
    if len(messages) > _MOST_NAMED:
        more = f"… and {counted(len(messages) - _MOST_NAMED, 'more difference')}"
        problems.append(Problem(ANOTHER_INVENTORY, more, hint=hint))
    if problems:
        raise InputError(tuple(problems))


def field_lines(fields: Sequence[FieldChange]) -> list[str]:
    """Nodes with the same difference in one line."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for each in fields:
        together.setdefault((each.field, each.planned, each.now), []).append(each.node)
    return [_field_line(*key, names) for key, names in together.items()]


def _field_line(field: str, planned: str, now: str, names: Sequence[str]) -> str:
    nodes = printable(fold(names), 300)
    if field == "settings":
        return f"{nodes}: the inventory's settings of it changed since the plan"
    return f"{nodes}: its {field} is {now}; planned: {planned}"


def change_lines(changes: FleetChanges) -> Iterator[str]:
    """Nodes that left and joined since the plan, for people, before they confirm it."""
    for reference, what in ((GONE, "gone"), (REPLACED, "replaced by other machines with the same name")):
        names = [name for name, leaver in changes.left.items() if leaver.reference == reference]
        if names:
            yield f"{what} since the plan, left alone, not counted as failed: {_counted(names)}"
    if changes.joined:
        yield f"joined since the plan, not part of it: {_counted(changes.joined)}"


def promotion_lines(names: Sequence[str]) -> Iterator[str]:
    """Nodes that are changed earlier than planned."""
    if names:
        yield f"in the first wave in place of nodes that left, so that it tries every kind of change: {_counted(names)}"


def _counted(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'node')}  {printable(fold(names), 300)}"
