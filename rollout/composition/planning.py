"""Planning for commands and pages: reads the nodes, the files and the journal, then plans."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from rollout.adapters.clock import SystemClock, SystemZones
from rollout.app.change_windows import zoned
from rollout.app.cluster_context import look_around, with_running
from rollout.app.following import last_revert_times
from rollout.app.load import INVENTORY_FOLDER, PLAYBOOK_FOLDER, names_in
from rollout.app.plan import build_plan
from rollout.app.ports import Files, Nodes
from rollout.app.reading import snapshot_fleet
from rollout.composition.wiring import Session
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Policy
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.reading.precedence import parse_override, settings_of
from rollout.errors import UsageError


def the_playbook(files: Files, inventory: Inventory) -> str:
    """The inventory's playbook, or else the only one there is."""
    if inventory.playbook:
        return inventory.playbook
    names = names_in(files, PLAYBOOK_FOLDER)
    if len(names) != 1:
        raise UsageError(
            "which-playbook",
            f"choose a playbook with --playbook: {', '.join(names) or 'there is none'}",
            hint=f"or set `playbook:` in {INVENTORY_FOLDER}/{inventory.cluster}.yaml",
        )
    return names[0]


def read_fleet(session: Session, inventory: Inventory, selection: Sequence[str]) -> FleetSnapshot:
    """One round trip per node."""
    with closing(session.nodes()) as nodes:
        return read_over(nodes, session, inventory, selection, goes_on=False)


def read_over(
    nodes: Nodes, session: Session, inventory: Inventory, selection: Sequence[str], *, goes_on: bool = True
) -> FleetSnapshot:
    """The same over connections that go on afterwards."""
    access, keep = session.access(inventory, selection), session.traces.keep
    fleet = snapshot_fleet(inventory, access, nodes, SystemClock(), keep, goes_on=goes_on)
    sources = session.sources()
    fleet = replace(fleet, jumps=session.jumps(inventory, selection))
    return with_running(fleet, inventory, session.past(), sources, session.kubeconfig, keep)


def make_plan(
    session: Session,
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    selection: tuple[str, ...],
    limit: str,
    overrides: Sequence[str],
    assumed: int | None = None,
) -> Plan:
    """``assumed``: kubelets newer than rollout knows are treated as this minor."""
    said = {setting.name: setting for setting in map(parse_override, overrides)}
    known = last_revert_times(session.past(), inventory.cluster)
    around = look_around(inventory, session.past(), session.sources(), session.kubeconfig, selection)
    zoned((each for each in (policy.calendar, inventory.calendar) if each is not None), SystemZones())
    settings = settings_of(inventory, policy, said)
    return build_plan(inventory, policy, fleet, settings, selection, limit, known, around, assumed, session.traces.keep)
