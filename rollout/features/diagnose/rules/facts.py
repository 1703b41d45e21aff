"""What a line or an event shows, apart from how a kubelet's version words it.

Times are seconds since 1970 on the clock of the source. A table of ``kubectl`` has ages only: its times are negative, the
seconds before it was printed. Two times may be compared when their facts have the same ``clock``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto

from rollout.core.text.redaction import without_secrets

API_CLOCK = "the API server"
"""The clock of events with timestamps. Each log file has a clock of its own, its name."""
AGES = "ages of "
"""How the clock of a table begins, with the name of its file: its times are ages."""
MOST_FACTS = 10_000
"""Facts of one kind that are kept: the newest."""
MOST_IN_ALL = 120_000
"""Facts of all kinds that are kept. It bounds the memory for any files: a fact has about 700 bytes."""
LONGEST_TEXT = 300
"""Characters of a line that are kept as evidence."""


class Kind(StrEnum):
    """What a fact is about. The comment names its fields."""

    NODE = auto()  # node: the file's own node; registered: not "" if the kubelet has registered it
    NOT_REGISTERED = (
        auto()
    )  # error: the kubelet could not register its node; by: "agent", if that of k3s or RKE2 waits for its server
    FLAG = auto()  # flag, value: a flag as a kubelet prints it at its start
    START = auto()  # version: a kubelet process started ("" if not printed)
    FATAL = auto()  # error: why a kubelet process ended; server: the same, if k3s or RKE2 ended before its kubelet
    BOOTSTRAP = auto()  # error: why a kubelet that starts cannot use its client certificate
    ERROR = auto()  # error: the last error that a kubelet logged before its process ended
    EXIT = auto()  # status: systemd, or RKE2, saw the process end
    END_TOLD = auto()  # error: what systemd reports of the end of the kubelet's unit, beside its status
    GIVEN_UP = auto()  # systemd refuses to start the kubelet's unit, which was started too often
    RESTARTS = auto()  # count: systemd's restart counter
    QUEUED = auto()  # pod, container, image: the kubelet wants an image; described: "yes" in a `describe` of the pod
    UNQUEUED = auto()  # image: the kubelet begins the pull, after its own queue
    PULLED = auto()  # pod, container, image, took, waited, size (the last three "" if not printed)
    PULL_FAILED = auto()  # pod, container, image, error; sandbox: "yes" if it is the image of the pod's sandbox; inspected: "yes" if the runtime could not tell of it; client: "yes" if any client of the runtime may have written the line
    UNCREDENTIALED = (
        auto()
    )  # image (without its tag), plugin, error: a program that should give the kubelet credentials failed
    BACK_OFF = auto()  # pod, container, image
    PULL_CUT = auto()  # image, deadline, progress, by: a program cancelled a pull without progress
    PROGRESS = auto()  # image, progress: the state of a pull, printed every 10 s by dockershim
    RUNTIME_STARTED = (
        auto()
    )  # image: the runtime received it; before: it had by then (s since 1970), no ``at``; request
    RUNTIME_ENDED = (
        auto()
    )  # image, took, size, error: the runtime ended it; request: the number of both lines, if it has one
    PULL_STOPPED = auto()  # image, requests, bytes: what containerd had read of a pull when it ended or was cancelled
    NEXT_HOST = auto()  # host, error: containerd goes on to the next host of an image
    ASKED = auto()  # host, image: the runtime asks a host, by the name of the image there
    UNLIMITED = auto()  # image, by: the pull begins without a deadline
    RUNTIME = auto()  # by, version: a runtime started
    VERSION = auto()  # by, version: of a program on the node, as the node reports it
    DELETED = auto()  # pod: the kubelet received the deletion
    REMOVED = auto()  # pod: the pod left the API
    HOOK = auto()  # pod, container, id: a preStop hook starts
    HOOK_DONE = auto()  # pod, container, id; late: the grace period, in seconds, which the hook outlived
    HOOK_FAILED = auto()  # pod, container, id, error ("" if not printed): a preStop hook failed
    EXEC_FAILED = auto()  # id, error: the runtime did not run a command in a container, such as that of a hook
    KILL = auto()  # pod, container, id, scheme (of the id, as ``docker``), grace, override ("yes" or "")
    EVICTS = auto()  # pod ("" if not printed): the kubelet decides to evict pods
    KILLED = auto()  # pod, container, id: StopContainer returned without an error
    DIED = auto()  # pod, id: the kubelet saw that a container had ended
    NAMED = auto()  # pod, container, id: which container an id is
    TROUBLE = auto()  # id, of, pod, cid (container), by, away, key, backoff: the kubelet cannot go on, see ``troubles``
    UNCONFIGURED = auto()  # pod, container, reason, error, by: a container cannot be configured, created or started
    STARTED = auto()  # pod, container: it was started
    UNMOUNTED = auto()  # of, unique, holder (its pod's uid): a volume that the kubelet unmounted
    STOP_ASKED = auto()  # id, grace, by (the scheme of its ids): the runtime was asked to stop a container
    WAIT_ENDED = auto()  # id, error: the runtime no longer waits for the end of a container
    OVERLAP = auto()  # pid: one number of a process has lines that overlap in time
    LAST = auto()  # the last line of a log, whatever it says: until then the log shows what has not happened
    PLEG = auto()  # elapsed, threshold
    CGROUP_V1 = auto()  # error
    CHANGED = auto()  # pod, container: a container restarts because its definition changed
    REJECTED = auto()  # pod, reason, message
    PLACED = auto()  # pod: the scheduler gave the pod to the node
    RAN = auto()  # pod: a container of it was made, for example an init container
    HELD = auto()  # pod: it waits for its network or for a volume, and not yet for an image
    ARRIVED = auto()  # pod: the kubelet received it as a new pod
    CREATED = auto()  # pod: the API has the pod since then
    ACCEPTED = auto()  # pod, grace, finalizers, running, ended (containers, of a pod with a node), printed (the latest time at which it was): the API accepted the pod's deletion
    CHANGED_STATE = auto()  # pod: the newest time of its status
    WAITING = (
        auto()
    )  # pod, container, image, reason: the container does not run yet; ``at``: when the pod came to the node
    ENDED = auto()  # pod, container, id, status: the container has ended, by the pod's status


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source; ``line`` counts from 1. For an event of a document: the number of the event."""

    file: str
    line: int
    text: str


def without_secrets_in(lines: Iterable[SourceLine]) -> tuple[SourceLine, ...]:
    return tuple(replace(line, text=without_secrets(line.text)) for line in lines)


@dataclass(frozen=True, slots=True)
class Fact:
    """``at``: ``None`` if the line has no time. ``node``: ``""`` if the line does not name it.

    ``of_others``: the author of a pod may have written the line.
    """

    kind: Kind
    at: float | None
    node: str
    clock: str
    where: SourceLine
    fields: Mapping[str, str]
    times: int = 1
    of_others: bool = False

    def __getitem__(self, name: str) -> str:
        return self.fields.get(name, "")


@dataclass(frozen=True, slots=True)
class BareFact:
    """A fact without its place: what a reader of messages returns."""

    kind: Kind
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """All facts of all sources, each text once, the newest ``most`` of a kind. What others may have written displaces nothing else."""

    most: int = MOST_FACTS
    by_kind: dict[tuple[Kind, bool], deque[Fact]] = field(default_factory=dict)
    left_out: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, fact: Fact) -> None:
        """Write-ups and merged journals repeat lines. A line has a time in microseconds, so equal lines are one."""
        kept = self.by_kind.setdefault((fact.kind, fact.of_others), deque(maxlen=self.most))
        names = (fact[name] for name in ("image", "pod", "container", "id"))
        key = hash((fact.kind, fact.where.text, fact.node, *names, fact.at))
        if key in self._seen:
            return
        if len(self._seen) >= 10 * self.most:
            self._seen.clear()
        self._seen.add(key)
        if len(kept) < self.most and sum(map(len, self.by_kind.values())) >= max(MOST_IN_ALL, self.most):
            max(self.by_kind.values(), key=len).popleft()
            self.left_out += 1
        self.left_out += len(kept) == self.most
        kept.append(fact)

    def of(self, *kinds: Kind) -> list[Fact]:
        """The facts of these kinds, by time; those without a time come first."""
        chosen = (fact for kind in kinds for whose in (False, True) for fact in self.by_kind.get((kind, whose), ()))
        return sorted(chosen, key=lambda each: each.at or 0.0)

    def __iter__(self) -> Iterator[Fact]:
        return (fact for facts in self.by_kind.values() for fact in facts)

    def replaced(self, facts: Iterable[Fact]) -> Facts:
        """These facts instead, with the same count of what was left out."""
        new = Facts(self.most, left_out=self.left_out)
        for fact in facts:
            new.by_kind.setdefault((fact.kind, fact.of_others), deque(maxlen=self.most)).append(fact)
        return new
