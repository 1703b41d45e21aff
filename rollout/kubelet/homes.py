"""The home of a setting on a node: (setting, kubelet version, runtime) → a field, a flag, or why it has no home there.

A setting is written under its Kubernetes name (``serializeImagePulls``, ``--registry-qps``) or as an *intent*
(``intents``). An intent's home depends on the node: ``imagePullProgressDeadline`` (incident 1) is a flag of the kubelet
over dockershim, a flag of cri-dockerd, a key of containerd's or of CRI-O's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Level
from rollout.core.model.playbook import ACCEPTED_BY_REFERENCE
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.text import suggest
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted
from rollout.errors import Problem
from rollout.kubelet import fields, values
from rollout.kubelet.defects.rows import known as known_defects
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG, DOWNLOADS, INTENTS, MIRRORS
from rollout.kubelet.runtimes import known
from rollout.kubelet.runtimes.description import Runtime, RuntimeVersion
from rollout.kubelet.versions import Version

# The form of an intent's value, independent of the node.


_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"{_NAME}(?::[0-9]{{1,5}})?")
_URL = re.compile(rf"https?://(?:{_NAME}|\[[0-9A-Fa-f:]+\])(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~/-]*)?")
_MOST = 2**31 - 1


def mistake(name: str, value: Value) -> str:
    """What is wrong with ``value`` for this intent, or ``""``."""
    if name in {DEADLINE, DEADLINE_FLAG}:
        seconds = values.duration(value)
        if seconds is not None and seconds > 0:
            return ""
        return f'{name} takes a duration above 0 such as "5m", not {values.shown(value)}'
    if name == DOWNLOADS:
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST
        return "" if whole else f"{name} takes a whole number above 0, not {values.shown(value)}"
    return _mirrors(name, value) if name == MIRRORS else ""


def _mirrors(name: str, value: Value) -> str:
    if not isinstance(value, dict) or not value:
        return f"{name} takes a map of registry hosts to lists of mirrors, not {values.shown(value)}"
    for host, endpoints in value.items():
        if not _HOST.fullmatch(host):
            return f"{name}: {values.shown(host)} is not a registry's host such as docker.io or registry.example:5000"
        wrong = _endpoints(endpoints)
        if wrong:
            return f"{name}: {host} {wrong}"
    return ""


def _endpoints(endpoints: Value) -> str:
    if not isinstance(endpoints, list) or not endpoints:
        return f"takes a list of mirrors, not {values.shown(endpoints)}"
    for endpoint in endpoints:
        if not isinstance(endpoint, str) or not _URL.fullmatch(endpoint):
            return "takes mirrors such as https://mirror.example:5000, without user, query or fragment"
    if len({str(endpoint).rstrip("/") for endpoint in endpoints}) < len(endpoints):
        return "names a mirror twice"
    return ""


NOT_OURS: Mapping[str, str] = {
    "--config": "it decides which file rollout writes",
    "--config-dir": "it decides which files the kubelet reads, and resets explicitly empty lists from 1.32 on",
    "--container-runtime": "changing the runtime is not a change of configuration",
    "--container-runtime-endpoint": "changing the runtime is not a change of configuration",
    "--dynamic-config-dir": "the API server would then set the configuration",
    "--help": "the kubelet would print its help and end",
    "--version": "the kubelet would print its version and end",
    "containerRuntimeEndpoint": "changing the runtime is not a change of configuration",
    "cpuManagerPolicy": "the kubelet fails until /var/lib/kubelet/cpu_manager_state is removed",
    "memoryManagerPolicy": "the kubelet fails until /var/lib/kubelet/memory_manager_state is removed",
}
"""Known names that rollout does not manage, and why."""

MAY_REJECT_PODS = frozenset({
    "cpuManagerPolicyOptions", "enforceNodeAllocatable", "evictionHard", "kubeReserved", "maxPods",
    "podsPerCore", "qosReserved", "reservedMemory", "reservedSystemCPUs", "systemReserved", "topologyManagerPolicy",
    "topologyManagerPolicyOptions", "topologyManagerScope",
})  # fmt: skip
"""A stricter value can make running pods fail re-admission at the restart (kubernetes #105523, #123859)."""


@dataclass(frozen=True, slots=True)
class InField:
    """The setting is this KubeletConfiguration field."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class InFlag:
    """The setting is this kubelet flag; ``text`` is its value as an argument."""

    name: str
    text: str
    kind: str

    @property
    def argument(self) -> str:
        return f"{self.name}={self.text}"


@dataclass(frozen=True, slots=True)
class InRuntime:
    """The setting is an intent with a home in the container runtime's own configuration (``runtimes.known``)."""

    intent: str
    value: Value


@dataclass(frozen=True, slots=True)
class NoHome:
    """The setting has no home on this node: a stable reference and the exact consequence of writing it anyway."""

    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The playbook allows this setting to be skipped here."""

    note: str


def home(
    setting: Setting, version: Version, runtime: Runtime, runtime_version: RuntimeVersion | None = None
) -> InField | InFlag | InRuntime | NoHome | Skipped:
    """The home of this setting on a kubelet of this version over this runtime (``None``: it did not report its
    version).
    """
    home = _home(setting, version, runtime, runtime_version)
    if isinstance(home, NoHome) and setting.if_unsupported is IfUnsupported.SKIP:
        return Skipped(f"{setting.name} skipped: {home.reason.removeprefix(f'{setting.name}: ')}")
    return home


def _home(
    setting: Setting, version: Version, runtime: Runtime, runtime_version: RuntimeVersion | None
) -> InField | InFlag | InRuntime | NoHome:
    if setting.name in INTENTS:
        refused = known.refusal(setting.name, runtime, runtime_version)
        if refused is not None:
            return NoHome(*refused)
        if setting.name == DEADLINE and _has_deadline_flag(runtime):
            return _deadline_flag(setting, version, runtime)
        return InRuntime(setting.name, setting.value)
    if setting.name == DEADLINE_FLAG:
        return _deadline_flag(setting, version, runtime)
    if setting.name.startswith("--"):
        flag = fields.flag(setting.name)
        if flag is None:
            return NoHome("setting-unknown", f"unknown setting {setting.name}; the kubelet would not start")
        if flag.removed is not None and version.minor >= flag.removed:
            return NoHome(
                "setting-unsupported", f"{setting.name} was removed in 1.{flag.removed}; this kubelet would not start"
            )
        if version.minor < flag.since:
            return NoHome(
                "setting-unsupported", f"{setting.name} exists from 1.{flag.since}; this kubelet would not start"
            )
        return InFlag(setting.name, values.flag_text(setting.value), flag.kind)
    entry = fields.field(setting.name)
    if entry is None:
        return NoHome("setting-unknown", f"unknown setting {setting.name}")
    if version.minor < entry.since:
        return NoHome(
            "setting-unsupported",
            f"{setting.name} exists from 1.{entry.since}; a kubelet {version.short} would ignore it with a warning",
        )
    if version.minor > entry.last:
        return NoHome(
            "setting-unsupported",
            f"{setting.name} was last seen in 1.{entry.last}; a kubelet {version.short} would ignore it with a warning",
        )
    return InField(setting.name, setting.value)


def _deadline_flag(setting: Setting, version: Version, runtime: Runtime) -> InFlag | NoHome:
    """The kubelet's own flag: dockershim uses it (pkg/kubelet/dockershim/libdocker), 1.24 removed it (kubernetes
    #106907).
    """
    entry = fields.flag(DEADLINE_FLAG)
    if entry is not None and not entry.known_in(version.minor):
        return _said_otherwise(f"{DEADLINE_FLAG} was removed in 1.{entry.removed}; this kubelet would not start")
    if _has_deadline_flag(runtime):
        return InFlag(DEADLINE_FLAG, values.flag_text(setting.value), "duration")
    return _said_otherwise(f"a kubelet {version.short} accepts {DEADLINE_FLAG} but only {_users()} uses it")


def _users() -> str:
    return " or ".join(runtime.runtime.value for runtime in known.KNOWN if _has_deadline_flag(runtime.runtime))


def _has_deadline_flag(runtime: Runtime) -> bool:
    """Whether the deadline of this runtime is the flag of the kubelet, in every version of it."""
    row = known.describe(runtime).row(DEADLINE, None)
    return row is not None and row.in_kubelet


def _said_otherwise(reason: str) -> NoHome:
    return NoHome("setting-unsupported", f"{reason}; use {DEADLINE}, which selects the home for each runtime")


def check(settings: Mapping[str, Setting]) -> tuple[Problem, ...]:
    """Mistakes that need no node: misspelt names, values of the wrong type, values that contradict each other."""
    problems = [
        replace(problem, place=setting.place) for setting in settings.values() for problem in _check_one(setting)
    ]
    return (*problems, *_check_together(settings))


def check_accepted(accepted: Iterable[str], playbook: str) -> tuple[Problem, ...]:
    """Names in ``accept`` that no kubelet knows, and that are no reference of a refusal and no known defect."""
    known_names = {*ACCEPTED_BY_REFERENCE, *(row.id for row in known_defects())}
    names = (name for name in accepted if name not in known_names and not name.startswith("/"))
    unknown = (name for name in names if not (fields.field(name.split(".")[0]) or fields.flag(name)))
    return tuple(
        Problem(
            "setting-unknown",
            f"`accept` of playbook {playbook} contains the unknown setting {name[:80]!r}",
            hint=suggest.did_you_mean(name, (*fields.every_name(), *known_names)),
        )
        for name in unknown
    )


def _check_one(setting: Setting) -> list[Problem]:
    name, source = setting.name, f" ({setting.source})" if setting.source else ""
    if name in NOT_OURS:
        return [Problem("setting-not-ours", f"{name} cannot be set: {NOT_OURS[name]}{source}")]
    if name in {*INTENTS, DEADLINE_FLAG}:
        wrong = mistake(name, setting.value)
        return [Problem("setting-value", wrong + source)] if wrong else []
    field, flag = fields.field(name), fields.flag(name)
    if field is None and flag is None:
        hint = suggest.did_you_mean(name, (*INTENTS, *fields.every_name()))
        return [Problem("setting-unknown", f"unknown setting {name[:80]!r}{source}", hint=hint)]
    wrong = values.mistake(name, field.kind, setting.value) if field else ""
    wrong = values.flag_mistake(name, flag.kind, setting.value) if flag else wrong
    return [Problem("setting-value", wrong + source)] if wrong else []


def _check_together(settings: Mapping[str, Setting]) -> list[Problem]:
    problems = [
        Problem("setting-twice", f"{name} and {other} set the same value; keep one of them", settings[name].place)
        for name in settings
        for other in _synonyms(name)
        if other in settings
    ]
    wrong = contradiction({name: setting.value for name, setting in settings.items()})
    place = settings[wrong.split()[0]].place if wrong else None
    return [*problems, Problem("setting-contradiction", wrong, place)] if wrong else problems


def _synonyms(name: str) -> tuple[str, ...]:
    if name == DEADLINE:
        return (DEADLINE_FLAG,)
    entry = fields.field(name)
    return entry.flags if entry else ()


def contradiction(config: Mapping[str, Value]) -> str:
    """Why a kubelet that knows these fields would not start with them together, or ``""``."""
    parallel = config.get("maxParallelImagePulls")
    if isinstance(parallel, int) and parallel > 1 and config.get("serializeImagePulls") is True:
        return "maxParallelImagePulls cannot be larger than 1 unless serializeImagePulls is false; the kubelet would not start"
    high, low = config.get("imageGCHighThresholdPercent"), config.get("imageGCLowThresholdPercent")
    if isinstance(high, int) and isinstance(low, int) and low >= high:
        return f"imageGCLowThresholdPercent {low} must be less than imageGCHighThresholdPercent {high}; the kubelet would not start"
    return ""


# Settings with values that can be right on one node only: with another node's name or address a node is lost to its
# cluster.


OWN_VALUES: Mapping[str, str] = {
    "--hostname-override": "all but one of them would register as another node",
    "--node-ip": "pods and services would reach only one of them",
    "providerID": "the cloud provider would see the same machine for all of them",
}
"""Name → what the same value on several nodes would do."""


def shared_own_values(settings: Mapping[str, Mapping[str, Setting]], nodes: Iterable[str]) -> tuple[Problem, ...]:
    """A mistake for each such setting that has one value on several of the nodes."""
    having: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Setting] = {}
    for node in nodes:
        mine = settings.get(node, {})
        for name in OWN_VALUES:
            if name in mine:
                key = (name, repr(mine[name].value))
                having.setdefault(key, []).append(node)
                first[key] = mine[name]
    return tuple(
        _problem(first[key], f"{counted(len(names), 'node')}: {fold(names)}")
        for key, names in having.items()
        if len(names) > 1
    )


def own_values_for_many(level: Level) -> tuple[Problem, ...]:
    """The same for a level of the inventory, before it is known which nodes are selected."""
    if level.nodes is not None and len(level.nodes) <= 1:
        return ()
    nodes = "every node" if level.nodes is None else counted(len(level.nodes), "node")
    return tuple(_problem(setting, nodes) for name, setting in level.settings.items() if name in OWN_VALUES)


def _problem(setting: Setting, nodes: str) -> Problem:
    source = f" ({setting.source})" if setting.source else ""
    return Problem(
        "one-nodes-own",
        f"{setting.name} has one value for {nodes}{source}: {OWN_VALUES[setting.name]}",
        setting.place,
        hint="set it under `nodes` for each node, or let a template build it from the node's name or address",
    )
