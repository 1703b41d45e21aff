"""Which images a node is pulling, by each runtime's own records: lines in the journal and files of layers under way."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import Snapshot, Token
from rollout.kubelet.agent.agent_call import Measure, PullsFound
from tests.agent.node import CONFIG, Node, order

pytestmark = pytest.mark.process

START = 1000
"""The second (since boot) in which the kubelet's process started."""

CONTAINERD = ("containerd", 300)
CRIO = ("crio", 300)
CRI_DOCKERD = ("cri-dockerd", 400)
KUBELET = ("kubelet", 100)
LAYER = "/var/lib/docker/tmp/GetImageBlob123456789"
INGEST = "io.containerd.content.v1.content/ingest/0f1e2d/data"


@pytest.fixture
def node(node: Node) -> Node:
    node.standin("unit", f"started={START * 1_000_000}\n")
    return node


def line(who: tuple[str, int], text: str, second: int = START + 50) -> str:
    return f"[{second:>7}.123456] node {who[0]}[{who[1]}]: {text}\n"


FIRST = line(KUBELET, "I1120 10:00:00.000000     100 server.go:1] Starting", START)
"""Where the first line of the kubelet is read, no line before it is missing."""


def journal(node: Node, *lines: str) -> None:
    node.standin("journal", "".join(lines))


def pulls(node: Node) -> tuple[str, ...] | None:
    """As a plan reads it."""
    found = node.snapshot()
    assert isinstance(found, Snapshot)
    return found.measurement.pulls


def logged(text: str, level: str = "info", rest: str = "") -> str:
    quoted = text.replace('"', '\\"')
    return f'time="2026-11-20T10:00:00.000000000Z" level={level} msg="{quoted}"{rest}'


# ------------------------------------------------------------------------------------------------------------ containerd


@pytest.fixture
def containerd(node: Node) -> Node:
    node.serve("containerd.service", "/usr/bin/containerd", pid=CONTAINERD[1])
    return node


def test_a_containerd_without_log_lines_pulls_nothing(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged("loading plugin")))
    assert pulls(containerd) == ()


def test_a_snapshot_reports_pulls_too(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    found = containerd.snapshot()
    assert isinstance(found, Snapshot)
    assert found.measurement.pulls == ("a:1",)


def test_a_pull_of_containerd_that_neither_returned_nor_failed(containerd: Node) -> None:
    began, ended = (
        logged('PullImage "docker.io/a/b:1"'),
        logged('PullImage "docker.io/a/b:1" returns image reference "sha256:1"'),
    )
    journal(containerd, line(CONTAINERD, began))
    assert pulls(containerd) == ("docker.io/a/b:1",)
    journal(containerd, line(CONTAINERD, began), line(CONTAINERD, ended))
    assert pulls(containerd) == ()
    journal(containerd, line(CONTAINERD, began), line(CONTAINERD, began), line(CONTAINERD, ended))
    assert pulls(containerd) == ("docker.io/a/b:1",)
    failed = logged('PullImage "docker.io/a/b:1" failed', "error", ' error="context canceled"')
    journal(containerd, line(CONTAINERD, began), line(CONTAINERD, failed))
    assert pulls(containerd) == ()


def test_containerds_other_lines_about_pulling_end_nothing(containerd: Node) -> None:
    journal(
        containerd,
        line(CONTAINERD, logged('PullImage "x:1"')),
        line(CONTAINERD, logged("stop pulling image x:1: active requests=0, bytes read=5")),
        line(CONTAINERD, logged("cancel pulling image x:1 because of no progress in 5m0s", "error")),
    )
    assert pulls(containerd) == ("x:1",)


def test_containerd_that_logs_json(containerd: Node) -> None:
    began = r'{"level":"info","msg":"PullImage \"a:1\"","time":"2026-11-20T10:00:00Z"}'
    ended = r'{"level":"info","msg":"PullImage \"b:1\" returns image reference \"sha256:1\"","time":"x"}'
    journal(containerd, line(CONTAINERD, began), line(CONTAINERD, began.replace("a:1", "b:1")), line(CONTAINERD, ended))
    assert pulls(containerd) == ("a:1",)


def test_pulls_end_with_the_kubelet_that_requested_them(containerd: Node) -> None:
    journal(
        containerd,
        line(CONTAINERD, logged('PullImage "old:1"'), START - 1),
        line(CONTAINERD, logged('PullImage "new:1"'), START),
    )
    assert pulls(containerd) == ("new:1",)


def test_a_layer_that_is_being_written_is_a_pull_even_without_a_log_line(containerd: Node) -> None:
    containerd.write(f"/var/lib/containerd/{INGEST}", b"half")
    assert pulls(containerd) == ("(unnamed)",)
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    assert pulls(containerd) == ("a:1",)


def test_the_remains_of_an_interrupted_pull_do_not_count(containerd: Node) -> None:
    containerd.write(f"/var/lib/containerd/{INGEST}", b"half")
    os.utime(containerd.at(f"/var/lib/containerd/{INGEST}"), (time.time() - 90, time.time() - 90))
    assert pulls(containerd) == ()


@pytest.mark.parametrize("config", [b'version = 2\nroot = "/data/c"\n[plugins]\n  root = "/x"\n', b'root="/data/c"\n'])
def test_containerds_root_may_be_elsewhere(containerd: Node, config: bytes) -> None:
    containerd.write("/etc/containerd/config.toml", config)
    containerd.write(f"/data/c/{INGEST}", b"half")
    assert pulls(containerd) == ("(unnamed)",)


def test_an_image_with_an_odd_name_is_unnamed(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "$(reboot) *"')))
    assert pulls(containerd) == ("(unnamed)",)


# ------------------------------------------------------------------------------------------------------------------ CRI-O


@pytest.fixture
def crio(node: Node) -> Node:
    node.serve("crio.service", "/usr/bin/crio", pid=CRIO[1])
    return node


def asked(image: str, request: str) -> str:
    return line(CRIO, logged(f"Pulling image: {image}", rest=f" id={request} name=/runtime.v1.ImageService/PullImage"))


def test_pulls_of_crio_are_matched_by_request_number(crio: Node) -> None:
    """The second line names the image by its digest: only the request's number is the same."""
    end = logged("Pulled image: quay.io/a@sha256:0f", rest=" id=2b-1 name=/runtime.v1.ImageService/PullImage")
    journal(crio, asked("quay.io/a:1", "2b-1"), asked("quay.io/b:1", "2b-2"), line(CRIO, end))
    assert pulls(crio) == ("quay.io/b:1",)


@pytest.mark.parametrize(
    "failed",
    [
        'E1120 10:00:00.000000     100 remote_image.go:113] PullImage "quay.io/a:1" from image service failed: rpc error: x',
        'E1120 10:00:00.000000     100 log.go:32] "PullImage from image service failed" err="rpc error: image=\\"y\\"" image="quay.io/a:1"',
    ],
)
def test_only_the_kubelet_logs_a_failed_pull_of_crio(crio: Node, failed: str) -> None:
    journal(crio, FIRST, asked("quay.io/a:1", "2b-1"), asked("quay.io/b:1", "2b-2"), line(KUBELET, failed, START + 51))
    assert pulls(crio) == ("quay.io/b:1",)


# ----------------------------------------------------------------------------------------------------------------- docker


@pytest.fixture
def docker(node: Node) -> Node:
    node.serve("docker.service", "/usr/bin/dockerd", "-H", "fd://", pid=350)
    node.at(LAYER).parent.mkdir(parents=True)
    return node


def test_a_layer_of_dockers_is_a_pull(docker: Node) -> None:
    assert pulls(docker) == ()
    docker.write(LAYER, b"half")
    assert pulls(docker) == ("(unnamed)",)


@pytest.mark.parametrize("config", ['{\n  "data-root": "/data/d"\n}', '{"debug":true,"data-root":"/data/d"}', ""])
def test_dockers_data_may_be_elsewhere(docker: Node, config: str) -> None:
    docker.write("/data/d/tmp/GetImageBlob1", b"half")
    if config:
        docker.write("/etc/docker/daemon.json", config.encode())
    else:
        docker.serve("docker.service", "/usr/bin/dockerd", "--data-root", "/data/d", pid=350)
    assert pulls(docker) == ("(unnamed)",)


def test_pulls_are_unknown_if_dockers_layers_cannot_be_read(docker: Node) -> None:
    docker.at(LAYER).parent.rmdir()
    assert pulls(docker) is None


@pytest.mark.parametrize(
    ("who", "goes_on", "ends"),
    [
        (
            KUBELET,
            'I1120 10:00:00.000000     100 kube_docker_client.go:344] Pulling image "a/b:1": "0f: Downloading [=>  ]  1MB/9MB"',
            'I1120 10:00:00.000000     100 kube_docker_client.go:347] Stop pulling image "a/b:1": "Status: Downloaded"',
        ),
        (
            KUBELET,
            'I1120 10:00:00.000000     100 kube_docker_client.go:344] "Pulling image" image="a/b:1" progress="0f: Downloading"',
            (
                'E1120 10:00:00.000000     100 kube_docker_client.go:340] "Cancel pulling image because of exceed image pull deadline, '
                'record latest progress" image="a/b:1" deadline="1m0s" progress="0f: Downloading"'
            ),
        ),
        (
            CRI_DOCKERD,
            logged("Pulling image a/b:1: 0f: Downloading [=>   ] 1MB/9MB"),
            logged(
                "Cancel pulling image a/b:1 because it exceeded image pull deadline 1m0s. Latest progress 0f: x",
                "error",
            ),
        ),
    ],
)
def test_progress_names_what_docker_pulls(docker: Node, who: tuple[str, int], goes_on: str, ends: str) -> None:
    if who is CRI_DOCKERD:
        docker.serve("cri-docker.service", "/usr/bin/cri-dockerd", pid=CRI_DOCKERD[1])
    docker.write(LAYER, b"half")
    journal(docker, line(who, goes_on), line(who, goes_on))
    assert pulls(docker) == ("a/b:1",)
    docker.at(LAYER).unlink()
    journal(docker, FIRST, line(who, goes_on), line(who, goes_on), line(who, ends))
    assert pulls(docker) == ()


def test_an_event_of_the_kubelets_is_not_progress(docker: Node) -> None:
    event = 'I1120 10:00:00.000000     100 event.go:291] "Event occurred" reason="Pulling" message="Pulling image \\"a:1\\""'
    journal(docker, line(KUBELET, event))
    assert pulls(docker) == ()


# ------------------------------------------------------------------------------------------------------------- all of them


def test_pulls_are_unknown_without_a_known_runtime(node: Node) -> None:
    assert pulls(node) is None


@pytest.mark.parametrize("unit", ["containerd.service", "crio.service", "cri-docker.service"])
def test_pulls_are_unknown_if_the_journal_cannot_be_read(node: Node, unit: str) -> None:
    node.serve(unit, "x")
    (node.bin / "journalctl").write_text("#!/bin/sh\nexit 1\n")
    assert pulls(node) is None


def test_a_runtime_that_is_down_pulls_nothing_and_reports_nothing(containerd: Node) -> None:
    containerd.standin("unit.containerd.service", "pid=0 active=failed sub=failed\n")
    assert pulls(containerd) is None


def test_lenient_lines_are_counted_in_the_same_reading(containerd: Node) -> None:
    lenient = 'I1120 10:00:00.000000     100 codec.go:102] "Using lenient decoding as strict decoding failed" err="x"'
    journal(
        containerd,
        line(KUBELET, lenient),
        line(CONTAINERD, logged('PullImage "a:1"')),
        line(CONTAINERD, logged("lenient decoding is not what I do")),
    )
    found = containerd.snapshot()
    assert isinstance(found, Snapshot)
    assert (found.measurement.lenient, found.measurement.pulls) == (1, ("a:1",))


def test_a_measurement_for_gates_reads_no_log_of_a_runtime(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    measured = containerd.status(measure=Measure("kubelet.service", 10248)).measurement
    assert measured is not None
    assert measured.pulls is None


def test_at_most_20_pulls_are_reported(containerd: Node) -> None:
    journal(containerd, *(line(CONTAINERD, logged(f'PullImage "a:{number}"')) for number in range(30)))
    assert pulls(containerd) == tuple(f"a:{number}" for number in range(20))


# ------------------------------------------------------------------------------------------------------ before an apply


def test_an_apply_that_would_cancel_a_pull_is_refused_and_leaves_nothing(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    before = containerd.files()
    found = containerd.apply(replace(order(), pulls=PullsFound.REFUSE))
    assert (found.outcome, found.reference) == (Outcome.REFUSED, "pulls-in-flight")
    assert found.measurement is not None
    assert found.measurement.pulls == ("a:1",)
    assert containerd.files() == before
    assert containerd.strays() == []
    assert containerd.status().token == Token()


def test_an_apply_whose_node_cannot_tell_its_pulls_is_refused(containerd: Node) -> None:
    (containerd.bin / "journalctl").write_text("#!/bin/sh\nexit 1\n")
    found = containerd.apply(replace(order(), pulls=PullsFound.REFUSE))
    assert (found.reference, found.measurement) == ("pulls-in-flight", None)


def test_an_apply_reads_the_lines_of_a_kubelet_that_tell_of_pulls(crio: Node) -> None:
    """Of CRI-O only the kubelet shows that a pull failed: it is over."""
    failed = (
        'E1120 10:00:00.000000     100 log.go:32] "PullImage from image service failed" err="x" image="quay.io/a:1"'
    )
    journal(crio, FIRST, asked("quay.io/a:1", "2b-1"), line(KUBELET, failed, START + 51))
    found = crio.apply(replace(order(), pulls=PullsFound.REFUSE))
    assert found.measurement is not None
    assert (found.measurement.pulls, found.receipt and found.receipt.finished) == ((), True)


def test_an_apply_is_refused_for_what_a_dockershim_pulls(docker: Node) -> None:
    progress = (
        'I1120 10:00:00.000000     100 kube_docker_client.go:344] Pulling image "a/b:1": "0f: Downloading [=>  ]"'
    )
    docker.write(LAYER, b"half")
    journal(docker, line(KUBELET, progress), line(KUBELET, progress))
    found = docker.apply(replace(order(), pulls=PullsFound.REFUSE))
    assert found.reference == "pulls-in-flight"
    assert found.measurement is not None
    assert found.measurement.pulls == ("a/b:1",)


@pytest.mark.parametrize("wanted", [PullsFound.OVERRIDE, None])
def test_pulls_do_not_stop_an_apply_that_overrides_them_or_does_not_look(
    containerd: Node, wanted: PullsFound | None
) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    found = containerd.apply(replace(order(), pulls=wanted))
    assert found.receipt is not None
    assert found.receipt.finished
    cancelled = found.measurement.pulls if found.measurement else None
    assert cancelled == (("a:1",) if wanted else None)


def test_an_apply_of_a_drifted_node_is_refused_for_that(containerd: Node) -> None:
    journal(containerd, line(CONTAINERD, logged('PullImage "a:1"')))
    containerd.write(CONFIG, b"other: bytes\n")
    assert containerd.apply(replace(order(), pulls=PullsFound.REFUSE)).reference == "drifted"
