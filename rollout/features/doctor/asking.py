"""``rollout doctor``: can this machine log in to the nodes, and could they be changed? Nodes are only read.

Each node is asked twice: a line for its login shell, then the planner's reading. Then the round trips to some nodes of each zone
are measured. An error of the way in is the result
of the check that it belongs to; the checks before it passed, and those after it were not reached.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from rollout.app.isolation import Keep, attempt, keep_nothing, run_snapshot
from rollout.app.node_access import NodeAccess, only
from rollout.app.node_worker import READ_SECONDS, UNIT
from rollout.app.ports import Clock, Cluster, Nodes, Target
from rollout.app.reading import each
from rollout.core.model.freeze import FROZEN, of_fact, told
from rollout.core.model.inventory import Inventory, Node, Role, role_of
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.model.verdict import Verdict
from rollout.core.model.ways_in import Become, DoctorCheck, Probe, Way
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError, RolloutError
from rollout.features.doctor.rules.round_trips import to_measure
from rollout.features.doctor.words import NOT_REACHED, NOT_SET, DoctorResult
from rollout.kubelet import versions
from rollout.kubelet.agent import agent_call
from rollout.kubelet.kinds import NodeKind, kinds
from rollout.kubelet.node import fitness, sources
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import known
from rollout.kubelet.runtimes.description import Runtime

EACH_KIND = 3
"""Nodes that are read of each kind."""
LOGIN_SECONDS = 20.0
BACK_END_SECONDS = 10.0
TRIP_SECONDS = 5.0
TRIPS = 3
"""Questions to a node for its round trip: the least counts, because a busy machine can only add to it."""
TRIPS_TOGETHER = 8
"""Nodes that are measured at once: few, so that this machine's own work does not count."""
MOST_OFF = 5.0
"""Seconds that a node's clock may differ: whole seconds are read, and certificates and leases bear more."""

_MARK = "rollout-doctor"
_LINE = f"sh -c 'echo {_MARK} $(date +%s)'"
_ORDER = tuple(DoctorCheck)
_OF_NODES = _ORDER[: _ORDER.index(DoctorCheck.API)]
_TROUBLES = (
    (re.compile(r"name-not-known"), DoctorCheck.NAME),
    (re.compile(r"connect-timeout|connection-refused|host-unreachable|no-banner"), DoctorCheck.CONNECTION),
    (re.compile(r"(bastion-)?(host-(key|cert).*|handshake-.*)"), DoctorCheck.HOST_KEY),
    (re.compile(r"auth-.*"), DoctorCheck.LOGIN),
    (re.compile(r"no-channel"), DoctorCheck.SHELL),
)
"""The check that failed, and that those before it passed. Any other trouble shows no more than that there is no connection."""
_ROOT = re.compile(r"no-(sudo|doas)|(sudo|doas)-.*")
"""The user does not become root. Any other error of the reading does not show whether it does."""
_DISK = frozenset({"no-room", "state-not-persistent"})
_SYSTEMD = frozenset({"systemd-too-old", "systemd-not-answering"})


class Ways(Protocol):
    """How nodes are reached, by ssh_config. ``RemoteError``: it asks for something that is not supported."""

    def way(self, target: Target) -> Way: ...


class NodesWithWays(Nodes, Ways, Protocol):
    """Nodes that also tell the way that they took, with the accepted key, and how far they are."""

    def round_trip(self, target: Target, times: int, seconds: float) -> float:
        """The least time, of so many, between a question and its answer over the node's connection. Raises ``RemoteError``."""


# Which nodes: some of each kind, in as many racks as possible.

KindKey = tuple[Role, tuple[NodeKind, ...], str | None, int | None, bool | None, Become]


def sample(inventory: Inventory, selection: Sequence[str], of_each: int = EACH_KIND) -> tuple[str, ...]:
    """Up to ``of_each`` nodes of each kind, in inventory order. Nodes with another user, port, sudo or doas are another kind."""
    possible = kinds(inventory.api_server, inventory.nodes.values())
    together: dict[KindKey, list[Node]] = {}
    for node in (inventory.nodes[name] for name in selection):
        key = (role_of(node.labels), tuple(sorted(possible.of(node))), node.user, node.port, node.sudo, node.become)
        together.setdefault(key, []).append(node)
    racks: Counter[str] = Counter()
    chosen: set[str] = set()
    for nodes in together.values():
        left = list(nodes)
        while left and len(nodes) - len(left) < of_each:
            best = min(left, key=lambda node: racks[node.rack])
            left.remove(best)
            racks[best.rack] += 1
            chosen.add(best.name)
    return tuple(name for name in selection if name in chosen)


# One node.


@dataclass(frozen=True, slots=True)
class Visit:
    """What all nodes of one call are examined with. ``guard``: seconds of the playbook's guard."""

    access: NodeAccess
    nodes: NodesWithWays
    clock: Clock
    guard: float
    keep: Keep = keep_nothing


@dataclass(frozen=True, slots=True)
class NodesRead:
    """Of all nodes of a visit: their checks, the ways to them, and the seconds of a round trip to those that were measured."""

    results: tuple[DoctorResult, ...]
    ways: Mapping[str, Way]
    trips: Mapping[str, float]


def examine_nodes(visit: Visit) -> NodesRead:
    """The checks of every node of ``visit.access``, in parallel and bounded in time; then the round trips to some of each zone."""
    ways: dict[str, Way] = {}

    def one(target: Target) -> tuple[DoctorResult, ...]:
        results = tuple(_all_checks(target.name, _examine(visit, target)))
        try:
            ways[target.name] = visit.nodes.way(target)
        except RemoteError:
            ways[target.name] = Way(target.address, target.address, target.port or 22, target.user or "USER")
        return results

    found = each(visit.access, visit.nodes, one, keep=True)
    trips = _round_trips(visit, [name for name, results in found.items() if _answered(results)])
    for target in visit.access.targets.values():
        visit.nodes.release(target)
    return NodesRead(tuple(result for results in found.values() for result in results), ways, trips)


def _answered(results: Iterable[DoctorResult]) -> bool:
    return any(result.check is DoctorCheck.SHELL and result.verdict is Verdict.PASS for result in results)


def _round_trips(visit: Visit, names: Iterable[str]) -> Mapping[str, float]:
    """When all nodes were examined: the work for the others would count. Without nodes that did not answer."""

    def measured(target: Target) -> float | None:
        try:
            return visit.nodes.round_trip(target, TRIPS, TRIP_SECONDS)
        except RemoteError:
            return None

    zones = {name: visit.access.targets[name].zone for name in names}
    found = each(only(visit.access, to_measure(zones)), visit.nodes, measured, TRIPS_TOGETHER)
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def _all_checks(node: str, found: Iterator[DoctorResult]) -> Iterator[DoctorResult]:
    """Without an answer to a check, it was not reached."""
    told: dict[DoctorCheck, list[DoctorResult]] = {}
    for result in found:
        told.setdefault(result.check, []).append(result)
    for check in _OF_NODES:
        yield from told.get(check, [DoctorResult(node, check, Verdict.UNKNOWN, reference=NOT_REACHED)])


def _examine(visit: Visit, target: Target) -> Iterator[DoctorResult]:
    try:
        visit.nodes.way(target)
    except RemoteError as error:
        yield DoctorResult(target.name, DoctorCheck.ROUTE, Verdict.FAIL, error.message, error.reference)
        return
    before = _seconds(visit.clock)
    answer = visit.nodes.run(target, RemoteCommand(_LINE, b"", LOGIN_SECONDS))
    after = _seconds(visit.clock)
    way = visit.nodes.way(target)
    at = None if not answer.started else _told_time(answer)
    if at is None:
        yield from _stopped(target.name, way, answer)
        return
    yield from _passed_until(target.name, way, DoctorCheck.SUDO)
    yield _clock(target.name, max(before - at, at - after, 0.0))
    yield from _read(visit, target, way)


def _read(visit: Visit, target: Target, way: Way) -> Iterator[DoctorResult]:
    sudo = visit.access.sudo[target.name]
    command = agent_call.snapshot(visit.access.program, unit=UNIT, sudo=sudo, deadline=READ_SECONDS)
    read = run_snapshot(visit.nodes, target, command, visit.keep)
    if isinstance(read, Unread):
        verdict = Verdict.FAIL if _ROOT.fullmatch(read.reference) else Verdict.UNKNOWN
        yield DoctorResult(target.name, DoctorCheck.SUDO, verdict, read.message, read.reference)
        return
    by = "" if target.become is Become.SUDO else f" through {target.become}"
    how = f"user {way.user} becomes root{by}" if sudo else f"not needed: user {way.user}"
    yield DoctorResult(target.name, DoctorCheck.SUDO, Verdict.PASS, how)

    def failed(why: str) -> tuple[DoctorResult, ...]:
        return (DoctorResult(target.name, DoctorCheck.KUBELET, Verdict.UNKNOWN, why, "reading-failed"),)

    yield from attempt(target.name, lambda: tuple(of_snapshot(read, visit.guard)), failed, visit.keep)


def _seconds(clock: Clock) -> float:
    return datetime.fromisoformat(clock.wall()).timestamp()


def _told_time(answer: RemoteAnswer) -> float | None:
    """The node's time. ``None``: its login shell ran no command line."""
    match = re.search(rf"{_MARK} (\d{{1,12}})\b".encode(), answer.stdout)
    return float(match[1]) if match else None


def _clock(node: str, off: float) -> DoctorResult:
    if off <= MOST_OFF:
        return DoctorResult(node, DoctorCheck.CLOCK, Verdict.PASS, f"at most {MOST_OFF:g} s off")
    why = f"its clock differs from this machine's by more than {MOST_OFF:g} s, so times of its logs are wrong"
    return DoctorResult(node, DoctorCheck.CLOCK, Verdict.FAIL, why, "clock-offset")


def _stopped(node: str, way: Way, answer: RemoteAnswer) -> Iterator[DoctorResult]:
    """The login ended at one check. Those before it passed, unless the trouble does not show it."""
    verdict, reached = Verdict.FAIL, True
    if answer.started and (answer.status is None or answer.reference):
        why = answer.message or f"its login shell did not answer in {LOGIN_SECONDS:g} s"
        check, verdict, reference = DoctorCheck.SHELL, Verdict.UNKNOWN, answer.reference or "deadline"
    elif answer.started:
        said = answer.message or printable(answer.stdout[:120].decode("ascii", "replace")) or "nothing"
        check, why, reference = DoctorCheck.SHELL, f"its login shell runs no commands; it answered: {said}", "no-shell"
    else:
        shown = next((check for known_as, check in _TROUBLES if known_as.fullmatch(answer.reference)), None)
        check, reached = shown or DoctorCheck.CONNECTION, shown is not None
        why, reference = answer.message, answer.reference or "unreachable"
    yield from _passed_until(node, way, check if reached else DoctorCheck.NAME)
    yield DoctorResult(node, check, verdict, printable(why, 500), reference)


def _passed_until(node: str, way: Way, end: DoctorCheck) -> Iterator[DoctorResult]:
    via = f" through {way.via}" if way.via else ""
    details = {
        DoctorCheck.CONNECTION: f"port {way.port}{via}",
        DoctorCheck.LOGIN: f"user {way.user}, key {way.key or 'not known'}",
    }
    for check in _ORDER[: _ORDER.index(end)]:
        yield DoctorResult(node, check, Verdict.PASS, details.get(check, ""))


def of_snapshot(read: Snapshot, guard: float) -> Iterator[DoctorResult]:
    """What the planner would refuse this node for, each with the check that it belongs to."""
    node, refused = read.node, tuple(fitness.refusals(read, guard))
    frozen = of_fact(read.facts)
    refused += ((FROZEN, told(frozen)),) if frozen else ()
    for reference, why in refused:
        yield DoctorResult(node, _part(reference), Verdict.FAIL, why, reference)
    parts = {_part(reference) for reference, _ in refused}
    if DoctorCheck.DISK not in parts:
        yield DoctorResult(
            node, DoctorCheck.DISK, Verdict.PASS, f"/var/lib/rollout on {read.facts.get('state-dir-fs', '?')}"
        )
    if DoctorCheck.SYSTEMD not in parts:
        yield DoctorResult(node, DoctorCheck.SYSTEMD, Verdict.PASS, read.facts.get("systemd", "").partition(" (")[0])
    if DoctorCheck.KUBELET not in parts:
        yield DoctorResult(node, DoctorCheck.KUBELET, Verdict.PASS, read.kubelet_version)
    yield _runtime(read)


def _part(reference: str) -> DoctorCheck:
    if reference in _DISK:
        return DoctorCheck.DISK
    return DoctorCheck.SYSTEMD if reference in _SYSTEMD else DoctorCheck.KUBELET


def _runtime(read: Snapshot) -> DoctorResult:
    version = versions.parse(read.kubelet_version)
    if version is None:
        return DoctorResult(read.node, DoctorCheck.RUNTIME, Verdict.UNKNOWN, reference=NOT_REACHED)
    try:
        runtime = known.runtime_of(sources.find(read, version, Node(read.node, "", "", "")))
    except LayoutError as error:
        return DoctorResult(
            read.node, DoctorCheck.RUNTIME, Verdict.UNKNOWN, printable(str(error), 300), error.reference
        )
    if runtime is Runtime.UNKNOWN:
        why = "rollout does not know the runtime at the kubelet's endpoint"
        return DoctorResult(read.node, DoctorCheck.RUNTIME, Verdict.FAIL, why, "runtime-unknown")
    about = known.describe(runtime)
    found = about.version(read.runtimes)
    if found is None:
        why = f"the kubelet uses {runtime}, and no program {about.program} on the node reports its version"
        return DoctorResult(read.node, DoctorCheck.RUNTIME, Verdict.FAIL, why, "no-runtime")
    return DoctorResult(read.node, DoctorCheck.RUNTIME, Verdict.PASS, f"{runtime} {known.dotted(found.number)}")


# The back ends that the inventory names.


def examine_back_ends(
    kubeconfig: str, cluster: Callable[[], Cluster], probes: Iterable[Probe]
) -> Iterator[DoctorResult]:
    """Each in a bounded time. ``cluster`` reads the kubeconfig."""
    yield _back_end(DoctorCheck.API, kubeconfig, lambda: _rights(cluster(), kubeconfig))
    for probe in probes:
        yield _back_end(probe.check, probe.url, partial(probe.ask, BACK_END_SECONDS))


def _rights(cluster: Cluster, kubeconfig: str) -> str:
    missing = cluster.missing_rights()
    if missing:
        raise RemoteError("kubeconfig-rights", f"{kubeconfig} lacks the right to {', '.join(missing)}")
    return f"{kubeconfig} has the rights that gates need"


def _back_end(check: DoctorCheck, named: str, ask: Callable[[], str]) -> DoctorResult:
    if not named:
        return DoctorResult("", check, Verdict.UNKNOWN, reference=NOT_SET)
    try:
        return DoctorResult("", check, Verdict.PASS, printable(ask(), 300))
    except RolloutError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return DoctorResult("", check, Verdict.FAIL, printable(f"{named}: {error.message}{hint}", 500), error.reference)
