"""One node: a systemd-nspawn container with its own network, disk, host key, machine id and boot id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bed.shell import BedError, run

HERE = Path(__file__).parent
OPS = 1000
CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
clusterDomain: cluster.local
maxPods: 110
serializeImagePulls: true
"""
FLAGS = 'KUBELET_KUBEADM_ARGS="--network-plugin=cni --pod-infra-container-image=k8s.gcr.io/pause:3.2"\n'


@dataclass(slots=True)
class Node:
    """Verbs of a node. Faults last until they are healed; a power cut loses /run and memory, the disk is kept.

    (The page cache belongs to this machine's kernel and survives: a power cut here does not lose unsynced writes.)
    """

    name: str
    address: str
    folder: Path
    image: Path
    cgroup: Path
    bridge: str
    port: str
    netns: str
    gateway_bits: int = 24
    restart_seconds: int = 1
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def disk(self) -> Path:
        """What the node wrote: the upper layer of its root."""
        return self.folder / "disk"

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def create(self, user_key: Path) -> None:
        """Its disk as kubeadm would have left it, its root mounted, its network plugged in; not booted."""
        for folder in (self.disk, self.folder / "work", self.root):
            folder.mkdir(parents=True)
        self._write("etc/hostname", f"{self.name}\n")
        self._write("etc/hosts", f"127.0.0.1 localhost {self.name}\n")
        self._write("etc/machine-id", f"{uuid.uuid4().hex}\n", 0o444)
        self._write("home/ops/.ssh/authorized_keys", user_key.with_suffix(".pub").read_text(encoding="utf-8"), 0o600)
        for path in ("home/ops", "home/ops/.ssh", "home/ops/.ssh/authorized_keys"):
            os.chown(self.disk / path, OPS, OPS)
        (self.disk / "home/ops/.ssh").chmod(0o700)
        (self.disk / "etc/ssh").mkdir()
        host_key = str(self.disk / "etc/ssh/ssh_host_ed25519_key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", host_key)
        self._install_kubelet()
        lower = f"lowerdir={self.image},upperdir={self.disk},workdir={self.folder / 'work'}"
        run("mount", "-t", "overlay", self.netns, "-o", lower, str(self.root))
        run("ip", "netns", "add", self.netns)
        run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "host0", "netns", self.netns)
        run("ip", "link", "set", self.port, "master", self.bridge, "up")
        run("ip", "-n", self.netns, "addr", "add", f"{self.address}/{self.gateway_bits}", "dev", "host0")
        for device in ("host0", "lo"):
            run("ip", "-n", self.netns, "link", "set", device, "up")

    def host_key(self) -> str:
        """``TYPE KEY`` of its host key."""
        text = (self.disk / "etc/ssh/ssh_host_ed25519_key.pub").read_text(encoding="utf-8")
        return " ".join(text.split()[:2])

    def boot(self) -> None:
        """Switch on, in a session of its own; ``wait`` for it to be reachable."""
        cgroup = self.cgroup.relative_to(self.cgroup.parents[1])
        script = (str(HERE / "boot.sh"), self.name, str(self.root), self.netns, str(cgroup))
        with (self.folder / "console").open("ab") as console:
            self._process = subprocess.Popen(
                ["nice", "unshare", "-m", "--propagation", "slave", "/bin/sh", *script],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, seconds: float = 60) -> None:
        """Until its sshd shows a banner and lets users in (pam_nologin turns them away while the system boots)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection((self.address, 22), 1) as probe:
                probe.settimeout(5)
                if probe.recv(4) == b"SSH-" and self._lets_users_in():
                    return
            if self._process is not None and self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise BedError(f"{self.name} did not come up: {(self.folder / 'console').read_text(errors='replace')[-2000:]}")

    def _lets_users_in(self) -> bool:
        gates = "[ ! -e /run/nologin ] && systemctl is-active -q systemd-user-sessions"
        return self.exec("sh", "-c", f"{gates} && echo open || :").strip() == "open"

    def exec(self, *words: str, check: bool = True) -> str:
        """A command on the node, not over SSH: for looking at it from outside."""
        return run("nsenter", "-t", str(self._leader()), "-m", "-u", "-i", "-n", "-p", "--", *words, check=check)

    def powercut(self) -> None:
        """Off at once: peers see silence until ``heal`` and ``boot``."""
        self.cut()
        time.sleep(0.05)
        self._kill()

    def cut(self) -> None:
        """The network cable is out."""
        run("ip", "link", "set", self.port, "down")

    def heal(self) -> None:
        run("ip", "link", "set", self.port, "up")

    def reboot(self) -> None:
        """An orderly reboot from inside; returns when it is down."""
        before = self._leader()
        self.exec("systemctl", "reboot", check=False)
        end = time.monotonic() + 60
        while Path(f"/proc/{before}").exists():
            if time.monotonic() > end:
                raise BedError(f"{self.name} did not shut down")
            time.sleep(0.05)

    def pause(self) -> None:
        """Freeze every process: connections are accepted by the kernel, nothing answers."""
        (self.cgroup / "cgroup.freeze").write_text("1")

    def resume(self) -> None:
        (self.cgroup / "cgroup.freeze").write_text("0")

    def destroy(self) -> None:
        """Remove everything of it; as far as it got, and as often as wanted."""
        self._kill()
        run("umount", "-l", str(self.root), check=False)
        run("ip", "netns", "del", self.netns, check=False)
        run("ip", "link", "del", self.port, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _install_kubelet(self) -> None:
        unit = (HERE / "kubelet.service").read_text(encoding="utf-8")
        self._write("usr/bin/kubelet", (HERE / "kubelet").read_text(encoding="utf-8"), 0o755)
        self._write(
            "usr/lib/systemd/system/kubelet.service",
            unit.replace("RestartSec=10", f"RestartSec={self.restart_seconds}"),
        )
        drop_in = (HERE / "10-kubeadm.conf").read_text(encoding="utf-8")
        self._write("etc/systemd/system/kubelet.service.d/10-kubeadm.conf", drop_in)
        self._write("var/lib/kubelet/config.yaml", CONFIG)
        self._write("var/lib/kubelet/kubeadm-flags.env", FLAGS)
        wants = self.disk / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / "kubelet.service").symlink_to("/lib/systemd/system/kubelet.service")

    def _write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.disk / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def _leader(self) -> int:
        """The node's PID 1 as this machine numbers it: boot.sh, its nspawn, the container's init."""
        if self._process is None:
            raise BedError(f"{self.name} is not booted")
        pid = self._process.pid
        for _ in range(2):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            if not children:
                raise BedError(f"{self.name} is not running")
            pid = int(children[0])
        return pid

    def _kill(self) -> None:
        """All of its processes, by its control group; then reap."""
        with suppress(OSError):
            (self.cgroup / "cgroup.kill").write_text("1")
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(20)
            self._process = None
        for folder in sorted(self.cgroup.rglob("*"), reverse=True) if self.cgroup.exists() else ():
            if folder.is_dir():
                _remove_group(folder)
        if self.cgroup.exists():
            _remove_group(self.cgroup)


def _remove_group(folder: Path) -> None:
    """A control group cannot go while the kernel still buries its processes."""
    for _ in range(100):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.05)
