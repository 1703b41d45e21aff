"""The side effects of a plan: on the pods of its nodes, and on the registries that they pull from.

A node that would lose pods is refused. With class ``drain-and-restart`` it is drained first, and refused only if a
drain is impossible or not enough. The plan then states how many pods leave, and which may take longest to terminate. A
plan that requests more of a registry than the playbook's caps allow is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Consequence, ExcludedNode, LessRoom, Plan, PlannedDrain, Remark, Standing
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
from rollout.kubelet.effects.needs import NEEDS, Here, Need, NeedVerdict, needs
from rollout.kubelet.effects.needs import told as needs_told
from rollout.kubelet.effects.rules import accepts
from rollout.kubelet.node import managers
from rollout.kubelet.node.layout import KUBELET_UNITS
from rollout.kubelet.restarts import consequences, mechanics
from rollout.kubelet.restarts.consequences import NodeImpact, Said
from rollout.kubelet.restarts.mechanics import Harm, NodeAtWork, device_names, harms
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
    """What is known for predicting side effects. ``assumed`` as in ``app.plan.build_plan``."""

    inventory: Inventory
    policy: Policy
    fleet: FleetSnapshot
    around: Around
    assumed: int | None = None
    _judged: dict[str, tuple[Rejected, ...] | None] = field(default_factory=dict)  # node → what ``_lost`` found

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

    def role(self, node: Node) -> SeenRole:
        """By the inventory, its Node and its static pods."""
        return seen_role(node, self.fleet.nodes.get(node.name), self.live.get(node.name))

    def for_its_state(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> ExcludedNode | None:
        """Refuses a node that lacks what the change needs of it now; ``None``: nothing is known to be missing."""
        lacking = [
            each
            for each in self._needs(node, snapshot, proposal)
            if each.verdict is NeedVerdict.REFUSED and not accepts(self.policy.accepted, each.name)
        ]
        if not lacking:
            return None
        names = ", ".join(dict.fromkeys(each.name for each in lacking))
        reason = f"{'; '.join(f'{each.name}: {each.text}' for each in lacking)}. `accept: [{names}]` in the playbook allows it"
        return ExcludedNode(node.name, node.rack, Standing.REFUSED, NEEDS, reason)

    def for_its_containers(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> ExcludedNode | None:
        """Refuses a node where a reload or a restart may harm running containers; ``None``: it does not, or it is accepted."""
        found = [
            each
            for each in self._harms(node, snapshot, proposal)
            if each.verdict is NeedVerdict.REFUSED and each.name not in self.policy.accepted
        ]
        if not found:
            return None
        return ExcludedNode(node.name, node.rack, Standing.REFUSED, found[0].name, mechanics.refusal(found))

    def takes_devices(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> bool:
        """Whether the change itself may take devices from containers that run on the node."""
        return any(each.takes_devices for each in self._harms(node, snapshot, proposal))

    def _harms(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> tuple[Harm, ...]:
        after = proposal.values[1] if proposal.values is not None else None
        pods = self._placed(node)
        return harms(NodeAtWork(snapshot, proposal.change, after, self.live.get(node.name), pods))

    def for_its_pods(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> ExcludedNode | PlannedDrain | None:
        """Refuses or drains a node with pods that would not survive the change; ``None``: it has no such pods."""
        lost = self._lost(node, snapshot, proposal)
        if not lost:
            return None
        if self.policy.disruption is not Disruption.DRAIN_AND_RESTART:
            reason = f"{lost_text(lost)}; drain it first, or set `disruption: drain-and-restart`"
            return ExcludedNode(node.name, node.rack, Standing.REFUSED, "pods-would-be-rejected", reason)
        return self._drain(node, snapshot, proposal)

    def _drain(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> ExcludedNode | PlannedDrain:
        """Plan a drain. Refuses the node if a drain cannot evict a pod, or if a pod that stays would not fit."""
        staying, going = by_drain(self.pods.get(node.name, ()))
        minor = versions.taken_for(snapshot.kubelet_version, self.assumed).minor
        left_over = rejected(self.live[node.name], staying, minor, proposal.before, proposal.after)
        if left_over:
            reason = f"{lost_text(left_over)}; a drain does not evict them"
            return ExcludedNode(node.name, node.rack, Standing.REFUSED, "pods-would-be-rejected", reason)
        kept = [said for pod in going if (said := kept_back(pod, self.policy.drain.evict_too))]
        if kept:
            more = f"; and {len(kept) - 1} more" if len(kept) > 1 else ""
            return ExcludedNode(
                node.name, node.rack, Standing.REFUSED, "not-drainable", f"it cannot be drained: {kept[0]}{more}"
            )
        return planned(going, minor)

    def less_room(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> LessRoom | None:
        """The room that the change takes from pods, to check later arrivals; ``None``: nothing, or not known.

        A node with devices has one, too: a pod with a device in an init container may arrive.
        """
        live = self.live.get(node.name)
        now = room_now(live) if live is not None and self.around.pods is not None else None
        if live is None or now is None or KUBELET_UNITS.isdisjoint(proposal.change.units):
            return None
        minor = versions.taken_for(snapshot.kubelet_version, self.assumed).minor
        try:
            less = less_room(live, minor, proposal.before, proposal.after)
        except ValueError:
            return None
        counted = is_less(now, less) or (minor >= CHECKS_HEALTH and device_names(live.capacity))
        return less if counted else None

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

    def of_change(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> ChangeImpact:
        """The side effects of one node's change."""
        here = self._at_stake(node, snapshot, proposal)
        said = (*consequences.of_node(here), *needs_told(self._needs(node, snapshot, proposal)))
        return ChangeImpact(here, said, managers.undone(snapshot, proposal.change))

    def pulls_anew(self, node: Node, proposal: Proposal) -> NodePulls:
        """The pulls that a changed node may request of its registry."""
        return NodePulls(node, consequences.rate_of(proposal.before), consequences.rate_of(proposal.after))

    def pulls_as_before(self, node: Node) -> NodePulls:
        """The pulls that an unchanged node may request."""
        snapshot = self.fleet.nodes.get(node.name)
        now = consequences.rate_now(snapshot, node, self.assumed) if isinstance(snapshot, Snapshot) else None
        return NodePulls(node, now, now)

    def _at_stake(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> NodeImpact:
        pods = self._placed(node)
        return NodeImpact(
            snapshot=snapshot,
            change=proposal.change,
            minor=versions.taken_for(snapshot.kubelet_version, self.assumed).minor,
            role=self.role(node).role,
            live=self.live.get(node.name),
            probed=None if pods is None else sum(pod.probed for pod in pods),
            running=None if pods is None else len(pods),
            sidecars=None if pods is None else sum(any(ask.init and ask.stays for ask in pod.asks) for pod in pods),
            defects=proposal.defects,
            harms=tuple(
                mechanics.accepted(each, self.policy.accepted) for each in self._harms(node, snapshot, proposal)
            ),
            with_devices=mechanics.pods_with_devices(pods or ()),
            lost=self._lost(node, snapshot, proposal),
            late=rules.late(*proposal.values) if proposal.values is not None else (),
            fails=consequences.newly_failing(proposal.before, proposal.after),
        )

    def _needs(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> tuple[Need, ...]:
        """What the change needs of this node as it is now."""
        if proposal.values is None:
            return ()
        lacking = needs(Here(snapshot, *proposal.values, self._placed(node)))
        live = self.live.get(node.name)
        over = over_reserved(live, proposal.before, proposal.after) if live is not None else ()
        by = [name for name in _RESERVING if proposal.before.get(name) != proposal.after.get(name)]
        return (*lacking, *(Need(by[0], NeedVerdict.REFUSED, f"more {name} is {_RESERVED}") for name in over))

    def _placed(self, node: Node) -> Sequence[PlacedPod] | None:
        """Its pods; ``None``: not known. The API server may have no Node of this name."""
        known = self.around.pods is not None and node.name in self.live
        return self.pods.get(node.name, ()) if known else None

    def _lost(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> tuple[Rejected, ...] | None:
        if node.name not in self._judged:
            self._judged[node.name] = self._rejected(node, snapshot, proposal)
        return self._judged[node.name]

    def _rejected(self, node: Node, snapshot: Snapshot, proposal: Proposal) -> tuple[Rejected, ...] | None:
        live = self.live.get(node.name)
        if self.around.pods is None or live is None or KUBELET_UNITS.isdisjoint(proposal.change.units):
            return None
        minor = versions.taken_for(snapshot.kubelet_version, self.assumed).minor
        return rejected(live, self.pods.get(node.name, ()), minor, proposal.before, proposal.after)

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
