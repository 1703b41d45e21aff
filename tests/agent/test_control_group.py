"""After its restart a kubelet is seen by its control group, without a question to systemd; and what systemd then shows decides."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from tests.agent.node import CONFIG, NEW, OLD, Node, order
from tests.agent.test_second_chances import wrap

pytestmark = pytest.mark.process


def looks(node: Node) -> int:
    """How often systemd was asked for units since the restart."""
    calls = node.calls()
    return sum(call.startswith("show") for call in calls[calls.index("restart kubelet.service") :])


@pytest.mark.parametrize("base", ["", "unified", "systemd"])
def test_systemd_is_asked_once_when_the_kubelet_has_run_for_long_enough(node: Node, base: str) -> None:
    node.control_group(base=base)
    assert node.apply().healthy
    assert (looks(node), node.files()) == (1, NEW)


def test_a_revert_asks_systemd_before_the_restart_and_at_the_end(node: Node) -> None:
    group = node.control_group()
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    before = len(node.calls())
    assert node.revert().healthy
    assert sum(call.startswith("show") for call in node.calls()[before:]) == 2
    assert (group.read_text(), node.files()) == ("102\n", OLD)


def test_a_revert_whose_restart_the_group_does_not_show_has_not_ended(node: Node) -> None:
    """systemd's answer counts as long as the group has the process of before."""
    node.control_group()
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    wrap(node, "systemctl", "case $1 in restart) exit ;; esac")
    report = node.revert()
    assert report.reference == "not-restarted", report
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverting")


def once_restarted(node: Node, text: str) -> None:
    """``text`` runs when systemd has restarted the kubelet, before the agent looks."""
    wrap(node, "systemctl", f'case $1 in restart) {node.bin}/systemctl.real "$@"; {text}; exit ;; esac')


@pytest.mark.parametrize(
    "text",
    [
        "echo 7 >>{group}",  # a second process in it
        "true >{group}",  # none yet
        "echo 7 >{group}",  # one without a time
        "echo 100 >{group}",  # that of before
        "rm {group}",
        'sed -i "s/ [0-9]* 0 0$/ 900 0 0/" {root}/proc/101/stat',  # older than the restart
        "echo x >{group}",
    ],
)
def test_where_the_group_does_not_show_one_new_process_systemd_is_asked(node: Node, text: str) -> None:
    once_restarted(node, text.format(group=node.control_group(), root=node.root))
    assert node.apply().healthy
    assert (looks(node), node.files()) == (2, NEW)


def test_a_process_of_the_group_that_is_not_the_main_process_proves_nothing(node: Node) -> None:
    """By the last look, it is another one: what follows is as if the group had not been read."""
    stranger = "cp -a {root}/proc/101 {root}/proc/107; echo 107 >{group}"
    once_restarted(node, stranger.format(group=node.control_group(), root=node.root))
    assert node.apply().healthy
    assert (looks(node), node.files()) == (3, NEW)


def test_a_kubelet_that_systemd_had_restarted_before_is_looked_at_by_its_count(node: Node) -> None:
    node.control_group()
    node.standin("unit", "restarts=2\n")
    assert node.apply().healthy
    assert looks(node) == 2


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (b"BROKEN", "its process exited"),
        (b"DEAD", "ended, and systemd is to start it again (activating, auto-restart)"),
    ],
)
def test_a_kubelet_that_does_not_stay_is_reverted(node: Node, word: bytes, reason: str) -> None:
    node.control_group()
    report = node.apply(order(new={**NEW, CONFIG: word + b"\n"}))
    assert (report.outcome, report.message) == (Outcome.DONE, reason), report
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


def test_a_kubelet_that_systemd_has_restarted_since_is_reverted(node: Node) -> None:
    """Its process is the one of the group, but systemd counts a restart."""
    node.control_group()
    once_restarted(node, f"echo restarts=1 >{node.at('/run/standin/unit')}")
    report = node.apply()
    assert (report.outcome, report.message) == (Outcome.DONE, "restarted by systemd"), report
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


def test_a_number_that_came_back_is_not_the_same_process(node: Node) -> None:
    """The process ended while it was watched, and systemd's last answer has another process of the same number."""
    node.control_group()
    stat = node.at("/proc/101/stat")
    wrap(
        node,
        "systemctl",
        f'case $1,$* in show,*kubelet.service*) [ ! -e {stat} ] || sed -i "s/ \\([0-9]*\\) 0 0$/ 9\\1 0 0/" {stat} ;; esac',
    )
    report = node.apply()
    assert (report.outcome, report.message) == (
        Outcome.DONE,
        "systemctl show does not report the same process any more",
    ), report
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


def test_a_kubelet_that_others_restarted_meanwhile_did_not_keep_its_process(node: Node) -> None:
    """The process of the group has ended, and systemd has a new one, without a restart of its own."""
    group = node.control_group()
    once = node.at("/run/standin/once")
    others = f"[ -e {once} ] || {{ true >{once}; {node.bin}/systemctl.real restart kubelet.service; }}"
    wrap(
        node, "systemctl", f"case $1,$* in show,*kubelet.service*) [ ! -e {node.at('/proc/101')} ] || {others} ;; esac"
    )
    report = node.apply()
    assert (report.outcome, report.message) == (
        Outcome.DONE,
        "systemctl show does not report the same process any more",
    ), report
    assert (node.files(), node.receipt()["state"], group.read_text()) == (OLD, "reverted", "103\n")
