"""Nodes by their container runtime, as the agent reports them; configuration files as in the runtimes' packages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import FileState, Process, Service, Snapshot, UnitState
from rollout.kubelet import homes, versions
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import describe, runtime_change
from tests.kubelet.nodes import absent, kubeadm, regular

CONTAINERD = "/etc/containerd/config.toml"
CERTS = "/etc/containerd/certs.d"
CRIO_DIR = "/etc/crio/crio.conf.d"
DAEMON = "/etc/docker/daemon.json"

PRINTED = {
    Runtime.DOCKERSHIM: "Docker version {}, build afdd53b",
    Runtime.CRI_DOCKERD: "cri-dockerd {} (c1c566e)",
    Runtime.CONTAINERD: "containerd github.com/containerd/containerd v{} 88bf19b2105c8b17560993bee28a01ddc2f97182",
    Runtime.CRIO: "crio version {}",
    Runtime.UNKNOWN: "{}",
}

SOCKETS = {
    Runtime.DOCKERSHIM: "dockershim",
    Runtime.CRI_DOCKERD: "cri-dockerd",
    Runtime.CONTAINERD: "containerd",
    Runtime.CRIO: "crio",
    Runtime.UNKNOWN: "dockershim",
}
"""The name in ``tests.kubelet.nodes`` of the runtime on a kubelet's command line."""

V2 = """\
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]

# the runtime of rack 12
[plugins]

  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.k8s.io/pause:3.9"   # as kubeadm wants it

    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true

[ttrpc]
  uid = 0
"""

V3 = """\
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]

[plugins]
  [plugins.'io.containerd.cri.v1.images']
    snapshotter = 'overlayfs'

  [plugins.'io.containerd.cri.v1.runtime']
    enable_selinux = false
"""

COMMANDS = {
    "containerd.service": "/usr/bin/containerd",
    "crio.service": "/usr/bin/crio",
    "cri-docker.service": "/usr/bin/cri-dockerd --container-runtime-endpoint fd://",
    "docker.service": "/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock",
}

UNITS = {
    Runtime.DOCKERSHIM: ("docker.service",),
    Runtime.CRI_DOCKERD: ("docker.service", "cri-docker.service"),
    Runtime.CONTAINERD: ("containerd.service",),
    Runtime.CRIO: ("crio.service",),
    Runtime.UNKNOWN: (),
}


def directory(path: str) -> FileState:
    return FileState(path, "directory", "755", "0:0")


def fragment(unit: str) -> str:
    return f"/lib/systemd/system/{unit}"


def node(runtime: Runtime, version: str, *files: FileState, kubelet: str = "1.29.3") -> Snapshot:
    """A node over this runtime: the agent's report of its usual files, with ``files`` added or replaced."""
    usual = [
        *(absent(path) for path in (CONTAINERD, CERTS, "/etc/docker/certs.d", "/etc/crio/crio.conf", DAEMON)),
        directory(CRIO_DIR),
        absent("/etc/systemd/system/cri-docker.service.d/90-rollout.conf"),
    ]
    found = kubeadm("tess-node-0001", kubelet, SOCKETS[runtime])
    found = replace(
        found,
        runtimes={describe(runtime).program or "other": PRINTED[runtime].format(version)},
        files={**found.files, **{state.path: state for state in (*usual, *files)}},
    )
    for unit in UNITS[runtime]:
        found = with_service(found, unit, f"[Service]\nExecStart={COMMANDS[unit]}\n", COMMANDS[unit])
    return found


def with_service(found: Snapshot, unit: str, text: str, running: str, **properties: str) -> Snapshot:
    """The node with this unit, its fragment's text and its running command line."""
    said = {"LoadState": "loaded", "FragmentPath": fragment(unit), "DropInPaths": "", **properties}
    services = {
        **found.measurement.services,
        unit: Service(UnitState(unit, said), Process(77, tuple(running.split()))),
    }
    measurement = replace(found.measurement, services=services)
    files = {**found.files, fragment(unit): regular(fragment(unit), text)}
    return replace(found, measurement=measurement, files=files)


def with_files(found: Snapshot, *files: FileState) -> Snapshot:
    return replace(found, files={**found.files, **{state.path: state for state in files}})


def wanted(*, pin: bool = False, **values: Value) -> dict[str, Setting]:
    """``wanted(imagePullProgressDeadline="5m")``."""
    return {name: Setting(name, value, source="playbook p", pin=pin) for name, value in values.items()}


def changed(found: Snapshot, runtime: Runtime, settings: Mapping[str, Setting]) -> Change:
    """The runtime's change for these intents; ``LayoutError`` where it is refused."""
    return runtime_change(found, settings, runtime)


def refused(found: Snapshot, runtime: Runtime, settings: Mapping[str, Setting]) -> LayoutError:
    """The reason why the runtime's change for these intents is refused."""
    with pytest.raises(LayoutError) as error:
        changed(found, runtime, settings)
    return error.value


def told(found: Snapshot, runtime: Runtime, setting: Setting) -> str:
    """One line for the table: ``file | lines added | units | class``, or the refusal."""
    printed = describe(runtime).version(found.runtimes)
    home = homes.home(setting, versions.known(found.kubelet_version), runtime, printed)
    if isinstance(home, homes.NoHome):
        return f"refused: {home.reason}"
    if isinstance(home, homes.InFlag):
        return f"{home.argument} | kubelet.service | restart-kubelet"
    change = changed(found, runtime, {setting.name: setting})
    if not change.files:
        return f"nothing: {'; '.join(change.notes)}"
    note = [*(f"restart {unit}" for unit in change.units), *(f"HUP {unit}" for unit in change.hangups)]
    files = " & ".join(f"{edit.path} | {'; '.join(added(edit))}" for edit in change.files)
    return " | ".join([files, ", ".join(note) or "nobody", change.disruption.value])


def added(edit: FileChange) -> list[str]:
    """Lines that the edit adds, without surrounding blanks and without comments."""
    before = (edit.before or b"").decode().splitlines()
    lines = [line[2:].strip() for line in difflib.ndiff(before, edit.after.decode().splitlines()) if line[:2] == "+ "]
    return [line for line in lines if line and not line.startswith("#")]


def applied(found: Snapshot, change: Change) -> Snapshot:
    """The node after the agent wrote the files and the units run accordingly (cri-dockerd's drop-in included)."""
    for edit in change.files:
        found = with_files(found, regular(edit.path, edit.after.decode()))
        if edit.path.endswith(".service.d/90-rollout.conf"):
            unit = edit.path.split("/")[-2].removesuffix(".d")
            command = edit.after.decode().rstrip().split("ExecStart=")[-1]
            found = with_service(
                found, unit, (found.files[fragment(unit)].content or b"").decode(), command, DropInPaths=edit.path
            )
    return found
