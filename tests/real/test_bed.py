"""The bed itself: its nodes behave like real ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand
from tests.bed.bed import Bed, sweep
from tests.bed.node import CONFIG, Node
from tests.bed.plugin import RealNodes
from tests.controllers import until
from tests.places import ROOT
from tests.real.agent_calls import PATIENCE

pytestmark = pytest.mark.root


def said(ssh: SshNodes, node: Node, line: str, stdin: bytes = b"") -> str:
    answer = ssh.run(Target(name=node.name, address=node.name), RemoteCommand(line, stdin, PATIENCE))
    assert answer.status == 0, answer
    return answer.stdout.decode().strip()


def test_a_node_is_a_machine_with_systemd_and_a_running_kubelet(ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    assert said(ssh, node, "hostname; id -un; sudo -n id -un").split() == [node.name, "ops", "root"]
    assert said(ssh, node, "cat /proc/1/comm; systemctl is-active kubelet").split() == ["systemd", "active"]
    assert said(ssh, node, "kubelet --version") == "Kubernetes v1.20.15"
    assert "--config=/var/lib/kubelet/config.yaml" in said(
        ssh, node, "tr '\\0' ' ' < /proc/$(systemctl show -p MainPID --value kubelet)/cmdline"
    )


def test_a_restart_returns_0_although_the_configuration_is_broken(ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    before = int(said(ssh, node, "systemctl show -p NRestarts --value kubelet"))
    try:
        said(ssh, node, "echo BROKEN | sudo -n tee /var/lib/kubelet/config.yaml; sudo -n systemctl restart kubelet")
        restarts = "systemctl show -p NRestarts --value kubelet"
        until(lambda: int(said(ssh, node, restarts)) > before, PATIENCE, "systemd restarts it repeatedly")
    finally:
        said(ssh, node, "sudo -n tee /var/lib/kubelet/config.yaml", CONFIG.encode())
        said(ssh, node, "sudo -n systemctl restart kubelet; systemctl is-active kubelet")


@pytest.mark.parametrize(
    ("flags", "config", "status", "says"),
    [
        ("--no-such-flag", CONFIG, 255, "unknown flag"),
        ("--image-pull-progress-deadline=5 minutes", CONFIG, 255, "invalid argument"),
        ("", CONFIG.replace("110", '"fifty"'), 1, "cannot unmarshal"),
        ("", "", 1, "was empty"),
        ("", CONFIG.replace("KubeletConfiguration", "Pod"), 1, "no kind"),
        ("--image-pull-progress-deadline=5m0s", f"{CONFIG}noSuchField: 1\nBROKEN", 1, "could not find"),
    ],
)
def test_the_kubelet_accepts_and_refuses_as_the_real_one_does(
    ssh: SshNodes, real_nodes: RealNodes, flags: str, config: str, status: int, says: str
) -> None:
    (node,) = real_nodes(1)
    line = f"cat > /tmp/config && kubelet --config=/tmp/config {repr(flags) if flags else ''}"
    answer = ssh.run(Target(name=node.name, address=node.name), RemoteCommand(line, config.encode(), PATIENCE))
    assert answer.status == status
    assert says in answer.stderr.decode()


def test_an_unknown_field_is_only_logged(ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    runs = "kubelet --config=/tmp/config --healthz-port=0 >/tmp/said 2>&1 & until grep -q started /tmp/said; do sleep 0.05; done"
    line = f"cat > /tmp/config && {{ {runs}; kill $!; cat /tmp/said; }}"
    assert "lenient decoding" in said(ssh, node, line, f"{CONFIG}noSuchField: 1\n".encode())


def test_healthz_answers(real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    ask = "exec 3<>/dev/tcp/127.0.0.1/10248; printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3"
    assert node.exec("bash", "-c", ask).strip() == "ok"


def test_a_power_cut_is_followed_by_a_new_boot_with_synced_data_only(
    bed: Bed, ssh: SshNodes, real_nodes: RealNodes
) -> None:
    (node,) = real_nodes(1)
    quick = SshNodes(ssh_config=bed.ssh_config, limits=SshLimits(connect=1, channel=1))
    try:
        boot = said(ssh, node, "cat /proc/sys/kernel/random/boot_id")
        machine = said(ssh, node, "cat /etc/machine-id")
        said(ssh, node, "echo kept | sudo -n tee /var/lib/kubelet/mark; sync -f /var/lib/kubelet/mark")
        said(ssh, node, "sudo -n touch /run/lost")
        (node.root / "var/lib/kubelet/later").write_text("lost\n")
        node.disk.stop()  # at once: other processes on this machine may sync all of its disks
        node.powercut()
        answer = quick.run(Target(name=node.name, address=node.name), RemoteCommand("true", b"", PATIENCE))
        assert (answer.started, answer.reference) in {(False, "connect-timeout"), (False, "host-unreachable")}
        node.heal()
        node.boot()
        node.wait()
        assert said(ssh, node, "cat /proc/sys/kernel/random/boot_id") != boot
        assert said(ssh, node, "cat /etc/machine-id /var/lib/kubelet/mark").split() == [machine, "kept"]
        assert said(ssh, node, "cat /var/lib/kubelet/later /run/lost 2>/dev/null || :") == ""
    finally:
        said(ssh, node, "sudo -n rm -f /var/lib/kubelet/mark /var/lib/kubelet/later")
        quick.close()


def test_a_rebooted_node_returns_by_itself(ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    boot = said(ssh, node, "cat /proc/sys/kernel/random/boot_id")
    node.reboot()
    node.wait()
    assert said(ssh, node, "cat /proc/sys/kernel/random/boot_id") != boot


def test_a_paused_node_answers_nothing_and_continues_afterwards(bed: Bed, ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    quick = SshNodes(ssh_config=bed.ssh_config, limits=SshLimits(banner=1, channel=1))
    try:
        node.pause()
        answer = quick.run(Target(name=node.name, address=node.name), RemoteCommand("true", b"", PATIENCE))
        assert (answer.started, answer.reference) == (False, "no-banner")
        node.resume()
        assert said(ssh, node, "echo back") == "back"
    finally:
        node.resume()
        quick.close()


DEADLINE = 2.0
TCP = 60.0
"""Seconds: TCP itself would wait for more than twice as long, and a busy machine needs far less."""


def test_a_pulled_cable_ends_at_the_deadline(ssh: SshNodes, real_nodes: RealNodes) -> None:
    (node,) = real_nodes(1)
    target = Target(name=node.name, address=node.name)
    assert said(ssh, node, "echo up") == "up"
    node.cut()
    try:
        begin = time.monotonic()
        answer = ssh.run(target, RemoteCommand("true", b"", DEADLINE))
        assert (answer.status, answer.started) == (None, False)
        assert time.monotonic() - begin < TCP
    finally:
        node.heal()
    until(
        lambda: ssh.run(target, RemoteCommand("echo again", b"", PATIENCE)).stdout == b"again\n",
        PATIENCE,
        "it is reached again: the kernel caches the missing route for a moment",
    )


def test_the_remains_of_a_killed_run_are_removed(bed: Bed) -> None:
    script = "from tests.bed.bed import Bed; b = Bed(); b.__enter__(); b.add(); print(b.folder, flush=True); import sys; sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        run.kill()
    assert (folder / "node-1").exists()
    number = int(folder.name.removeprefix("bed-"))
    assert _of_bed(number)
    sweep()
    assert not folder.exists()
    assert not _of_bed(number)
    assert str(folder) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert bed.nodes[0].exec("hostname").strip() == bed.nodes[0].name


def _of_bed(number: int) -> list[Path]:
    """Network devices and namespaces. Those of bed 15 are not those of bed 1, though their names begin with its name."""
    return [
        path
        for place in ("/sys/class/net", "/run/netns")
        for path in Path(place).iterdir()
        if re.fullmatch(rf"rbed{number}([n-].*)?", path.name)
    ]


def test_an_image_that_is_not_built_is_one_message_before_all_tests(tmp_path: Path) -> None:
    broken = tmp_path / "bin/mmdebstrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'E: no mirror answers' >&2\nexit 25\n")
    broken.chmod(0o755)
    away = {**os.environ, "PATH": f"{broken.parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bed"], env=away, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first == "The image of the test nodes was not built; `make image` tries again."
    assert second.endswith("exit 25: E: no mirror answers")
    assert list(tmp_path.rglob("*.zst")) == []
