"""Nothing is renamed before the guard's units have shown that they can revert it: by what systemd shows of them, and by `try`."""

from __future__ import annotations

import signal
import subprocess

import pytest

from rollout.core.model.report import Outcome, Report
from tests.agent.instrument import instrumented, moments
from tests.agent.node import CONFIG, NEW, OLD, PROGRAM, Node, order
from tests.sampling import sample

pytestmark = pytest.mark.process

TIMER, GUARD, WATCH = "rollout-guard-t1.timer", "rollout-guard-t1.service", "rollout-watch-t1.service"
BOOT = "rollout-guard-boot.service"
LATE = "/etc/systemd/system/service.d/~~~~~~~~~~~~late.conf"


def refused(node: Node, *words: str) -> Report:
    """The apply is refused with these words, and the node is as it was."""
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "guard-not-proven"), report
    assert all(word in report.message for word in words), report.message
    strays = [path for path in node.strays() if not (path.startswith("etc/") and path.endswith((".d", "/hard.conf")))]
    assert (node.files(), strays, node.tx().exists()) == (OLD, [], False)
    return report


def in_the_unit(node: Node, tool: str, does: str) -> None:
    """A tool that does this in the sandbox of a unit, and its work outside."""
    path = node.bin / tool
    path.write_text(f'#!/bin/sh\n[ -z "${{INVOCATION_ID-}}" ] || {{ {does}; }}\nexec /usr/bin/{tool} "$@"\n')
    path.chmod(0o755)


def test_what_the_watch_has_tried_is_kept_and_the_receipt_names_it(node: Node) -> None:
    before = {path for path in node.tree() if "rollout" not in str(path)}
    assert node.apply().healthy
    assert (node.tx() / node.receipt()["proof"]).read_text() == "complete 1\n"
    made = {path for path in node.tree() if "rollout" not in str(path)} - before
    assert {path.name for path in made if "kubelet" in str(path)} <= {"kubelet.service.d"}, "only what the change makes"


@pytest.mark.parametrize(
    ("tool", "does", "step"),
    [
        ("ln", "exit 1", "link-in-/var/lib/kubelet"),
        ("mv", "exit 1", "rename-in-/var/lib/kubelet"),
        ("rm", "exit 1", "unlink"),
        ("mkdir", "exit 1", "a-name-in-a-folder-of-drop-ins"),
        ("sha256sum", "exit 1", "reading-the-program"),
    ],
)
def test_a_unit_that_cannot_do_what_a_revert_does_is_refused(node: Node, tool: str, does: str, step: str) -> None:
    in_the_unit(node, tool, does)
    refused(node, f"{WATCH} did not show that it can revert the change: {step}")


@pytest.mark.parametrize(
    ("does", "end"), [("exit 1", "failed"), ("kill -9 $$", "was killed"), ("exit 126", "could not be started")]
)
def test_a_sync_without_success_in_the_unit_refuses_and_is_named(node: Node, does: str, end: str) -> None:
    in_the_unit(node, "sync", does)
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert report.message.endswith(f"what the guard tried: sync {end}")
    assert (node.files(), node.strays(), node.tx().exists()) == (OLD, [], False)


def test_a_unit_that_does_not_reach_systemd_is_refused(node: Node) -> None:
    path = node.bin / "systemctl"
    path.write_text(path.read_text().replace("\nD=", '\n[ -z "${INVOCATION_ID-}" ] || exit 1\nD=', 1))
    refused(node, "did not show that it can revert the change: systemctl")


def test_a_unit_whose_systemd_answers_late_is_waited_for(node: Node) -> None:
    """One of 100 nodes of a busy machine was refused, because its systemd needed more than 5 s."""
    path = node.bin / "systemctl"
    late = '[ -z "${INVOCATION_ID-}" ] || [ "$STANDIN_TIMEOUT" -gt 10 ] || exec hangs'
    path.write_text(path.read_text().replace("\nD=", f"\n{late}\nD=", 1))
    assert node.apply().healthy


def test_a_unit_that_tried_nothing_is_refused(node: Node) -> None:
    path = node.bin / "systemd-run"
    path.write_text(path.read_text().replace('[ -z "$first" ]', "true", 1))
    refused(node, "its trial left no result")


def test_what_another_start_of_the_unit_has_tried_is_no_proof(node: Node) -> None:
    path = node.bin / "systemd-run"
    path.write_text(path.read_text().replace("INVOCATION_ID=1", "INVOCATION_ID=2", 1))
    refused(node, "another start")


def test_a_unit_that_sees_other_folders_is_refused(node: Node) -> None:
    path = node.bin / "systemd-run"
    path.write_text(path.read_text().replace('ln -s -fn "$ROLLOUT_ROOT"', "ln -s -fn /tmp", 1))
    refused(node, f"{WATCH} is not seen to have the same /var/lib/rollout")


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        (TIMER, "Unit=kubelet.service"),
        (GUARD, "RuntimeMaxUSec=2s"),
        (GUARD, "MemoryMax=65536"),
        (WATCH, "TasksMax=1"),
        (BOOT, "LimitFSIZE=1"),
        (BOOT, "TimeoutStartUSec=1s"),
        (WATCH, "WatchdogUSec=1s"),
        (GUARD, "CPUQuotaPerSecUSec=1ms"),
        (BOOT, "Requires=sysinit.target none.service"),
        (GUARD, "BindsTo=kubelet.service"),
        (GUARD, "PartOf=kubelet.service"),
        (WATCH, "Conflicts=kubelet.service"),
    ],
)
def test_what_no_drop_in_of_ours_can_reset_is_refused(node: Node, unit: str, line: str) -> None:
    node.write("/etc/systemd/system/service.d/hard.conf", b"")
    node.standin(f"odd.{unit.removeprefix('rollout-')}", f"{line}\n")
    named = "" if unit == TIMER else "; drop-ins of others: /etc/systemd/system/service.d/hard.conf"
    word = line.replace("sysinit.target ", "")
    assert refused(node, f"{unit} has {word}{named}")


@pytest.mark.parametrize("infinity", ["infinity", "18446744073709551615"])
def test_no_limit_is_no_reason(node: Node, infinity: str) -> None:
    lines = "".join(f"{name}={infinity}\n" for name in ("RuntimeMaxUSec", "MemoryMax", "TasksMax", "LimitCPU"))
    for unit in (GUARD, WATCH, BOOT):
        node.standin(
            f"odd.{unit.removeprefix('rollout-')}",
            f"{lines}WatchdogUSec=0\nConflicts=shutdown.target\nRequires=-.mount system.slice sysinit.target\n",
        )
    assert node.apply().healthy


def test_a_drop_in_that_sorts_after_ours_is_named(node: Node) -> None:
    node.write(LATE, b"[Service]\nProtectSystem=full\n")
    refused(node, f"does not have our drop-in last; drop-ins of others: {LATE}")


@pytest.mark.parametrize("unit", [TIMER, GUARD, BOOT, WATCH])
def test_a_drop_in_that_systemd_has_not_read_to_its_end_is_refused(node: Node, unit: str) -> None:
    """Its name is there, as after a write without room; what it sets is not in force."""
    path = node.bin / "systemctl"
    told, text = '\n  [ -z "$told" ] || echo "$told"', path.read_text()
    assert told in text
    path.write_text(text.replace(told, f"\n  [ $1 != {unit} ] || return{told}"))
    refused(node, f"does not report the last line of our drop-in of {unit}")


@pytest.mark.parametrize("unit", [GUARD, BOOT, WATCH])
def test_a_drop_in_for_one_unit_alone_is_refused_since_the_watch_tried_without_it(node: Node, unit: str) -> None:
    path = f"/etc/systemd/system/{unit}.d/hard.conf"
    node.write(path, b"")
    refused(node, "has other drop-ins than the watch")
    assert node.read(path) == b"", "it stays"


def test_a_drop_in_that_sorts_before_ours_is_no_reason(node: Node) -> None:
    node.write("/etc/systemd/system/service.d/zz.conf", b"[Service]\nProtectSystem=full\n")
    assert node.apply().healthy
    text = node.at(f"/run/systemd/system/{GUARD}.d/~~~~~~~~-rollout.conf").read_text()
    assert "\nProtectSystem=no\n" in text
    assert text == text.replace(";", "").replace('"', ""), "each word is a line of its own"


def test_a_try_that_is_killed_leaves_nothing_that_no_cleanup_removes(node: Node) -> None:
    """At every line of it; its unit may start again later, and tries nothing then."""
    node.program = instrumented(PROGRAM)
    assert node.apply().healthy
    words = [str(node.bin / "sh"), str(node.tx() / "agent"), "try", "t1"]
    tried = node.tx() / "tried"
    content = tried.read_text()
    subprocess.run(words, env=node.env(), check=True, capture_output=True)
    assert tried.read_text() == content
    trace, started = node.root.parent / "trace", {"INVOCATION_ID": "1"}
    tried.unlink()
    subprocess.run(words, env=node.env({"ROLLOUT_TRACE": str(trace), **started}), check=True, capture_output=True)
    statuses = set()
    for moment in sample(f"killed in try under {node.shell}", moments(trace), 6):
        tried.unlink(missing_ok=True)
        dies = node.env({**moment.kill(trace.parent), **started})
        statuses.add(subprocess.run(words, env=dies, check=False, capture_output=True).returncode)
    assert -signal.SIGKILL in statuses
    assert statuses <= {-signal.SIGKILL, 0}, "a path with less waiting passes fewer lines"
    assert node.confirm().outcome is Outcome.DONE
    assert (node.cleanup().leftovers, node.strays(), node.files()) == ((), [], NEW)


def test_a_program_that_lost_its_end_is_not_one_that_can_revert(node: Node) -> None:
    """The watch ends before it has read the rest of the program: it compares its bytes."""
    assert node.apply().healthy
    agent, tried = node.tx() / "agent", node.tx() / "tried"
    agent.write_bytes(agent.read_bytes()[:-200])
    tried.unlink()
    words = [str(node.bin / "sh"), str(agent), "try", "t1"]
    subprocess.run(words, env=node.env({"INVOCATION_ID": "1"}), check=True, capture_output=True)
    assert tried.read_text() == "reading-the-program 1\n"


def test_a_file_of_a_guard_that_systemd_has_forgotten_is_removed(node: Node) -> None:
    """It was armed while systemd executed itself again: the unit is gone, and its file is there."""
    path = f"/run/systemd/transient/{TIMER}"
    assert node.apply().healthy
    node.write(path, b"[Timer]\n")
    node.write("/run/systemd/transient/rollout-watch-t0.service", b"[Service]\n")
    assert path in node.cleanup().leftovers, "armed: it is needed"
    assert node.confirm().outcome is Outcome.DONE
    assert (node.cleanup().leftovers, node.strays()) == ((), [])


def test_drop_ins_of_others_for_all_guards_stay_and_are_nothing_of_ours(node: Node) -> None:
    theirs = [
        f"/{folder}/systemd/system/rollout-{unit}.d/hard.conf"
        for folder in ("etc", "run")
        for unit in ("guard-.service", "guard-.timer", "watch-.service")
    ]
    for path in theirs:
        node.write(path, b"")
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert node.cleanup().leftovers == ()
    assert node.forget().leftovers == ()
    assert [path for path in theirs if node.read(path) is None] == []


def test_a_stop_that_systemd_refused_is_requested_again(node: Node) -> None:
    """It executes itself again, and its socket is gone for a moment."""
    path, mark = node.bin / "systemctl", node.at("/run/standin/once")
    path.write_text(
        path.read_text().replace("\nD=", f'\n[ "$1" != stop ] || [ -e {mark} ] || {{ true >{mark}; exit 1; }}\nD=', 1)
    )
    in_the_unit(node, "ln", "exit 1")
    refused(node)


def test_a_refused_change_leaves_no_folder_of_a_drop_in(node: Node) -> None:
    """Where /run takes none, the boot unit's was made before."""
    node.at("/run/systemd/system").write_bytes(b"")
    assert node.apply().reference == "staging-failed"
    assert (node.files(), node.strays(), node.tx().exists()) == (OLD, [], False)


def test_only_root_can_write_what_systemd_reads_of_ours(node: Node) -> None:
    assert node.apply().healthy
    ours = [path for path in node.root.rglob("*rollout*") if "systemd" in str(path) and not path.is_symlink()]
    assert len(ours) >= 8
    assert [path for path in ours if path.stat().st_mode & 0o022] == []


def test_a_copy_that_could_not_be_removed_is_named_and_removed_later(node: Node) -> None:
    """A mount became read-only between two renames, and is writable again later."""
    tool = node.bin / "ln"
    tool.write_text('#!/bin/sh\ncase "$*" in -s*) exec /usr/bin/ln "$@" ;; esac\nexit 1\n')  # copies beside the target
    tool.chmod(0o755)
    assert node.apply().healthy
    stuck = node.bin / "rm"
    stuck.write_text('#!/bin/sh\ncase "$*" in *.rollout-t1.*) exit 1 ;; esac\nexec /usr/bin/rm "$@"\n')
    stuck.chmod(0o755)
    assert node.confirm().outcome is Outcome.DONE
    copy = f"{CONFIG.rpartition('/')[0]}/.rollout-t1.1.old"
    assert copy in node.cleanup().leftovers
    stuck.unlink()
    assert copy in node.status(strays=True).leftovers, "a later look finds it"
    assert (node.cleanup().leftovers, node.strays()) == ((), [])
    assert node.status(strays=True).leftovers == ()


def slow(node: Node, seconds: int) -> None:
    """What asks systemd takes so long, or is ended before it has asked."""
    for name in ("systemctl", "systemd-run"):
        tool, real = node.bin / name, node.bin / f"{name}.real"
        tool.rename(real)
        tool.write_text(
            f'#!/bin/sh\n[ "${{STANDIN_TIMEOUT:-99}}" -gt {seconds} ] || exec hangs\nsleep {seconds}\nexec {real} "$@"\n'
        )
        tool.chmod(0o755)


@pytest.mark.parametrize(("guard", "seconds"), [(5, 2), (10, 4), (20, 6)])
def test_a_guard_whose_time_was_too_short_to_arm_it_leaves_nothing(node: Node, guard: int, seconds: int) -> None:
    """Else its timer outlives its program, and systemd starts a service that fails every five seconds."""
    slow(node, seconds)
    report = node.apply(order(guard=guard))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "guard-not-proven"), report
    assert report.message == "systemctl show has not ended in time"
    assert (node.files(), node.strays(), node.tx().exists()) == (OLD, [], False)


def test_a_timer_that_may_not_have_stopped_keeps_its_program(node: Node) -> None:
    (node.bin / "systemctl").rename(node.bin / "systemctl.real")
    (node.bin / "systemctl").write_text(
        '#!/bin/sh\n[ "$1" != stop ] || exec hangs\nexec "${0%/*}/systemctl.real" "$@"\n'
    )
    (node.bin / "systemctl").chmod(0o755)
    node.standin("no-service")
    assert node.apply().reference == "guard-not-proven"
    (node.bin / "systemctl.real").replace(node.bin / "systemctl")
    assert node.at(f"/run/standin/{TIMER}").exists()
    assert node.trigger("guard") == 0
    assert (node.files(), node.strays(), node.tx().exists()) == (OLD, [], False)


def test_a_name_of_ours_that_cannot_be_removed_is_reported_and_a_later_cleanup_removes_it(node: Node) -> None:
    """In a folder that may only be added to (``chattr +a``), a name can be made, and neither renamed nor removed."""
    for name, answers in (("rm", "removes"), ("rmdir", "removes"), ("mv", "renames")):
        tool = node.bin / name
        tool.write_text(
            f'#!/bin/sh\ncase "$*" in */var/lib/kubelet/.rollout-*) echo "nobody {answers} it" >&2; exit 1 ;; esac\n'
            f'exec /usr/bin/{name} "$@"\n'
        )
        tool.chmod(0o755)
    assert node.apply().outcome is Outcome.REFUSED
    assert (node.strays(), node.files()) == (["var/lib/kubelet/.rollout-t1.1.try"], OLD)
    assert node.cleanup().leftovers == ("/var/lib/kubelet/.rollout-t1.1.try",)
    for name in ("rm", "rmdir", "mv"):
        (node.bin / name).unlink()
    assert node.cleanup().leftovers == ()
    assert (node.files(), node.strays(), node.tx().exists()) == (OLD, [], False)
