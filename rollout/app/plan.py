"""Planning: turns inventory, playbook and snapshot into a frozen plan. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollout.app.impact import ChangeImpact, Foresight, NodeForesight
from rollout.app.isolation import Keep, attempt, keep_nothing
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Node, Role
from rollout.core.model.plan import ExcludedNode, Plan, Remark, Standing, WantedSetting
from rollout.core.model.playbook import Policy, RevertTimes
from rollout.core.model.pods import BY_HAND
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.core.plans import history
from rollout.core.plans.history import Around
from rollout.core.plans.planning import Decided, plan_of
from rollout.core.plans.registry_load import NodePulls
from rollout.core.plans.roles import SeenRole
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem
from rollout.kubelet import homes
from rollout.kubelet.changes.changes import ProposalCache
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.node import fitness, managers
from rollout.kubelet.node.managers import Said

NOTHING_KNOWN = Around()
_MOST_NAMED = 20
_CONTROL_PLANE = "a node of the control plane; the playbook does not set `controlPlane: true`"
_CORDONED = "cordoned by others; the playbook does not set `cordoned: true`"


def build_plan(
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    settings: Mapping[str, Mapping[str, Setting]],
    selection: tuple[str, ...],
    limit: str,
    way_back: RevertTimes | None = None,
    around: Around = NOTHING_KNOWN,
    assumed: int | None = None,
    trace: Keep = keep_nothing,
    own: tuple[Defect, ...] = (),
    wanted: tuple[WantedSetting, ...] = (),
) -> Plan:
    """The plan for the selected nodes (names of the inventory). Mistakes in settings are one ``InputError``.

    ``assumed``: kubelets newer than every known one are treated as this minor (37 is 1.37); ``None``: they are refused.
    ``trace`` stores the trace of an error inside rollout with one node, and returns where. ``own``: known defects of the
    project. ``wanted``: the settings as the plan records them.
    """
    _check_fleet(inventory, fleet, selection)
    _check_settings(settings, selection, homes.check_accepted(policy.accepted, policy.name))
    foresight = Foresight(inventory, policy, fleet, around, selection, assumed)
    roles = foresight.roles
    skipped = _skipped(inventory, policy, roles, around)
    passed_over = {**skipped, **_of_one_machine(inventory, fleet, [name for name in selection if name not in skipped])}
    proposals = ProposalCache(policy, assumed, own)
    seen = {
        name: _seen(foresight, proposals, inventory.nodes[name], settings.get(name, {}), passed_over.get(name), trace)
        for name in selection
    }
    changed = [one.found for one in seen.values() if isinstance(one.found, _Changed)]
    made = plan_of(
        inventory,
        policy,
        fleet,
        limit,
        [each.decided for each in changed],
        [one.found for one in seen.values() if isinstance(one.found, ExcludedNode)],
        (
            *_remarks(inventory, fleet, [name for name in selection if name not in passed_over], around, seen),
            *history.folded((name, _another_role(role)) for name, role in roles.items() if role.seen),
            *_switched_off(policy),
        ),
        way_back=way_back,
        wanted=wanted,
    )
    foreseen = {each.decided.node.name: each.foreseen for each in changed}
    return foresight.on(made, foreseen, [one.asking for one in seen.values()])


@dataclass(frozen=True, slots=True)
class _Changed:
    """A node that will be changed: its change, and the side effects."""

    decided: Decided
    foreseen: ChangeImpact


@dataclass(frozen=True, slots=True)
class _Seen:
    """Everything that a plan uses of one node. Nothing else of the node is read afterwards."""

    found: _Changed | ExcludedNode
    asking: NodePulls
    taken: tuple[Said, ...] = ()  # remarks on the version it is treated as
    managed: tuple[Said, ...] = ()  # texts about other tools that configure it


def _of_one_machine(inventory: Inventory, fleet: FleetSnapshot, selection: Sequence[str]) -> Mapping[str, ExcludedNode]:
    return {
        name: ExcludedNode(name, inventory.nodes[name].rack, Standing.REFUSED, "one-machine", why)
        for name, why in history.one_machine(selection, fleet).items()
    }


def _skipped(
    inventory: Inventory, policy: Policy, roles: Mapping[str, SeenRole], around: Around
) -> Mapping[str, ExcludedNode]:
    """Nodes that are skipped whatever their state is."""
    cordoned = {} if policy.cordoned else history.cordoned(around.live)
    skipped: dict[str, ExcludedNode] = {}
    for name, role in roles.items():
        node = inventory.nodes[name]
        if role.role is Role.CONTROL_PLANE and not policy.control_plane:
            skipped[name] = ExcludedNode(name, node.rack, Standing.SKIPPED, "control-plane", _CONTROL_PLANE)
        elif name in cordoned:
            skipped[name] = ExcludedNode(name, node.rack, Standing.SKIPPED, "cordoned", _cordoned(cordoned[name]))
    return skipped


def _cordoned(run: str) -> str:
    if not run:
        return _CORDONED
    how = f"`rollout resume` of that run lifts the cordon, or after its end `{BY_HAND}`"
    return f"run {printable(run, 60)} cordoned it and has not lifted that: {how}"


def _remarks(
    inventory: Inventory, fleet: FleetSnapshot, selection: Sequence[str], around: Around, seen: Mapping[str, _Seen]
) -> tuple[Remark, ...]:
    taken = [(name, each) for name in selection for each in seen[name].taken]
    managed = [(name, each) for name in selection for each in seen[name].managed]
    return (*history.remarks(inventory, selection, fleet, around), *history.folded([*taken, *managed]))


def _another_role(role: SeenRole) -> Said:
    text = f"of the control plane, although the inventory does not say so: {role.seen}; a plan changes such nodes last, one at a time, and only with `controlPlane: true`"
    return ("control-plane-seen", text)


def _switched_off(policy: Policy) -> Iterator[Remark]:
    if policy.without:
        yield Remark(
            "gates-without", f"the playbook switches off gates that are on by default: {', '.join(policy.without)}", ()
        )


def _seen(
    foresight: Foresight,
    proposals: ProposalCache,
    node: Node,
    settings: Mapping[str, Setting],
    passed_over: ExcludedNode | None,
    trace: Keep,
) -> _Seen:
    def look() -> _Seen:
        if passed_over is not None:
            return _Seen(passed_over, foresight.pulls_as_before(node))
        return _look(foresight, proposals, node, settings)

    def failed(reason: str) -> _Seen:
        refused = ExcludedNode(node.name, node.rack, Standing.REFUSED, "planning-failed", reason)
        return _Seen(passed_over or refused, NodePulls(node, None, None))

    return attempt(node.name, look, failed, trace)


def _look(foresight: Foresight, proposals: ProposalCache, node: Node, settings: Mapping[str, Setting]) -> _Seen:
    snapshot = foresight.fleet.nodes.get(node.name)
    if snapshot is None:
        why = "the snapshot does not contain this node"
        left = ExcludedNode(node.name, node.rack, Standing.UNREACHABLE, "not-in-snapshot", why)
        return _Seen(left, foresight.pulls_as_before(node))
    if isinstance(snapshot, Unread):
        left = ExcludedNode(node.name, node.rack, Standing.UNREACHABLE, snapshot.reference, snapshot.message)
        return _Seen(left, foresight.pulls_as_before(node))
    if why := history.another_machine(node.name, snapshot, foresight.live):
        left = ExcludedNode(node.name, node.rack, Standing.REFUSED, "another-machine", why)
        return _Seen(left, foresight.pulls_as_before(node))
    found, asking = _decide(foresight, proposals, node, settings, snapshot)
    return _Seen(found, asking, tuple(fitness.remarks(snapshot, foresight.assumed)), managers.remarks(snapshot))


def _decide(
    foresight: Foresight, proposals: ProposalCache, node: Node, settings: Mapping[str, Setting], snapshot: Snapshot
) -> tuple[_Changed | ExcludedNode, NodePulls]:
    proposal = proposals.change_for(snapshot, settings, node)
    if isinstance(proposal, ExcludedNode):
        return proposal, foresight.pulls_as_before(node)
    foreseen = NodeForesight(foresight, node, snapshot, proposal)
    drain = foreseen.for_its_state() or foreseen.for_its_containers() or foreseen.for_its_pods()
    if isinstance(drain, ExcludedNode):
        return drain, foresight.pulls_as_before(node)
    decided = Decided(
        node,
        snapshot.machine_id,
        proposal.change,
        proposal.label,
        drain,
        foreseen.less_room(),
        foreseen.role,
        foreseen.takes_devices,
    )
    return _Changed(decided, foreseen.impact()), foreseen.pulls_anew()


def _check_fleet(inventory: Inventory, fleet: FleetSnapshot, selection: Sequence[str]) -> None:
    """A plan binds its own nodes only: the rest of the inventory may have changed since the snapshot.

    A node at another address may be another machine. Racks, zones and settings are those of the inventory of now.
    """
    if fleet.cluster != inventory.cluster:
        message = f"the snapshot is of cluster {fleet.cluster!r}, the inventory of {inventory.cluster!r}"
        raise InputError((Problem("snapshot-of-another-cluster", message),))
    hint = "read the nodes again: plan without --snapshot"
    told = []
    if not fleet.addresses and fleet.inventory_digest != inventory.digest:
        told = ["the snapshot was taken with another inventory, and does not have the addresses of its nodes"]
    moved: dict[tuple[str, str], list[str]] = {}
    for name in selection if fleet.addresses else ():
        read, now = fleet.addresses.get(name, "no address"), inventory.nodes[name].reached_at
        if name in fleet.nodes and read != now:
            moved.setdefault((read, now), []).append(name)
    for (read, now), names in moved.items():
        told.append(printable(f"{fold(names)}: read at {read}; the inventory now has {now}", 600))
    if told:
        problems = (Problem("snapshot-of-another-inventory", each, hint=hint) for each in told[:_MOST_NAMED])
        raise InputError(tuple(problems))


def _check_settings(
    settings: Mapping[str, Mapping[str, Setting]], selection: tuple[str, ...], others: tuple[Problem, ...]
) -> None:
    """Each distinct set of settings is checked once; the same mistake on many nodes is one mistake."""
    given = {id(mine): mine for name in selection for mine in (settings.get(name, {}),)}
    distinct: dict[str, Mapping[str, Setting]] = {}
    for mine in given.values():
        distinct.setdefault(repr(mine), mine)
    problems = dict.fromkeys(others)
    for mine in distinct.values():
        problems |= dict.fromkeys(homes.check(mine))
    problems |= dict.fromkeys(homes.shared_own_values(settings, selection))
    if problems:
        raise InputError(tuple(problems))
