"""What the managers of CPUs, memory and topology require of the configuration at their start.

Sources: ``cmd/kubelet/app/server.go``, ``pkg/kubelet/cm/cpumanager/policy_options.go``,
``…/topologymanager/policy_options.go`` and ``…/memorymanager/memory_manager.go`` of 1.22, 1.26 and 1.34; the stages of
options and which options ``none`` checks also of 1.23, 1.25 and each minor from 1.27 to 1.36. Those were read in
trees that github.com/openshift/microshift vendors; its 1.31 has ``prefer-align-cpus-by-uncorecache`` already, which
Kubernetes documents since 1.32. No tree of 1.24 was available: it is assumed to have the options of 1.23. Checks that
depend on the host's topology are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction

from rollout.kubelet.configuration import go_values, quantities
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.go_values import GoValueError, quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint


class _Stage(StrEnum):
    """Alpha and beta options have a gate each; a stable option has none."""

    ALPHA = "Alpha"
    BETA = "Beta"
    STABLE = ""


_NUMA_NODES = "max-allowable-numa-nodes"
_FEWEST = 8
"""``defaultMaxAllowableNUMANodes``: the option can only raise it."""
_A, _B, _G = _Stage.ALPHA, _Stage.BETA, _Stage.STABLE
Stages = Mapping[str, tuple[tuple[int, _Stage], ...]]
"""Option → the minors from which it is in a stage, the newest first."""

_CPU_OPTIONS: Stages = {
    "full-pcpus-only": ((33, _G), (23, _B), (22, _G)),  # 1.22 has no gates for single options
    "distribute-cpus-across-numa": ((33, _B), (23, _A)),
    "align-by-socket": ((25, _A),),
    "distribute-cpus-across-cores": ((31, _A),),
    "strict-cpu-reservation": ((35, _G), (33, _B), (32, _A)),
    "prefer-align-cpus-by-uncorecache": ((36, _G), (34, _B), (32, _A)),
}
_TOPOLOGY_OPTIONS: Stages = {
    "prefer-closest-numa-nodes": ((32, _G), (28, _B), (26, _A)),
    _NUMA_NODES: ((35, _G), (31, _B)),
}
_NOT_TOGETHER = (
    (31, "full-pcpus-only", "distribute-cpus-across-cores"),
    (31, "distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    (32, "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    (32, "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
NO_THRESHOLDS = frozenset({"0%", "100%"})
"""Of a signal of eviction these two mean that it has no threshold (``parseThresholdStatement``)."""
_SWAP_NEEDS_V2_SINCE = 30
_NONE_ASKS_NOTHING = 28
"""From this minor on a topology manager of policy ``none`` ignores all options."""


def options_without_gate(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Options while the gate for options is off; an empty map (``{}``) is one too, since Go compares it with nil."""
    field, gate = "cpuManagerPolicyOptions", "CPUManagerPolicyOptions"
    options = checked.values.get(field)
    if isinstance(options, Mapping) and checked.gate_off(gate) and not checked.gate_off("CPUManager"):
        needs = f'require feature gates "CPUManager", "{gate}" enabled'
        yield Complaint(field, f"CPU Manager policy options {_go_map(options)} {needs}")
    field, gate = "topologyManagerPolicyOptions", "TopologyManagerPolicyOptions"
    options = checked.values.get(field)
    if isinstance(options, Mapping) and checked.gate_off(gate) and not checked.gate_off("TopologyManager"):
        gates = f'"TopologyManager", "{gate}"' if checked.minor == 26 else f'"{gate}"'
        yield Complaint(
            field, f"topology manager policy options {_go_map(options)} require feature gates {gates} enabled"
        )


def swap_needs_cgroup_v2(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """``LimitedSwap``, since 1.30 (``run`` in ``cmd/kubelet/app/server.go`` of 1.29, 1.30 and 1.36)."""
    if checked.minor < _SWAP_NEEDS_V2_SINCE or not checked.cgroup_v1 or checked.gate_off("NodeSwap"):
        return
    if checked.inner("memorySwap").get("swapBehavior") == "LimitedSwap":
        message = "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2"
        yield Complaint("memorySwap", message)


def topology_options(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Options that are unknown, not enabled, or of the wrong type."""
    field = "topologyManagerPolicyOptions"
    none = checked.text("topologyManagerPolicy") in {"", "none"}
    if checked.minor < 26 or checked.gate_off("TopologyManager") or (none and checked.minor >= _NONE_ASKS_NOTHING):
        return
    for message in _refused(checked, "Topology Manager", "TopologyManager", field, _TOPOLOGY_OPTIONS):
        yield Complaint(field, message)


def cpu_options(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Options of a policy without options; options that are unknown, not enabled, of the wrong type, or in conflict."""
    field, policy = "cpuManagerPolicyOptions", checked.text("cpuManagerPolicy")
    options = checked.inner(field)
    if not options or checked.minor < 22 or checked.gate_off("CPUManager"):
        return
    if policy in {"", "none"}:
        yield Complaint(field, f"None policy: received unsupported options={_go_map(options)}")
    if policy != "static":
        return
    for message in _refused(checked, "CPU Manager", "CPUManager", field, _CPU_OPTIONS):
        yield Complaint(field, message)
    on = {name for name, value in options.items() if not _no_switch(value) and go_values.boolean(str(value))}
    for since, one, other in _NOT_TOGETHER:
        if checked.minor >= since and {one, other} <= on:
            yield Complaint(field, f"static policy options {one} and {other} can not be used at the same time")
    if "align-by-socket" in on and checked.text("topologyManagerPolicy") == "single-numa-node":
        message = (
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        )
        yield Complaint(field, message)


_BEST_EFFORT_SINCE = 32
"""From here on Windows has this policy (``NewManager`` in ``pkg/kubelet/cm/memorymanager/memory_manager.go``)."""


def memory_policy(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    """``Static`` requires ``reservedMemory`` to equal the node's total reservation for each kind of memory."""
    field, policy = "memoryManagerPolicy", checked.text("memoryManagerPolicy")
    if checked.minor < 21 or checked.gate_off("MemoryManager") or policy in {"", "None"}:
        return
    if policy == "BestEffort" and checked.minor >= _BEST_EFFORT_SINCE:
        yield Complaint(field, f'policy "{policy}" is not available for platform "linux"')
        return
    if policy != "Static":
        yield Complaint(field, f'unknown policy: "{policy}"')
        return
    counts = not flags.values.get("--experimental-allocatable-ignore-eviction")
    threshold = str(checked.inner("evictionHard").get("memory.available", "0")) if counts else "0"
    if threshold in NO_THRESHOLDS:
        threshold = "0"
    if threshold.endswith("%"):
        return  # depends on the host's memory
    kept = (checked.inner(name).get("memory", "0") for name in ("kubeReserved", "systemReserved"))
    wanted = Counter({"memory": sum((_amount(each) for each in (*kept, threshold)), Fraction(0))})
    reserved = Counter[str]()
    for entry in checked.entries("reservedMemory"):
        limits = entry.get("limits") if isinstance(entry, Mapping) else None
        for kind, amount in (limits or {}).items():
            reserved[kind] += _amount(amount)  # type: ignore[assignment]  # a Counter of fractions
    for kind in sorted({*wanted, *reserved}):
        if wanted[kind] != reserved[kind]:
            told = f"the total amount {quoted(_bytes(reserved[kind]))} of type {quoted(kind)}"
            by = f"is not equal to the value {quoted(_bytes(wanted[kind]))} determined by Node Allocatable feature"
            yield Complaint("reservedMemory", f"{told} {by}")


def _refused(checked: Checked, manager: str, gates: str, field: str, known: Stages) -> Iterator[str]:
    for name, value in sorted(checked.inner(field).items()):
        stage = next((stage for since, stage in known.get(name, ()) if checked.minor >= since), None)
        if stage is None and checked.minor == 22:
            yield f"unsupported cpumanager option: {quoted(name)} ({value})"
        elif stage is None:
            yield f"unknown {manager} Policy option: {quoted(name)}"
        elif stage and checked.gate_off(f"{gates}Policy{stage}Options"):
            yield f"{manager} Policy {stage}-level Options not enabled, but option {quoted(name)} provided"
        elif message := _bad_value(name, value):
            yield message


def _bad_value(name: str, value: object) -> str:
    if name != _NUMA_NODES:
        message = _no_switch(value)
        return message and f"bad value for option {quoted(name)}: {message}"
    try:
        number = go_values.atoi(str(value))
    except GoValueError as error:
        return f"unable to convert policy option to integer {quoted(name)}: {error}"
    return f"the minimum value of {quoted(name)} should not be less than {_FEWEST}" if number < _FEWEST else ""


def _no_switch(value: object) -> str:
    try:
        go_values.boolean(str(value))
    except GoValueError as error:
        return str(error)
    return ""


def _amount(text: object) -> Fraction:
    return quantities.parse(str(text)).amount


def _bytes(amount: Fraction | int) -> str:
    whole = int(amount)
    for suffix, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % size == 0:
            return f"{whole // size}{suffix}"
    return str(whole)


def _go_map(options: Mapping[str, object]) -> str:
    """``%v`` of a Go map."""
    return "map[" + " ".join(f"{name}:{value}" for name, value in sorted(options.items())) + "]"
