"""What the agent could not observe, it does not report as observed: an unreadable file is there, and an empty output is no result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Measurement, Unread
from rollout.core.model.verdict import Verdict
from rollout.core.run.events import Trigger, trigger_of
from rollout.gates.agent_checks.query import AgentCheck
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_snapshot, parse_verification
from rollout.kubelet.agent.agent_call import Claim, Measure, NodeCommand
from tests.agent.node import CONFIG, FLAGS, NEW, OLD, Node, order
from tests.agent.test_second_chances import armed, asked_since, wrap

pytestmark = pytest.mark.process

DOCKER, JSON = "docker.service", "/etc/docker/daemon.json"
RESTARTS = ["daemon-reload", "restart kubelet.service"]


def receipt(node: Node, text: str) -> None:
    (node.tx() / "receipt").write_text(text)


def measured(node: Node, *commands: NodeCommand, tx: str = "") -> Report:
    return node.status(tx, measure=Measure("kubelet.service", 10248, (CONFIG,), commands))


def fails_at(node: Node, tool: str, call: int, end: str = "exit 1") -> None:
    """From the beginning, at this call."""
    count = node.at("/run/standin/count")
    count.write_text("")
    wrap(node, tool, f'printf . >>{count}\nread -r calls <{count}\n[ "${{#calls}}" != {call} ] || {end}')


# --------------------------------------------------------------------------------------- a receipt that cannot be read


@pytest.mark.parametrize("before", ["tx=", "run=", "units=", "unit=", "reload=", "kubelet="])
def test_no_trigger_abandons_a_transaction_with_a_receipt_that_it_cannot_read(node: Node, before: str) -> None:
    """Without its later lines a revert would not know what to restart."""
    whole = (armed(node).tx() / "receipt").read_text()
    receipt(node, whole[: f"\n{whole}".index(f"\n{before}")])
    for way in ("guard", "watch"):
        assert node.trigger(way) == 1, "systemd runs it again"
        assert node.files() == NEW
    receipt(node, whole)
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files(), node.strays()) == ("reverted", OLD, [])


def test_at_boot_it_leaves_a_guard_that_tries_again(node: Node) -> None:
    whole = (armed(node).tx() / "receipt").read_text()
    node.reboot()
    receipt(node, "")
    assert node.trigger("boot") == 1
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()
    assert node.at("/etc/systemd/system/rollout-guard-boot.service").exists()
    receipt(node, whole)
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files(), node.strays()) == ("reverted", OLD, [])


@pytest.mark.parametrize("verb", ["status", "claim", "void", "apply", "confirm", "revert", "cleanup", "forget"])
def test_no_verb_takes_it_for_none(node: Node, verb: str) -> None:
    receipt(armed(node), "")
    claim = Claim(1, "run-1")
    calls: dict[str, Callable[[], Report]] = {
        "status": lambda: node.status("t1"),
        "claim": lambda: node.status(claim=claim),
        "void": lambda: node.report(
            "status",
            agent_call.status(node.program, tx="t1", claim=claim, void=True, sudo=False, deadline=60),
        ),
        "apply": node.apply,
        "confirm": node.confirm,
        "revert": node.revert,
        "cleanup": node.cleanup,
        "forget": node.forget,
    }
    report = calls[verb]()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "receipt-unreadable"), report
    assert "t1" in report.message
    assert trigger_of(report) is Trigger.LOST, "it may have the change: nothing is known of it"
    assert (node.tx() / "old.1").exists()
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()


@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_nor_does_a_verb_for_another_transaction(node: Node, verb: str) -> None:
    assert armed(node).confirm().outcome is Outcome.DONE
    if verb == "revert":
        assert node.apply(order("t2", old=NEW, new={CONFIG: b"newest\n"})).healthy
        assert node.confirm("t2").outcome is Outcome.DONE
    receipt(node, "")
    before = node.files()
    report = node.revert("t2") if verb == "revert" else node.apply(order("t2", old=NEW, new={CONFIG: b"newest\n"}))
    assert (report.outcome, report.reference, node.files()) == (Outcome.REFUSED, "receipt-unreadable", before)


def test_a_plan_and_a_verify_do_not_take_it_for_none(node: Node) -> None:
    receipt(armed(node), "")
    planned = node.snapshot()
    assert isinstance(planned, Unread)
    assert planned.reference == "receipt-unreadable"
    command = agent_call.verify(node.program, unit="kubelet.service", paths=(), sudo=False, deadline=60)
    found = parse_verification("n1", node.run(command))
    assert isinstance(found, Unread)
    assert found.reference == "receipt-unreadable"


def test_the_boot_unit_stays_for_it(node: Node) -> None:
    receipt(armed(node), "")
    other = node.tx("t0")
    other.mkdir()
    (other / "agent").write_text((node.tx() / "agent").read_text())
    assert node.trigger("guard", "t0") == 0, "of a transaction without a receipt"
    assert node.at("/etc/systemd/system/rollout-guard-boot.service").exists()


# ------------------------------------------------------------------------------------------ a note that cannot be read


def test_a_file_with_an_unreadable_note_was_not_given_back(node: Node) -> None:
    note = armed(node).tx() / "file.1"
    text = note.read_text()
    note.write_text("")
    assert node.trigger("guard") == 1
    found = node.status("t1")
    assert (node.receipt()["state"], trigger_of(found)) == ("reverting", Trigger.STUCK)
    assert (found.reference, found.message.split()[0]) == ("not-given-back", "/var/lib/rollout/tx/t1/file.1")
    assert (node.read(FLAGS), node.read(CONFIG)) == (OLD[FLAGS], NEW[CONFIG])
    note.write_text(text)
    before = node.calls()
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert asked_since(node, before) == RESTARTS


def test_nothing_is_confirmed_or_verified_by_an_unreadable_note(node: Node) -> None:
    (armed(node).tx() / "file.1").write_text("")
    assert node.confirm().reference == "not-as-ordered"
    command = agent_call.verify(node.program, unit="kubelet.service", paths=(), sudo=False, deadline=60)
    found = parse_verification("n1", node.run(command))
    assert isinstance(found, Unread)
    assert found.reference == "program-failed"
    assert "file.1" in found.message


@pytest.mark.parametrize("text", ["", "/var/lib\n"], ids=["empty", "torn"])
def test_a_note_that_lost_its_power_before_the_receipt_leaves_nothing(node: Node, text: str) -> None:
    """What it names is made only when the disk has the note."""
    node.write("/var/lib/rollout/tx/t1/file.1", text.encode())
    assert node.cleanup().leftovers == ()
    assert not node.tx().exists()


def test_what_an_unreadable_note_of_a_receipt_names_may_be_left(node: Node) -> None:
    note = armed(node).tx() / "file.1"
    assert node.confirm().outcome is Outcome.DONE
    note.write_text("")
    (left,) = node.cleanup().leftovers
    assert "tx/t1/file.1, which could not be read" in left


# -------------------------------------------------------------------------- after a revert that could not end at first


def blocked(node: Node, *copies: str) -> Path:
    """The guard has run once. These old files could not be renamed, and it has restarted the units."""
    block = armed(node).at("/run/standin/block")
    block.write_text("")
    wrap(
        node,
        "mv",
        f'case "$*" in */{" | */".join(f"{copy}" + "*" for copy in copies)}) [ ! -e {block} ] || exit 1 ;; esac',
    )
    assert node.trigger("guard") == 1
    assert node.status("t1").reference == "not-given-back"
    return block


def test_units_are_restarted_for_a_file_that_was_restored_by_hand_meanwhile(node: Node) -> None:
    blocked(node, "old.1")
    before = node.calls()
    assert node.trigger("guard") == 1
    assert asked_since(node, before) == [], "as far as it goes, the first attempt has done it"
    node.write(CONFIG, OLD[CONFIG] or b"")
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert asked_since(node, before) == RESTARTS


def test_units_are_restarted_for_one_of_two_files_that_was_restored_by_hand_meanwhile(node: Node) -> None:
    blocked(node, "old.1", "old.2")
    before = node.calls()
    node.write(FLAGS, OLD[FLAGS] or b"")
    assert node.trigger("guard") == 1
    assert asked_since(node, before) == RESTARTS


def test_units_are_restarted_for_a_file_that_a_killed_attempt_has_given_back(node: Node) -> None:
    block = blocked(node, "old.1")
    block.unlink()
    first = 'case "$*" in *old.1*) /usr/bin/mv "$@"; read -r holder _ <"$ROLLOUT_ROOT/var/lib/rollout/holder"; kill -9 "$holder"; exit 0 ;; esac'
    wrap(node, "mv", first)
    assert node.trigger("guard") != 0
    assert (node.receipt()["state"], node.files()) == ("reverting", OLD)
    before = node.calls()
    assert node.trigger("guard") == 0
    assert node.receipt()["state"] == "reverted"
    assert asked_since(node, before) == RESTARTS


@pytest.mark.parametrize("when", ["before the revert", "during its rename"])
def test_what_is_given_back_is_read_before_and_after(node: Node, when: str) -> None:
    """Others write into the old file, which they had open before the change. What is known not to be old takes no file's place."""
    copy = armed(node).tx() / "old.1"
    if when == "before the revert":
        with copy.open("a") as other:
            other.write("late\n")
    else:
        wrap(node, "mv", f'case "$*" in */old.1*) echo late >>{copy} ;; esac')
    assert node.trigger("guard") == 1
    kept = NEW[CONFIG] if when == "before the revert" else b"old config\nlate\n"
    assert node.files() == {**OLD, CONFIG: kept}
    found = node.status("t1")
    assert (node.receipt()["state"], found.reference) == ("reverting", "not-given-back")
    assert found.message.split()[0] == CONFIG
    before = node.calls()
    assert node.trigger("guard") == 1
    assert asked_since(node, before) == []
    node.write(CONFIG, OLD[CONFIG] or b"")
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)


# --------------------------------------------------------------------------------- once armed, nothing is only refused


@pytest.mark.parametrize("end", ["exit 1", "kill -9 $$", "exit 126"])
@pytest.mark.parametrize("call", [4, 5, 6, 7])
def test_an_apply_that_cannot_read_files_is_abandoned_before_its_renames_and_reverted_after_them(
    node: Node, call: int, end: str
) -> None:
    """Its third request is the program, by the guard that is tried."""
    fails_at(node, "sha256sum", call, end)
    report = node.apply()
    if report.outcome is Outcome.REFUSED:
        assert (report.reference, node.files(), node.receipt(), node.strays()) == ("program-failed", OLD, {}, [])
        assert call == 4
    elif node.receipt()["state"] == "reverted":
        assert node.files() == OLD
        assert trigger_of(report) in (Trigger.REVERTED_UNHEALTHY, Trigger.ARMED), report
    else:
        assert trigger_of(report) is Trigger.ARMED, report
    assert (trigger_of(report) is Trigger.REVERTED_UNHEALTHY) is (call == 5), report


def test_an_apply_whose_revert_can_read_no_file_leaves_the_rest_to_its_guard(node: Node) -> None:
    path = node.bin / "sha256sum"
    count = node.at("/run/standin/count")
    count.write_text("")
    path.write_text(
        f'#!/bin/sh\nprintf . >>{count}\nread -r calls <{count}\n[ "${{#calls}}" -lt 5 ] || exit 126\nexec /usr/bin/sha256sum "$@"\n'
    )
    path.chmod(0o755)
    report = node.apply()
    assert trigger_of(report) is Trigger.BUSY, report
    assert report.healthy is False
    path.unlink()
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)


# ----------------------------------------------------------------------------------------- a SIGHUP that did not arrive


def test_a_runtime_that_got_neither_a_sighup_nor_a_restart_was_not_reverted(node: Node) -> None:
    node.serve(DOCKER, "/usr/bin/dockerd", pid=300)
    node.write(JSON, b"{}\n")
    change = order(
        old={JSON: b"{}\n"},
        new={JSON: b'{"max-concurrent-downloads": 10}\n'},
        units=(),
        hangups=(DOCKER,),
        arguments=(),
    )
    assert node.apply(change).healthy
    assert node.confirm().outcome is Outcome.DONE
    touched = node.at("/var/lib/rollout/touched").read_text()
    block = node.at("/run/standin/block")
    block.write_text("")
    wrap(node, "systemctl", f'case "$*" in "kill "* | "restart {DOCKER}") [ ! -e {block} ] || exit 1 ;; esac')
    report = node.revert()
    assert trigger_of(report) is Trigger.STUCK, report
    assert (report.reference, report.healthy) == ("not-restarted", None)
    assert DOCKER in report.message
    assert node.at("/var/lib/rollout/touched").read_text() == touched
    block.unlink()
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.read(JSON)) == ("reverted", b"{}\n")


# ------------------------------------------------------------------------------------------- an output that never came


def test_a_gate_that_could_not_be_decoded_did_not_pass(node: Node) -> None:
    wrap(node, "base64", '[ "$1" != -d ] || exit 127')
    report = measured(node, NodeCommand("gate", 5, "exit 7"))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "program-failed")


@pytest.mark.parametrize(("tool", "on"), [("stat", '*"%n %a"*'), ("sha256sum", "*config.yaml*")])
def test_a_file_of_which_nothing_was_shown_is_unknown(node: Node, tool: str, on: str) -> None:
    wrap(armed(node), tool, f'case "$*" in {on}) exit 1 ;; esac')
    found = measured(node).measurement
    assert isinstance(found, Measurement)
    assert (found.files[CONFIG].kind, found.files[CONFIG].digest) == ("regular", "")
    verdict, _ = AgentCheck("effectiveConfig").judge("n1", order().change, found, None)
    assert verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("end", "told"), [("kill -9 $$", ""), ("exit 1", "0")], ids=["killed", "none found"])
def test_a_child_that_could_not_be_looked_for_is_not_said_to_be_gone(node: Node, end: str, told: str) -> None:
    node.serve("rke2-agent.service", "rke2", "agent", pid=900)
    wrap(node, "grep", f'case "$*" in *"(kubelet)"*) {end} ;; esac')
    report = node.report(
        "status",
        agent_call.status(node.program, measure=Measure("rke2-agent.service", 0), sudo=False, deadline=60),
    )
    assert report.measurement is not None
    assert report.measurement.unit is not None
    assert report.measurement.unit.kubelet_pid == told
    verdict, _ = AgentCheck("process").judge("n1", order().change, report.measurement, None)
    assert verdict is (Verdict.FAIL if told else Verdict.UNKNOWN)


# ------------------------------------------------------------------------------------------------------------ the token


@pytest.mark.parametrize(
    "text", ["\0\0\0\0\n", "", "7\n", "1 run-1 liv"], ids=["damaged", "emptied", "torn", "torn in its state"]
)
def test_a_token_that_cannot_be_read_is_not_none(node: Node, text: str) -> None:
    assert armed(node).confirm().outcome is Outcome.DONE
    token = node.at("/var/lib/rollout/token")
    token.write_text(text)
    for report in (
        node.status(),
        node.status(claim=Claim(2, "run-2")),
        node.freeze(),
        node.apply(order("t2", "run-2", 2, old=NEW)),
        node.cleanup(),
    ):
        assert (report.outcome, report.reference) == (Outcome.REFUSED, "token-unreadable"), report
    assert token.read_text() == text
    assert isinstance(
        parse_snapshot(
            "n1",
            node.run(
                agent_call.snapshot(node.program, unit="kubelet.service", healthz_port=0, sudo=False, deadline=60)
            ),
        ),
        Unread,
    )


def test_a_first_claim_that_lost_its_power_is_none(node: Node) -> None:
    node.write("/var/lib/rollout/token", b"")
    report = node.status(claim=Claim(2, "run-2"))
    assert report.outcome is Outcome.DONE
    assert report.token is not None
    assert report.token.counter == 2


# ---------------------------------------------------------------------------------------------- health after the revert


@pytest.mark.parametrize("state", ["pid=0 active=inactive sub=dead", "pid=0 active=failed sub=failed"])
def test_a_reverted_node_without_a_kubelet_is_not_healthy(node: Node, state: str) -> None:
    assert armed(node).trigger("guard") == 0
    node.standin("unit", f"{state}\n")
    assert trigger_of(node.status("t1")) is Trigger.STILL_UNHEALTHY


def test_a_unit_between_the_stop_and_the_start_of_a_restart_is_looked_at_again(node: Node) -> None:
    assert armed(node).trigger("guard") == 0
    unit = node.at("/run/standin/unit")
    node.standin("unit", "pid=0 active=inactive sub=dead\n")
    wrap(node, "sleep", f"rm -f {unit}")
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_BY_GUARD


def test_a_systemd_that_does_not_answer_has_not_shown_the_old_process(node: Node) -> None:
    assert armed(node).trigger("guard") == 0
    wrap(node, "systemctl", "exit 1")
    for report in (node.status("t1"), node.revert(), node.confirm()):
        assert (report.outcome, report.reference) == (Outcome.REFUSED, "systemd-not-answering"), report
        assert trigger_of(report) is Trigger.REFUSED, "it is read again"


def test_after_a_revert_without_a_rename_health_is_measured_too(node: Node) -> None:
    wrap(node, "mv", f'case "$*" in *"{node.at(CONFIG)}") exit 1 ;; esac')
    node.write("/proc/net/tcp", b"")
    report = node.apply()
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")
    assert report.healthy is False


# ------------------------------------------------------------------------------------------------ what is left of units


@pytest.mark.parametrize("verb", ["cleanup", "status"])
def test_nothing_is_said_to_be_gone_that_systemd_did_not_list(node: Node, verb: str) -> None:
    assert armed(node).confirm().outcome is Outcome.DONE
    wrap(node, "systemctl", 'case "$1" in list-units) exit 1 ;; esac')
    report = node.cleanup() if verb == "cleanup" else node.status(strays=True)
    assert report.leftovers == ("units of rollout, if any: systemctl list-units did not succeed",)


def test_strays_are_looked_for_in_systemd_too(node: Node) -> None:
    assert armed(node).confirm().outcome is Outcome.DONE
    node.standin("rollout-watch-t9.service")
    assert "rollout-watch-t9.service" in node.status(strays=True).leftovers


# ------------------------------------------------------------------------------------------------- what the guard tried


def test_a_trial_that_was_killed_is_not_complete(node: Node) -> None:
    path = node.bin / "ln"
    path.write_text('#!/bin/sh\n[ -z "${INVOCATION_ID-}" ] || { kill -9 $PPID; exit 1; }\nexec /usr/bin/ln "$@"\n')
    path.chmod(0o755)
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "guard-not-proven"), report
    assert node.files() == OLD


# ------------------------------------------------------------------------------------------------- a freeze, and the lock


def test_a_freeze_that_is_in_force_and_perhaps_not_on_the_disk_is_told(node: Node) -> None:
    lose = 'case "$*" in *freeze.new* | *none*) ;; *lib/rollout*) exit 1 ;; esac'
    armed(node)
    assert node.confirm().outcome is Outcome.DONE
    wrap(node, "sync", lose)
    report = node.freeze()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert report.frozen is not None
    assert "the node is frozen from now on" in report.message
    again = node.freeze()
    assert (again.outcome, again.reference) == (Outcome.REFUSED, "not-durable"), "a repetition proves it anew"
    report = node.unfreeze()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert "the node is open from now on" in report.message
    assert (report.frozen, node.status().frozen) == (None, None)


def test_a_lock_that_could_not_be_requested_is_not_held_by_another(node: Node) -> None:
    path = node.bin / "flock"
    path.write_text("#!/bin/sh\nexit 71\n")
    path.chmod(0o755)
    with node.on_real_time():
        report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "program-failed")
    assert "flock failed with status 71" in report.message


# ------------------------------------------------------------------------------------------------------ the log's words


def test_the_nodes_journal_has_the_state_that_a_verb_left(node: Node) -> None:
    node.apply(order(new={CONFIG: b"DEAD\n"}))
    line = node.at("/run/standin/journal").read_text().splitlines()[-1]
    assert line.startswith("apply ")
    assert line.endswith(": reverted")


def test_the_end_of_the_process_that_a_change_has_stopped_is_not_that_of_the_new_one(node: Node) -> None:
    stopped = "[RESTART] node systemd[1]: kubelet.service: Main process exited, code=exited, status=143/n/a\n"
    started = "[RESTART] node systemd[1]: Started kubelet.\n[RESTART] node kubelet[101]: runs\n"
    node.standin("log.kubelet.service", stopped + started)
    report = node.apply(order(new={CONFIG: b"LENIENT\n"}))
    assert report.log is not None
    assert report.log.exited == ""
    assert any("runs" in line for line in report.log.lines)
