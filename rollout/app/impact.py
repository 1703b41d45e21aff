"""The side effects of a plan: on the pods of its nodes, and on the registries that they pull from.

A node that would lose pods is refused. With class ``drain-and-restart`` it is drained first, and refused only if a
drain is impossible or not enough. The plan then states how many pods leave, and which may take longest to terminate. A
plan that requests more of a registry than the playbook's caps allow is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Node, Role
from rollout.core.model.live import LiveNode
from rollout.core.model.once import Once
from rollout.core.model.plan import Consequence, ExcludedNode, LessRoom, Plan, PlannedDrain, PullRate, Remark, Standing
from rollout.core.model.playbook import GPU_LOST, Disruption, Policy
from rollout.core.model.pods import LeavingPod, PlacedPod
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.plans.history import Around
from rollout.core.plans.registry_load import NodePulls, beyond_caps, registry_loads
from rollout.core.plans.roles import SeenRole, seen_role
from rollout.core.text.terminal import counted
from rollout.errors import InputError
from rollout.kubelet import versions
from rollout.kubelet.changes.changes import Proposal
from rollout.kubelet.effects import rules
from rollout.kubelet.effects.needs import NEEDS, Need, NeedVerdict, needs, rules_concerned
from rollout.kubelet.effects.needs import told as needs_told
from rollout.kubelet.effects.rules import accepts
from rollout.kubelet.node import managers
from rollout.kubelet.node.alike import NOBODY, kind_of, kind_only
from rollout.kubelet.node.layout import KUBELET_UNITS
from rollout.kubelet.restarts import consequences, mechanics
from rollout.kubelet.restarts.consequences import NodeImpact, Said
from rollout.kubelet.restarts.mechanics import Harm, NodeAtWork, configured_after, device_names, harms
from rollout.kubelet.restarts.readmission import (
    CHECKS_HEALTH,
    Rejected,
    is_less,
    less_room,
    lost_text,
    over_reserved,
    rejected,
    room_now,
)
from rollout.kubelet.restarts.termination import kept_back, worst

_RESERVING = ("kubeReserved", "systemReserved", "reservedSystemCPUs", "evictionHard")
_RESERVED = "reserved for the system, the kubelet and evictions than the node has, so the kubelet would not start"

NOT_FORESEEN = "pods-not-foreseen"


@dataclass(frozen=True, slots=True)
class ChangeImpact:
    """The side effects of one node's change.

    ``here``: what is affected; ``said``: its texts; ``undone``: by other tools, and when.
    """

    here: NodeImpact
    said: tuple[Said, ...]
    undone: tuple[Said, ...]


@dataclass(frozen=True)
class Foresight:
    """What is known for predicting side effects on the nodes of ``selection``. ``assumed`` as in ``app.plan.build_plan``."""

    inventory: Inventory
    policy: Policy
    fleet: FleetSnapshot
    around: Around
    selection: Sequence[str]
    assumed: int | None = None
    once: Once = field(default_factory=Once)  # what nodes with the same values share
    _rates: dict[Hashable, PullRate | None] = field(default_factory=dict)  # kind of node → its rate today

    @cached_property
    def live(self) -> Mapping[str, LiveNode]:
        return {node.name: node for node in self.around.live or ()}

    @cached_property
    def pods(self) -> Mapping[str, Sequence[PlacedPod]]:
        """Node → the pods on it."""
        placed: dict[str, list[PlacedPod]] = {}
        for pod in self.around.pods or ():
            placed.setdefault(pod.node, []).append(pod)
        return placed

    @cached_property
    def roles(self) -> Mapping[str, SeenRole]:
        """Node → its role, by the inventory, its Node and its static pods."""
        nodes = (self.inventory.nodes[name] for name in self.selection)
        return {node.name: seen_role(node, self.fleet.nodes.get(node.name), self.live.get(node.name)) for node in nodes}

    def on(self, plan: Plan, foreseen: Mapping[str, ChangeImpact], asking: Iterable[NodePulls]) -> Plan:
        """The plan with its side effects. ``InputError`` ``registry-cap`` if they exceed what the playbook allows.

        ``foreseen``: the impact on each node of the plan. ``asking``: the pulls of every selected node, also of those
        that the plan does not change.
        """
        loads = registry_loads(asking)
        problems = tuple(beyond_caps(loads, self.policy.caps))
        if problems:
            raise InputError(problems)
        at_stake = [foreseen[name].here for name in plan.nodes]
        return replace(
            plan,
            consequences=tuple(_consequences(plan, foreseen)),
            loads=loads,
            remarks=(*plan.remarks, *_undone(plan, foreseen), *self._not_foreseen(at_stake)),
        )

    def pulls_as_before(self, node: Node) -> NodePulls:
        """The pulls that an unchanged node may request."""
        snapshot = self.fleet.nodes.get(node.name)
        now = self._rate_now(snapshot) if isinstance(snapshot, Snapshot) else None
        return NodePulls(node, now, now)

    def _rate_now(self, snapshot: Snapshot) -> PullRate | None:
        kind = kind_of(snapshot)
        if kind not in self._rates:
            self._rates[kind] = consequences.rate_now(kind_only(snapshot), NOBODY, self.assumed)
        return self._rates[kind]

    def _not_foreseen(self, at_stake: Iterable[NodeImpact]) -> Iterator[Remark]:
        restarted = [each for each in at_stake if not KUBELET_UNITS.isdisjoint(each.change.units)]
        if restarted and self.around.pods is None:
            text = f"pod re-admission not checked: {self.around.pods_not_asked}"
            yield Remark(NOT_FORESEEN, text, ())
            return
        unsaid = tuple(each.snapshot.node for each in restarted if each.lost is None)
        if unsaid:
            yield Remark(
                NOT_FORESEEN,
                "the API server reports too little about them to know whether their pods would be admitted again",
                unsaid,
            )


@dataclass(frozen=True)
class NodeForesight:
    """The side effects of one node's change. Each is looked at once, and what nodes have in common once for all of them."""

    known: Foresight
    node: Node
    snapshot: Snapshot
    proposal: Proposal

    def for_its_state(self) -> ExcludedNode | None:
        """Refuses a node that lacks what the change needs of it now; ``None``: nothing is known to be missing."""
        lacking = [
            each
            for each in self._needs
            if each.verdict is NeedVerdict.REFUSED and not accepts(self.known.policy.accepted, each.name)
        ]
        if not lacking:
            return None
        names = ", ".join(dict.fromkeys(each.name for each in lacking))
        reason = f"{'; '.join(f'{each.name}: {each.text}' for each in lacking)}. `accept: [{names}]` in the playbook allows it"
        return self._refused(NEEDS, reason)

    def for_its_containers(self) -> ExcludedNode | None:
        """Refuses a node where a reload or a restart may harm running containers; ``None``: it does not, or it is accepted."""
        found = [
            each
            for each in self._harms
            if each.verdict is NeedVerdict.REFUSED and each.name not in self.known.policy.accepted
        ]
        return self._refused(found[0].name, mechanics.refusal(found)) if found else None

    @property
    def takes_devices(self) -> bool:
        """Whether the change itself may take devices from containers that run on the node."""
        return any(each.takes_devices for each in self._harms)

    def for_its_pods(self) -> ExcludedNode | PlannedDrain | None:
        """Refuses or drains a node with pods that would not survive the change; ``None``: it has no such pods."""
        if not self._lost:
            return None
        if self.known.policy.disruption is not Disruption.DRAIN_AND_RESTART:
            reason = f"{lost_text(self._lost)}; drain it first, or set `disruption: drain-and-restart`"
            return self._refused("pods-would-be-rejected", reason)
        return self._drain()

    def _drain(self) -> ExcludedNode | PlannedDrain:
        """Plan a drain. Refuses the node if a drain cannot evict a pod, or if a pod that stays would not fit."""
        staying, going = by_drain(self.known.pods.get(self.node.name, ()))
        before, after = self.proposal.before, self.proposal.after
        left_over = rejected(self.known.live[self.node.name], staying, self._minor, before, after)
        if left_over:
            return self._refused("pods-would-be-rejected", f"{lost_text(left_over)}; a drain does not evict them")
        kept = [said for pod in going if (said := kept_back(pod, self.known.policy.drain.evict_too))]
        if kept:
            more = f"; and {len(kept) - 1} more" if len(kept) > 1 else ""
            return self._refused("not-drainable", f"it cannot be drained: {kept[0]}{more}")
        return planned(going, self._minor)

    def _refused(self, reference: str, reason: str) -> ExcludedNode:
        return ExcludedNode(self.node.name, self.node.rack, Standing.REFUSED, reference, reason)

    def less_room(self) -> LessRoom | None:
        """The room that the change takes from pods, to check later arrivals; ``None``: nothing, or not known.

        A node with devices has one, too: a pod with a device in an init container may arrive.
        """
        live = self._live
        now = room_now(live) if live is not None and self.known.around.pods is not None else None
        if live is None or now is None or not self._restarts:
            return None
        try:
            less = less_room(live, self._minor, self.proposal.before, self.proposal.after)
        except ValueError:
            return None
        counted = is_less(now, less) or (self._minor >= CHECKS_HEALTH and device_names(live.capacity))
        return less if counted else None

    def impact(self) -> ChangeImpact:
        """The side effects of the change."""
        here = self._at_stake()
        said = (*consequences.of_node(here), *needs_told(self._needs))
        return ChangeImpact(here, said, managers.undone(self.snapshot, self.proposal.change))

    def pulls_anew(self) -> NodePulls:
        """The pulls that the changed node may request of its registry."""
        before, after = self.proposal.before, self.proposal.after
        return NodePulls(
            self.node, self.known.once(consequences.rate_of, before), self.known.once(consequences.rate_of, after)
        )

    def _at_stake(self) -> NodeImpact:
        pods, proposal, once = self._placed, self.proposal, self.known.once
        return NodeImpact(
            snapshot=self.snapshot,
            change=proposal.change,
            minor=self._minor,
            role=self.role,
            live=self._live,
            probed=None if pods is None else sum(pod.probed for pod in pods),
            running=None if pods is None else len(pods),
            sidecars=None if pods is None else sum(any(ask.init and ask.stays for ask in pod.asks) for pod in pods),
            defects=proposal.defects,
            harms=tuple(mechanics.accepted(each, self.known.policy.accepted) for each in self._harms),
            with_devices=mechanics.pods_with_devices(pods or ()),
            lost=self._lost,
            late=once(rules.late, *proposal.values) if proposal.values is not None else (),
            fails=once(consequences.newly_failing, proposal.before, proposal.after),
        )

    @property
    def role(self) -> Role:
        return self.known.roles[self.node.name].role

    @property
    def _restarts(self) -> bool:
        return not KUBELET_UNITS.isdisjoint(self.proposal.change.units)

    @cached_property
    def _live(self) -> LiveNode | None:
        return self.known.live.get(self.node.name)

    @cached_property
    def _minor(self) -> int:
        return versions.taken_for(self.snapshot.kubelet_version, self.known.assumed).minor

    @cached_property
    def _placed(self) -> Sequence[PlacedPod] | None:
        """Its pods; ``None``: not known. The API server may have no Node of this name."""
        known = self.known.around.pods is not None and self._live is not None
        return self.known.pods.get(self.node.name, ()) if known else None

    @cached_property
    def _needs(self) -> tuple[Need, ...]:
        """What the change needs of this node as it is now."""
        proposal, once, live = self.proposal, self.known.once, self._live
        if proposal.values is None:
            return ()
        concerned = once(rules_concerned, *proposal.values)
        lacking = (
            once(needs, concerned, *proposal.values, self.snapshot.files, self.snapshot.surroundings, self._placed)
            if concerned
            else ()
        )
        over = over_reserved(live, proposal.before, proposal.after) if live is not None else ()
        by = [name for name in _RESERVING if proposal.before.get(name) != proposal.after.get(name)] if over else []
        return (*lacking, *(Need(by[0], NeedVerdict.REFUSED, f"more {name} is {_RESERVED}") for name in over))

    @cached_property
    def _harms(self) -> tuple[Harm, ...]:
        values = self.proposal.values
        after = self.known.once(configured_after, values[1]) if values is not None else None
        return harms(NodeAtWork(self.snapshot, self.proposal.change, after, self._live, self._placed))

    @cached_property
    def _lost(self) -> tuple[Rejected, ...] | None:
        if self.known.around.pods is None or self._live is None or not self._restarts:
            return None
        pods = self.known.pods.get(self.node.name, ())
        return rejected(self._live, pods, self._minor, self.proposal.before, self.proposal.after)


def _undone(plan: Plan, foreseen: Mapping[str, ChangeImpact]) -> Iterator[Remark]:
    """A remark for each text, with its nodes."""
    said: dict[Said, list[str]] = {}
    for name in plan.nodes:
        for each in foreseen[name].undone:
            said.setdefault(each, []).append(name)
    for (reference, text), names in said.items():
        yield Remark(reference, text, tuple(names))


def _consequences(plan: Plan, foreseen: Mapping[str, ChangeImpact]) -> Iterator[Consequence]:
    """Group by group. A side effect on all nodes of a group names no nodes."""
    for group in plan.groups:
        members = {name: foreseen[name] for name, node in plan.nodes.items() if node.group == group.name}
        said: dict[Said, list[str]] = {}
        for name, each in members.items():
            for one in each.said:
                said.setdefault(one, []).append(name)
        for (reference, text), names in said.items():
            yield Consequence(group.name, reference, text, () if len(names) == len(members) else tuple(names))
        yield from _of_group(group.name, {name: each.here for name, each in members.items()})


def _of_group(group: str, members: Mapping[str, NodeImpact]) -> Iterator[Consequence]:
    pulling = consequences.pulls_text(list(members.values()))
    if pulling:
        yield Consequence(
            group, "pulls-cancelled", pulling, tuple(n for n, each in members.items() if each.pulls_cancelled)
        )
    keeping = {name: each for name, each in members.items() if each.late and each.running}
    if keeping:
        pods = sum(each.running or 0 for each in keeping.values())
        late = ", ".join(dict.fromkeys(name for each in keeping.values() for name in each.late))
        text = f"{counted(pods, 'running pod')} on {counted(len(keeping), 'node')} keep the old {late} until they are recreated"
        yield Consequence(group, "pods-keep-values", text, tuple(keeping) if len(keeping) < len(members) else ())
    devices = consequences.lost_devices_text(list(members.values()))
    if devices:
        nodes = tuple(n for n, each in members.items() if each.takes_devices and each.with_devices)
        yield Consequence(group, GPU_LOST, devices, nodes)
    lost = {name: each.lost for name, each in members.items() if each.lost}
    if lost:
        text = lost_text([pod for found_ in lost.values() for pod in found_ or ()])
        yield Consequence(group, "pods-rejected", f"{text}; so their nodes are drained first", tuple(lost))


def by_drain(pods: Iterable[PlacedPod]) -> tuple[list[PlacedPod], list[LeavingPod]]:
    """The pods that a drain leaves on their node, and those that it evicts."""
    staying, going = [], []
    for pod in pods:
        if pod.ends is None or pod.ends.stays:
            staying.append(pod)
        else:
            going.append(pod.ends)
    return staying, going


def planned(going: Sequence[LeavingPod], minor: int) -> PlannedDrain:
    found = worst(going, minor)
    if found is None:
        return PlannedDrain(0, "", 0.0, "", minor)
    longest, pod = found
    return PlannedDrain(len(going), pod.name, longest.seconds, longest.text, minor)
