"""What is known of nodes from other sources: from earlier plans of the cluster, and from the API server.

Everything here becomes a ``Remark`` of the plan or a reason to leave a node alone. Nothing here alters a node's change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan, Remark
from rollout.core.model.pods import PlacedPod
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """The nodes of ``plans`` earlier plans of the cluster, and the machine-id of those that were to be changed."""

    plans: int
    names: frozenset[str]
    machine_ids: Mapping[str, str]


NO_KUBECONFIG = "no kubeconfig is named"


@dataclass(frozen=True, slots=True)
class Around:
    """``seen`` is ``None`` if there is no earlier plan, ``live`` if the API server was not or could not be asked.

    ``not_asked`` is why it could not be asked; ``""``: it was, or the inventory names no kubeconfig. ``pods`` are the pods on
    the selected nodes, ``None`` if they were not or could not be listed; ``pods_not_asked`` is why not.
    """

    seen: KnownNodes | None = None
    live: tuple[LiveNode, ...] | None = None
    not_asked: str = ""
    pods: tuple[PlacedPod, ...] | None = None
    pods_not_asked: str = NO_KUBECONFIG


def seen_in(plans: Sequence[Plan]) -> KnownNodes | None:
    """``plans`` are newest first: the newest machine-id of a node counts."""
    if not plans:
        return None
    machine_ids: dict[str, str] = {}
    for plan in plans:
        for name, node in plan.nodes.items():
            machine_ids.setdefault(name, node.machine_id)
    left = (entry.name for plan in plans for entry in plan.left)
    return KnownNodes(len(plans), frozenset((*machine_ids, *left)), machine_ids)


def cordoned(live: Iterable[LiveNode] | None) -> Mapping[str, str]:
    """The nodes that are unschedulable in the API, with the run that cordoned them (``""``: no run of rollout)."""
    return {node.name: node.cordoned_by for node in live or () if node.unschedulable}


def another_machine(name: str, snapshot: Snapshot, live: Mapping[str, LiveNode]) -> str:
    """Why this snapshot is not of the Node of this name, or ``""``: as far as is known, it is.

    Drains and gates act on the Node, everything else on the machine that its address leads to.
    """
    here, there = snapshot.machine_id, live[name].machine_id if name in live else ""
    if not here or not there or here == there:
        return ""
    owner = next((each.name for each in live.values() if each.machine_id == here), "")
    whose = f", which is that of Node {printable(owner, 60)}" if owner else ""
    return (
        f"its address leads to the machine {here}{whose}; the kubelet of Node {name} registered {printable(there, 60)}"
    )


def one_machine(selection: Sequence[str], fleet: FleetSnapshot) -> Mapping[str, str]:
    """Node → why it is refused: another name leads to its machine, which has one machine-id and one boot.

    The first name's change would be drift for the second, and each would be counted in its own rack.
    """
    found: dict[str, str] = {}
    for shared in _sharing(selection, fleet, _machine_and_boot):
        names = printable(fold(shared), 120)
        found |= dict.fromkeys(
            shared, f"{names} are names of one machine: their machine-id and their boot are the same"
        )
    return found


def _machine_and_boot(snapshot: Snapshot) -> str:
    return f"{snapshot.machine_id} {snapshot.boot_id}" if snapshot.machine_id and snapshot.boot_id else ""


def remarks(inventory: Inventory, selection: Sequence[str], fleet: FleetSnapshot, around: Around) -> tuple[Remark, ...]:
    """Warnings to read before these nodes are changed."""
    return (
        *_of_one_image(selection, fleet),
        *(_from_plans(selection, fleet, around.seen) if around.seen else ()),
        *(_from_api(inventory, selection, around.live) if around.live is not None else ()),
        *_not_asked(around),
    )


def folded(said: Iterable[tuple[str, tuple[str, str]]]) -> tuple[Remark, ...]:
    """Remarks on single nodes, (node, (reference, text)), as one remark for each text."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for name, remark in said:
        nodes.setdefault(remark, []).append(name)
    return tuple(Remark(reference, text, tuple(names)) for (reference, text), names in nodes.items())


def _of_one_image(selection: Sequence[str], fleet: FleetSnapshot) -> Iterator[Remark]:
    for shared in _sharing(selection, fleet, lambda snapshot: snapshot.machine_id):
        text = "these nodes have one machine-id: they were made from one image, or are names of one machine"
        yield Remark("same-machine-id", text, shared)


def _sharing(
    selection: Sequence[str], fleet: FleetSnapshot, identity: Callable[[Snapshot], str]
) -> Iterator[tuple[str, ...]]:
    """The names with one identity, of each identity that several have. ``""`` is none."""
    names: dict[str, list[str]] = {}
    for name in selection:
        snapshot = fleet.nodes.get(name)
        if isinstance(snapshot, Snapshot) and (found := identity(snapshot)):
            names.setdefault(found, []).append(name)
    return (tuple(shared) for shared in names.values() if len(shared) > 1)


def _from_plans(selection: Sequence[str], fleet: FleetSnapshot, seen: KnownNodes) -> Iterator[Remark]:
    new = tuple(name for name in selection if name not in seen.names)
    if new:
        what = "last run" if seen.plans == 1 else f"last {seen.plans} runs"
        yield Remark("new-node", f"new: in no plan of this cluster's {what}", new)
    replaced = tuple(name for name in selection if _replaced(fleet, name, seen.machine_ids.get(name, "")))
    if replaced:
        text = (
            "replaced: its machine-id differs from the last plan that changed it; no earlier run can be reverted there"
        )
        yield Remark("replaced-node", text, replaced)


def _replaced(fleet: FleetSnapshot, name: str, known: str) -> bool:
    snapshot = fleet.nodes.get(name)
    now = snapshot.machine_id if isinstance(snapshot, Snapshot) else ""
    return bool(now and known) and now != known


def _from_api(inventory: Inventory, selection: Sequence[str], live: Sequence[LiveNode]) -> Iterator[Remark]:
    there = frozenset(node.name for node in live)
    if there and inventory.nodes.keys().isdisjoint(there):
        text = f"the API server has none of the inventory's nodes, but {len(there)} others: another cluster, or other names"
        yield Remark("not-in-api", text, tuple(selection))
        return
    missing = tuple(name for name in selection if name not in there)
    if missing:
        yield Remark("not-in-api", "the API server has no Node of this name", missing)
    unknown = tuple(node.name for node in live if node.name not in inventory.nodes)
    if unknown:
        yield Remark(
            "not-in-inventory",
            "the API server has these nodes but the inventory does not: no run changes them",
            unknown,
        )


def _not_asked(around: Around) -> Iterator[Remark]:
    if around.not_asked:
        yield Remark("api-not-asked", f"cordoned nodes are not known: {around.not_asked}", ())
