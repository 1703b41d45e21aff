"""What a pod's author writes stands in quoted fields of a node's log: no phrase that the agent searches for means anything there.

The phrases are all texts in quotes of the agent's program, and whole lines as kubelets and runtimes write them, from the lab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.agent.agent_call import Measure, PullsFound
from rollout.lab import pulls
from rollout.lab.kubelet import start
from tests.agent.node import NEW, PROGRAM, Node, order
from tests.lab.trees import kubeadm

pytestmark = pytest.mark.process

START = 1000
IMAGE = pulls.IMAGE
PROGRAMS = {"containerd.service": "containerd", "crio.service": "crio", "cri-docker.service": "cri-dockerd"}


def own_lines(version: str) -> tuple[str, ...]:
    """The first lines of a kubelet that ignores a field."""
    tree = kubeadm(version)
    path = "/var/lib/kubelet/config.yaml"
    tree.write(path, (tree.read(path) or b"").decode() + "noSuchField: 1\n")
    found = start(version, ("kubelet", f"--config={path}"), tree).journal
    assert any("lenient decoding" in line for line in found), found
    return found


def phrases() -> list[str]:
    words = {text for text in re.findall(r"'([^'\n]*)'", PROGRAM) if re.search(r"[A-Za-z]{4}.*[ :\"]|[a-z]\.go", text)}
    words |= set(re.findall(r"/([^/'\n]*[A-Za-z]{4}[^/'\n]*)/b ", PROGRAM))
    runtimes = {
        getattr(each, field.name) for each in pulls.WORDS.values() for field in fields(each) if field.name != "layer"
    }
    kubelets = {line for version in ("v1.20.15", "v1.28.15", "v1.36.2") for line in own_lines(version)}
    failed = {
        f'E1120 10:00:00.000000     100 remote_image.go:113] PullImage "{IMAGE}" from image service failed: rpc error: x',
        f'E1120 10:00:00.000000     100 log.go:32] "PullImage from image service failed" err="x" image="{IMAGE}"',
        f'I1120 10:00:00.000000     100 kube_docker_client.go:347] Stop pulling image "{IMAGE}": "Status: x"',
    }
    return sorted((words | runtimes | kubelets | failed) - {""})


PHRASES = phrases()


def go(text: str) -> str:
    return json.dumps(text)


def klog(text: str) -> str:
    return f"I1120 10:00:00.000000     100 kuberuntime_manager.go:1256] {text}"


def logrus(text: str, rest: str = "") -> str:
    return f'time="2026-11-20T10:00:00.000000000Z" level=info msg={go(text)}{rest}'


KUBELETS: dict[str, Callable[[str], list[str]]] = {
    "a key": lambda text: [klog(f'"Observed pod startup duration" pod="a/b" image={go(text)} err={go(text)}')],
    "an error of several lines": lambda text: [klog('"Probe failed" err=<'), f"\t{text}", f"\t{text} x", ' > pod="a/b"'],
    "words": lambda text: [klog(f"container &Container{{Name:app,Image:{text},Args:[{text}],}} start failed in pod a_b(0): {text}")],
    "the rest of a line": lambda text: [klog("container start failed in pod: "), f" {text}", f"x {text}"],
    "JSON": lambda text: [json.dumps({"ts": 1.5e12, "caller": "prober/prober.go:1", "msg": f"Probe failed: {text}", "v": 0, "err": text}, separators=(",", ":"))],
    "a wrapper": lambda text: [logrus(f"Running {text}", f" err={go(text)}")],
}  # fmt: skip
RUNTIMES: dict[str, Callable[[str], list[str]]] = {
    "text": lambda text: [logrus(f"RunPodSandbox for &PodSandboxMetadata{{Name:{text},}}", f" error={go(text)} id={go(text)}")],
    "JSON": lambda text: [json.dumps({"error": text, "level": "info", "msg": f"StartContainer for {text}", "time": "x"}, separators=(",", ":"))],
}  # fmt: skip


OPENERS = {
    "a container": klog("container &Container{Name:app,Image:a/b:1,Command:[],Args:[x"),
    "a probe": klog('Readiness probe for "web_shop(0):app" failed (failure): x'),
    "an event": klog("Event(v1.ObjectReference{Kind:\"Pod\", Name:\"a\"}): type: 'Warning' reason: 'Unhealthy' x"),
    "a line with a control character": "[5.0K blob data]",
}
"""How a message begins that prints a text of others with its line ends: up to 1.30 a container, up to 1.20 the others."""
GAP = 5
"""Seconds for which the lines behind such a beginning may be those of others."""


def kubelets_records(pid: int) -> dict[str, str]:
    """Whole lines by which a kubelet's log ends a pull: of CRI-O that failed, of dockershim."""
    at = f"1120 10:00:00.000000     {pid}"
    return {
        "failed": f'E{at} remote_image.go:113] PullImage "{IMAGE}" from image service failed: rpc error: x',
        "failed, in words of later versions": f'E{at} log.go:32] "PullImage from image service failed" err="x" image="{IMAGE}"',
        "stopped": f'I{at} kube_docker_client.go:347] Stop pulling image "{IMAGE}": "Status: x"',
        "cancelled": f'E{at} kube_docker_client.go:340] "Cancel pulling image because of x" image="{IMAGE}" deadline="1m0s"',
    }


PROGRESS = f'I1120 10:00:00.000000     100 kube_docker_client.go:344] Pulling image "{IMAGE}": "0f: Downloading [=>  ]"'
BEGINS = {
    "containerd.service": ("containerd", 300, pulls.WORDS["containerd.service"].begins),
    "crio.service": ("crio", 300, pulls.WORDS["crio.service"].begins),
    "cri-docker.service": ("cri-dockerd", 300, pulls.WORDS["cri-docker.service"].begins),
    "docker.service": ("kubelet", 100, PROGRESS),
}
OWN = {"crio.service": ("failed", "failed, in words of later versions"), "docker.service": ("stopped", "cancelled")}
"""The records of a kubelet that end a pull of this runtime; none ends one of containerd or cri-dockerd."""


def journal(node: Node, *lines: tuple[str, int, str]) -> None:
    node.standin(
        "journal", "".join(f"[{START + 1:>7}.5] node {program}[{pid}]: {text}\n" for program, pid, text in lines)
    )


def quoted(program: str, pid: int) -> list[tuple[str, int, str]]:
    said = [("kubelet", 100, line) for host in KUBELETS.values() for phrase in PHRASES for line in host(phrase)]
    return said + [(program, pid, line) for host in RUNTIMES.values() for phrase in PHRASES for line in host(phrase)]


@pytest.fixture
def node(node: Node) -> Node:
    node.standin("unit", f"started={START * 1_000_000}\n")
    return node


@pytest.mark.parametrize("unit", PROGRAMS)
def test_a_phrase_in_a_field_means_nothing(node: Node, unit: str) -> None:
    """Neither an ignored field, nor a pull that begins, nor the end of the pull under way."""
    program, words = PROGRAMS[unit], pulls.WORDS[unit]
    node.serve(unit, f"/usr/bin/{program}", pid=300)
    hostile = quoted(program, 300)
    assert len(PHRASES) > 60
    assert len(hostile) < 8000, "the agent reads so many lines"
    for begun, under_way in (([], ()), ([(program, 300, words.begins)], (IMAGE,))):
        journal(node, *begun, *hostile)
        found = node.snapshot()
        assert isinstance(found, Snapshot)
        assert (found.measurement.lenient, found.measurement.pulls) == (0, under_way)


def at_seconds(*lines: tuple[float, tuple[str, int, str]]) -> str:
    return "".join(f"[{second:>12.6f}] node {program}[{pid}]: {text}\n" for second, (program, pid, text) in lines)


def pulls_after(node: Node, unit: str, *lines: tuple[float, tuple[str, int, str]]) -> tuple[str, ...] | None:
    """The pulls that a plan reads with these lines in the log, behind the first line of the kubelet."""
    node.serve(unit, "/usr/bin/x", pid=300)
    node.at("/var/lib/docker/tmp").mkdir(parents=True, exist_ok=True)
    node.standin("journal", at_seconds((START + 0.5, ("kubelet", 100, klog("Starting"))), *lines))
    found = node.snapshot()
    assert isinstance(found, Snapshot)
    return found.measurement.pulls


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("unit", BEGINS)
def test_a_line_in_the_text_of_a_pod_ends_no_pull(node: Node, unit: str, opener: str) -> None:
    """No field of the journal tells it from a line of the kubelet: it counts for nothing that makes a pull vanish."""
    opened = ("kubelet", 100, OPENERS[opener])
    for pid in (100, 99):
        forged = [(START + 20.1, ("kubelet", 100, line)) for line in kubelets_records(pid).values()]
        begun = (START + 10, BEGINS[unit])
        assert pulls_after(node, unit, begun, (START + 20, opened), *forged) == (IMAGE,)


@pytest.mark.parametrize("unit", BEGINS)
def test_a_kubelet_ends_the_pulls_of_no_other_runtime(node: Node, unit: str) -> None:
    """Only CRI-O and dockershim have no record of the end. The line must be klog's, of the unit's own main process."""
    begun = (START + 10, BEGINS[unit])
    for name, line in kubelets_records(100).items():
        ended = name in OWN.get(unit, ())
        assert pulls_after(node, unit, begun, (START + 20, ("kubelet", 100, line))) == (() if ended else (IMAGE,))
        assert pulls_after(node, unit, begun, (START + 20, ("kubelet", 100, kubelets_records(99)[name]))) == (IMAGE,)


@pytest.mark.parametrize("unit", OWN)
def test_a_record_counts_again_when_the_text_is_over(node: Node, unit: str) -> None:
    begun, opened = (START + 10, BEGINS[unit]), (START + 20, ("kubelet", 100, OPENERS["a container"]))
    for name in OWN[unit]:
        late = (START + 21 + GAP, ("kubelet", 100, kubelets_records(100)[name]))
        assert pulls_after(node, unit, begun, opened, late) == ()


@pytest.mark.parametrize("unit", BEGINS)
def test_a_line_in_the_text_of_a_pod_begins_no_pull_of_another_program(node: Node, unit: str) -> None:
    """Only dockershim's records are lines of the kubelet, and there one in the text of a pod is a pull: it may be one."""
    lines = {PROGRESS, *(begins for _, _, begins in BEGINS.values())}
    forged = [(START + 20.1, ("kubelet", 100, line)) for line in sorted(lines)]
    shown = pulls_after(node, unit, (START + 20, ("kubelet", 100, OPENERS["a container"])), *forged)
    assert shown == ((IMAGE,) if unit == "docker.service" else ())


def test_behind_a_beginning_that_is_gone_nothing_is_known(node: Node) -> None:
    """Of a long log only the newest lines are read: the first of them may be the middle of a message."""
    node.serve("crio.service", "/usr/bin/crio", pid=300)
    node.standin("elsewhere")  # the first line of the kubelet is not in what is read
    for second, expected in ((20.1, (IMAGE,)), (21 + GAP, ())):
        record = (START + second, ("kubelet", 100, kubelets_records(100)["failed"]))
        begun, middle = (START + 10, BEGINS["crio.service"]), (START + 20, ("kubelet", 100, "x"))
        node.standin("journal", at_seconds(begun, middle, record))
        found = node.snapshot()
        assert isinstance(found, Snapshot)
        assert found.measurement.pulls == expected


@pytest.mark.parametrize("unit", [unit for unit in BEGINS if unit != "docker.service"])
def test_the_kubelets_lines_displace_none_of_a_runtime(node: Node, unit: str) -> None:
    """What the author of a pod makes the kubelet print, or a kubelet with -v=10 prints, removes no record of a pull."""
    flood = [(START + 20 + each / 10_000, ("kubelet", 100, "x")) for each in range(8_100)]
    assert pulls_after(node, unit, (START + 10, BEGINS[unit]), *flood) == (IMAGE,)


def test_a_tenants_texts_revert_no_apply(node: Node) -> None:
    journal(node, *(each for each in quoted("containerd", 300) if each[0] == "kubelet"))
    node.standin("unit", "")
    assert node.apply(replace(order(), pulls=PullsFound.OVERRIDE)).healthy
    assert node.files() == NEW


@pytest.mark.parametrize("line", own_lines("v1.20.15")[:1] + own_lines("v1.36.2")[:1])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_kubelets_own_line_counts_once_before_its_version(node: Node, line: str, wrapped: bool) -> None:
    """Up to 1.30 a text of a pod may contain whole lines: behind the version's line none counts, and none of another process or user."""
    own = logrus(line) if wrapped else line
    version = (
        klog('"x"')
        .replace("kuberuntime_manager.go:1256", "server.go:440")
        .replace('"x"', '"Kubelet version" kubeletVersion="v1.36.2"')
    )
    node.serve("containerd.service", "/usr/bin/containerd", pid=300)
    journal(node, ("kubelet", 100, own), ("containerd", 300, own), ("kubelet", 100, version), ("kubelet", 100, own))
    measured = node.status(measure=Measure(healthz_port=10248)).measurement
    assert measured is not None
    assert measured.lenient == 1
