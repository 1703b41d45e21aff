"""Transactions of container runtimes: several units in order, a SIGHUP instead of a restart, no unit at all."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import ReceiptState
from tests.agent.node import DROPIN, NEW, OLD, Node, order

pytestmark = pytest.mark.process

CONTAINERD, DOCKER, CRI_DOCKERD, CRIO = "containerd.service", "docker.service", "cri-docker.service", "crio.service"
KUBELET = "kubelet.service"
TOML, JSON, HOSTS = (
    "/etc/containerd/config.toml",
    "/etc/docker/daemon.json",
    "/etc/containerd/certs.d/a.example/hosts.toml",
)
CHANGED = ("restart", "kill")
"""The agent's calls of systemd that touch a process."""


@pytest.fixture
def mixed(node: Node) -> Node:
    """A node with three running runtimes, each with a configuration."""
    for number, unit in enumerate((CONTAINERD, DOCKER, CRI_DOCKERD), start=3):
        node.serve(unit, unit.partition(".")[0], pid=number * 100)
    node.write(TOML, b"version = 2\n")
    node.write(JSON, b"{}\n")
    return node


def apply(node: Node, path: str, content: bytes, **changes: object) -> Report:
    old = {path: node.read(path)}
    return node.apply(order(old=old, new={path: content}, **changes))  # type: ignore[arg-type]  # the tests' own keywords


def taken_back(report: Report) -> bool:
    """The agent has found the change unhealthy, and has reverted it."""
    return report.receipt is not None and (report.receipt.state, report.receipt.cause) == (
        ReceiptState.REVERTED,
        "health",
    )


def touched(node: Node) -> list[str]:
    return [call for call in node.calls() if call.startswith(CHANGED)]


# ------------------------------------------------------------------------------------------------------------- restarts


def test_units_are_restarted_in_the_given_order_after_one_reload(mixed: Node) -> None:
    path = f"/etc/systemd/system/{CRI_DOCKERD}.d/90-rollout.conf"
    assert apply(mixed, path, b"[Service]\n", units=(CRI_DOCKERD, KUBELET)).healthy
    assert [call for call in mixed.calls() if call.startswith((*CHANGED, "daemon-reload"))] == [
        "daemon-reload",
        f"restart {CRI_DOCKERD}",
        f"restart {KUBELET}",
    ]
    mixed.revert()
    assert touched(mixed)[2:] == [f"restart {CRI_DOCKERD}", f"restart {KUBELET}"]


def test_a_change_of_a_runtime_alone_checks_the_kubelet_without_a_restart(mixed: Node) -> None:
    report = apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD,))
    assert report.healthy, report
    assert touched(mixed) == [f"restart {CONTAINERD}"]
    assert any("show" in call and call.endswith(KUBELET) for call in mixed.calls())
    assert mixed.confirm().outcome is Outcome.DONE
    assert mixed.read(TOML) == b"version = 3\n"


@pytest.mark.parametrize("config", [b"BROKEN\n", b"LOOPING\n", b"DEAD\n", b"FAILS\n"])
def test_a_runtime_that_does_not_accept_its_new_file_is_reverted_at_once(mixed: Node, config: bytes) -> None:
    report = apply(mixed, TOML, config, units=(CONTAINERD, KUBELET))
    assert taken_back(report)
    assert report.healthy
    assert CONTAINERD in report.message
    assert mixed.read(TOML) == b"version = 2\n"
    assert mixed.strays() == []
    assert touched(mixed)[-2:] == [f"restart {CONTAINERD}", f"restart {KUBELET}"]


def test_a_kubelet_that_dies_of_its_runtimes_restart_is_unhealthy(mixed: Node) -> None:
    """The stand-in's restart of containerd replaces the kubelet's process: systemd has restarted it."""
    tool = mixed.bin / "systemctl"
    tool.write_text(
        tool.read_text().replace(
            "verb=$1\n", f'verb=$1\n[ "$*" != "restart {CONTAINERD}" ] || "$0" restart {KUBELET}\n', 1
        )
    )
    report = apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD,))
    assert taken_back(report)
    assert "went from 100 to 101, and this change does not restart it" in report.message
    assert mixed.read(TOML) == b"version = 2\n"


def test_a_kubelet_that_does_not_answer_after_its_runtimes_restart_is_unhealthy(mixed: Node) -> None:
    tool = mixed.bin / "bash"
    tool.write_text(
        f"#!/bin/sh\n! grep -q 3 $ROLLOUT_ROOT{TOML} || {{ printf 'HTTP/1.0 500 no' && exit; }}\nprintf 'HTTP/1.0 200 OK'\n"
    )
    report = apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD,), guard=5)
    assert taken_back(report)
    assert (report.healthy, report.message) == (True, "healthz: status 500")


def test_lenient_lines_of_a_kubelet_that_was_not_restarted_do_not_count(mixed: Node) -> None:
    mixed.write("/var/lib/kubelet/config.yaml", b"LENIENT\n")
    assert apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD,)).healthy
    mixed.confirm()
    assert taken_back(apply(mixed, TOML, b"version = 4\n", units=(CONTAINERD, KUBELET), tx="t2"))


# -------------------------------------------------------------------------------------------------------------- hangups


def test_a_hangup_is_one_sighup_of_the_main_process_before_any_restart(mixed: Node) -> None:
    assert apply(mixed, JSON, b'{"max-concurrent-downloads": 10}\n', units=(KUBELET,), hangups=(DOCKER,)).healthy
    hangup = f"kill -s HUP --kill-who=main {DOCKER}"
    assert touched(mixed) == [hangup, f"restart {KUBELET}"]
    assert mixed.receipt()["hangups"] == DOCKER
    mixed.confirm()
    mixed.revert()
    assert touched(mixed)[2:] == [hangup, f"restart {KUBELET}"]
    assert mixed.read(JSON) == b"{}\n"


def test_a_unit_that_dies_of_a_sighup_is_reverted_and_started(mixed: Node) -> None:
    report = apply(mixed, JSON, b"DEAF\n", units=(), hangups=(DOCKER,))
    assert taken_back(report)
    assert f"{DOCKER}: ended, and systemd is to start it again" in report.message
    assert mixed.read(JSON) == b"{}\n"
    assert touched(mixed)[-1] == f"restart {DOCKER}"
    assert mixed.strays() == []


def test_a_unit_without_a_process_cannot_be_sent_a_sighup(mixed: Node) -> None:
    mixed.standin(f"unit.{DOCKER}", "pid=0 active=inactive sub=dead\n")
    report = apply(mixed, JSON, b"[]\n", units=(), hangups=(DOCKER,))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "unit-not-running")
    assert mixed.read(JSON) == b"{}\n"


# --------------------------------------------------------------------------------------------------------------- neither


def test_files_that_are_reread_without_a_signal_touch_no_process(mixed: Node) -> None:
    assert apply(mixed, HOSTS, b'server = "x"\n', units=()).healthy
    assert touched(mixed) == []
    assert (
        "Before=basic.target shutdown.target kubelet.service\n"
        in mixed.at("/etc/systemd/system/rollout-guard-boot.service").read_text()
    )
    assert mixed.trigger("guard") == 0
    assert not mixed.at("/etc/containerd/certs.d").exists()
    assert touched(mixed) == []
    assert not [call for call in mixed.calls() if call.startswith("reset-failed")]
    assert mixed.strays() == []


def test_a_kubelet_that_is_down_is_unhealthy_even_if_the_change_did_not_touch_it(mixed: Node) -> None:
    mixed.standin("unit", "pid=0 active=failed sub=failed\n")
    report = apply(mixed, HOSTS, b"x\n", units=())
    assert taken_back(report)
    assert report.message == "ended (failed, failed)"
    assert not mixed.at(HOSTS).exists()


# ------------------------------------------------------------------------------------------------------- all are guarded


def test_the_boot_unit_runs_before_every_unit_of_the_change(mixed: Node) -> None:
    apply(mixed, JSON, b"[]\n", units=(CONTAINERD,), hangups=(DOCKER,))
    unit = mixed.at("/etc/systemd/system/rollout-guard-boot.service")
    assert f"Before=basic.target shutdown.target {CONTAINERD} {DOCKER} {KUBELET}\n" in unit.read_text()
    mixed.confirm()
    assert not unit.exists()


@pytest.mark.parametrize("concerned", [{"units": (CONTAINERD,)}, {"units": (), "hangups": (CONTAINERD,)}])
@pytest.mark.parametrize(
    ("state", "reference"),
    [
        ("reload=yes", "need-daemon-reload"),
        ("file=masked", "unit-masked"),
        ("load=masked reload=yes", "unit-masked"),  # its drop-ins are never read, even after a reload
        ("load=not-found", "unit-not-found"),
    ],
)
def test_every_unit_of_the_change_must_allow_a_change(
    mixed: Node, concerned: dict[str, object], state: str, reference: str
) -> None:
    mixed.standin(f"unit.{CONTAINERD}", state)
    report = apply(mixed, TOML, b"version = 3\n", **concerned)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, reference)
    assert CONTAINERD in report.message
    assert mixed.read(TOML) == b"version = 2\n"
    assert mixed.strays() == []


@pytest.mark.parametrize("state", ["reload=yes", "file=masked"])
def test_the_kubelet_must_allow_a_change_too(mixed: Node, state: str) -> None:
    mixed.standin("unit", state)
    assert apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD,)).outcome is Outcome.REFUSED


def test_the_longest_pause_of_all_units_counts(mixed: Node) -> None:
    mixed.standin(f"unit.{CONTAINERD}", "pause=1min\n")
    report = apply(mixed, TOML, b"version = 3\n", units=(CONTAINERD, KUBELET))
    assert report.reference == "guard-too-short"
    assert "1min" in report.message
    assert apply(mixed, HOSTS, b"x\n", units=()).healthy


def test_a_receipt_without_hangups_is_read(node: Node) -> None:
    """Of an older agent: no such line in any of its receipts."""
    assert node.apply().healthy
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        kept = [line for line in receipt.read_text().splitlines(keepends=True) if not line.startswith("hangups=")]
        receipt.write_text("".join(kept))
    assert node.confirm().outcome is Outcome.DONE
    assert node.files() == NEW
    assert node.revert().healthy
    assert node.files() == OLD


# ------------------------------------------------------------------------------------------- folders are made beforehand


def test_a_disk_that_fills_up_once_armed_has_the_new_folders_already(node: Node) -> None:
    """After the stand-in for systemd-run has armed the timer, the disk takes no folder."""
    (node.bin / "mkdir").write_text(
        '#!/bin/sh\n[ ! -e "$ROLLOUT_ROOT/run/standin/full" ] || exit 1\nexec /bin/mkdir "$@"\n'
    )
    (node.bin / "mkdir").chmod(0o755)
    timer = node.bin / "systemd-run"
    timer.write_text(timer.read_text() + ': >"$D/full"\n')
    report = node.apply()
    assert report.healthy, report
    assert node.files() == NEW
    node.revert()
    assert not node.at(DROPIN).parent.exists()


@pytest.mark.parametrize("why", ["no-timer", "disabled"])
def test_an_apply_that_gives_up_before_the_change_removes_its_folders(node: Node, why: str) -> None:
    node.standin(why)
    assert (
        node.apply(order(new={**NEW, "/etc/new/deep/er/file": b"x", "/etc/new/deep/file": b"y"})).outcome
        is Outcome.REFUSED
    )
    assert not node.at(DROPIN).parent.exists()
    assert not node.at("/etc/new").exists()


def test_a_folder_that_cannot_be_made_is_found_before_arming(node: Node) -> None:
    (node.bin / "mkdir").write_text(
        '#!/bin/sh\ncase "$*" in *kubelet.service.d) exit 1 ;; esac\nexec /bin/mkdir "$@"\n'
    )
    (node.bin / "mkdir").chmod(0o755)
    assert node.apply().reference == "staging-failed"
    assert node.files() == OLD
    assert node.strays() == []
