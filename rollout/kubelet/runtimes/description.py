"""The form in which each runtime's package describes its runtime: names, sockets, homes of intents, files and units.

The versions are those that a node prints: ``containerd github.com/containerd/containerd v1.7.24 88bf19b2…``,
``containerd containerd.io 1.6.39 …``, ``crio version 1.30.14``, ``cri-dockerd 0.3.15 (c1c566e)``,
``Docker version 24.0.7, build afdd53b``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum, auto

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node import layout
from rollout.kubelet.runtimes.stand_in import DaemonStandIn, RuntimeStandIn


class Runtime(StrEnum):
    """The node's container runtime, by the socket that the kubelet uses; ``known.describe`` describes each."""

    DOCKERSHIM = "dockershim"
    CRI_DOCKERD = "cri-dockerd"
    CONTAINERD = "containerd"
    CRIO = "CRI-O"
    UNKNOWN = "unknown runtime"


_PRINTED = re.compile(r"(?<![\w.])v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})((?:[-~+.][0-9A-Za-z.+~-]*)?)")
Number = tuple[int, int, int]
FIRST: Number = (0, 0, 0)


@dataclass(frozen=True, slots=True, order=True)
class RuntimeVersion:
    """``MAJOR.MINOR.PATCH``, ordered; ``text`` is the version as printed, without ``v``."""

    major: int
    minor: int
    patch: int
    text: str = ""

    @property
    def number(self) -> Number:
        return self.major, self.minor, self.patch


def parse(printed: str) -> RuntimeVersion | None:
    """The version in a runtime's output, or ``None`` if none can be parsed."""
    match = _PRINTED.search(printed)
    if match is None:
        return None
    text = f"{match[1]}.{match[2]}.{match[3]}{match[4]}"
    return RuntimeVersion(int(match[1]), int(match[2]), int(match[3]), text)


@dataclass(frozen=True, slots=True)
class Row:
    """The home of an intent on the versions of a runtime from ``since`` up to, not including, ``before``.

    ``refusal`` is why it has no home there. Otherwise ``key`` is its name there, ``default`` the value in force where
    it is not set (as Go and TOML write it), ``place`` the file or unit for people, ``unit`` the unit to restart or
    reload.
    """

    intent: str
    runtime: Runtime
    since: Number
    before: Number
    key: str = ""
    default: str = ""
    place: str = ""
    unit: str = ""
    disruption: Disruption = Disruption.NONE
    refusal: str = ""

    @property
    def in_kubelet(self) -> bool:
        """Whether the home is a flag of the kubelet, because the runtime is built into it."""
        return self.unit == layout.UNIT


Wanted = Mapping[str, Setting]
"""Intent → its setting."""


class PullTool(StrEnum):
    """A program that pulls images. ``NONE``: the node has none of those that its runtime needs."""

    CTR = "ctr"
    CRICTL = "crictl"
    DOCKER = "docker"
    NONE = "none"


class PullStep(StrEnum):
    """What a message about a pull says."""

    RECEIVED = auto()  # the runtime has the request
    PROGRESS = auto()  # the state of a pull, printed every 10 s
    CUT = auto()  # cancelled without progress
    ENDED = auto()
    STOPPED = auto()  # ended or cancelled, with the bytes that were read
    NEXT_HOST = auto()  # a host of the image failed, and the next one is tried
    ASKED = auto()  # a host of an image is asked
    UNLIMITED = auto()  # the pull begins without a deadline
    STARTED = auto()  # the daemon itself starts, with its version


@dataclass(frozen=True, slots=True)
class PullMessage:
    """A message about a pull: it starts with ``begins``, and ``rest`` is a regular expression for what follows.

    Its groups are fields: ``image``, ``deadline``, ``progress``, ``took``, ``size``, ``error``, ``requests``, ``bytes``, ``version``, and ``failed``
    without a text; ``error``, ``host``, ``version`` and the number of a request may also be keys of a line of logrus. ``behind``: words without which the line cannot be it. ``by``: what cancelled the pull, for people. ``keys``:
    for a message that has keys (kubelets from 1.21), the key and the field for its value; ``rest`` is empty then.
    """

    step: PullStep
    begins: str
    rest: str = ""
    behind: str = ""
    by: str = ""
    keys: tuple[tuple[str, str], ...] = ()


class SilentPart(StrEnum):
    """The part of a pull that showed no progress until a program cancelled it."""

    LOCAL = auto()  # the node extracts a layer that has arrived
    VERIFY = auto()  # the node verifies a layer that has arrived
    UNPACK = auto()  # the same, by the error of the pull
    MIRROR = auto()  # a host before the image's own registry did not answer
    REGISTRY = auto()
    CHUNK = auto()  # one of several requests for a layer
    TRANSFER = auto()  # it stood still in the middle
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class VersionedText:
    """A text for people that is true of the versions from ``since`` up to, not including, ``before``; ``unsure``: where the version is not known."""

    text: str
    since: Number = FIRST
    before: Number = (9999, 0, 0)
    unsure: str = ""

    def told(self, version: RuntimeVersion | None) -> str:
        if version is None:
            return self.unsure
        return self.text if self.since <= version.number < self.before else ""


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """A time limit of the program itself that ends each pull, with or without progress, in versions before ``before``.

    ``seconds``: the limit where nothing sets another; ``error``: the whole error of such a pull.
    """

    before: Number
    seconds: float
    error: str
    words: str


@dataclass(frozen=True, slots=True)
class CutWords:
    """What people are told of pulls that ``by`` cancelled. ``parts``: what is true of a silent part with this program only.

    ``line``: how its log's line of such a pull begins; ``""``: the kubelet's log has it. ``ask_version``: what prints its version.
    ``phases``: links of errors that this program's pulls alone have. ``least``: its shortest default in seconds, where an error in these
    words and as long a pull are a sign of it. ``keyless``: what is true if its version is not known and some versions have no key.
    ``unlimited``: what a pull without a deadline does.
    """

    by: str
    line: str = ""
    ask_version: str = ""
    parts: Mapping[SilentPart, VersionedText] = field(default_factory=dict)
    phases: tuple[str, ...] = ()
    least: float = 0.0
    keyless: str = ""
    unlimited: VersionedText | None = None


@dataclass(frozen=True, slots=True)
class ReadAtStart:
    """A file that a daemon reads at its start: the value of one of these options, or its usual path."""

    options: tuple[str, ...]
    usual: str


@dataclass(frozen=True, slots=True)
class Daemon:
    """A program that serves a runtime. ``program`` prints its version, and names it in ``Snapshot.runtimes``.

    ``logs_requests``: its journal has a line for each pull that it receives. ``reads``: the files that the agent shows.
    ``agent_part``: its package, if that has a file ``agent.sh`` with what else the agent does for it
    (``rollout.kubelet.agent.runtime_part``). ``keepers``: its processes that hold containers and outlive its restart, as
    ``/proc/PID/comm`` has them (at most 15 characters). ``embedded_log``: where k3s or RKE2, which start it themselves, write
    its log, in the folder of their agent.
    """

    unit: str
    program: str
    stand_in: DaemonStandIn
    logs_requests: bool = False
    reads: tuple[ReadAtStart, ...] = ()
    agent_part: str = ""
    keepers: tuple[str, ...] = ()
    embedded_log: str = ""

    @property
    def name(self) -> str:
        """The unit's name without its kind, which is the name in its journal lines for those that log requests."""
        return self.unit.removesuffix(".service")


def _unread(_snapshot: Snapshot) -> Mapping[str, Value]:
    return {}


@dataclass(frozen=True, slots=True)
class Description:
    """All that rollout knows of one runtime, its stand-in in the lab included. ``rows`` are in order of intent and version.

    ``end``: the versions from here on are not known, so their nodes are refused. ``program``: the name in
    ``Snapshot.runtimes`` of the program with the version that counts. ``change`` puts intents with a home in the
    runtime in force, or raises ``LayoutError``; so does ``values`` where its configuration was not read.
    """

    runtime: Runtime
    program: str
    change: Callable[[Snapshot, Wanted], Change]
    end: Number = FIRST
    rows: tuple[Row, ...] = ()
    labels: tuple[str, ...] = ()  # its names in a node's label ``containerRuntime``
    sockets: tuple[str, ...] = ()  # each is part of a socket's path that belongs to this runtime
    endpoint: str = ""  # its usual socket, as kubeadm passes it to the kubelet
    default_since: int | None = None  # the first minor in which ``endpoint`` is the kubelet's own default
    built_in_until: int | None = None  # the last minor of the kubelet that contains this runtime
    successor: Runtime | None = None  # what later kubelets use in its place
    usual_version: str = ""  # in which most intents have a home, for nodes of no known version
    restarted: frozenset[str] = frozenset()  # the units that changes restart
    hung_up: frozenset[str] = frozenset()  # the units that changes send SIGHUP
    drop_ins: frozenset[str] = frozenset()  # the files that only rollout writes
    readers: Mapping[str, str] = field(default_factory=dict)  # intent → the unit that reads its file, at its start only
    pull_tools: tuple[
        PullTool, ...
    ] = ()  # the programs that pull through it, those that pull as the kubelet does first
    is_home: tuple[Callable[[str, str], bool], ...] = ()  # is the file with this path and text one that changes write?
    daemon: Daemon | None = None  # what serves it
    logs: tuple[PullMessage, ...] = ()  # the messages about pulls of its daemons, or of the kubelet that contains it
    cuts: CutWords | None = None  # its program that cancels pulls without progress, if that is not the kubelet
    id_scheme: str = ""  # how the kubelet's name of a container begins: ``docker`` of ``docker://0123…``
    negative_grace: str = ""  # what it does with a grace period below 0
    stop_asked: tuple[str, str] = (
        "",
        "",
    )  # its own line when it is asked to stop a container: the beginning, and the rest as a regular expression with ``id`` and ``grace``
    kills_alone_before: Number = FIRST  # versions up to here kill a container that is ending when its caller goes away
    own_limit: OwnLimit | None = None
    embedded: str = ""  # the file that decides where k3s or RKE2 contains it, for people
    traps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # intent → what people must know of it here
    stand_in: RuntimeStandIn = field(default_factory=RuntimeStandIn)
    values: Callable[[Snapshot], Mapping[str, Value]] = (
        _unread  # its keys that rows of tables name → the value in force
    )

    def version(self, printed: Mapping[str, str]) -> RuntimeVersion | None:
        """The version in ``Snapshot.runtimes``; ``None`` if the node did not report one."""
        return parse(printed.get(self.program, ""))

    def row(self, intent: str, version: RuntimeVersion | None) -> Row | None:
        """The row for this version. Without one only if every version is alike; ``None``: nothing is known."""
        rows = [each for each in self.rows if each.intent == intent]
        if version is None:
            return rows[0] if len(rows) == 1 else None
        return next((each for each in rows if each.since <= version.number < each.before), None)

    def contained_in(self, minor: int) -> bool:
        """Whether a kubelet of this minor has the runtime built in."""
        return self.built_in_until is not None and minor <= self.built_in_until
