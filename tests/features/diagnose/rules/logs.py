"""Lines and events as kubelets, runtimes and ``kubectl`` print them, and their diagnosis."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rollout.features.diagnose.rules.diagnosis import Diagnosis, diagnosed
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import Finding, ProposalTarget
from rollout.features.diagnose.rules.reading import FileReading

RECORDED = Path(__file__).parent / "recorded"
BEGIN = datetime(2026, 11, 20, 9, 0, 0, tzinfo=UTC)
NODE = "tess-node-0007"


def klog(seconds: float, message: str, level: str = "I", place: str = "kubelet.go:2449") -> str:
    """A line of a kubelet, ``seconds`` after 09:00."""
    at = BEGIN + timedelta(seconds=seconds)
    return f"{level}{at:%m%d %H:%M:%S.%f}    3033 {place}] {message}"


def journal(line: str, seconds: float, program: str = "kubelet[3033]", node: str = NODE) -> str:
    """The line as ``journalctl`` prints it."""
    return f"{BEGIN + timedelta(seconds=seconds):%b %d %H:%M:%S} {node} {program}: {line}"


def logrus(seconds: float, message: str, level: str = "info", rest: str = "") -> str:
    """A line of containerd or dockerd."""
    at = BEGIN + timedelta(seconds=seconds)
    return f'time="{at:%Y-%m-%dT%H:%M:%S.%f}000Z" level={level} msg={json.dumps(message)}{rest}'


def event(
    seconds: float, reason: str, message: str, pod: str = "web-1", *, first: float | None = None, count: int = 1, node: str = NODE,
    kind: str = "Pod",
) -> dict[str, object]:  # fmt: skip
    """An Event of v1; ``seconds`` is the time of its last, ``first`` that of its first occurrence."""
    started, last = (BEGIN + timedelta(seconds=int(each)) for each in (seconds if first is None else first, seconds))
    about = {
        "kind": kind,
        "name": pod,
        "namespace": "shop" if kind == "Pod" else "",
        "fieldPath": "spec.containers{app}",
    }
    return {
        "apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": reason, "message": message, "count": count,
        "type": "Normal", "firstTimestamp": f"{started:%Y-%m-%dT%H:%M:%SZ}", "lastTimestamp": f"{last:%Y-%m-%dT%H:%M:%SZ}",
        "source": {"component": "kubelet", "host": node}, "metadata": {"name": f"{pod}.{int(seconds)}", "namespace": "shop"},
    }  # fmt: skip


def event_list(events: Iterable[dict[str, object]]) -> str:
    return json.dumps({"apiVersion": "v1", "items": list(events), "kind": "List", "metadata": {}}, indent=4)


def pulls(image: str, pod: str, begun: float, ended: float, error: str = "", done: str = "") -> list[dict[str, object]]:
    """The events of one pull."""
    end = event(ended, "Failed", f'Failed to pull image "{image}": {error}', pod)
    if not error:
        end = event(ended, "Pulled", f'Successfully pulled image "{image}"{done}', pod)
    return [event(begun, "Pulling", f'Pulling image "{image}"', pod), end]


def diagnosis(*files: str | bytes, minor: int | None = None, year: int = 2026) -> Diagnosis:
    """Of files called ``file-1`` and so on, last changed at the end of the year."""
    facts, readings = Facts(), []
    for number, content in enumerate(files, 1):
        data = content.encode() if isinstance(content, str) else content
        reading = FileReading(f"file-{number}")
        for fact in reading.of(iter(data.splitlines(keepends=True)), datetime(year, 12, 31, tzinfo=UTC)):
            facts.add(fact)
        readings.append(reading)
    return diagnosed(facts, ProposalTarget("rno", minor), readings)


def found(*files: str | bytes, minor: int | None = None) -> dict[str, Finding]:
    """The findings by their ids."""
    return {each.id: each for each in diagnosis(*files, minor=minor).findings}


def lines(*texts: str) -> str:
    return "\n".join(texts) + "\n"
