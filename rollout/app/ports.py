"""The doors to the outside: small protocols that adapters implement and tests fake."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollout.core.health_gates.measured import Alert, Page, Samples
from rollout.core.model.live import LiveNode, Sight
from rollout.core.model.pods import Cordon, EvictionAnswer, LeavingPod, PlacedPod
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.presentation.past_run import RunSummary
from rollout.core.run.commands import Command
from rollout.core.run.events import Event
from rollout.core.run.requests import Request
from rollout.core.run.state import RunState


@dataclass(frozen=True, slots=True)
class Target:
    """Where a node is: what SSH is given. ``ssh_config`` may map the address further."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None


class Nodes(Protocol):
    """Runs commands on nodes. Thread-safe; one node's trouble never raises, it is in the answer.

    A connection is kept between calls for the same node until ``release``.
    """

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer: ...

    def release(self, target: Target) -> None: ...

    def close(self) -> None: ...


class Clock(Protocol):
    """``now`` is seconds that never go back within a process; ``wall`` is ISO 8601 UTC for display."""

    def now(self) -> float: ...

    def wall(self) -> str: ...


class Files(Protocol):
    """Text in, text out; errors are ``InputError``."""

    def read(self, path: str) -> str: ...

    def exists(self, path: str) -> bool: ...

    def list(self, folder: str, suffix: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command of ours ended (``status`` below 0: by that signal), and the end of what it printed.

    ``None``: it could not be run or did not end in time, and ``why``.
    """

    status: int | None
    output: str = ""
    why: str = ""


class Local(Protocol):
    """Runs a wave's ``command`` gate where the controller runs: bounded in time and in what it keeps."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran: ...


class Cluster(Protocol):
    """Looks at nodes through the API server. Thread-safe, bounded in time; what cannot be asked is a ``RemoteError``."""

    def nodes(self) -> tuple[LiveNode, ...]:
        """Every Node, in the API's order."""
        ...

    def look(self, node: str, timeout: float) -> Sight:
        """One node, its lease and its pods, in at most ``timeout`` seconds."""
        ...

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:
        """Field → value as the node's kubelet says it is in force."""
        ...

    def missing_rights(self) -> tuple[str, ...]:
        """What ``nodes`` and ``look`` need and may not do: "get nodes", … ``()``: everything is allowed."""
        ...

    def missing_to_drain(self) -> tuple[str, ...]:
        """The same of the four below."""
        ...

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        """Make a Node unschedulable with the mark and the token of the run, in one compare-and-swap; whose cordon is on it now.

        A cordon of the run with an older token gets this one. Anything but ``OURS``: it was cordoned already, and nothing was changed.
        """
        ...

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
        """Lift the cordon that bears the run's mark (``run`` ``""``: any run's) and no newer token (``None``: whatever token),
        mark and token with it; whose cordon is on it now.
        """
        ...

    def leaving(self, node: str, timeout: float) -> tuple[LeavingPod, ...]:
        """The pods of a node, those too that a drain leaves; read from the store, not from a cache."""
        ...

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:
        """A Node, and the pods on it that have not ended: what its kubelet would admit anew, or not."""
        ...

    def evict(self, pod: LeavingPod, timeout: float) -> EvictionAnswer:
        """Ask for a pod's eviction, only if it is still the one with this uid. Budgets are respected by the API server."""
        ...


class Metrics(Protocol):
    """Instant queries. ``RemoteError`` when there is no answer; ``AwayError`` when there may be one a second later."""

    def query(self, url: str, query: str, timeout: float) -> Samples: ...


@dataclass(frozen=True, slots=True)
class Silence:
    """What to silence for how many seconds: alerts whose ``label`` matches the regular expression ``pattern``."""

    label: str
    pattern: str
    seconds: float
    who: str
    comment: str


class Alerts(Protocol):
    """Firing alerts and silences. Errors as with ``Metrics``."""

    def firing(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        """Those that match all of ``matchers``, without the silenced and the inhibited."""
        ...

    def known(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        """Those, and the silenced and inhibited too."""
        ...

    def silence(self, url: str, silence: Silence, timeout: float) -> str:
        """The id of the new silence."""
        ...

    def standing(self, url: str, comment: str, timeout: float) -> tuple[str, ...]:
        """The silences that have not ended and whose comment begins so."""
        ...

    def lift(self, url: str, silence: str, timeout: float) -> None:
        """End a silence; one that is over or gone is fine."""
        ...


class Pages(Protocol):
    """Plain HTTP GET; redirects are answers like others. Errors as with ``Metrics``."""

    def get(self, url: str, timeout: float) -> Page: ...


class NodeSources(Protocol):
    """Where an inventory's nodes may come from besides its own file."""

    def ansible(self, path: str) -> str:
        """What an Ansible inventory prints for ``--list``; ``InputError`` when it does not, bounded in time and size."""
        ...

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        """Every Node of a kubeconfig's API server; context ``""``: the current one. ``InputError`` for a kubeconfig that is
        wrong, ``RemoteError`` for a server that cannot be asked.
        """
        ...


class ApiSources(NodeSources, Protocol):
    """The same, and what else of the nodes an API server is asked for when planning."""

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        """The pods on these nodes that have not ended. Errors as with ``live``."""
        ...

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        """Field → value as a node's kubelet says it is in force. Errors as with ``live``."""
        ...


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What is fixed about a run when it is written down, before anything is done. ``plan`` is the plan file's bytes.

    ``version`` is the version of rollout that began the run; ``""``: one that did not write it down.
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
    """Who has a cluster's lease: since ``silent`` seconds without a heartbeat; ``alive`` if it may still act."""

    run: str
    host: str
    silent: float
    alive: bool
    here: bool  # on this machine, so that ``alive`` is certain


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was done to a cluster outside of its runs. ``at`` is seconds since the epoch."""

    at: float
    who: str
    text: str


class Journal(Protocol):
    """Append-only events of runs, hash-chained, and the lease that lets one run per cluster go on at a time.

    Every method that writes returns only when the write is durable, and raises ``StateError`` when it is not.
    """

    def begin(self, header: RunHeader) -> None: ...

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        """``ended``: with these events the run has ended; its summary is written down in the same go."""
        ...

    def summary(self, run: str) -> RunSummary | None:
        """How a run ended. ``None``: it has not, it went on since, or a version ran it that wrote no summaries."""
        ...

    def header(self, run: str) -> RunHeader: ...

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        """All but the first ``after``; ``StateError`` ``journal-broken`` when one is not as it was written."""
        ...

    def head(self, run: str) -> tuple[int, str]:
        """How many events a run has, and the hash that covers its header and all of them."""
        ...

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        """Newest first."""
        ...

    def highest_counter(self, cluster: str) -> int: ...

    def acquire(self, cluster: str, run: str) -> None:
        """Take the cluster's lease, or raise ``StateError`` ``locked`` naming who has it."""
        ...

    def renew(self, cluster: str, run: str) -> None:
        """Heartbeat; raises ``StateError`` ``lease-lost`` when another has taken it."""
        ...

    def release(self, cluster: str, run: str) -> None: ...

    def holder(self, cluster: str) -> Holder | None: ...

    def unlock(self, cluster: str, note: Note) -> None:
        """Take the cluster's lease away from whoever has it, and write down who did and why."""
        ...

    def note(self, cluster: str, note: Note) -> None: ...

    def notes(self, cluster: str) -> tuple[Note, ...]: ...

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        """Leave a request for the controller of a run; its number."""
        ...

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        """Requests with a higher number than ``after`` that were not withdrawn, in order."""
        ...

    def withdraw(self, request: int) -> None:
        """Nobody is to hear this request any more. Its number is not given again."""
        ...


class Observer(Protocol):
    """Told of every journaled event and the state after it. Must not raise."""

    def on_event(self, event: Event, before: RunState, after: RunState) -> None: ...

    def on_end(self, state: RunState) -> None: ...


class Worker(Protocol):
    """Does one command and says how it ended. Called on a thread of the engine."""

    def __call__(self, command: Command) -> Event: ...


class Engine(Protocol):
    """Runs commands side by side, bounded; ``collect`` waits at most ``timeout`` seconds for answers."""

    def submit(self, worker: Worker, command: Command) -> None: ...

    def collect(self, timeout: float) -> tuple[Event, ...]: ...

    def close(self) -> None: ...
