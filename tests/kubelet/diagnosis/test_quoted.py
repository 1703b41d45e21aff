"""What a pod's author writes stands in quoted fields of other messages: no phrase that is searched for means anything there.

The phrases are those of the tables, and every line of a log that shows a finding. The hosts are the forms of lines that the
other tests use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from rollout.kubelet.diagnosis.facts import Fact
from rollout.kubelet.diagnosis.finding import Confidence
from rollout.kubelet.diagnosis.messages import WANTED
from rollout.kubelet.diagnosis.reading import FileReading
from rollout.kubelet.diagnosis.sieve import QUOTED
from tests.kubelet.diagnosis.logs import found, journal, klog, logrus
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


def container(text: str) -> str:
    """A kubelet up to 1.30 that cannot start a container: its arguments, with their line ends, in one message."""
    ahead = f"container &Container{{Name:app,Image:a/b:1,Command:[],Args:[x{chr(10)}{text}{chr(10)}],WorkingDir:,}}"
    return klog(
        0, f"{ahead} start failed in pod web_shop(0f): ErrImagePull: not found", "E", "kuberuntime_manager.go:1256"
    )


def that_looks_whole(text: str) -> str:
    """The same, where the author ends the message before the forged lines, and begins another one behind them."""
    begins = klog(0, "container &Container{Name:app,Image:a/b:1,Command:[],Args:[", "E", "kuberuntime_manager.go:1256")
    return container(f"],}} start failed in pod web_shop(0f): ErrImagePull: not found\n{text}\n{begins}")


def probe(text: str) -> str:
    """A kubelet up to 1.20: the output of a probe as it is."""
    return klog(0, f'Liveness probe for "web_shop(0f):app" failed (failure): x\n{text}', "I", "prober.go:117")


def unhealthy(text: str) -> str:
    where = 'Event(v1.ObjectReference{Kind:"Pod", Namespace:"shop", Name:"web", UID:"0f"}): type: \'Warning\' reason:'
    return klog(0, f"{where} 'Unhealthy' Liveness probe failed: x\n{text}", "I", "event.go:209")


PRINTS_AS_IT_IS = {
    "a container": container,
    "a message that looks whole": that_looks_whole,
    "a probe": probe,
    "an event": unhealthy,
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


FORGED = {name: shows for name, (shows, _) in LOGS.items() if not shows.lstrip().startswith(("{", "["))}
"""Every log of words that shows a finding, as a text of others."""


def confidence(text: str) -> dict[str, Confidence]:
    return {each.id: each.confidence for each in found(text).values()}


@pytest.mark.parametrize("host", PRINTS_AS_IT_IS)
@pytest.mark.parametrize("name", FORGED)
def test_whole_lines_that_a_pod_may_have_written_make_nothing_certain(name: str, host: str) -> None:
    """They have a header, a source and a time as the kubelet's own lines: what they show is likely, and says why."""
    text = PRINTS_AS_IT_IS[host](FORGED[name][: 9 << 10])
    before, behind = klog(-60, '"Starting kubelet"'), klog(90, '"Observed pod" pod="shop/x"')
    for forged in (f"{before}\n{text}\n{behind}\n", *_in_the_journal(before, text, behind)):
        for each in found(forged).values():
            assert each.confidence is not Confidence.CERTAIN, (each, forged)
            assert each.confidence is not Confidence.LIKELY or each.fetch_next, each


def _in_the_journal(before: str, text: str, behind: str) -> Iterator[str]:
    """journald writes the time at which a line came, whatever time it contains."""
    lines = [journal(before, -60), *(journal(line, 0) for line in text.splitlines()), journal(behind, 90)]
    yield "\n".join(lines) + "\n"


def test_what_the_kubelet_prints_at_another_time_is_its_own() -> None:
    shows = FORGED["pleg-unhealthy"]
    assert confidence(shows)["pleg-unhealthy"] is Confidence.CERTAIN
    own = [journal(line, 60) for line in shows.splitlines()]
    around = [[journal(line, at) for line in container("x").splitlines()] for at in (0, 120)]
    assert confidence("\n".join([*around[0], *own, *around[1]]) + "\n")["pleg-unhealthy"] is Confidence.CERTAIN


def test_lines_of_others_do_not_take_certainty_from_what_is_certain_without_them() -> None:
    shows = FORGED["pleg-unhealthy"].rstrip()
    assert confidence(f"{shows}\n{container(shows)}\n")["pleg-unhealthy"] is Confidence.CERTAIN
