"""A Node of the API as facts: why its kubelet says that it is not ready, and the versions of its programs. As an object, and as
``kubectl describe`` prints it.

The kubelet writes the message of the condition at each heartbeat, by its own checks (pkg/kubelet/nodestatus/setters.go,
``ReadyCondition``). Where the kubelet is silent, the control plane writes a message of its own, and that shows nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.facts import API_CLOCK, LONGEST_TEXT, Fact, Kind, SourceLine
from rollout.features.diagnose.rules.messages import not_ready
from rollout.features.diagnose.rules.moments import moment
from rollout.kubelet.defects.matching import KUBELET
from rollout.kubelet.runtimes.known import KNOWN

Document = Mapping[str, Any]
HEARTBEAT = "lastheartbeattime"
"""The column of ``describe`` that only conditions of a Node have."""


def is_node(document: Document) -> bool:
    """The items of a list of the API itself have no kind."""
    status = document.get("status")
    return document.get("kind") == "Node" or (
        "kind" not in document and isinstance(status, dict) and "nodeInfo" in status
    )


def node_facts(document: Document, file: str, number: int) -> Iterator[Fact]:
    meta, status = document.get("metadata"), document.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        texts = {key: text for key, text in each.items() if isinstance(text, str)} if isinstance(each, dict) else {}
        at = moment(texts.get("lastHeartbeatTime", ""))
        where = SourceLine(file, number, printable(f"Node {name}: {texts.get('message', '')}", LONGEST_TEXT))
        yield from _facts(texts, at, name if isinstance(name, str) else "", where)
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    if isinstance(name, str) and isinstance(info, dict):
        for program, version in _programs(info):
            where = SourceLine(file, number, printable(f"Node {name}: {program} {version}", LONGEST_TEXT))
            yield Fact(Kind.VERSION, None, name, API_CLOCK, where, {"by": program, "version": version})


_RUNTIMES = {known.id_scheme: known.runtime.value for known in KNOWN if known.id_scheme}


def _programs(info: Document) -> Iterator[tuple[str, str]]:
    """Of ``nodeInfo``: the kubelet, and the runtime by the scheme of its containers' ids, as in ``containerd://1.7.2``."""
    kubelet, runtime = info.get("kubeletVersion"), info.get("containerRuntimeVersion")
    if isinstance(kubelet, str):
        yield KUBELET, kubelet
    scheme, _, version = runtime.partition("://") if isinstance(runtime, str) else ("", "", "")
    if scheme in _RUNTIMES and version:
        yield _RUNTIMES[scheme], version


def described(cells: list[str], node: str, where: SourceLine) -> Iterator[Fact]:
    """Of a row of ``describe node``: type, status, heartbeat, transition, reason and message."""
    if len(cells) == len(_COLUMNS):
        try:
            at = parsedate_to_datetime(cells[2]).timestamp()
        except (ValueError, OverflowError):
            return
        yield from _facts(dict(zip(_COLUMNS, cells, strict=True)), at, node, where)


_COLUMNS = ("type", "status", "heartbeat", "transition", "reason", "message")


def _facts(condition: Mapping[str, str], at: float | None, node: str, where: SourceLine) -> Iterator[Fact]:
    kubelets_own = ("Ready", "False", "KubeletNotReady")
    if tuple(condition.get(key) for key in ("type", "status", "reason")) == kubelets_own:
        for found in not_ready(condition.get("message", "")):
            yield Fact(found.kind, at, node, API_CLOCK, where, found.fields)
