"""Every command that a finding proposes, carried out to its plan on nodes like those that showed the finding."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.plans import snapshot_codec
from rollout.kubelet import values
from tests.features.diagnose.rules.logs import NODE, event_list, found
from tests.features.diagnose.rules.test_each_finding import LOGS
from tests.features.diagnose.rules.test_not_in_force import EDITED, configured, effective, judged
from tests.features.diagnose.rules.test_pulls import queue
from tests.kubelet.nodes import kubeadm, with_unit

INVENTORY = f"cluster: rno\napiServer: v1.20.15\nracks: {{a: '{NODE}'}}\nnodes: {{'{NODE}': {{}}}}\n"
PLAYBOOK = "name: other\nsettings: {containerLogMaxFiles: 5}\n"
"""A playbook that changes nothing: the value is the default."""


def old() -> Snapshot:
    return kubeadm(NODE)


def new() -> Snapshot:
    return kubeadm(NODE, version="1.33.4", runtime="containerd")


def newest() -> Snapshot:
    return kubeadm(NODE, version="1.35.0", runtime="containerd")


def in_a_loop() -> Snapshot:
    """Its kubelet ends at once, and systemd waits to start it again."""
    node = with_unit(newest(), ActiveState="activating", SubState="auto-restart", MainPID="0", NRestarts="7")
    return replace(node, measurement=replace(node.measurement, process=None, healthz=""))


def edited() -> Snapshot:
    """Its file has 60 and its process 110."""
    node = configured("maxPods: 60\n", NODE)
    return replace(node, stale=EDITED, running=values.canonical({**effective(node), "maxPods": 110}))


Shown = Callable[[], str]


def of_log(id_: str) -> Shown:
    return lambda: found(LOGS[id_][0])[id_].proposal


PROPOSALS: dict[str, tuple[Shown, Callable[[], Snapshot], tuple[str, ...]]] = {
    "serial-pull-queue": (of_log("serial-pull-queue"), old, ("serializeImagePulls: true → false",)),
    "serial-pull-queue with a bound": (
        lambda: found(event_list(queue(11)), minor=33)["serial-pull-queue"].proposal,
        new,
        ("serializeImagePulls: true → false", "maxParallelImagePulls: not set → 5"),
    ),
    "pull-progress-deadline": (
        of_log("pull-progress-deadline"), old, ("--image-pull-progress-deadline: not set → 5m",),
    ),
    "pull-qps-exceeded": (of_log("pull-qps-exceeded"), old, ("registryPullQPS: not set → 20", "registryBurst: not set → 40")),
    "pod-rejected-at-readmission": (of_log("pod-rejected-at-readmission"), new, ("maxPods: not set → ",)),
    "cgroup-v1-refused": (of_log("cgroup-v1-refused"), newest, ("failCgroupV1: not set → false",)),
    "not-in-force": (lambda: judged(edited())[0].proposal, edited, ("maxPods: 110 → 60",)),
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, text in (("inventories/rno.yaml", INVENTORY), ("playbooks/other.yaml", PLAYBOOK)):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)


def carried_out(proposal: str, node: Snapshot) -> int:
    """The exit code of the proposal as it is printed, on this node."""
    digest = hashlib.sha256(INVENTORY.encode()).hexdigest()
    taken = FleetSnapshot("rno", digest, "2026-11-20T16:00:00Z", {NODE: node})
    Path("s.json").write_bytes(snapshot_codec.encode(taken))
    program, *words = shlex.split(proposal)
    assert program == "rollout"
    return run([*words, "--snapshot", "s.json", "--out", "p.json"])


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("name", PROPOSALS)
def test_a_proposal_is_a_plan_that_changes_the_node(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    proposal, node, reasons = PROPOSALS[name]
    code, told = carried_out(proposal(), node()), capsys.readouterr()
    assert code == 0, told.out + told.err
    assert told.out.splitlines()[1] == "1 node to change, 0 as wanted, 0 refused, 0 unreachable"
    assert all(reason in told.out for reason in reasons)
    assert "then: restart kubelet.service" in told.out


@pytest.mark.usefixtures("site")
def test_a_kubelet_that_does_not_run_is_not_planned_and_its_finding_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    refused = found(LOGS["cgroup-v1-refused"][0])["cgroup-v1-refused"]
    assert carried_out(refused.proposal, in_a_loop()) == 4
    reference = "[kubelet-not-running]"
    assert reference in capsys.readouterr().out
    assert (
        f"A plan leaves a node alone while its kubelet does not run {reference}. On such a node, write" in refused.cause
    )


def test_every_finding_with_a_proposal_is_here() -> None:
    with_one = {id_ for id_, (shows, _) in LOGS.items() if (each := found(shows).get(id_)) and each.proposal}
    assert with_one | {"not-in-force"} == {name.partition(" ")[0] for name in PROPOSALS}
