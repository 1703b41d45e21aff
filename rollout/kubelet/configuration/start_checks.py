"""What a kubelet refuses after validation, during its start: ``run`` and ``NewMainKubelet`` stop at the first of these.

Only what follows from the configuration and the flags alone. Whether a certificate, a cgroup, a CPU or a runtime exists
depends on the host. Sources: ``cmd/kubelet/app/server.go``, ``pkg/kubelet/kubelet.go`` and the managers they build,
1.20.2, and recorded messages of 1.20.2.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from rollout.core.text.suggest import closest
from rollout.kubelet.configuration import go_values, hints, manager_checks, quantities, serving_checks
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.go_values import GoValueError, cpus, quoted
from rollout.kubelet.configuration.validation.checked import MILLISECOND, Checked, Complaint
from rollout.kubelet.configuration.validation.policies import dotted_sysctl, namespaced_sysctl

# Maps of quantities and percentages, which a kubelet reads after validation: reservations and eviction.
#
# Sources: ``parseResourceList`` (``cmd/kubelet/app/server.go``), ``ParseThresholdConfig``
# (``pkg/kubelet/eviction/helpers.go``), ``ParseQOSReserved`` (``pkg/kubelet/cm/container_manager.go``) of
# 1.20.2. Go iterates over maps in random order; here the order is sorted.


_RESERVED = ("cpu", "memory", "ephemeral-storage", "pid")
_CONTAINERFS = frozenset({"containerfs.available", "containerfs.inodesFree"})
_CONTAINERFS_SINCE = 29
_SHARES_SINCE = 23
"""1.20.2 compares the share with 100, so that only more than 10000 % are refused; 1.23.15 with 1. Not known between."""
_NAMED_SINCE = 27
"""From about this minor on the errors of reservations name the flag and the resource."""
_PERCENT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_AMOUNT = "write a quantity, such as `100m`, `500Mi` or `1.5Gi`"
_THRESHOLD = "write a quantity or a share, such as `500Mi`, `1.5Gi` or `5%`"

Texts = Mapping[str, str]


def reservation(field: str, flag: str, amounts: Texts, minor: int) -> Iterator[Complaint]:
    """``kubeReserved`` or ``systemReserved``: the first error by name."""
    ahead = f"{flag} value failed to parse: " if minor >= _NAMED_SINCE else ""
    for name, amount in sorted(amounts.items()):
        if name not in _RESERVED:
            text = f"{ahead}cannot reserve {quoted(name)} resource"
            yield Complaint(field, text, (name,), _did_you_mean(name, _RESERVED))
            continue
        try:
            quantity = quantities.parse(amount)
        except GoValueError as error:
            which = f"failed to parse quantity {quoted(amount)} for {quoted(name)} resource: "
            text = f"{ahead}{which if minor >= _NAMED_SINCE else ''}{error}"
            yield Complaint(field, text, (name,), _AMOUNT)
            continue
        if quantity.amount < 0:
            text = f"{ahead}resource quantity for {quoted(name)} cannot be negative: {amount}"
            yield Complaint(field, text, (name,))


def _did_you_mean(name: str, known: Collection[str]) -> str:
    similar = closest(name, known)
    return f"did you mean `{similar}`?" if similar else f"known are {', '.join(sorted(known))}"


def qos_reservation(amounts: Texts, minor: int) -> Iterator[Complaint]:
    """``qosReserved``: memory in whole percent."""
    ahead = "--qos-reserved value failed to parse: " if minor >= _NAMED_SINCE else ""
    for name, amount in sorted(amounts.items()):
        text = _no_share(name, amount, minor)
        if text:
            yield Complaint("qosReserved", ahead + text, (name,))


def _no_share(name: str, amount: str, minor: int) -> str:
    if name != "memory":
        return f"cannot reserve {quoted(name)} resource"
    message = _no_percentage(amount)
    which = f"failed to parse percentage {quoted(amount)} for {quoted(name)} resource: "
    return f"{which if minor >= _NAMED_SINCE else ''}{message}" if message else ""


def _no_percentage(amount: str) -> str:
    if not amount.endswith("%"):
        return f"percentage expected, got '{amount}'"
    if not _PERCENT.fullmatch(amount.rstrip("%")):
        return f"invalid number in percentage '{amount}'"
    return "" if 0 <= int(amount.rstrip("%")) <= 100 else "percentage must be between 0 and 100"


def _read(field: str, statements: Texts, minor: int, read: Callable[[str, str, int], None]) -> Iterator[Complaint]:
    """The entries of a map of eviction, by name, that ``read`` refuses or that are no signals."""
    signals = hints.SIGNALS | (_CONTAINERFS if minor >= _CONTAINERFS_SINCE else frozenset())
    for signal, value in sorted(statements.items()):
        if signal not in signals:
            yield Complaint(field, f"unsupported eviction signal {signal}", (signal,), _did_you_mean(signal, signals))
            continue
        try:
            read(signal, value, minor)
        except GoValueError as error:
            yield Complaint(field, str(error), (signal,), _EVICTION_HINTS.get(field, _THRESHOLD))


_EVICTION_HINTS = {"evictionSoftGracePeriod": "write a duration, such as `90s` or `1m30s`"}


def _threshold(signal: str, value: str, minor: int) -> None:
    """0 % and 100 % are no thresholds."""
    if value in manager_checks.NO_THRESHOLDS:
        return
    if value.endswith("%"):
        percent = _percent(value)
        if percent < 0:
            raise GoValueError(f"eviction percentage threshold {signal} must be >= 0%: {value}")
        if percent / 100 > (1 if minor >= _SHARES_SINCE else 100):
            raise GoValueError(f"eviction percentage threshold {signal} must be <= 100%: {value}")
    elif quantities.parse(value).amount <= 0:
        raise GoValueError(f"eviction threshold {signal} must be positive: {value}")


def _percent(value: str) -> float:
    """``parsePercentage`` reads a float32."""
    return go_values.decimal(value.rstrip("%"), go_values.FLOAT32)


def over_capacity(hard: Texts) -> bool:
    """Thresholds over all of the node's memory or disk: nothing can be allocated on any node."""
    values = (hard.get(signal, "") for signal in ("memory.available", "nodefs.available"))
    return any(value.endswith("%") and not _percent(value) <= 100 for value in values)


def _grace_period(_: str, value: str, __: int) -> None:
    if go_values.duration(value) < 0:
        raise GoValueError(f"invalid eviction grace period specified: {value}, must be a positive value")


def _reclaim(signal: str, value: str, _: int) -> None:
    if value.endswith("%"):
        if _percent(value) <= 0:
            raise GoValueError(f"eviction percentage minimum reclaim {signal} must be positive: {value}")
    elif quantities.parse(value).amount < 0:
        raise GoValueError(f"negative eviction minimum reclaim specified for {signal}")


_REMOTE_ONLY_SINCE = 24
_ANSWERABLE = MILLISECOND
"""No runtime answers faster: a kubelet 1.20.2 with 100µs never started."""

_SLASHES_SINCE = 23
"""From here on ``net/ipv4/x`` is ``net.ipv4.x``: normalized before the look-up."""

_PREFIX_SHOWN_SINCE = 29
"""From here on an error about a name shows it without ``*``, and has "sysctls" for every one."""

_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LAST_SEGMENT = "([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_PATTERN, _PATTERN_OF_DOTS = (rf"({_SEGMENT}{between})*{_LAST_SEGMENT}" for between in (r"[\./]", r"\."))
_SYSCTL = re.compile(_PATTERN, re.ASCII)

Check = Callable[[Checked, Flags], Iterator[Complaint]]


def refusal(checked: Checked, flags: Flags) -> Complaint | None:
    """The first reason why it stops, or ``None``."""
    message = (
        replace(complaint, text=ahead + complaint.text)
        for ahead, checks in _STEPS
        for check in checks
        for complaint in check(checked, flags)
    )
    return next(message, None)


def _remote(checked: Checked, flags: Flags) -> bool:
    return checked.minor >= _REMOTE_ONLY_SINCE or flags.text("--container-runtime") == "remote"


def _cpus(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Parts that name no CPU leave an empty list, and the kubelet reads its first entry: a panic."""
    listed = checked.text("reservedSystemCPUs")
    if listed and not cpus(listed):
        yield Complaint("reservedSystemCPUs", "panic: runtime error: index out of range [0] with length 0")


def _reservations(checked: Checked, _: Flags) -> Iterator[Complaint]:
    for name, flag in (("kubeReserved", "--kube-reserved"), ("systemReserved", "--system-reserved")):
        yield from reservation(name, flag, checked.inner(name), checked.minor)


def _hard_eviction(checked: Checked, _: Flags) -> Iterator[Complaint]:
    yield from _read("evictionHard", checked.inner("evictionHard"), checked.minor, _threshold)


def _qos(checked: Checked, _: Flags) -> Iterator[Complaint]:
    yield from qos_reservation(checked.inner("qosReserved"), checked.minor)


def _cpu_policy(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Unknown policies, and ``static`` without a CPU reserved for the system."""
    policy = checked.text("cpuManagerPolicy")
    if policy == "none" or checked.gate_off("CPUManager"):
        return
    if policy != "static":
        yield Complaint("cpuManagerPolicy", f'unknown policy: "{policy}"')
    elif not checked.text("reservedSystemCPUs") and not _reserved_cpu(checked):
        message = "[cpumanager] unable to determine reserved CPU resources for static policy"
        yield Complaint("cpuManagerPolicy", message)


def _reserved_cpu(checked: Checked) -> bool:
    amounts = (checked.inner(name).get("cpu", "0") for name in ("kubeReserved", "systemReserved"))
    return sum(quantities.parse(str(amount)).amount for amount in amounts) > 0


def _sync(checked: Checked, _: Flags) -> Iterator[Complaint]:
    if checked.duration("syncFrequency") <= 0:
        yield Complaint("syncFrequency", f"invalid sync frequency {checked.duration('syncFrequency')}")


def _iptables(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Since 1.28 the kubelet does not use these two (KEP 3178)."""
    same = checked.number("iptablesMasqueradeBit") == checked.number("iptablesDropBit")
    if checked.minor < 28 and checked.flag("makeIPTablesUtilChains") and same:
        yield Complaint("iptablesDropBit", "iptables-masquerade-bit and iptables-drop-bit must be different")


def _allocatable(checked: Checked, _: Flags) -> Iterator[Complaint]:
    if over_capacity(checked.inner("evictionHard")):
        yield Complaint("evictionHard", "Failed to start ContainerManager invalid Node Allocatable configuration")


def _credential_providers(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    """Their flags belong together; until 1.23 their gate is off by default (``kuberuntime_manager.go`` of 1.25 to 1.36)."""
    if checked.gate_off("KubeletCredentialProviders"):
        return
    config, folder = flags.text("--image-credential-provider-config"), flags.text("--image-credential-provider-bin-dir")
    ahead = "Failed to register CRI auth plugins"
    if config and not folder:
        yield Complaint("", f"{ahead}: plugin binary directory  did not exist")
    if folder and not config:
        yield Complaint("", f"{ahead}: credential provider config path is empty")


def _system_cgroups(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Processes that are in no container cannot be moved into the root cgroup: they are in it already."""
    if checked.text("systemCgroups") == "/":
        yield Complaint("systemCgroups", 'Failed to start ContainerManager system container cannot be root ("/")')


def _eviction(checked: Checked, _: Flags) -> Iterator[Complaint]:
    for field, read in _EVICTION:
        yield from _read(field, checked.inner(field), checked.minor, read)
    soft, grace = checked.inner("evictionSoft"), checked.inner("evictionSoftGracePeriod")
    for signal in sorted(soft):
        if soft[signal] not in manager_checks.NO_THRESHOLDS and signal not in grace:
            text = f"grace period must be specified for the soft eviction threshold {signal}"
            hint = f"write `{signal}` below `evictionSoftGracePeriod`, such as `1m30s`"
            yield Complaint("evictionSoft", text, (signal,), hint)


_EVICTION = (
    ("evictionHard", _threshold),
    ("evictionSoft", _threshold),
    ("evictionSoftGracePeriod", _grace_period),
    ("evictionMinimumReclaim", _reclaim),
)


def _change_detection(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Newer kubelets check it only with an API server, which every node of a cluster has."""
    mode = checked.text("configMapAndSecretChangeDetectionStrategy")
    if mode not in {"Watch", "Cache", "Get"}:
        yield Complaint(
            "configMapAndSecretChangeDetectionStrategy", f"unknown configmap and secret manager mode: {mode}"
        )


def _log_manager(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    if not _remote(checked, flags) or checked.gate_off("CRIContainerLogRotation"):
        return
    ahead = "failed to initialize container log manager:"
    files, size = checked.number("containerLogMaxFiles"), checked.text("containerLogMaxSize")
    if files <= 1:
        yield Complaint("containerLogMaxFiles", f"{ahead} invalid MaxFiles {files}, must be > 1")
    message = _size_error(size)
    if message:
        parsing = f"failed to parse container log max size {quoted(size)}"
        yield Complaint("containerLogMaxSize", f"{ahead} {parsing}: {message}")


def _size_error(size: str) -> str:
    try:
        whole = quantities.parse(size).whole
    except GoValueError as error:
        return str(error)
    if whole is None:
        return "invalid max log size"
    return f"negative max log size {whole}" if whole < 0 else ""


def _answer_in_time(checked: Checked, _: Flags) -> Iterator[Complaint]:
    if checked.duration("runtimeRequestTimeout") < _ANSWERABLE:
        yield Complaint("runtimeRequestTimeout", "context deadline exceeded")


def _runtime(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    runtime = flags.values.get("--container-runtime", "remote")
    if runtime not in {"remote", "docker"}:  # from 1.24 on the flag itself is refused
        yield Complaint("", f"unsupported CRI runtime: {quoted(runtime)}")
    if _remote(checked, flags) and flags.values.get("--container-runtime-endpoint") == "":
        message = "get remote runtime typed version failed: rpc error: code = Unavailable"
        yield Complaint("containerRuntimeEndpoint", message)


def _sysctls(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """``NewAllowlist`` (``pkg/kubelet/sysctl/allowlist.go``, 1.23 to 1.36)."""
    if checked.gate_off("Sysctls"):
        return
    for written in checked.entries("allowedUnsafeSysctls"):
        slashes = checked.minor >= _SLASHES_SINCE
        pattern = dotted_sysctl(written) if slashes else written
        if len(written) > 253 or not _SYSCTL.fullmatch(written):
            regex = _PATTERN if slashes else _PATTERN_OF_DOTS
            message = f"sysctl {quoted(written)} must have at most 253 characters and match regex {regex}"
            yield Complaint("allowedUnsafeSysctls", message)
        elif not namespaced_sysctl(pattern.removesuffix("*"), checked.minor):
            prefix_shown = checked.minor >= _PREFIX_SHOWN_SINCE
            subject = "the sysctls" if prefix_shown or pattern.endswith("*") else "the sysctl"
            named = quoted(pattern.removesuffix("*") if prefix_shown else pattern)
            yield Complaint("allowedUnsafeSysctls", f"{subject} {named} are not known to be namespaced")


def _hostname(_: Checked, flags: Flags) -> Iterator[Complaint]:
    """``GetHostname`` trims blanks."""
    written = flags.text("--hostname-override")
    if written and not written.strip():
        yield Complaint("", "empty hostname is invalid")


def _root_folder(_: Checked, flags: Flags) -> Iterator[Complaint]:
    """A kubelet looks for the mount point of its folder; a relative name is below none (``findMountInfo``, 1.20.2 to 1.36)."""
    folder = flags.text("--root-dir")
    if folder and not folder.startswith("/"):
        name = quoted(posixpath.normpath(folder))
        yield Complaint("", f"error configuring root directory: cannot find mount point for {name}")


def _no_root_folder(_: Checked, flags: Flags) -> Iterator[Complaint]:
    """``NewMainKubelet``."""
    if flags.values.get("--root-dir") == "":
        yield Complaint("", 'invalid root directory ""')


def _run_once(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """It exits after one look for pods; without any pod, it exits with this error."""
    if checked.flag("runOnce"):
        yield Complaint("runOnce", "runonce failed: no pod manifest update after 1s")


_RUN = "failed to run Kubelet: "
_NEW = f"{_RUN}failed to create kubelet: "
_STEPS: tuple[tuple[str, tuple[Check, ...]], ...] = (
    ("", (serving_checks.tls,)),
    (_RUN, (_hostname,)),
    (_RUN, (serving_checks.lock, serving_checks.cloud_provider, serving_checks.authorization)),
    ("", (_cpus,)),
    (_RUN, (_reservations, _hard_eviction, _qos)),
    (_RUN, (manager_checks.options_without_gate, manager_checks.swap_needs_cgroup_v2, manager_checks.topology_options)),
    (_RUN, (_cpu_policy, manager_checks.cpu_options, manager_checks.memory_policy, _answer_in_time)),
    (_RUN, (serving_checks.endpoints, serving_checks.node_ips, serving_checks.seccomp)),
    (_NEW, (_no_root_folder, _runtime, _sync, _iptables, _eviction, _change_detection, _log_manager, _sysctls)),
    ("", (_credential_providers, _root_folder, _allocatable, _system_cgroups, serving_checks.http2)),
    (_RUN, (_run_once,)),
    ("", (serving_checks.address, serving_checks.ports)),
)
"""In the order of the kubelet, each with the prefix of its error."""
