"""A real systemd node with a real kubelet 1.20.2, a real containerd and a runtime of pods without processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rollout.kubelet.node import packaged
from tests.bed.bed import Bed
from tests.bed.bed import why_not as no_bed
from tests.bed.node import PLAIN_CONFIG, Node
from tests.controllers import until as wait
from tests.kubelet.real_kubelet.kubelets import BINARIES, CGROUPS, make_group, remove_group
from tests.kubelet.real_kubelet.kubelets import why_not as no_kubelet
from tests.kubelet.real_kubelet.room import SWITCHES
from tests.places import ROOT

PATIENCE = 600.0
"""Seconds: a safety net for what hangs."""
PODS = "unix:///run/pods-cri.sock"
CONTAINERD = "unix:///run/containerd/containerd.sock"
MANIFESTS = "etc/kubernetes/manifests"
CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
clusterDomain: cluster.local
fileCheckFrequency: 1s
registryPullQPS: 0
staticPodPath: /etc/kubernetes/manifests
"""
"""No limit of the rate of pulls: a released queue shall end in pulls, and not in back-offs."""
_CONTAINERD_CONFIG = """\
version = 2
root = "/run/containerd-root"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.grpc.v1.cri"]
  disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
"""
_UNIT = """\
[Service]
ExecStart={command}
Restart=always
RestartSec=1
KillMode={kill}

[Install]
WantedBy=multi-user.target
"""
PLAYBOOK = """\
name: incidents
settings: {SETTINGS}
waves: [canary, rest]
rehearsal: false
limits: {perRack: 100%, pace: 20}
budgets: {wave: 1, rack: 1, fleet: 1}
soak: 600ms
passes: 2
guard: 120s
pullsInFlight: override
onFailure: {revert: node}
"""


def why_not() -> str:
    """Why the incidents cannot be reproduced here; empty: they can."""
    missing = [name for name in ("pods-cri", "containerd-trixie", "dockerd-bookworm") if not (BINARIES / name).exists()]
    return no_bed() or no_kubelet() or (f"there is no {' and no '.join(missing)} in {BINARIES}" if missing else "")


@dataclass(frozen=True, slots=True)
class Machine:
    """The node, and a folder to run ``rollout`` in."""

    bed: Bed
    node: Node
    folder: Path

    @property
    def gateway(self) -> str:
        """The address of this machine, as the node sees it."""
        return f"10.77.{self.bed.number}.254"

    def kubelet(self, runtime: str, images: str, *, verbosity: int = 4) -> None:
        """(Re)starts the kubelet over these endpoints."""
        endpoints = (f"--container-runtime-endpoint={runtime}", f"--image-service-endpoint={images}")
        self.start_kubelet("--container-runtime=remote", *endpoints, f"--v={verbosity}")

    def start_kubelet(self, *words: str) -> None:
        command = ("/usr/bin/kubelet", f"--config={PLAIN_CONFIG}", *words)
        unit = packaged.kubelet_unit(" \\\n  ".join(command), "1")
        self.write("etc/systemd/system/kubelet.service", unit)
        self.node.exec("systemctl", "daemon-reload")
        self.node.exec("systemctl", "restart", "kubelet")

    def pod(self, name: str, image: str, *, grace: int = 2, extra: dict[str, object] | None = None) -> None:
        """A static pod, written as kubelets of all nodes read it: at once."""
        container = {"name": "app", "image": image, "imagePullPolicy": "IfNotPresent", **(extra or {})}
        spec = {"containers": [container], "hostNetwork": True, "terminationGracePeriodSeconds": grace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}
        fresh = self.node.root / MANIFESTS / f".{name}"
        fresh.write_text(json.dumps(pod))
        fresh.rename(self.node.root / MANIFESTS / f"{name}.json")

    def remove(self, name: str) -> None:
        (self.node.root / MANIFESTS / f"{name}.json").unlink()

    def log(self, *units: str) -> str:
        """The journal of these units since the boot; without one, of the kubelet."""
        wanted = [word for unit in units or ("kubelet",) for word in ("-u", unit)]
        return self.node.exec("journalctl", "-q", "-b", "--no-pager", "-o", "short-iso-precise", *wanted)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.node.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def rollout(self, *words: str) -> str:
        """The command line, run as a user runs it."""
        command = [sys.executable, "-m", "rollout.cli", *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        if done.returncode not in (0, 10):
            raise RuntimeError(f"rollout {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def change(self, settings: str) -> str:
        """The ordinary path: plan, apply. Returns what apply printed. A plan leaves a node alone until its kubelet answers."""
        until("the kubelet answers", lambda: "200 OK" in self.node.exec("bash", "-c", _HEALTHZ, check=False))
        way = ("--ssh-config", str(self.bed.ssh_config))
        (self.folder / "playbooks/incidents.yaml").write_text(PLAYBOOK.replace("SETTINGS", settings))
        (self.folder / "p.json").unlink(missing_ok=True)
        self.rollout("plan", "--cluster", "real", "--out", "p.json", *way)
        return self.rollout("apply", "p.json", "--yes", *way)


_HEALTHZ = "exec 3<>/dev/tcp/127.0.0.1/10248; printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"


def until(what: str, holds: Callable[[], object]) -> float:
    """Waits until it holds; returns the time."""
    wait(holds, PATIENCE, what)
    return time.time()


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Booted, with all programs; containerd and the runtime of pods run, no kubelet does."""
    with _groups(f"rollout-incidents-{os.getpid()}") as hierarchies, Bed() as bed:
        programs = bed.folder / "image/opt/kubernetes"
        programs.mkdir(parents=True)
        for name, file in (("kubelet", "kubelet"), ("pods-cri", "pods-cri"), ("dockerd", "dockerd-bookworm")):
            shutil.copy(BINARIES / file, programs / name)
        shutil.copy(BINARIES / "containerd-trixie", bed.folder / "image/usr/bin/containerd")
        (programs / "hierarchies").write_text(hierarchies)
        (programs / "switches").write_text("".join(f"{name} {value}\n" for name, value in SWITCHES.items()))
        (node,) = bed.add(1, after=1)
        made = Machine(bed, node, folder)
        _furnish(made)
        yield made


def _furnish(made: Machine) -> None:
    node = made.node
    node.exec("systemctl", "disable", "--now", "docker", "kubelet")
    for path in ("usr/lib/systemd/system/docker.service", "usr/bin/dockerd", "etc/docker/daemon.json"):
        (node.root / path).unlink()
    made.write("usr/bin/kubelet", Path(__file__).with_name("kubelet.sh").read_text(), 0o755)
    made.write(PLAIN_CONFIG[1:], CONFIG)
    (node.root / MANIFESTS).mkdir(parents=True, exist_ok=True)
    made.write("etc/containerd/config.toml", _CONTAINERD_CONFIG)
    made.write("etc/systemd/system/containerd.service", _UNIT.format(command="/usr/bin/containerd", kill="process"))
    command = "/opt/kubernetes/pods-cri /run/pods-cri.sock /run/stalled"
    made.write("etc/systemd/system/pods-cri.service", _UNIT.format(command=command, kill="process"))
    made.write(
        "etc/systemd/journald.conf.d/keep.conf",
        "[Journal]\nRuntimeMaxUse=300M\nRuntimeKeepFree=10M\nRateLimitBurst=0\n",
    )
    node.exec("systemctl", "restart", "systemd-journald")
    node.exec("mkdir", "-p", "/run/stalled")
    node.exec("systemctl", "daemon-reload")
    node.exec("systemctl", "enable", "--now", "containerd", "pods-cri", "kubelet.service", check=False)
    node.exec("systemctl", "stop", "kubelet")
    for folder in ("inventories", "playbooks"):
        (made.folder / folder).mkdir()
    inventory = f"cluster: real\napiServer: v1.20.2\nracks:\n  a: {node.name}\nnodes:\n  {node.name}: {{}}\n"
    (made.folder / "inventories/real.yaml").write_text(inventory)
    (made.folder / "templates").symlink_to(ROOT / "templates")


def plain_http(made: Machine, host: str) -> None:
    """containerd asks this registry without TLS; read at each pull."""
    made.write(
        f"etc/containerd/certs.d/{host}/hosts.toml",
        f'server = "http://{host}"\n[host."http://{host}"]\n  capabilities = ["pull", "resolve"]\n',
    )


@contextmanager
def _groups(name: str) -> Iterator[str]:
    """A control group of cgroup v1 in each hierarchy, for the kubelet, below this process's own; the lines of its file."""
    hierarchies = [path.name for path in sorted(CGROUPS.iterdir()) if (path / "cgroup.sane_behavior").exists()]
    own = {
        entry[1].removeprefix("name="): entry[2]
        for line in Path("/proc/self/cgroup").read_text().splitlines()
        if (entry := line.split(":"))
    }
    groups = [CGROUPS / hierarchy / own.get(hierarchy, "/").strip("/") / name for hierarchy in hierarchies]
    for group in groups:
        make_group(group)
    try:
        yield "".join(f"{hierarchy} {name}\n" for hierarchy in hierarchies)
    finally:
        for group in groups:
            remove_group(group)
