"""Planning: inventory, playbook and snapshot in, a frozen plan out. Nothing is read or written here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from rollout.app.foreseen import Foresight
from rollout.core.model.draining import BY_HAND
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.plan import Left, LessRoom, Plan, PlannedDrain, Remark, Standing
from rollout.core.model.playbook import Policy
from rollout.core.model.roles import Role, role_of
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.core.model.way_back import WayBack
from rollout.core.plans import history
from rollout.core.plans.history import Around
from rollout.core.plans.planning import Decided, Preflight, plan_of, preflight
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, RolloutError
from rollout.kubelet import homes, own_values
from rollout.kubelet.changes.alike import Alike
from rollout.kubelet.changes.changes import Proposal
from rollout.kubelet.node import fitness, managers
from rollout.kubelet.node.fitness import SICK

NOTHING_KNOWN = Around()
_CONTROL_PLANE = "a node of the control plane; the playbook does not say `controlPlane: true`"
_CORDONED = "cordoned by others; the playbook does not say `cordoned: true`"


def build_plan(
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    settings: Mapping[str, Mapping[str, Setting]],
    selection: tuple[str, ...],
    limit: str,
    way_back: WayBack | None = None,
    around: Around = NOTHING_KNOWN,
    assumed: int | None = None,
    trace: Callable[[str, str], str] = lambda _node, _text: "",
) -> Plan:
    """The plan for the selected nodes (names of the inventory). Mistakes in settings are one ``InputError``.

    ``assumed``: the minor (37 is 1.37) that kubelets newer than every known one are taken for; ``None``: they are refused.
    ``trace`` keeps the trace of what went wrong inside rollout with one node, and says where.
    """
    _check_fleet(inventory, fleet)
    _check_settings(settings, selection, homes.check_accepted(policy.accepted, policy.name))
    passed_over = _passed_over(inventory, policy, selection, around)
    decided: list[Decided] = []
    left: list[Left] = []
    blobs: dict[str, bytes] = {}
    foresight = Foresight(inventory, policy, fleet, around, assumed)
    alike = Alike(policy, assumed)
    proposals: dict[str, Proposal] = {}
    for name in selection:
        node, mine = inventory.nodes[name], settings.get(name, {})
        try:
            found = passed_over.get(name) or _decide(foresight, alike, node, mine)
        except RolloutError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one node's files hold, the others are planned
            found = _failed(node, error, trace)
        if isinstance(found, Left):
            left.append(found)
            continue
        machine_id, proposal, drain, less = found
        proposals[name] = proposal
        decided.append(Decided(inventory.nodes[name], machine_id, proposal.change, proposal.label, drain, less))
        blobs |= proposal.blobs
    known = _remarks(inventory, fleet, [name for name in selection if name not in passed_over], around, assumed)
    made = plan_of(inventory, policy, fleet, limit, decided, left, blobs, known, way_back=way_back)
    return foresight.on(made, proposals)


def check_preflight(plan: Plan) -> Preflight:
    """Was the cluster already too sick to begin?"""
    return preflight(plan, SICK)


def _passed_over(
    inventory: Inventory, policy: Policy, selection: tuple[str, ...], around: Around
) -> Mapping[str, Left]:
    """Nodes to be left alone whatever their state is."""
    cordoned = {} if policy.cordoned else history.cordoned(around.live)
    found: dict[str, Left] = {}
    for name in selection:
        node = inventory.nodes[name]
        if role_of(node.labels) is Role.CONTROL_PLANE and not policy.control_plane:
            found[name] = Left(name, node.rack, Standing.SKIPPED, "control-plane", _CONTROL_PLANE)
        elif name in cordoned:
            found[name] = Left(name, node.rack, Standing.SKIPPED, "cordoned", _cordoned(cordoned[name]))
    return found


def _cordoned(run: str) -> str:
    if not run:
        return _CORDONED
    how = f"`rollout resume` of that run does, or once that is over `{BY_HAND}`"
    return f"run {printable(run, 60)} has cordoned it and not lifted that: {how}"


def _remarks(
    inventory: Inventory, fleet: FleetSnapshot, selection: Sequence[str], around: Around, assumed: int | None
) -> tuple[Remark, ...]:
    read = [(name, snapshot) for name in selection if isinstance(snapshot := fleet.nodes.get(name), Snapshot)]
    said = [(name, each) for name, snapshot in read for each in managers.remarks(snapshot)]
    taken = [(name, each) for name, snapshot in read for each in fitness.remarks(snapshot, assumed)]
    return (*history.remarks(inventory, selection, fleet, around), *history.folded([*taken, *said]))


def _decide(
    foresight: Foresight, alike: Alike, node: Node, settings: Mapping[str, Setting]
) -> tuple[str, Proposal, PlannedDrain | None, LessRoom | None] | Left:
    snapshot = foresight.fleet.nodes.get(node.name)
    if snapshot is None:
        return Left(
            node.name, node.rack, Standing.UNREACHABLE, "not-in-snapshot", "the snapshot does not hold this node"
        )
    if isinstance(snapshot, Unread):
        return Left(node.name, node.rack, Standing.UNREACHABLE, snapshot.reference, snapshot.message)
    found = alike.change_for(snapshot, settings, node)
    if isinstance(found, Left):
        return found
    drain = foresight.for_its_pods(node, snapshot, found)
    if isinstance(drain, Left):
        return drain
    return snapshot.machine_id, found, drain, foresight.less_room(node, snapshot, found)


def _failed(node: Node, error: Exception, trace: Callable[[str, str], str]) -> Left:
    """Where it failed is told, but not the error's own words: they may hold what a file of the node holds."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {PurePath(frame.filename).name}:{frame.lineno}"
    kept = trace(node.name, "".join(traceback.format_exception(error)))
    reason = f"rollout itself failed on what this node's files hold ({place}); please report it{kept and f'. {kept}'}"
    return Left(node.name, node.rack, Standing.REFUSED, "planning-failed", reason)


def _check_fleet(inventory: Inventory, fleet: FleetSnapshot) -> None:
    if fleet.cluster != inventory.cluster:
        message = f"the snapshot is of cluster {fleet.cluster!r}, the inventory of {inventory.cluster!r}"
        raise InputError((Problem("snapshot-of-another-cluster", message),))
    if fleet.inventory_digest != inventory.digest:
        hint = "read the nodes again"
        raise InputError(
            (Problem("snapshot-of-another-inventory", "the snapshot was taken with another inventory", hint=hint),)
        )


def _check_settings(
    settings: Mapping[str, Mapping[str, Setting]], selection: tuple[str, ...], others: tuple[Problem, ...]
) -> None:
    """Each distinct set of settings is checked once; the same mistake on many nodes is one mistake."""
    seen: set[str] = set()
    problems = dict.fromkeys(others)
    for name in selection:
        mine = settings.get(name, {})
        key = repr(mine)
        if key not in seen:
            seen.add(key)
            problems |= dict.fromkeys(homes.check(mine))
    problems |= dict.fromkeys(own_values.shared(settings, selection))
    if problems:
        raise InputError(tuple(problems))
