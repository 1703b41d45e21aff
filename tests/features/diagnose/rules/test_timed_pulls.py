"""A timed pull: the program in real shells over the recorded output of a real ctr, and what its answers show together."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.pulls import full_name
from rollout.features.diagnose.rules.timed_pulls import (
    PullEnd,
    PullWay,
    TimedPull,
    conclusions,
    is_image,
    pull_command,
    pull_line,
    timed_pull,
)
from rollout.kubelet.runtimes.description import PullTool, Runtime
from tests.features.diagnose.rules.logs import NODE, RECORDED

IMAGE = "reg.example:5000/team/big:1"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
FRAMES = RECORDED / "ctr-1.6.20.txt"
WAY = PullWay(Runtime.CONTAINERD, "/run/containerd/containerd.sock")


def node(folder: Path, **tools: str) -> Path:
    """A folder with these programs; each writes its arguments into ``said`` first."""
    for name, text in tools.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{folder}/said\n{text}\n')
        program.chmod(0o755)
    return folder


def run(
    folder: Path, shell: str = "dash", way: PullWay = WAY, *, watched: bool = True, seconds: float = 600
) -> TimedPull:
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    line = pull_command(IMAGE, way, seconds, watched=watched)
    done = subprocess.run(
        [*words, "-c", line], env={"PATH": f"{folder}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    found = timed_pull(NODE, IMAGE, done.stdout)
    assert found is not None, done
    return found


REPLAY = f"""\
case $* in *' ls '*) exit 0 ;; esac
frame() {{ sed -n "$1" {FRAMES}; }}
frame 1,5p
for again in 1 2 3 4 5 6 7 8 9 10; do frame 6,10p; sleep 0.1; done
frame '11,$p'
"""


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS)
def test_the_longest_time_in_which_no_frame_of_ctr_changed(tmp_path: Path, shell: str) -> None:
    found = run(node(tmp_path, ctr=REPLAY), shell)
    assert (found.end, found.tool) == (PullEnd.PULLED, PullTool.CTR)
    assert found.silence is not None
    assert 1.0 <= found.silence <= found.took
    assert "downloading" in found.phase
    assert "\x1b" not in found.phase
    assert "not through CRI" in pull_line(found)
    asked, pulled = (tmp_path / "said").read_text().splitlines()
    ours = "ctr --address /run/containerd/containerd.sock --namespace k8s.io images"
    assert (asked, pulled) == (f"{ours} ls -q name=={IMAGE}", f"{ours} pull {IMAGE}")


@pytest.mark.process
def test_a_pull_that_does_not_end_is_ended(tmp_path: Path) -> None:
    found = run(
        node(tmp_path, ctr=f"case $* in *' ls '*) exit 0 ;; esac; head -5 {FRAMES}; exec sleep 1000"), seconds=1
    )
    assert (found.end, found.error) == (PullEnd.LATE, "")
    assert found.took >= 1.0


@pytest.mark.process
def test_a_pull_that_fails_has_its_last_line_without_secrets(tmp_path: Path) -> None:
    found = run(node(tmp_path, ctr="echo 'ctr: Get https://ann:pw@reg.example/v2/: unauthorized' >&2; exit 1"))
    assert (found.end, found.error) == (PullEnd.FAILED, "ctr: Get https://<redacted>@reg.example/v2/: unauthorized")


@pytest.mark.process
def test_an_image_that_is_there_is_not_pulled(tmp_path: Path) -> None:
    found = run(node(tmp_path, ctr=f"echo {IMAGE}"))
    assert (found.end, found.there) == (PullEnd.PRESENT, True)
    assert " pull " not in (tmp_path / "said").read_text()


@pytest.mark.process
def test_a_prepull_is_through_cri_and_a_probe_shows_progress(tmp_path: Path) -> None:
    both = node(
        tmp_path, crictl="case $* in *inspecti*) exit 1 ;; esac; echo 'Image is up to date for sha256:0f'", ctr=REPLAY
    )
    found = run(both, watched=False)
    assert (found.tool, found.silence, found.end) == (PullTool.CRICTL, None, PullEnd.PULLED)
    assert f"unix:///run/containerd/containerd.sock pull {IMAGE}" in (tmp_path / "said").read_text()
    assert run(both, watched=True).tool is PullTool.CTR


@pytest.mark.process
def test_each_line_of_docker_is_progress(tmp_path: Path) -> None:
    lines = "echo '0f: Pulling fs layer'; echo '0f: Verifying Checksum'; sleep 0.6; echo '0f: Pull complete'"
    found = run(
        node(tmp_path, docker=f"case $* in *inspect*) exit 1 ;; esac; {lines}"), way=PullWay(Runtime.DOCKERSHIM)
    )
    assert (found.tool, found.phase, found.end) == (PullTool.DOCKER, "0f: Verifying Checksum", PullEnd.PULLED)
    assert found.silence is not None
    assert found.silence >= 0.5


@pytest.mark.process
def test_a_node_without_a_tool_says_so(tmp_path: Path) -> None:
    assert run(tmp_path, way=PullWay(Runtime.CRIO)).end is PullEnd.NO_TOOL


@pytest.mark.parametrize("output", ["", "-- tool ctr\n", "-- tool vi\n-- end\n", "garbage\x1b[2J\n-- end\n"])
def test_an_answer_that_is_not_whole_is_none(output: str) -> None:
    assert timed_pull(NODE, IMAGE, output) is None


@pytest.mark.parametrize("silence", ["x", "-1", "9" * 40, "٣"])
def test_a_number_that_is_none_is_zero(silence: str) -> None:
    found = timed_pull(NODE, IMAGE, f"-- tool ctr\n-- took {silence}\n-- silence {silence}\n-- status 0\n-- end\n")
    assert found is not None
    assert (found.took, found.silence) == (0.0, 0.0)


@pytest.mark.parametrize(
    "image", ["nginx", "team/app:1", "reg.example:5000/a/b_c@sha256:" + "0" * 64, "localhost/x:v1.2"]
)
def test_references(image: str) -> None:
    assert is_image(image)


@pytest.mark.parametrize(
    "image",
    ["", "-v", "a b", "https://reg/x", "ann:pw@reg.example/x", "x;reboot", "$(id)", "UP/x", "x:", "a" * 600, "x\n"],
)
def test_what_is_no_reference(image: str) -> None:
    assert not is_image(image)


def test_names_as_containerd_has_them() -> None:
    assert [full_name(name) for name in ("nginx", "team/app:1", "reg.example/x", "localhost/x@sha256:0f")] == [
        "docker.io/library/nginx:latest", "docker.io/team/app:1", "reg.example/x:latest", "localhost/x@sha256:0f",
    ]  # fmt: skip


def pull(image: str, end: PullEnd = PullEnd.PULLED, silence: float | None = 0.2) -> TimedPull:
    return TimedPull(NODE, image, end, PullTool.CTR, 90.0, silence)


def test_one_registry_hangs_beside_another() -> None:
    """What settled the third write-up: two pulls by hand."""
    (said,) = conclusions(
        [pull("10.8.2.9:9083/a:1", PullEnd.LATE, 600.0), pull("10.8.14.9:9083/b:1")], ProposalTarget("rno")
    )
    assert said.startswith("Pulls of images of 10.8.2.9:9083 did not end, and those of 10.8.14.9:9083 did")


def test_the_longest_silence_of_a_good_pull_proposes_the_deadline() -> None:
    """What settled the first: 74 s of verifying."""
    (said,) = conclusions([pull("shop/big:1", silence=74.0), pull("shop/small:1")], ProposalTarget("rno"))
    assert said.endswith(f"rollout plan --cluster rno --limit '{NODE}' --set imagePullProgressDeadline=5m0s")
    assert "made no progress for 74 s" in said
    assert (
        list(conclusions([pull("shop/small:1", silence=5.0), pull("x:1", PullEnd.FAILED, 80.0)], ProposalTarget()))
        == []
    )


def test_no_deadline_is_proposed_for_a_runtime_that_has_none() -> None:
    why = "image_pull_progress_timeout exists from containerd 1.7.0"
    slow = replace(pull("shop/big:1", silence=74.0), no_deadline=why)
    (said,) = conclusions([slow], ProposalTarget("rno"))
    assert said.endswith(f"a progress deadline must be longer. {why}.")
    (both,) = conclusions([slow, replace(pull("shop/big:1", silence=70.0), node="other")], ProposalTarget("rno"))
    assert "--limit 'other' --set imagePullProgressDeadline=5m0s" in both
