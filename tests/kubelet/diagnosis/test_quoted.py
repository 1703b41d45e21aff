"""What a pod's author writes stands in quoted fields of other messages: no phrase that is searched for means anything there.

The phrases are those of the tables, and every line of a log that shows a finding. The hosts are the forms of lines that the
other tests use.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rollout.kubelet.diagnosis.facts import Fact
from rollout.kubelet.diagnosis.messages import WANTED
from rollout.kubelet.diagnosis.reading import FileReading
from rollout.kubelet.diagnosis.sieve import QUOTED
from tests.kubelet.diagnosis.logs import journal, klog, logrus
from tests.kubelet.diagnosis.test_each_finding import LOGS

LINES = sorted(
    {
        line
        for shows, _ in LOGS.values()
        for line in shows.splitlines()
        if not line.lstrip().startswith(("{", "}", '"', "["))
    }
)
"""Whole lines of logs: a text with line ends may contain one."""
PHRASES = sorted({*WANTED, *(word for words in WANTED.values() for word in words if word), QUOTED.decode(), *LINES})


def go(text: str) -> str:
    """In Go's quotes, as klog and logrus print a value."""
    return json.dumps(text)


def pod(text: str) -> str:
    """A container as kubelets up to 1.30 print it, whose values are as they were written."""
    return (
        f"&Container{{Name:app,Image:{text},Command:[],Args:[{text}],Env:[]EnvVar{{EnvVar{{Name:A,Value:{text},}},}},}}"
    )


HOSTS: dict[str, Callable[[str], str]] = {
    "a key": lambda text: klog(0, f'"Observed pod startup duration" pod="shop/web" image={go(text)} err={go(text)}'),
    "an error of several lines": lambda text: klog(0, '"Probe failed" pod="shop/web" err=<') + f"\n\t{text}\n\t{text} x\n >",
    "words": lambda text: klog(0, f"Probe of container {go(text)} failed: {go(text)}"),
    "words without quotes": lambda text: klog(0, f"Probe of container {pod(text)} failed: exec of {text}"),
    "an annotation": lambda text: klog(0, f'"Pod was rejected" pod="shop/web" annotations={{"a":{go(text)}}}'),
    "JSON": lambda text: json.dumps({"ts": 1795656502746.1, "caller": "prober/prober.go:1", "msg": "Probe failed", "v": 0, "err": text, "pod": {"name": text}}),
    "JSON, compact": lambda text: json.dumps({"ts": 1.5, "caller": "a.go:1", "msg": "Probe failed", "v": 0, "err": text}, separators=(",", ":")),
    "a runtime": lambda text: logrus(0, f"RunPodSandbox for &PodSandboxMetadata{{Name:{text},}}", rest=f" error={go(text)} pod={go(text)}"),
    "a runtime's JSON": lambda text: json.dumps({"error": text, "level": "info", "msg": f"StartContainer for {text}", "time": "2026-11-20T09:00:00Z"}),
    "another program": lambda text: f"Probe of {go(text)}: {text}",
}  # fmt: skip


def in_the_journal(host: Callable[[str], str], program: str) -> Callable[[str], str]:
    return lambda text: "\n".join(journal(line, 0, program) for line in host(text).splitlines())


def as_journal_json(host: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(
        json.dumps({"MESSAGE": line, "_HOSTNAME": "n", "__REALTIME_TIMESTAMP": "1795656502746000"})
        for line in host(text).splitlines()
    )


EVERYWHERE = {
    **{name: host for name, host in HOSTS.items() if name != "another program"},
    **{f"{name}, in the journal": in_the_journal(host, "kubelet[3033]") for name, host in HOSTS.items()},
    **{f"{name}, of a container": in_the_journal(host, "web[9]") for name, host in HOSTS.items()},
    **{f"{name}, in the journal's JSON": as_journal_json(host) for name, host in HOSTS.items()},
}


def facts(text: str) -> list[Fact]:
    lines = (text + "\n").encode().splitlines(keepends=True)
    return list(FileReading("f").of(iter(lines), datetime(2026, 12, 31, tzinfo=UTC)))


@pytest.mark.parametrize("host", EVERYWHERE)
def test_a_phrase_in_a_field_means_nothing(host: str) -> None:
    shown = {
        phrase: [fact.kind.value for fact in found] for phrase in PHRASES if (found := facts(EVERYWHERE[host](phrase)))
    }
    assert shown == {}


def test_the_phrases_alone_mean_something() -> None:
    """Else the test above would prove nothing."""
    assert len(LINES) > 20
    assert sum(bool(facts(line)) for line in LINES) > len(LINES) // 2
