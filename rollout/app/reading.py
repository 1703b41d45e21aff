"""Reads many nodes in parallel: one round trip each, bounded. A node that hangs does not delay others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from rollout.app.call import CallPorts
from rollout.app.isolation import Keep, keep_nothing, run_snapshot, run_verb
from rollout.app.node_access import NodeAccess
from rollout.app.node_worker import READ_SECONDS, UNIT
from rollout.app.ports import Clock, Nodes, Target
from rollout.core.model.inventory import Inventory, reached_at
from rollout.core.model.report import Outcome, RemoteCommand, Report
from rollout.core.model.snapshot import FileState, FleetSnapshot, Snapshot, Unread
from rollout.core.text.nodesets import limited
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Measure

WIDTH = 96
"""Nodes read in parallel. The SSH adapter limits handshakes separately."""

SAMPLE_SECONDS = 10.0
"""Deadline of readings that only improve an estimate."""

T = TypeVar("T")


def access_within(call: CallPorts, cluster: str, limit: str) -> NodeAccess:
    """To the nodes of ``limit`` (``""``: all) of a cluster, also while the source of its nodes does not answer."""
    inventory = call.inventory_or_remembered(cluster)
    return call.access(inventory, limited(limit, inventory))


def snapshot_fleet(
    inventory: Inventory,
    access: NodeAccess,
    nodes: Nodes,
    clock: Clock,
    keep: Keep = keep_nothing,
    *,
    goes_on: bool = False,
    named: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> FleetSnapshot:
    """Every node of ``access`` as it is now.

    Changes nothing. ``keep`` stores the trace of an answer that rollout fails on. ``goes_on``: the connections are kept.
    ``named``: node → more files to look at there, because a setting names them. Their content is not read.
    """
    taken = clock.wall()
    found = each(access, nodes, snapshot_reader(access, nodes, keep, named), keep=goes_on)
    return fleet_as_read(inventory, access, taken, found)


def snapshot_reader(
    access: NodeAccess, nodes: Nodes, keep: Keep, named: Mapping[str, tuple[str, ...]]
) -> Callable[[Target], Snapshot | Unread]:
    """Reads one node, as ``snapshot_fleet`` reads all."""

    def read(target: Target) -> Snapshot | Unread:
        sudo = access.sudo[target.name]
        command = agent_call.snapshot(access.program, unit=UNIT, sudo=sudo, deadline=READ_SECONDS)
        found, paths = run_snapshot(nodes, target, command, keep), named.get(target.name, ())
        if isinstance(found, Unread) or not paths:
            return found
        command = agent_call.status(
            access.program, measure=Measure(UNIT, paths=paths), sudo=sudo, deadline=READ_SECONDS
        )
        measured = run_verb(nodes, target, "status", command, keep).measurement
        seen = measured.files if measured else {}
        kinds = {path: FileState(path, seen[path].kind) for path in paths if path in seen}
        return replace(found, files={**kinds, **found.files})

    return read


def fleet_as_read(
    inventory: Inventory, access: NodeAccess, taken: str, found: Mapping[str, Snapshot | Unread]
) -> FleetSnapshot:
    """``taken``: when the reading began."""
    targets = (access.targets[name] for name in found)
    addresses = {target.name: reached_at(target.user, target.address, target.port) for target in targets}
    return FleetSnapshot(inventory.cluster, inventory.digest, taken, found, addresses=addresses)


def read_receipts(
    access: NodeAccess,
    nodes: Nodes,
    width: int = WIDTH,
    heard: Callable[[str], None] = lambda _: None,
    keep: Keep = keep_nothing,
    *,
    strays: bool = False,
    roles: bool = False,
) -> Mapping[str, Report]:
    """The transactions and the token that every node reports. Claims and changes nothing; the connections are kept.

    ``heard`` is called with each node as it answers; ``keep`` as in ``snapshot_fleet``. ``strays``: also what a cleanup would remove; ``roles``: what shows a node of the control plane.
    """

    def read(target: Target) -> Report:
        command: RemoteCommand = agent_call.status(
            access.program, strays=strays, roles=roles, sudo=access.sudo[target.name], deadline=READ_SECONDS
        )
        report = run_verb(nodes, target, "status", command, keep)
        if report.outcome is Outcome.DONE:
            heard(target.name)
        return report

    return each(access, nodes, read, width, keep=True)


def restart_pauses(access: NodeAccess, nodes: Nodes) -> tuple[str, ...]:
    """RestartSec of the kubelet's unit, as systemd on these nodes reports it, without nodes that do not answer."""

    def read(target: Target) -> str:
        sudo = access.sudo[target.name]
        command = agent_call.status(access.program, measure=Measure(UNIT), sudo=sudo, deadline=SAMPLE_SECONDS)
        measured = run_verb(nodes, target, "status", command, keep_nothing).measurement
        return measured.unit.properties.get("RestartUSec", "") if measured and measured.unit else ""

    return tuple(said for said in each(access, nodes, read, keep=True).values() if said)


def each(
    access: NodeAccess, nodes: Nodes, read: Callable[[Target], T], width: int = WIDTH, *, keep: bool = False
) -> dict[str, T]:
    """``read`` of every node of ``access``, by name. ``keep``: more will be requested from these nodes soon."""

    def one(target: Target) -> T:
        try:
            return read(target)
        finally:
            if not keep:
                nodes.release(target)

    pool = ThreadPoolExecutor(width, thread_name_prefix="read")
    try:
        return dict(zip(access.targets, pool.map(one, access.targets.values()), strict=True))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after a Ctrl-C, do not wait for nodes that hang
