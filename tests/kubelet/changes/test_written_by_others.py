"""For any file that a kubelet starts with, however it is written: a change sets what is wanted and nothing else.

Files, nodes and settings are drawn from the tables of fields and minors. What a kubelet would do with the new file is asked
of ``kubelet.configuration``, which is compared with real kubelets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hypothesis import assume, given
from hypothesis import strategies as st

from rollout.core.model.plan import ExcludedNode, Standing
from rollout.core.model.playbook import Policy, Shadowed
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import FileState, Snapshot, digest
from rollout.kubelet import versions
from rollout.kubelet.configuration.outcome import KubeletOutcome
from rollout.kubelet.configuration.yaml_document import read as as_a_kubelet
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.values import flag_text
from tests.kubelet import nodes
from tests.kubelet.deciding import decide, pinned
from tests.kubelet.nodes import CONFIG, POLICY
from tests.kubelet.real_kubelet.generated import TABLE

HEAD: dict[str, Value] = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
SIGNALS = st.sampled_from(("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"))
AMOUNTS = st.sampled_from(("0%", "1%", "99%", "100%", "101%", "-1%", "100Mi", "1e3", "1Gi", "0", "", "5"))
DURATIONS = st.sampled_from(("0s", "1s", "90s", "1m30s", "1h30m", "5m", "100ms", "1.5h", "-1s", "2400h"))
NUMBERS = st.one_of(st.integers(0, 200), st.sampled_from((-1, 2**31 - 1, 2**31)))
AMOUNT_MAPS = {"evictionHard", "evictionSoft", "evictionMinimumReclaim"}
OWN: Mapping[str, st.SearchStrategy[Value]] = {
    "authorization": st.just({"mode": "Webhook"}),
    "authentication": st.sampled_from([{"anonymous": {"enabled": False}}, {"webhook": {"cacheTTL": "3m"}}]),
    "logging": st.sampled_from([{"verbosity": 4}, {"flushFrequency": "7s"}, {"format": "json"}]),
    "memorySwap": st.sampled_from([{"swapBehavior": "NoSwap"}, {"swapBehavior": "LimitedSwap"}, {}]),
    "crashLoopBackOff": st.sampled_from([{"maxContainerRestartPeriod": "20s"}, {}]),
    "featureGates": st.dictionaries(st.sampled_from(("AllAlpha", "AllBeta", "GracefulNodeShutdown")), st.booleans(), max_size=2),
    "clusterDNS": st.lists(st.sampled_from(("10.0.0.10", "fd00::a")), max_size=2),
    "enforceNodeAllocatable": st.lists(st.sampled_from(("pods", "none")), max_size=1),
    "allowedUnsafeSysctls": st.lists(st.sampled_from(("kernel.msg*", "net.core.somaxconn")), max_size=2),
    "kubeReserved": st.dictionaries(st.sampled_from(("cpu", "memory", "pid")), st.sampled_from(("0", "100m", "1Gi")), max_size=2),
    "systemReserved": st.dictionaries(st.sampled_from(("cpu", "memory")), st.sampled_from(("1", "200Mi", "1e3")), max_size=2),
    "evictionSoftGracePeriod": st.dictionaries(SIGNALS, DURATIONS, max_size=2),
    "shutdownGracePeriodByPodPriority": st.lists(
        st.fixed_dictionaries({"priority": NUMBERS, "shutdownGracePeriodSeconds": NUMBERS}), max_size=2
    ),
    "containerLogMaxSize": st.sampled_from(("10Mi", "5M", "1024", "-1", "big")),
    "hairpinMode": st.sampled_from(("none", "hairpin-veth")),
    "topologyManagerPolicy": st.sampled_from(("none", "best-effort", "loose")),
    "clusterDomain": st.sampled_from(("cluster.local", "no", "1e3", "ü.example", "")),
    "memoryThrottlingFactor": st.sampled_from((0.8, 1.0, 0, 1.5)),
}  # fmt: skip
BY_KIND: Mapping[str, st.SearchStrategy[Value]] = {
    "bool": st.booleans(),
    "int32": NUMBERS,
    "int64": NUMBERS,
    "duration": DURATIONS,
    "map<string,string>": st.dictionaries(SIGNALS, AMOUNTS, max_size=3),
}
FIELDS: Mapping[str, tuple[str, int, int]] = {
    name: (field["kind"], field["since"], field["last"])
    for name, field in TABLE["fields"].items()
    if name in OWN or field["kind"] in {"bool", "int32", "int64", "duration"} or name in AMOUNT_MAPS
}
RUNTIMES = {20: "dockershim", 22: "cri-dockerd", 24: "crio"}


def fitting(name: str) -> st.SearchStrategy[Value]:
    return OWN[name] if name in OWN else BY_KIND[FIELDS[name][0]]


@st.composite
def some_fields(draw: st.DrawFn, minor: int, least: int, most: int) -> dict[str, Value]:
    known = [name for name, (_, since, last) in FIELDS.items() if since <= minor <= last]
    names = draw(st.lists(st.sampled_from(known), min_size=least, max_size=most, unique=True))
    return {name: draw(fitting(name)) for name in names}


# How a file is written.


def compact(document: Mapping[str, Value]) -> str:
    return json.dumps(document, separators=(",", ":"))


def indented(document: Mapping[str, Value]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def tabbed(document: Mapping[str, Value]) -> str:
    return json.dumps(document, indent="\t") + "\n"


def by_hand(document: Mapping[str, Value]) -> str:
    """Comments everywhere, with tabs before and in them; flow values, as JSON; a key in quotes now and then."""
    lines = ["# von Hand\tgeändert"]
    for at, (name, value) in enumerate(document.items()):
        key = json.dumps(name) if at % 3 == 2 else name
        gap = "\t" if at % 2 else " "
        lines.append(f"{key}:{gap}{json.dumps(value, ensure_ascii=False)}\t# about {name}")
    return "\n".join(lines) + "\n"


def blocks(document: Mapping[str, Value], indent: str = "") -> str:
    """As kubeadm writes, with a comment above each field."""
    lines: list[str] = []
    for name, value in document.items():
        lines += [] if indent else [f"# about {name}"]
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", blocks(value, indent + "  ").removesuffix("\n")]
        elif isinstance(value, list) and value:
            lines += [f"{indent}{name}:", *(f"{indent}- {json.dumps(entry)}" for entry in value)]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


STYLES: tuple[Callable[[Mapping[str, Value]], str], ...] = (compact, indented, tabbed, by_hand, blocks)


@dataclass(frozen=True)
class Drawn:
    """A node with this file, and what is wanted of it."""

    node: Snapshot
    text: bytes
    old: Mapping[str, Value]
    wanted: Mapping[str, Value]
    pin: bool
    policy: Policy


def with_config(found: Snapshot, content: bytes) -> Snapshot:
    state = FileState(CONFIG, "regular", "600", "0:0", len(content), digest(content), content)
    return nodes.with_file(found, state)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """A node that runs, by kubeadm or with a plain unit; some have flags for fields too, and some a folder of drop-ins."""
    minor = draw(st.sampled_from(range(20, 37)))
    runtime = next((name for last, name in RUNTIMES.items() if minor <= last), "containerd")
    make = draw(st.sampled_from((nodes.kubeadm, nodes.plain, flagged(draw(flags(minor))))))
    bare = make(version=f"1.{minor}.3", runtime=runtime)
    if minor >= 30 and make is nodes.kubeadm and draw(st.booleans()):
        site = {**HEAD, **draw(some_fields(minor, 0, 2))}
        bare = nodes.with_config_dir(bare, {"10-site.conf": blocks(site)})
    old = {**HEAD, **draw(some_fields(minor, 0, 5))}
    style, end, whole = draw(st.sampled_from(STYLES)), draw(st.sampled_from(("\n", "\r\n"))), draw(st.booleans())
    text = (style(old) if whole else style(old).rstrip("\n")).replace("\n", end).encode()
    found = with_config(bare, text)
    assume(starts(found))
    policy = replace(POLICY, shadowed=draw(st.sampled_from(Shadowed)))
    return Drawn(found, text, old, draw(some_fields(minor, 1, 3)), draw(st.booleans()), policy)


@st.composite
def flags(draw: st.DrawFn, minor: int) -> str:
    """Flags of one to three fields."""
    known = [
        flag for flag, row in TABLE["flags"].items() if row["since"] <= minor < (row["removed"] or 99) and _plain(row)
    ]
    some = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    return " ".join(f"{flag}={flag_text(draw(fitting(TABLE['flags'][flag]['field'])))}" for flag in some)


def _plain(row: Mapping[str, str]) -> bool:
    return row.get("field") in FIELDS and FIELDS[row["field"]][0] in {"bool", "int32", "duration"}


def flagged(words: str) -> Callable[..., Snapshot]:
    def make(**about: str) -> Snapshot:
        return nodes.kubeadm(extra=f'KUBELET_EXTRA_ARGS="{words}"\n', words=words, **about)

    return make


def starts(found: Snapshot) -> bool:
    try:
        return outcome(found).starts
    except LayoutError:
        return False


def outcome(found: Snapshot) -> KubeletOutcome:
    version = versions.known(found.kubelet_version)
    return sources.find(found, version, nodes.node(found.node)).outcome


@given(drawn())
def test_only_what_is_wanted_changes(case: Drawn) -> None:
    wanted = {name: Setting(name, value, source="playbook p") for name, value in case.wanted.items()}
    wanted = pinned(wanted) if case.pin else wanted
    got = decide(case.node, wanted, case.policy)
    if isinstance(got, ExcludedNode):
        assert not got.reference.startswith("yaml-"), (case.text, got)
        assert "json parse error" not in got.reason, (case.text, got)
        return
    after = nodes.applied(case.node, got.change)
    again = decide(after, wanted, case.policy)
    assert isinstance(again, ExcludedNode), again
    assert again.standing is Standing.AS_WANTED, again
    for file in got.change.files:
        if file.path == CONFIG:
            untouched(case, file.after)
    told = [note for note in got.change.notes if note.startswith("side effect: ")]
    for path in changed(outcome(case.node).effective, outcome(after).effective, case.wanted):
        assert any(note.startswith(f"side effect: {path}: ") for note in told), (path, case.text, told)


def untouched(case: Drawn, content: bytes) -> None:
    """Every byte that is not a wanted field's: comments, ends of lines, and the text of each other field."""
    now = json.loads(content) if content.startswith(b"{") else as_a_kubelet(content).value
    assert isinstance(now, dict)
    assert [name for name in now if name in case.old] == list(case.old)
    assert {name: now[name] for name in case.old if name not in case.wanted} == {
        name: value for name, value in case.old.items() if name not in case.wanted
    }
    kept = [line for line in case.text.split(b"\n") if line and not _ours(line, case)]
    lines = iter(content.split(b"\n"))
    assert all(any(line in now for now in lines) for line in kept), (case.text, content)


def _ours(line: bytes, case: Drawn) -> bool:
    """Whether a line is, or may be inside of, a wanted field; the only line of a compact file is."""
    if line.startswith(b"{") or (not line.lstrip().startswith(b"#") and line[:1] in b" \t-"):
        return True
    return any(re.match(rf'\s*"?{name}"?:'.encode(), line) for name in case.wanted)


def changed(
    before: Mapping[str, Value], after: Mapping[str, Value], wanted: Mapping[str, Value], at: str = ""
) -> list[str]:
    """The paths of values in force that differ although they are not wanted."""
    found: list[str] = []
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        asked = wanted.get(name)
        if name not in wanted:
            found += [at + name] if was != now else []
        elif isinstance(asked, dict) and isinstance(was, dict) and isinstance(now, dict):
            found += changed(was, now, asked, f"{at}{name}.")
    return found
