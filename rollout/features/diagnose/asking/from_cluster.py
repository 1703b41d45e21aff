"""A diagnosis of a cluster as it is now: the journals of its nodes, and the pods and events of its API server.

Every reading is bounded, and changes nothing. What cannot be read is named with its reason and what to fetch instead; the
rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

from rollout.app.isolation import Keep, attempt
from rollout.app.node_access import NodeAccess
from rollout.app.operator_commands import OperatorCommand
from rollout.app.ports import Nodes, Target
from rollout.app.reading import each
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError
from rollout.features.diagnose.asking.prepulls import way_of
from rollout.features.diagnose.rules.diagnosis import Diagnosis, NotRead, diagnosed
from rollout.features.diagnose.rules.event_lists import event_facts
from rollout.features.diagnose.rules.facts import API_CLOCK, MOST_FACTS, Fact, Facts, Kind, SourceLine
from rollout.features.diagnose.rules.finding import ProposalTarget, merged, time_text
from rollout.features.diagnose.rules.hanging_pulls import least_text, tagged
from rollout.features.diagnose.rules.node_journals import (
    MOST_OF_NODE,
    NodeJournal,
    journal_command,
    journal_of,
    log_command,
    summed,
    unread_journal,
    with_log,
)
from rollout.features.diagnose.rules.node_status import node_facts
from rollout.features.diagnose.rules.not_in_force import not_in_force
from rollout.features.diagnose.rules.pod_status import pod_facts
from rollout.features.diagnose.rules.reading import FileReading
from rollout.kubelet.defects.matching import KUBELET
from rollout.kubelet.intents import DEADLINE_FLAG
from rollout.kubelet.node import arguments
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.known import KNOWN, describe

WIDTH = 24
"""Journals that are read at once. Each is up to 4 MiB in memory until its lines are facts."""
JOURNAL_SECONDS = 90.0
UNNAMED = "(unnamed)"
"""The agent's word for a pull that it sees by the runtime's files only."""
PROGRESS_GAP = 15.0
"""Seconds between two progress lines of one pull: runtimes that print some print one every 10 s."""
_LOGGING = " or ".join(known.runtime for known in KNOWN if known.daemon and known.daemon.logs_requests)
"""The runtimes that log each pull."""
FEW_NODES = 20
"""Up to this many nodes, their pods are listed one node at a time."""

Documents = Iterator[Mapping[str, Any]]


class ClusterState(Protocol):
    """Nodes, pods and events of an API server as it has them, page by page. ``RemoteError`` where a page is refused."""

    def events(self, pod: str) -> Documents: ...

    def pod_documents(self, node: str, pod: str) -> Documents: ...

    def node_documents(self, nodes: Collection[str]) -> Documents: ...


@dataclass(frozen=True, slots=True)
class FromApi:
    """What an API server shows. ``asked`` is false if no kubeconfig is set."""

    facts: tuple[Fact, ...] = ()
    readings: tuple[FileReading, ...] = ()
    not_read: tuple[NotRead, ...] = ()

    def nodes_of(self, pod: str) -> frozenset[str]:
        return frozenset(fact.node for fact in self.facts if fact["pod"] == pod and fact.node)


@dataclass(frozen=True, slots=True)
class Symptoms:
    """All that was read of a cluster. ``fleet``: its nodes as a plan reads them; ``now``: seconds since 1970."""

    fleet: FleetSnapshot
    journals: tuple[NodeJournal, ...]
    api: FromApi
    now: float
    not_read: tuple[NotRead, ...] = field(default=())

    @property
    def nothing(self) -> bool:
        """Nothing could be read at all."""
        answered = any(isinstance(node, Snapshot) for node in self.fleet.nodes.values())
        return not answered and all(journal.why for journal in self.journals) and not self.api.readings


def read_journals(
    access: NodeAccess,
    nodes: Nodes,
    seconds: float,
    keep: Keep,
    until: float = 0.0,
    logs: Mapping[str, Sequence[str]] | None = None,
) -> tuple[NodeJournal, ...]:
    """The journal of every node of ``access``, as facts: from ``seconds`` ago until ``until`` seconds ago.

    ``logs``: the log files that a node has beside its journal.
    """
    command = OperatorCommand(journal_command(seconds, until), JOURNAL_SECONDS, sudo=True)

    def log_file(path: str) -> OperatorCommand:
        return OperatorCommand(log_command(path), JOURNAL_SECONDS, sudo=True)

    def read(target: Target) -> NodeJournal:
        answer = nodes.run(target, command.on(through_sudo=access.sudo[target.name]))
        if answer.status is None:
            return unread_journal(target.name, f"{answer.message} [{answer.reference}]")
        error = answer.stderr.decode("utf-8", "replace")
        files = (logs or {}).get(target.name, ())
        printed = [
            (path, nodes.run(target, log_file(path).on(through_sudo=access.sudo[target.name]))) for path in files
        ]

        def made() -> NodeJournal:
            now = datetime.now(UTC)
            journal, ended = journal_of(target.name, answer.stdout, error, now), now.timestamp()
            for path, told in () if journal.why else printed:
                journal = with_log(journal, path, told.stdout, now, ended - seconds, ended - until)
            return journal

        return attempt(target.name, made, lambda why: unread_journal(target.name, why), keep)

    return tuple(each(access, nodes, read, WIDTH).values())


# The API server.


def read_api(state: ClusterState | None, nodes: Collection[str], pod: str) -> FromApi:
    """These nodes, pods on them and events about them; with ``pod`` only its own, and its node. ``None``: no kubeconfig is set."""
    if state is None:
        return FromApi(not_read=(_not_set(),))
    alone = [(node, "") for node in nodes] if len(nodes) <= FEW_NODES else [("", "")]
    pods = chain.from_iterable(state.pod_documents(*which) for which in ([("", pod)] if pod else alone))
    readings = [FileReading(f"{unit}s of the API server", unit=unit) for unit in ("pod", "event", "node")]
    facts: list[Fact] = []
    missing = [
        *_taken(pods, pod_facts, readings[0], facts, f"kubectl get pods {_where(pod)} -o json; it shows which pods wait"),
        *_taken(state.events(pod), event_facts, readings[1], facts, f"kubectl get events {_where(pod)} -o json, and --events FILE"),
    ]  # fmt: skip
    asked = sorted({fact.node for fact in facts if fact["pod"] == pod and fact.node}) if pod else sorted(nodes)
    missing += _taken(
        state.node_documents(asked), node_facts, readings[2], facts, "kubectl get nodes -o json, and --events FILE"
    )
    here, refused = frozenset(nodes), {each.what for each in missing}
    return FromApi(
        tuple(fact for fact in facts if pod or not fact.node or fact.node in here),
        tuple(reading for reading in readings if reading.file not in refused),
        tuple(missing),
    )


def _where(pod: str) -> str:
    return f"-n {pod.partition('/')[0]}" if pod else "-A"


def _taken(
    documents: Documents, made: Callable[[Mapping[str, Any], str, int], Iterator[Fact]], reading: FileReading, facts: list[Fact], fetch: str
) -> Iterator[NotRead]:  # fmt: skip
    """Adds the facts of each document to ``facts``. A refused page ends the list; what was read of it counts."""
    try:
        for number, document in enumerate(documents, 1):
            if isinstance(document, dict):
                reading.read += 1
                facts += made(document, reading.file, number)
    except RemoteError as error:
        rest = f"the rest of the {reading.file}" if reading.read else reading.file
        yield NotRead(rest, (), f"{printable(error.message, 300)} [{error.reference}]", fetch)


def _not_set() -> NotRead:
    why = "the inventory has no kubeconfig, and --kubeconfig is not given"
    fetch = "kubectl get nodes,pods,events -A -o json, and --events FILE"
    return NotRead("nodes, pods and events of the API server", (), why, fetch)


# Everything together.


def diagnose_cluster(found: Symptoms, target: ProposalTarget, pod: str = "") -> Diagnosis:
    target = replace(target, now=found.now)
    journals = [journal for journal in found.journals if not journal.why]
    facts = Facts(max(MOST_FACTS, MOST_OF_NODE * len(journals)))
    shown = chain(_running_pulls(found.fleet, journals, found.now), _deadlines(found.fleet), _versions(found.fleet))
    for fact in chain(found.api.facts, *(journal.facts for journal in journals), shown):
        facts.add(fact)
    facts.left_out += sum(journal.facts.left_out for journal in journals)
    read = [node for node in found.fleet.nodes.values() if isinstance(node, Snapshot)]
    written, notes = not_in_force(read, target)
    readings = [*found.api.readings]
    if journals:
        names = fold([journal.node for journal in journals])
        readings.append(summed(f"journals of {names}", (journal.reading for journal in journals)))
    whole = diagnosed(facts, target, readings, pod)
    return replace(
        whole,
        findings=merged((*whole.findings, *written)),
        notes=(*whole.notes, *notes),
        not_read=(*_silent(found), *found.api.not_read, *found.not_read),
    )


def _running_pulls(fleet: FleetSnapshot, journals: Iterable[NodeJournal], now: float) -> Iterator[Fact]:
    """Running pulls by the agent, without those of which the node's journal has the beginning. Each with its least age.

    The agent names a pull by a line of the runtime or of the kubelet since the kubelet's start, which may be older than
    what was read of the journal here.
    """
    by_node = {journal.node: journal for journal in journals}
    for node in fleet.nodes.values():
        journal = by_node.get(node.node)
        logged = journal.facts.of(Kind.RUNTIME_STARTED, Kind.RUNTIME_ENDED) if journal else ()
        shown = {tagged(fact["image"]) for fact in logged}
        for image in (node.measurement.pulls or ()) if isinstance(node, Snapshot) else ():
            if tagged(image) in shown:
                continue
            before, why = _began_before(image, journal)
            age = f"for at least {least_text(now - before)}" if before is not None else "its age is not known"
            where = SourceLine(f"{node.node}:agent", 1, f"pull under way: {image}, {age}: {why}")
            fields = {"image": image} | ({"before": str(before)} if before is not None else {})
            yield Fact(Kind.RUNTIME_STARTED, None, node.node, API_CLOCK, where, fields)


def _began_before(image: str, journal: NodeJournal | None) -> tuple[float | None, str]:
    """A time at which this pull was under way, and what shows it. ``None``: nothing does, for the reason given."""
    if journal is None:
        return None, "the journal was not read"
    if image == UNNAMED:
        return None, "no line names it"
    if seen := _progress_since(image, journal.facts.of(Kind.PROGRESS)):
        return seen, f"its progress is in the journal from {time_text(seen)} on"
    if journal.pulls_since is not None:
        return journal.pulls_since, f"the journal from {time_text(journal.pulls_since)} on does not have its beginning"
    return None, f"the journal has no line of {_LOGGING}, and no progress of this pull"


def _progress_since(image: str, progress: Iterable[Fact]) -> float | None:
    """The begin of the last unbroken series of progress lines of this image. ``None``: it has none."""
    times = [fact.at for fact in progress if fact.at is not None and tagged(fact["image"]) == tagged(image)]
    since = None
    for at in reversed(times):
        if since is not None and since - at > PROGRESS_GAP:
            break
        since = at
    return since


def _deadlines(fleet: FleetSnapshot) -> Iterator[Fact]:
    """The progress deadline that is in force on nodes with dockershim; and which nodes have another runtime.

    A kubelet prints its flags at its start, and few journals go back to it.
    """
    for node in fleet.nodes.values():
        try:
            runtime = way_of(node).runtime
        except LayoutError:
            continue
        flag, value = "container-runtime", "remote"
        own = next((row for row in describe(runtime).rows if row.key == DEADLINE_FLAG), None)
        if own is not None and own.in_kubelet and isinstance(node, Snapshot):
            given = arguments.last(
                node.measurement.process.command_line if node.measurement.process else (), DEADLINE_FLAG
            )
            flag, value = DEADLINE_FLAG.removeprefix("--"), given.value if given else own.default
        elif own is not None or not describe(runtime).rows:
            continue  # the deadline of another program, or nothing is known
        where = SourceLine(f"{node.node}:kubelet", 1, f"its command line: --{flag}={value}")
        yield Fact(Kind.FLAG, None, node.node, API_CLOCK, where, {"flag": flag, "value": value})


def _versions(fleet: FleetSnapshot) -> Iterator[Fact]:
    """The versions of each node's programs: known defects are of exact ones."""
    for node in fleet.nodes.values():
        if isinstance(node, Snapshot):
            of_runtimes = ((each.runtime.value, each.version(node.runtimes)) for each in KNOWN)
            printed = {KUBELET: node.kubelet_version, **{name: found.text for name, found in of_runtimes if found}}
            for program, version in printed.items():
                where = SourceLine(f"{node.node}:agent", 1, f"{program} {version}")
                yield Fact(Kind.VERSION, None, node.node, API_CLOCK, where, {"by": program, "version": version})


def _silent(found: Symptoms) -> Iterator[NotRead]:
    """Nodes that did not answer, and journals that could not be read, by their reasons."""
    away = {
        node.node: f"{node.message} [{node.reference}]"
        for node in found.fleet.nodes.values()
        if isinstance(node, Unread)
    }
    closed = {journal.node: journal.why for journal in found.journals if journal.why}
    units = "journalctl -u kubelet -u containerd -o short-iso"
    for what, reasons in (("configuration and journal", away), ("journal", closed)):
        for why, names in folded(reasons).items():
            yield NotRead(
                what, tuple(names), printable(for_all(why, names), 300), f"{units} of these nodes, and --logs FILE"
            )
