"""The ports to the outside: small protocols that adapters implement and tests fake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from rollout.core.model.frozen import dataclass
from rollout.core.model.regions import RegionStanding
from rollout.core.model.ways_in import Become
from rollout.core.text.documents import Moment

if TYPE_CHECKING:  # a look at a run needs few of these
    from rollout.core.model.conditions import Condition, StartAnswer
    from rollout.core.model.live import LiveNode, PullCounter, Sight
    from rollout.core.model.pods import PlacedPod
    from rollout.core.model.report import RemoteAnswer, RemoteCommand
    from rollout.core.presentation.summary import RunSummary
    from rollout.core.run.commands import Command
    from rollout.core.run.events import Event, Request
    from rollout.core.run.state import RunState


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a node for SSH. ``ssh_config`` may map it further. ``zone``: of the inventory.

    ``controller_ssh``: this machine may reach it itself while no worker of its region answers.
    ``become``: what makes a command root there, if it must be.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    zone: str = ""
    controller_ssh: bool = False
    become: Become = Become.SUDO


class Nodes(Protocol):
    """Runs commands on nodes. Thread-safe. An error of a node never raises: it is in the answer.

    A connection is kept between calls for the same node until ``release``, or until it is idle for long or needed
    for another node: then the next call opens a new one.
    """

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer: ...

    def release(self, target: Target) -> None: ...

    def close(self) -> None: ...


class Clock(Protocol):
    """``now``: monotonic seconds within a process. ``wall``: ISO 8601 UTC for display."""

    def now(self) -> float: ...

    def wall(self) -> str: ...


class Zones(Protocol):
    """The wall clock, as it is corrected, and the zone data of this machine."""

    def wall_seconds(self) -> float:
        """Seconds since the epoch."""
        ...

    def zone(self, name: str) -> tzinfo:
        """``InputError`` ``unknown-zone`` for a zone without data, or with data that cannot be read."""
        ...


class StartTimes(Protocol):
    """When changes may start, by the timed conditions of a plan."""

    def check(self, conditions: Iterable[Condition]) -> None:
        """``InputError`` at the place of one that this machine cannot evaluate."""
        ...

    def by(self, conditions: Sequence[Condition]) -> Callable[[], StartAnswer]:
        """Whether changes may start at the time of the call: each condition must be open. One that cannot be evaluated closes."""
        ...


class Files(Protocol):
    """Text in, text out; errors are ``InputError``."""

    def read(self, path: str) -> str: ...

    def exists(self, path: str) -> bool: ...

    def at(self, path: str) -> str:
        """How other programs and libraries reach this path; ``""`` stays ``""``."""
        ...

    def list(self, folder: str, suffix: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """As the API server has it. ``version``: its resourceVersion, for a write that must not overwrite another one."""

    namespace: str
    name: str
    version: str
    data: Mapping[str, str]
    uid: str  # no other object of any cluster has it


@dataclass(frozen=True, slots=True)
class Ran:
    """How a local command ended (``status`` below 0: by that signal), and the end of its output.

    ``status`` ``None``: it could not be run or did not end in time, for the reason ``why``.
    """

    status: int | None
    output: str = ""
    why: str = ""


class Local(Protocol):
    """Runs a wave's ``command`` gate on the controller: bounded in time and in stored output."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran: ...


class Cluster(Protocol):
    """One API server: reads Nodes, leases and pods.

    Thread-safe, bounded in time. Without an answer: ``RemoteError``.
    """

    def nodes(self) -> tuple[LiveNode, ...]:
        """Every Node, in the API's order."""
        ...

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:
        """One node, its lease and its pods, in at most ``timeout`` seconds.

        ``newer_than``: the version of an earlier list of its pods. If the API server's cache has none that is newer, its store is asked.
        """
        ...

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:
        """Field → value in force, according to the node's kubelet."""
        ...

    def pull_counter(self, node: str, timeout: float) -> PullCounter:
        """The pulls that the running kubelet of a node has counted; ``RemoteError`` if it shows none."""
        ...

    def missing_to_count_pulls(self) -> tuple[str, ...]:
        """The right that ``pull_counter`` lacks: to get nodes/proxy."""
        ...

    def missing_rights(self) -> tuple[str, ...]:
        """The rights that gates and ``nodes`` lack, such as "get nodes". ``()``: nothing is missing."""
        ...

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:
        """A Node, and the pods on it that have not ended: its kubelet admits or rejects them again after a restart."""
        ...


class ConfigMaps(Protocol):
    """The ConfigMaps of one API server. Thread-safe, bounded in time. Without an answer: ``RemoteError``."""

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:
        """``None``: there is none."""
        ...

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        """Change one key of the object as it was ``found``. ``RemoteError`` ``conflict``: it has changed since."""
        ...

    def touch(self, found: ConfigMap, timeout: float) -> None:
        """Let every write fail that began before, and leave the object as it was ``found``. ``RemoteError`` as with ``write``."""
        ...

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:
        """The rights that are missing for that: on the ConfigMap, and on kubeadm's of the cluster, which has its name of today."""
        ...


class NodeSources(Protocol):
    """Other sources of an inventory's nodes than its own file."""

    def ansible(self, path: str) -> str:
        """The output of an Ansible inventory for ``--list``, bounded in time and size. ``InputError`` if it fails."""
        ...

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        """Host → variable → what Ansible itself makes of the template; ``None``: it has no value.

        ``templates`` is host → its variables. Bounded in time and size. ``InputError`` if Ansible fails.
        """
        ...

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        """Every Node of a kubeconfig's API server; context ``""``: the current one.

        ``InputError`` for a wrong kubeconfig, ``RemoteError`` for a server that does not answer.
        """
        ...


class ApiSources(NodeSources, Protocol):
    """The same, and what else planning reads from an API server about nodes."""

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        """The pods on these nodes that have not ended. Errors as with ``live``."""
        ...

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        """Field → value in force, according to a node's kubelet. Errors as with ``live``."""
        ...


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The fixed part of a run, journaled before anything is done. ``plan``: the bytes of the plan file.

    ``version``: the version of rollout that started the run; ``""``: a version that did not record it.
    """

    run: str
    cluster: str
    goal: str
    order: str  # see core.run.journal_codec
    counter: int
    plan: bytes
    at: float
    who: str
    reason: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a cluster's lease. ``silent``: seconds since its last heartbeat; ``alive``: it may still act.

    ``pid``: of its process on that host; ``None``: not known. ``regions``: at its last heartbeat.
    """

    run: str
    host: str
    silent: float
    alive: bool
    here: bool  # on this machine, so that ``alive`` is certain
    pid: int | None = None
    regions: tuple[RegionStanding, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """An action on a cluster outside of its runs."""

    at: Moment
    who: str
    text: str


class PastRuns(Protocol):
    """What is read of a journal."""

    def summary(self, run: str) -> RunSummary | None:
        """How a run ended. ``None``: it has not ended, it continued since, or its version wrote no summaries."""
        ...

    def header(self, run: str) -> RunHeader: ...

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        """All events except the first ``after``. ``StateError`` ``journal-broken`` if one was changed."""
        ...

    def head(self, run: str) -> tuple[int, str]:
        """How many events a run has, and the hash that covers its header and all of them."""
        ...

    def kept_end(self, run: str) -> str | None:
        """What ``keep_end`` kept of the run as it is now (see ``core.run.state_codec``); ``None``: nothing. Its events are not checked."""
        ...

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        """Newest first."""
        ...

    def listed(self) -> tuple[RunHeader, ...]:
        """The runs of every cluster, newest first, without their orders and plans: both are empty."""
        ...

    def highest_counter(self, cluster: str) -> int: ...

    def holder(self, cluster: str) -> Holder | None: ...

    def notes(self, cluster: str) -> tuple[Note, ...]: ...

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        """Requests with a higher number than ``after`` that were not withdrawn, in order."""
        ...


class Journal(PastRuns, Protocol):
    """Append-only events of runs, hash-chained, and the lease that allows one active run per cluster.

    Every method that writes returns only when the write is durable, and raises ``StateError`` if it is not.
    """

    def begin(self, header: RunHeader) -> None: ...

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        """``ended``: with these events the run has ended; its summary is part of the same write."""
        ...

    def keep_end(self, state: RunState) -> None:
        """Keep the state to which the events that were just appended led: the run has ended, and is shown without a replay.

        It is no part of the run. Nothing is raised if it cannot be kept.
        """
        ...

    def acquire(self, cluster: str, run: str) -> None:
        """Take the cluster's lease, or raise ``StateError`` ``locked`` that names its holder."""
        ...

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        """Heartbeat, with the regions as they are now. Raises ``StateError`` ``lease-lost`` if another controller has taken the lease."""
        ...

    def release(self, cluster: str, run: str) -> None: ...

    def unlock(self, cluster: str, note: Note) -> None:
        """Take the cluster's lease away from its holder, and record the operator and the reason."""
        ...

    def note(self, cluster: str, note: Note) -> None: ...

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        """Record a request for the controller of a run. Returns its number."""
        ...

    def withdraw(self, request: int) -> None:
        """Withdraw a request, so that no controller handles it. Its number is not reused."""
        ...


class Interruption(Protocol):
    """The operator's wish to stop, in two steps: the second one raises ``KeyboardInterrupt`` in the main thread."""

    def install(self) -> None:
        """From here on it counts. Before, it ends the process."""
        ...

    def asked(self) -> bool: ...


class Observer(Protocol):
    """Receives every journaled event and the state after it. Must not raise."""

    def on_event(self, event: Event, before: RunState, after: RunState) -> None: ...

    def on_end(self, state: RunState) -> None: ...


class Worker(Protocol):
    """Does one command and returns how it ended. Called on a thread of the engine."""

    def __call__(self, command: Command) -> Event: ...


class Engine(Protocol):
    """Runs commands in parallel, bounded. ``collect`` waits at most ``timeout`` seconds for answers."""

    def submit(self, worker: Worker, command: Command) -> None: ...

    def collect(self, timeout: float) -> tuple[Event, ...]: ...

    def close(self) -> None: ...
