"""Faults of output, host keys, clocks and flapping kubelets; how faults are combined, timed and listed."""

from __future__ import annotations

import re
import subprocess

import pytest
from click.testing import CliRunner, Result

from rollout.core.model.report import RemoteCommand
from rollout.features.lab.command import lab as lab_command
from rollout.kubelet.agent import agent_call
from rollout.lab import api, control, disk, faults, kubelet_faults, listener
from tests.controllers import until
from tests.lab.labs import Lab
from tests.lab.test_faults import NEW, PROGRAM, apply, confirm, extra, receipt
from tests.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.drawn(6)]

NODE = "lab-01"


def measure() -> RemoteCommand:
    return agent_call.status(PROGRAM, measure=agent_call.Measure(healthz_port=10248), sudo=True, deadline=60)


def prints(lab: Lab, command: RemoteCommand) -> bytes:
    return lab.ssh(NODE, command.line, command.stdin).stdout


def test_garbage_in_place_of_an_answer_while_the_command_does_its_work(small: Lab) -> None:
    small.fault(NODE, listener.GARBAGE)
    said = prints(small, apply(small, NODE))
    assert b"end apply" not in said
    assert b"\nreceipt tx=t1 run=r1 counter=99 state=confirmed" in said, "a false line"
    assert {b"\x1b", b"\xff", b"\0"} <= {said[index : index + 1] for index in range(len(said))}
    assert max(map(len, said.split(b"\n"))) > 10_000, "a line without an end"
    with pytest.raises(UnicodeDecodeError):
        said.decode()
    assert prints(small, RemoteCommand("true", b"", 10)) in said, "the same each time"
    assert extra(small, NODE) == NEW
    small.clear(NODE)
    small.verb(NODE, confirm())
    assert receipt(small, NODE)["state"] == "confirmed"


def test_garbage_from_the_apply_on(small: Lab) -> None:
    small.fault(NODE, listener.GARBAGE, at=faults.APPLY)
    assert small.ssh(NODE, "echo fine").stdout == b"fine\n"
    assert b"\x1b" in prints(small, apply(small, NODE))


def test_output_that_never_ends_until_the_client_leaves(small: Lab) -> None:
    small.fault(NODE, listener.ENDLESS)
    config = str(small.directory / "ssh_config")
    with subprocess.Popen(["ssh", "-F", config, NODE, "true"], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert len(client.stdout.read(3_000_000)) == 3_000_000
        assert small.ssh("lab-02", "echo fine").stdout == b"fine\n", "the others are not affected"
        client.kill()
    until(lambda: not control.ask(small.directory, {"op": "status"})["commands"], 60, "a disconnect ends it")


def test_another_host_key_is_detected_and_the_old_one_is_restored(small: Lab) -> None:
    small.fault(NODE, faults.STRANGER)
    answer = small.ssh(NODE, "true")
    assert (answer.returncode, b"HOST IDENTIFICATION HAS CHANGED" in answer.stderr) == (255, True)
    small.clear(NODE)
    assert small.ssh(NODE, "true").returncode == 0


@pytest.mark.parametrize("step", [86400.0, -86400.0])
def test_a_clock_that_jumps_changes_nothing_for_a_transaction(small: Lab, step: float) -> None:
    before = int(small.ssh(NODE, "date +%s").stdout)
    small.verb(NODE, apply(small, NODE))
    small.fault(NODE, faults.CLOCK, step)
    assert abs(int(small.ssh(NODE, "date +%s").stdout) - before - step) < 60
    found = receipt(small, NODE)
    assert (found["state"], 0 < int(found["left"]) <= 120) == ("armed", True), "a receipt contains only the uptime"
    small.verb(NODE, confirm())
    assert receipt(small, NODE)["state"] == "confirmed"
    small.clear(NODE)
    assert abs(int(small.ssh(NODE, "date +%s").stdout) - before) < 60


def test_a_kubelet_that_flaps_is_active_now_and_then(small: Lab) -> None:
    small.fault(NODE, kubelet_faults.FLAPPING, 0.45)  # shorter than RestartSec: no start outlives the agent's look
    restarts: set[str] = set()
    seen: set[str] = set()
    health: set[str] = set()

    def has_been_seen_in_every_state() -> bool:
        answer = small.ssh(
            NODE,
            "systemctl show -p NRestarts kubelet; systemctl is-active kubelet; curl -s http://127.0.0.1:10248/healthz",
        )
        count, state, *rest = answer.stdout.decode().splitlines()
        restarts.add(count)
        seen.add(state)
        health.add("".join(rest))
        return len(restarts) >= 3 and seen >= {"active", "activating"} and health >= {"ok", ""}

    until(has_been_seen_in_every_state, 120, "it was seen healthy and unhealthy")
    assert seen == {"active", "activating"}
    assert health == {"ok", ""}
    assert any(line.startswith("healthy no") for line in small.verb(NODE, apply(small, NODE))), (
        "it flaps with any configuration"
    )
    small.clear(NODE)
    small.until_state(NODE, "running")


def test_a_stranger_on_the_health_port_answers_and_is_not_taken_for_the_kubelet(small: Lab) -> None:
    small.fault(NODE, faults.PORT_TAKEN)
    assert small.ssh(NODE, "curl -s http://127.0.0.1:10248/healthz").stdout == b"ok"
    assert "healthz not-its-own" in small.verb(NODE, measure())
    small.ssh(NODE, "sudo -n systemctl restart kubelet")
    small.until_state(NODE, "running")
    assert "healthz not-its-own" in small.verb(NODE, measure()), "the kubelet finds its port taken at each start"
    small.clear(NODE)
    until(lambda: "healthz ok" in small.verb(NODE, measure()), 60, "the kubelet has its port again")


def test_faults_of_several_parts_at_once_and_one_in_place_of_another(small: Lab) -> None:
    small.fault(NODE, kubelet_faults.NEVER_HEALTHY)
    small.fault(NODE, disk.SLOW, lasting=0.1, add=True)
    small.fault(NODE, faults.STRANGER, at=faults.APPLY, add=True)
    small.fault("lab-02", disk.SLOW, lasting=0.1)
    found = control.ask(small.directory, {"op": "status"})["faults"]
    assert found == {"never-healthy": [NODE], "slow-disk": [NODE, "lab-02"], "host-key-change": [NODE]}
    small.fault(NODE, faults.REFUSE)
    found = control.ask(small.directory, {"op": "status"})["faults"]
    assert found == {"refuse": [NODE], "slow-disk": ["lab-02"]}


def test_a_fault_with_a_delay_and_a_duration(small: Lab) -> None:
    """The fault is listed while it is scheduled or active. While it is active, the node refuses connections."""
    small.fault(NODE, faults.REFUSE, 3600.0)
    assert small.ssh(NODE, "true").returncode == 0, "not before its time"
    small.fault(NODE, faults.REFUSE, 0.5, lasting=4.0)
    until(lambda: small.ssh(NODE, "true").returncode != 0, 60, "it begins")
    until(lambda: small.ssh(NODE, "true").returncode == 0, 60, "it ends")
    assert control.ask(small.directory, {"op": "status"})["faults"] == {}


def test_a_fault_that_was_cleared_before_its_moment_never_strikes(small: Lab) -> None:
    small.fault(NODE, faults.DIES, at=disk.RECEIPT)
    small.clear(NODE)
    assert any(line.startswith("healthy yes") for line in small.verb(NODE, apply(small, NODE)))


def typed(lab: Lab, *words: str) -> Result:
    return CliRunner().invoke(lab_command, [*words, "--dir", str(lab.directory)])


def test_faults_as_typed_and_listed(small: Lab) -> None:
    assert (
        typed(small, "fault", NODE, "dies-and-returns", "--at", "switch", "--for", "2").output
        == "dies-and-returns: lab-01\n"
    )
    assert typed(small, "fault", "@rack1", "slow-disk", "--for", "0.5", "--add").output == "slow-disk: lab-[01-02]\n"
    assert typed(small, "fault", "api", "api-down").output == "api-down: api\n"
    assert typed(small, "faults").output.splitlines() == [
        "api api-down",
        "lab-01 dies-and-returns --after 0 --for 2 --at switch",
        "lab-[01-02] slow-disk --after 0 --for 0.5",
    ]
    assert "  fault api-down: api\n" in typed(small, "status").output
    assert typed(small, "fault", "api", "--clear").output == "cleared: api\n"
    typed(small, "fault", "@rack1", "--clear")
    assert typed(small, "faults").output == "no fault is set\n"
    for words in (("api", "refuse"), (NODE, "api-down"), (NODE, "refuse", "--after", "-1"), (NODE, "no-such-fault")):
        assert typed(small, "fault", *words).exit_code != 0, words


def test_every_kind_is_explained() -> None:
    """In the command's help."""
    helped = CliRunner().invoke(lab_command, ["fault", "--help"]).output
    for kind in faults.KINDS:
        assert re.search(rf"^ *{kind} ", helped, re.MULTILINE), kind


def test_the_page_of_the_lab_has_the_part_of_each_kind_and_the_moments() -> None:
    page = (ROOT / "docs/lab.md").read_text()
    parts = between(page, "The parts, for `--add`: ", "\n\n")
    listed = {part: re.findall(r"`([a-z-]+)`", kinds) for part, kinds in re.findall(r"(\w+) \(([^()]*)\)", parts)}
    assert {kind: part for part, kinds in listed.items() for kind in kinds} == {
        kind: known.part for kind, known in faults.KINDS.items()
    }
    moments = between(page, "before a moment of the node's next transaction: ", ".\n")
    assert re.findall(r"`([a-z]+)`", moments) == [moment for moment in faults.MOMENTS if moment != faults.NOW]
    of_the_server = between(page, "is for the API server: ", ".\n")
    assert re.findall(r"`(api-[a-z]+)`", of_the_server) == list(api.KINDS)


def between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]
