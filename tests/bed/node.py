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
from enum import StrEnum
from pathlib import Path

from rollout.kubelet.node import packaged
from tests.bed.disk import Disk
from tests.bed.shell import PATIENCE, BedError, run

HERE = Path(__file__).parent
OPS = 1000
CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
clusterDomain: cluster.local
maxPods: 110
serializeImagePulls: true
"""
DAEMON = '{\n  "live-restore": true\n}\n'
"""/etc/docker/daemon.json."""
WORDS = ("--network-plugin=cni", "--pod-infra-container-image=k8s.gcr.io/pause:3.2")
FLAGS = f'KUBELET_KUBEADM_ARGS="{" ".join(WORDS)}"\n'
PLAIN_CONFIG = "/etc/kubernetes/kubelet-config.yaml"
PLAIN = " \\\n  ".join(("/usr/bin/kubelet", f"--config={PLAIN_CONFIG}", *WORDS))
"""The whole command line of a plain node, in its unit."""


EKS_CONFIG = "/etc/kubernetes/kubelet/kubelet-config.json"
EKS_JSON = """\
{
  "kind": "KubeletConfiguration",
  "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "authentication": {
    "anonymous": {
      "enabled": false
    }
  },
  "clusterDomain": "cluster.local",
  "serializeImagePulls": true,
  "maxPods": 58
}
"""
EKS_UNIT = """\
[Unit]
Description=Kubernetes Kubelet
After=docker.service

[Service]
ExecStart=/usr/bin/kubelet --cloud-provider aws \\
    --config /etc/kubernetes/kubelet/kubelet-config.json \\
    --kubeconfig /var/lib/kubelet/kubeconfig \\
    --container-runtime docker \\
    --network-plugin cni $KUBELET_ARGS $KUBELET_EXTRA_ARGS
Restart=on-failure
RestartForceExitStatus=SIGPIPE
RestartSec={restart}
KillMode=process

[Install]
WantedBy=multi-user.target
"""
"""As in awslabs/amazon-eks-ami, files/kubelet.service."""
EKS_DROP_INS = {
    "10-kubelet-args.conf": "[Service]\nEnvironment='KUBELET_ARGS=--node-ip=192.0.2.7 --pod-infra-container-image=pause:3.5 --v=2'\n",
    "30-kubelet-extra-args.conf": "[Service]\nEnvironment='KUBELET_EXTRA_ARGS=--node-labels=a=b,c=d'\n",
}
"""What bootstrap.sh writes."""
EMBEDDED_CONFIG = """\
# of this site
server: https://192.0.2.1:9345
kubelet-arg:
- max-pods=150
"""
EMBEDDED_UNIT = """\
[Unit]
Description={name} (agent)

[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-/usr/local/lib/systemd/system/%N.env
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/{name} agent

[Install]
WantedBy=multi-user.target
"""
"""As in rancher/rke2 v1.36.4+rke2r1, bundle/lib/systemd/system/rke2-agent.service."""


class Layout(StrEnum):
    """How the kubelet was installed."""

    KUBEADM = "kubeadm"  # kubeadm's drop-in with environment files
    PLAIN = "plain"  # one unit with all flags
    EKS = "eks"  # Amazon Linux 2 of EKS: its variables are set by drop-ins, its configuration is JSON
    RKE2 = "rke2"  # the kubelet is a child of another unit
    K3S = "k3s"  # the kubelet is a part of another program


_EMBEDDING = (Layout.RKE2, Layout.K3S)


@dataclass(slots=True)
class Node:
    """Operations on a node. Faults last until they are healed; a power cut loses memory, /run and unsynced data."""

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
    layout: Layout = Layout.KUBEADM
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def disk(self) -> Disk:
        return Disk(self.folder, self.image, self.netns)

    @property
    def root(self) -> Path:
        """Its root as it sees it, except its own mounts (/run, /tmp)."""
        return self.disk.root

    def create(self, user_key: Path) -> None:
        """Make its disk in its layout, mount its root, connect its network; not booted."""
        self.disk.make()
        self._write("etc/hostname", f"{self.name}\n")
        self._write("etc/hosts", f"127.0.0.1 localhost {self.name}\n")
        self._write("etc/machine-id", f"{uuid.uuid4().hex}\n", 0o444)
        self._write("home/ops/.ssh/authorized_keys", user_key.with_suffix(".pub").read_text(encoding="utf-8"), 0o600)
        for path in ("home/ops", "home/ops/.ssh", "home/ops/.ssh/authorized_keys"):
            os.chown(self.disk.written / path, OPS, OPS)
        (self.disk.written / "home/ops/.ssh").chmod(0o700)
        (self.disk.written / "etc/ssh").mkdir()
        host_key = str(self.disk.written / "etc/ssh/ssh_host_ed25519_key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", host_key)
        self._write("usr/local/bin/mv", (HERE / "mv").read_text(encoding="utf-8"), 0o755)
        if self.layout in _EMBEDDING:
            self._install_embedded()
        else:
            self._install_kubelet()
            self._install_docker()
        self.disk.mount()
        run("ip", "netns", "add", self.netns)
        run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "host0", "netns", self.netns)
        run("ip", "link", "set", self.port, "master", self.bridge, "up")
        run("ip", "-n", self.netns, "addr", "add", f"{self.address}/{self.gateway_bits}", "dev", "host0")
        for device in ("host0", "lo"):
            run("ip", "-n", self.netns, "link", "set", device, "up")

    def host_key(self) -> str:
        """``TYPE KEY`` of its host key."""
        text = (self.disk.written / "etc/ssh/ssh_host_ed25519_key.pub").read_text(encoding="utf-8")
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

    def wait(self, seconds: float = PATIENCE) -> None:
        """Until its sshd shows a banner and accepts logins (pam_nologin refuses them while the system boots)."""
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

    def is_up(self) -> bool:
        """Whether it runs, with its kubelet and its dockerd."""
        units = (f"{self.layout}-agent",) if self.layout in _EMBEDDING else ("kubelet", "docker")
        states = f"systemctl is-active {' '.join(units)}"
        return self.runs() and self.exec("sh", "-c", f"{states} || :").split() == ["active"] * len(units)

    def runs(self) -> bool:
        """Whether it has power: its PID 1 is there."""
        try:
            self._leader()
        except (BedError, OSError):
            return False
        return True

    def exec(self, *words: str, check: bool = True) -> str:
        """A command on the node, not over SSH: to check it from outside."""
        return run("nsenter", "-t", str(self._leader()), "-m", "-u", "-i", "-n", "-p", "--", *words, check=check)

    def powercut(self) -> None:
        """Off at once: peers get no answer until ``heal`` and ``boot``. Unsynced data is lost."""
        self.cut()
        self.disk.stop()
        self._kill()
        self.disk.restart()

    def cut(self) -> None:
        """Disconnect the network cable."""
        run("ip", "link", "set", self.port, "down")

    def heal(self) -> None:
        run("ip", "link", "set", self.port, "up")

    def notice_lost_peers(self) -> None:
        """The kernel closes a TCP connection without its other end after 6 seconds, not after 2 hours. Until the node boots."""
        seconds = {"tcp_keepalive_time": 3, "tcp_keepalive_intvl": 1, "tcp_keepalive_probes": 3}
        words = [f"net.ipv4.{name}={value}" for name, value in seconds.items()]
        run("nsenter", "-t", str(self._leader()), "-n", "sysctl", "-q", "-w", *words)

    def reboot(self) -> None:
        """An orderly reboot from inside; returns when it is down."""
        before = self._leader()
        self.exec("systemctl", "reboot", check=False)
        end = time.monotonic() + PATIENCE
        while Path(f"/proc/{before}").exists():
            if time.monotonic() > end:
                raise BedError(f"{self.name} did not shut down")
            time.sleep(0.05)

    def pause(self) -> None:
        """Freeze every process: the kernel accepts connections, but nothing answers."""
        (self.cgroup / "cgroup.freeze").write_text("1")

    def resume(self) -> None:
        (self.cgroup / "cgroup.freeze").write_text("0")

    def stop_systemd(self) -> None:
        """Stop its PID 1; everything else continues. Only from outside: a namespace's init takes no SIGSTOP from within."""
        os.kill(self._leader(), signal.SIGSTOP)

    def continue_systemd(self) -> None:
        os.kill(self._leader(), signal.SIGCONT)

    def hold(self, pattern: str) -> None:
        """Every rename with arguments that match this shell pattern waits, until ``let_go`` or the next boot."""
        self.exec("sh", "-c", f"rm -f /run/bed-held; printf '%s\\n' '{pattern}' >/run/bed-hold")

    def holds(self) -> bool:
        """Whether a rename is waiting."""
        return self.exec("sh", "-c", "[ -e /run/bed-held ] && echo yes || :") != ""

    def let_go(self) -> None:
        self.exec("rm", "-f", "/run/bed-hold", "/run/bed-held")

    def destroy(self) -> None:
        """Remove everything of it, however much exists; may be repeated."""
        self._kill()
        self.disk.unmount()
        run("ip", "netns", "del", self.netns, check=False)
        run("ip", "link", "del", self.port, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _install_kubelet(self) -> None:
        self._write("usr/bin/kubelet", (HERE / "kubelet").read_text(encoding="utf-8"), 0o755)
        restart = str(self.restart_seconds)
        if self.layout is Layout.PLAIN:
            unit = "etc/systemd/system/kubelet.service"
            self._write(unit, packaged.kubelet_unit(PLAIN, restart))
            self._write(PLAIN_CONFIG[1:], CONFIG)
        elif self.layout is Layout.EKS:
            unit = "etc/systemd/system/kubelet.service"
            self._write(unit, EKS_UNIT.format(restart=restart))
            for name, text in EKS_DROP_INS.items():
                self._write(f"{unit}.d/{name}", text)
            self._write(EKS_CONFIG[1:], EKS_JSON)
        else:
            unit = "usr/lib/systemd/system/kubelet.service"
            drop_in = packaged.kubeadm_drop_in("/etc/default/kubelet", packaged.config_flags(drop_ins=False))
            self._write(unit, packaged.kubelet_unit(restart=restart))
            self._write("etc/systemd/system/kubelet.service.d/10-kubeadm.conf", drop_in)
            self._write(packaged.CONFIG[1:], CONFIG)
            self._write("var/lib/kubelet/kubeadm-flags.env", FLAGS)
        self._enable(unit)

    def _install_embedded(self) -> None:
        """RKE2 or k3s with its kubelet."""
        name = str(self.layout)
        self._write(f"usr/local/bin/{name}", (HERE / "rke2").read_text(encoding="utf-8"), 0o755)
        kubelet = (HERE / "kubelet").read_text(encoding="utf-8").replace("1.20.15", f"1.33.4+{name}1")
        if self.layout is Layout.K3S:
            kubelet = kubelet.replace('"Version: v$VERSION"', """qq("Kubelet version" kubeletVersion="v$VERSION")""")
        self._write(f"var/lib/rancher/{name}/data/v1/bin/kubelet", kubelet, 0o755)
        self._write(f"etc/rancher/{name}/config.yaml", EMBEDDED_CONFIG)
        unit = f"usr/local/lib/systemd/system/{name}-agent.service"
        self._write(unit, EMBEDDED_UNIT.format(name=name))
        self._enable(unit)

    def _install_docker(self) -> None:
        """The runtime of kubelets 1.20 (dockershim)."""
        self._write("usr/bin/dockerd", (HERE / "dockerd").read_text(encoding="utf-8"), 0o755)
        self._write("etc/docker/daemon.json", DAEMON)
        unit = "usr/lib/systemd/system/docker.service"
        self._write(unit, (HERE / "docker.service").read_text(encoding="utf-8"))
        self._enable(unit)

    def _enable(self, unit: str) -> None:
        wants = self.disk.written / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / Path(unit).name).symlink_to(f"/{unit}")

    def _write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.disk.written / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def _leader(self) -> int:
        """The PID of the node's PID 1 on this machine: boot.sh, its nspawn, the container's init."""
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
        """Kill all of its processes, by its control group; then reap them."""
        with suppress(OSError):
            (self.cgroup / "cgroup.kill").write_text("1")
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
            self._process = None
        for folder in sorted(self.cgroup.rglob("*"), reverse=True) if self.cgroup.exists() else ():
            if folder.is_dir():
                _remove_group(folder)
        if self.cgroup.exists():
            _remove_group(self.cgroup)


def _remove_group(folder: Path) -> None:
    """A control group cannot be removed while the kernel still cleans up its processes."""
    for _ in range(1_200):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.05)
