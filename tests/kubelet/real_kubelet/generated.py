"""Cases generated from the table of fields: random fields with valid, nearly valid and invalid values, and flags.

The same cases each time (``derandomize``), so that one can be named; ``fresh`` makes others. Cases that depend on the
machine of the kubelet are left out, with a comment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.case import HEAD
from tests.kubelet.real_kubelet.scarred import TOKENS, scarred

MINOR = 20
HOSTS = frozenset({
    "address", "cgroupRoot", "cgroupDriver", "systemCgroups", "kubeletCgroups", "systemReservedCgroup", "kubeReservedCgroup",
    "tlsCertFile", "tlsPrivateKeyFile", "staticPodURL", "reservedSystemCPUs", "runOnce", "authentication", "authorization",
})  # fmt: skip
"""Fields with an outcome that also depends on the machine; the named cases cover the rest."""

TABLE: Mapping[str, Any] = json.loads(resources.files("rollout.kubelet").joinpath("kubelet_fields.json").read_text())
FIELDS = {
    name: field["kind"]
    for name, field in TABLE["fields"].items()
    if field["since"] <= MINOR <= field["last"] and name not in HOSTS
}
FLAGS = {
    flag: FIELDS[row["field"]]
    for flag, row in TABLE["flags"].items()
    if row["since"] <= MINOR and row.get("field") in FIELDS
}

ODD = st.sampled_from(TOKENS)
WHOLE = st.one_of(st.integers(0, 100), st.integers(-3, 200), st.sampled_from((2**31 - 1, 2**31, -(2**31) - 1)))
NUMBERS: dict[str, SearchStrategy[int]] = {
    "port": st.integers(10256, 10269),  # two servers on one port: that of the read-only one is 10255
    "readOnlyPort": st.one_of(st.just(0), st.integers(20250, 20259)),
    # A kubelet with only some dozens of open files cannot start; the number that it needs depends on the machine.
    "maxOpenFiles": st.sampled_from((-1, 100_000, 1_000_000, 2**31)),
    "healthzPort": st.one_of(st.just(0), st.integers(30248, 30259)),
}
DURATION = st.one_of(
    st.builds("{}{}".format, st.integers(0, 5000), st.sampled_from(("s", "m", "h", "ms"))),
    st.builds(
        "{}m{}s".format, st.integers(0, 200), st.floats(0, 100, allow_nan=False).map(lambda number: f"{number:.3f}")
    ),
    st.sampled_from(("-1s", "1d", "5", "'0'", "+1m", "1h1m1s1ms", ".5h")),
)
PATIENT = st.one_of(st.builds("{}m".format, st.integers(1, 500)), st.sampled_from(("0s", "-1s", "1d", "2 m")))
WORDS = {
    "hairpinMode": ("none", "hairpin-veth", "promiscuous-bridge", "veth"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node", "loose"),
    "topologyManagerScope": ("container", "pod", "node"),
    "configMapAndSecretChangeDetectionStrategy": ("Watch", "Cache", "Get", "Poll"),
    "cpuManagerPolicy": ("none", "static", "dynamic"),
    "containerLogMaxSize": ("10Mi", "5M", "1024", "big", "-1Mi"),
    "tlsMinVersion": ("VersionTLS12", "VersionTLS10", "VersionTLS99"),
    "healthzBindAddress": ("127.0.0.1", "0.0.0.0"),  # noqa: S104 - values of a field
    "showHiddenMetricsForVersion": ('"1.19"', '"1.18"', "1.19"),
}
LISTS = {
    "enforceNodeAllocatable": ("pods", "none", "everything", "kube-reserved"),
    "tlsCipherSuites": ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "NULL"),
    "allowedUnsafeSysctls": ("kernel.msg*", "net.core.somaxconn", "vm.swappiness"),
}
GATES = ("GracefulNodeShutdown", "CustomCPUCFSQuotaPeriod", "CPUManager", "TopologyManager", "NodeLease", "AllBeta", "NoSuchGate", "RotateKubeletServerCertificate")  # fmt: skip
SIGNALS = ("memory.available", "nodefs.available", "imagefs.available", "nodefs.inodesFree", "pid.available", "memory")
AMOUNTS = ("100Mi", "5%", "0%", "1M", "-5%", "much", "10.5%")
RESOURCES = st.dictionaries(
    st.sampled_from(("cpu", "memory", "pid", "gpu")), st.sampled_from(("100m", "1", "0", "-1", "10Mi", "x")), max_size=3
)
MAPS: dict[str, SearchStrategy[dict[str, str]]] = {
    "featureGates": st.dictionaries(st.sampled_from(GATES), st.sampled_from(("true", "false")), max_size=3),
    "kubeReserved": RESOURCES,
    "systemReserved": RESOURCES,
    "qosReserved": st.dictionaries(st.sampled_from(("memory", "cpu")), st.sampled_from(("50%", "101%", "50")), max_size=1),
    "evictionSoftGracePeriod": st.dictionaries(st.sampled_from(SIGNALS), st.sampled_from(("1m", "90s", "-1s", "soon")), max_size=2),
}  # fmt: skip
EVICTION = st.dictionaries(st.sampled_from(SIGNALS), st.sampled_from(AMOUNTS), max_size=3)


def fitting(name: str, kind: str) -> SearchStrategy[str]:
    """A value of the right kind, as written in a file; not always a valid one."""
    if kind == "bool":
        return st.sampled_from(("true", "false"))
    if kind in ("int32", "int64"):
        return NUMBERS.get(name, WHOLE).map(str)
    if kind == "duration":
        return PATIENT if name == "runtimeRequestTimeout" else DURATION
    if kind == "list<string>":
        return st.lists(st.sampled_from(LISTS.get(name, ("10.0.0.10", "10.0.0.11"))), max_size=3).map(_flow_list)
    if kind == "map<string,list<string>>":
        return st.dictionaries(st.sampled_from(("X-A", "X-B")), st.just("[a, b]"), max_size=2).map(_flow_map)
    if kind.startswith("map"):
        return MAPS.get(name, EVICTION).map(_flow_map)
    if kind == "object":
        return st.sampled_from(("{}", "{format: text}", "{format: xml}", "{sanitization: true}", "{level: 5}"))
    return st.sampled_from(WORDS.get(name, ("abc", "/etc/x", "10.0.0.1")))


def _flow_list(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def _flow_map(items: dict[str, str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in items.items())}}}"


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Some fields; sometimes one is misspelt, a duplicate, or has a value of another kind."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=5, unique=True))
    body = [f"{name}: {draw(fitting(name, FIELDS[name]))}" for name in names]
    turn = draw(st.integers(0, 9))
    name = names[0]
    if turn == 0:
        body[0] = f"{name[0].upper()}{name[1:]}: {draw(fitting(name, FIELDS[name]))}"
    elif turn == 1:
        body.append(f"{name}: {draw(fitting(name, FIELDS[name]))}")
    elif turn in (2, 3, 4) and name not in NUMBERS and name != "runtimeRequestTimeout":
        body[0] = f"{name}: {draw(ODD)}"
    return "\n".join(body)


@st.composite
def words(draw: st.DrawFn) -> tuple[str, ...]:
    """Flags for fields, with the file's spelling of a value, or nearly, or with another field's value."""
    flags = draw(st.lists(st.sampled_from(sorted(FLAGS)), max_size=3))
    return tuple(f"{flag}={draw(_flag_value(flag))}" for flag in flags)


def _flag_value(flag: str) -> SearchStrategy[str]:
    name, pair = _field(flag), "<" if flag in ("--eviction-hard", "--eviction-soft") else "="
    value = fitting(name, FLAGS[flag]).map(lambda text: text.strip("[]{}").replace(": ", pair))
    return value if name in NUMBERS or name == "runtimeRequestTimeout" else st.one_of(value, value, value, ODD)


def _field(flag: str) -> str:
    return str(TABLE["flags"][flag]["field"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Without a name; one in six has no file, two in six have a damaged one."""
    turn = draw(st.integers(0, 5))
    if turn == 0:
        return Case("", None, draw(words()))
    if turn in (1, 2):
        return Case("", draw(scarred()))
    return Case("", f"{HEAD}{draw(lines())}\n".encode(), draw(st.one_of(st.just(()), words())))


def generated(count: int) -> tuple[Case, ...]:
    """Always the same for one version of hypothesis; without duplicates."""
    return _drawn("generated", count, settings(derandomize=True))


def fresh(count: int, number: int) -> tuple[Case, ...]:
    """Other cases; the same number makes the same ones again."""
    return _drawn(f"fresh {number}", count, settings(derandomize=False), number)


def _drawn(prefix: str, count: int, how: settings, number: int | None = None) -> tuple[Case, ...]:
    drawn: dict[tuple[bytes | None, tuple[str, ...]], None] = {}

    def note(case: Case) -> None:
        drawn[case.config, case.flags] = None

    run = settings(
        how, max_examples=2 * count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    noting = run(given(cases())(note))
    (noting if number is None else seed(number)(noting))()
    return tuple(Case(f"{prefix} {at:03}", *parts) for at, parts in enumerate(list(drawn)[:count]))
