"""What a pod's author writes stands in quoted fields of a node's log: no phrase that the agent searches for means anything there.

The phrases are all texts in quotes of the agent's program, and whole lines as kubelets and runtimes write them, from the lab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

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
        measured = node.status(measure=Measure(healthz_port=10248)).measurement
        assert measured is not None
        assert (measured.lenient, measured.pulls) == (0, under_way)


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
