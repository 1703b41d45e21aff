"""The runtimes that rollout knows, and what they change. Other modules ask this one and name no runtime."""

from __future__ import annotations

from typing import assert_never

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.intents import INTENTS
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.node.unloaded import edited, how
from rollout.kubelet.runtimes.containerd import description as containerd
from rollout.kubelet.runtimes.cri_dockerd import description as cri_dockerd
from rollout.kubelet.runtimes.crio import description as crio
from rollout.kubelet.runtimes.description import (
    FIRST,
    Daemon,
    Description,
    Number,
    PullTool,
    Row,
    Runtime,
    RuntimeVersion,
    Wanted,
)
from rollout.kubelet.runtimes.dockershim import description as dockershim
from rollout.kubelet.runtimes.outcome import together


def describe(runtime: Runtime) -> Description:
    """The description of this runtime; an unknown one has a description without homes."""
    match runtime:
        case Runtime.DOCKERSHIM:
            return dockershim.DOCKERSHIM
        case Runtime.CRI_DOCKERD:
            return cri_dockerd.CRI_DOCKERD
        case Runtime.CONTAINERD:
            return containerd.CONTAINERD
        case Runtime.CRIO:
            return crio.CRIO
        case Runtime.UNKNOWN:
            return _UNKNOWN
        case _:
            assert_never(runtime)


def _no_change(snapshot: Snapshot, _wanted: Wanted) -> Change:
    kubelet = snapshot.kubelet_version
    raise LayoutError("runtime-unknown", f"a kubelet {kubelet} over a runtime that rollout does not know")


_UNKNOWN = Description(Runtime.UNKNOWN, "", _no_change, pull_tools=(PullTool.CRICTL, PullTool.DOCKER, PullTool.CTR))

KNOWN: tuple[Description, ...] = tuple(describe(each) for each in Runtime if each is not Runtime.UNKNOWN)

DAEMONS: tuple[Daemon, ...] = tuple(
    sorted({known.daemon.unit: known.daemon for known in KNOWN if known.daemon}.values(), key=lambda each: each.unit)
)
"""The programs that serve the runtimes, in the order of their units."""

KEEPERS: frozenset[str] = frozenset(name for daemon in DAEMONS for name in daemon.keepers)
"""The processes that hold containers: a container ends with its own."""

ROWS: tuple[Row, ...] = tuple(
    row for intent in INTENTS for runtime in KNOWN for row in runtime.rows if row.intent == intent
)
"""Every home, in order of intent, runtime and version; ``HOST`` stands for the registry's name."""


def refusal(intent: str, runtime: Runtime, version: RuntimeVersion | None) -> tuple[str, str] | None:
    """Why this intent has no home on this runtime: a stable reference and the reason; ``None`` if it has one."""
    if runtime is Runtime.UNKNOWN:
        return "runtime-unknown", f"rollout does not know this node's container runtime, so {intent} has no home here"
    row = describe(runtime).row(intent, version)
    if row is not None:
        return ("setting-unsupported", f"{intent}: {row.refusal}") if row.refusal else None
    if version is None:
        return (
            "runtime-version-unknown",
            f"the node does not report its {runtime.value} version, and {intent} depends on it",
        )
    return (
        "runtime-version-unknown",
        f"rollout does not know {runtime.value} {version.text}, so {intent} has no home here",
    )


def covered(row: Row) -> str:
    """The runtime and the versions of a row, for people: ``CRI-O from 1.32.0 to before 1.32.4``."""
    runtime = describe(row.runtime)
    if runtime.built_in_until is not None:
        return f"{row.runtime.value} (kubelets before 1.{runtime.built_in_until + 1})"
    parts = (
        f"from {dotted(row.since)}" if row.since != FIRST else "",
        f"before {dotted(row.before)}" if row.before != runtime.end else "",
    )
    versions = " to ".join(part for part in parts if part)
    return f"{row.runtime.value} {versions}" if versions else row.runtime.value


def dotted(number: Number) -> str:
    """``1.32.4``."""
    return ".".join(map(str, number))


def runtime_of(here: FitNode) -> Runtime:
    """The node's runtime: the one built into the kubelet unless a flag names another, else by the endpoint's socket."""
    minor, flags = here.version.minor, here.layout
    built_in = next((known.runtime for known in KNOWN if known.contained_in(minor)), Runtime.UNKNOWN)
    kind = flags.flag("--container-runtime") or ("remote" if built_in is Runtime.UNKNOWN else "docker")
    if kind == "docker":
        return built_in
    endpoint = endpoint_of(here)
    return next((known.runtime for known in KNOWN if any(part in endpoint for part in known.sockets)), Runtime.UNKNOWN)


def endpoint_of(here: FitNode) -> str:
    """The endpoint that the kubelet is told, or its default: ``unix:///run/containerd/containerd.sock``."""
    given = here.layout.flag("--container-runtime-endpoint") or here.outcome.effective.get("containerRuntimeEndpoint")
    return str(given or _default_endpoint(here.version.minor))


def _default_endpoint(minor: int) -> str:
    """The endpoint of a kubelet that is told none."""
    defaults = (known for known in KNOWN if known.default_since is not None and minor >= known.default_since)
    return next((known.endpoint for known in defaults), "")


def labelled(name: str, minor: int) -> Runtime:
    """The runtime of a node with this label ``containerRuntime`` and a kubelet of this minor; ``""``: the usual one."""
    described = next((known for known in KNOWN if name in known.labels), None) or _usual(minor)
    return (
        described.successor
        if described.successor is not None and not described.contained_in(minor)
        else described.runtime
    )


def every_label() -> tuple[str, ...]:
    """The names of runtimes in labels."""
    return tuple(name for each in KNOWN for name in each.labels)


def _usual(minor: int) -> Description:
    """The runtime built into the kubelet, else the one with the endpoint that is later kubelets' default."""
    built_in = (known for known in KNOWN if known.contained_in(minor))
    return next(built_in, next(known for known in KNOWN if known.default_since is not None))


def runtime_change(snapshot: Snapshot, wanted: Wanted, runtime: Runtime) -> Change:
    """The change that puts ``wanted`` in force on this node; ``LayoutError`` with the reason for a refused node."""
    if not wanted:
        return Change()
    described = describe(runtime)
    made = described.change(snapshot, wanted)
    readers = {described.readers.get(intent, "") for intent in wanted}
    return together(made, _unloaded(snapshot, readers.difference(made.units, made.hangups)))


def _unloaded(snapshot: Snapshot, units: set[str]) -> Change:
    """Missing restarts of units with the wanted files: it is not known what their processes have loaded."""
    edits = edited(snapshot, units)
    late = tuple(dict.fromkeys(entry.unit for entry in edits))
    if not late:
        return Change()
    files = "; ".join(f"{entry.path} was {how(entry)}" for entry in edits)
    return Change(
        units=late,
        disruption=Disruption.RESTART_RUNTIME,
        notes=(f"restart of {', '.join(late)}: {files}, so it is unknown what the running process has loaded",),
    )
