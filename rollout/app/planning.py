"""Plans: reads the nodes, the files and the journal, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from rollout.app.apply import apply_plan
from rollout.app.call import CallPorts, Operator
from rollout.app.cluster_context import look_around, with_running
from rollout.app.config_maps import with_config_map
from rollout.app.following import last_revert_times
from rollout.app.freezes import check_nodes_not_frozen, check_not_frozen, freeze_in
from rollout.app.known_defects import own_defects
from rollout.app.load import INVENTORY_FOLDER, PLAYBOOK_FOLDER, names_in
from rollout.app.load_playbook import load_policy
from rollout.app.plan import build_plan
from rollout.app.plan_file import check_preflight
from rollout.app.ports import Files, Nodes
from rollout.app.reading import snapshot_fleet
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan, WantedSetting
from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans.history import Around
from rollout.core.plans.planning import Preflight
from rollout.core.plans.required_back_ends import Needs, needs_to_plan, with_gates_of_api
from rollout.core.presentation.freeze_text import frozen_in, frozen_lines, noted_line
from rollout.core.presentation.nothing_to_do import NothingToDo
from rollout.core.reading.precedence import parse_override, settings_of, wanted_of
from rollout.core.run.state import RunState
from rollout.core.text.nodesets import limited
from rollout.errors import UsageError
from rollout.kubelet.effects.needs import files_named


@dataclass(frozen=True, slots=True)
class ToPlan:
    """What is planned: a policy on the ``selection`` of an inventory's nodes. ``limit``: as it was given."""

    inventory: Inventory
    policy: Policy
    selection: tuple[str, ...]
    limit: str


def to_plan(call: CallPorts, cluster: str, playbook: str, limit: str, *, contacts: bool) -> ToPlan:
    """From the files. ``playbook`` ``""``: the inventory's. ``contacts``: the rights at the back ends are checked too."""
    files = call.files()
    inventory = call.inventory(cluster)
    policy = load_policy(files, playbook or _playbook(files, inventory))
    return checked_to_plan(call, ToPlan(inventory, policy, limited(limit, inventory), limit), contacts=contacts)


def checked_to_plan(call: CallPorts, asked: ToPlan, *, contacts: bool) -> ToPlan:
    """With the gates that the API server allows, if the back ends that it needs can be used. ``contacts`` as in ``to_plan``."""
    inventory = asked.inventory
    policy = with_gates_of_api(asked.policy, call.kubeconfig or inventory.endpoints.kubeconfig)
    needs = needs_to_plan(inventory, policy, call.kubeconfig)
    if contacts:
        with call.back_ends(inventory, needs):
            pass
    else:
        call.check_back_ends(inventory, needs)
    return replace(asked, policy=policy)


def _playbook(files: Files, inventory: Inventory) -> str:
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


Named = Mapping[str, tuple[str, ...]]
"""Node → the files that its settings name."""

_NONE: Named = MappingProxyType({})


def read_fleet(call: CallPorts, inventory: Inventory, selection: Sequence[str], named: Named = _NONE) -> FleetSnapshot:
    """One round trip per node, and a second one where its settings name files."""
    with closing(call.nodes()) as nodes:
        return _read_over(nodes, call, inventory, selection, named, goes_on=False)


def _read_over(
    nodes: Nodes, call: CallPorts, inventory: Inventory, selection: Sequence[str], named: Named, *, goes_on: bool
) -> FleetSnapshot:
    """``goes_on``: the connections are used afterwards."""
    access = call.access(inventory, selection)
    fleet = snapshot_fleet(inventory, access, nodes, call.clock, call.keep, goes_on=goes_on, named=named)
    return with_ways(call, inventory, fleet)


def with_ways(call: CallPorts, inventory: Inventory, fleet: FleetSnapshot) -> FleetSnapshot:
    """Nodes that were read just now, with the ways to them and with what their processes have loaded of edited files."""
    fleet = replace(fleet, jumps=call.jumps(inventory, fleet.nodes))
    return with_running(fleet, inventory, call.past(), call.sources(), call.kubeconfig, call.keep)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Node → its settings by name, and the same as a plan records it."""

    settings: Mapping[str, Mapping[str, Setting]]
    recorded: tuple[WantedSetting, ...]

    def named(self, selection: Iterable[str]) -> Named:
        return {name: paths for name in selection if (paths := files_named(self.settings.get(name, {})))}


def wanted_by_files(asked: ToPlan, overrides: Sequence[str]) -> Wanted:
    """What inventory, playbook and ``overrides`` (NAME=VALUE) want."""
    overridden = {setting.name: setting for setting in map(parse_override, overrides)}
    inventory, policy = asked.inventory, asked.policy
    return Wanted(settings_of(inventory, policy, overridden), wanted_of(inventory, policy, overridden, asked.selection))


def make_plan(
    call: CallPorts,
    asked: ToPlan,
    fleet: FleetSnapshot,
    wanted: Wanted,
    around: Around | None = None,
    assumed: int | None = None,
    *,
    config_map: bool = True,
) -> Plan:
    """``config_map``: the playbook may have kubeadm's ConfigMap written. ``around``: what journal and API server know, if it was asked already. ``assumed``: kubelets newer than rollout knows are treated as this minor."""
    inventory, policy, past = asked.inventory, asked.policy, call.past()
    known = last_revert_times(past, inventory.cluster)
    around = around or look_around(inventory, past, call.sources(), call.kubeconfig, asked.selection)
    call.start_times.check((*policy.conditions, *inventory.conditions))
    own = own_defects(call.files())
    plan = build_plan(
        inventory, policy, fleet, wanted.settings, asked.selection, asked.limit, known, around, assumed, call.keep, own,
        wanted.recorded,
    )  # fmt: skip
    plan = call.completed(plan)
    if not policy.kubeadm_config_map or not config_map:
        return plan
    with call.back_ends(inventory, Needs()) as back_ends:
        return with_config_map(plan, inventory, wanted.settings, around.live, back_ends.config_maps)


@dataclass(frozen=True, slots=True)
class Planned:
    """``preflight``: whether apply would refuse the plan. ``frozen``: the freezes of its cluster in force, for people."""

    plan: Plan
    preflight: Preflight
    frozen: tuple[str, ...]


def plan_cluster(
    call: CallPorts,
    cluster: str,
    playbook: str,
    overrides: Sequence[str],
    limit: str,
    fleet: FleetSnapshot | None = None,
    assumed: int | None = None,
    save: Callable[[FleetSnapshot], None] = lambda _fleet: None,
) -> Planned:
    """Read the nodes of ``limit`` (``""``: all) and plan. A plan may be made and reviewed during a freeze: it changes nothing.

    ``fleet``: no machine is contacted; apply then checks the rights at the back ends. ``save`` gets what was read. ``assumed`` as in
    ``make_plan``.
    """
    asked = to_plan(call, cluster, playbook, limit, contacts=fleet is None)
    wanted = wanted_by_files(asked, overrides)
    fleet = fleet or read_fleet(call, asked.inventory, asked.selection, wanted.named(asked.selection))
    save(fleet)
    return as_planned(call, make_plan(call, asked, fleet, wanted, assumed=assumed), fleet)


def as_planned(call: CallPorts, plan: Plan, fleet: FleetSnapshot) -> Planned:
    """A plan of nodes that were read just now, with what the operator must know of it."""
    freeze = freeze_in(call.past(), plan.cluster)
    is_noted = freeze is not None and not freeze.lifted
    lines = (noted_line(freeze),) if freeze is not None and is_noted else tuple(frozen_lines(frozen_in(fleet)))
    return Planned(plan, check_preflight(plan), lines)


class PlanReader(Operator, Protocol):
    """The person that plans and applies in one step, and reads the plan before the confirmation."""

    def planned(self, plan: Plan) -> None: ...


def plan_and_apply(
    call: CallPorts, operator: PlanReader, cluster: str, playbook: str, overrides: Sequence[str], limit: str
) -> RunState | NothingToDo:
    """Without a plan file. ``StateError`` ``frozen``: nothing may be applied."""
    with closing(call.nodes()) as nodes:  # one connection a node, from the first reading to the end
        check_not_frozen(call.past(), cluster)
        asked = to_plan(call, cluster, playbook, limit, contacts=False)
        wanted = wanted_by_files(asked, overrides)
        fleet = _read_over(nodes, call, asked.inventory, asked.selection, wanted.named(asked.selection), goes_on=True)
        check_nodes_not_frozen(cluster, frozen_in(fleet))
        plan = make_plan(call, asked, fleet, wanted)
        operator.planned(plan)
        approvals = call.approvals_of(plan, asked.inventory, None)
        return apply_plan(call, operator, nodes, plan, asked.inventory, approvals, fresh=True)
