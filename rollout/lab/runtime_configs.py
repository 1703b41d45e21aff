"""The runtimes' own configuration as it lies on most nodes, by runtime and version."""

from __future__ import annotations

from collections.abc import Mapping

_CONTAINERD_1 = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
_CONTAINERD_2 = """\
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'registry.k8s.io/pause:3.10'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
_UNDER_DOCKER = """\
disabled_plugins = ["cri"]
"""
_CRIO_MAIN = """\
# The CRI-O configuration file; what this site changes lies in crio.conf.d.
[crio]

[crio.api]

[crio.image]
"""
_CRIO = """\
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"
"""
_DOCKER = """\
{
  "exec-opts": ["native.cgroupdriver=systemd"],
  "log-driver": "json-file",
  "log-opts": {
    "max-size": "100m"
  },
  "storage-driver": "overlay2"
}
"""

DOCKERS_TMP = "/var/lib/docker/tmp"
INGEST = "/var/lib/containerd/io.containerd.content.v1.content/ingest"


def files(runtime: str, version: str) -> Mapping[str, str]:
    """Path → text. containerd 2 comes with version 3 of its file; docker's packages switch containerd's CRI off."""
    if runtime == "containerd":
        return {"/etc/containerd/config.toml": _CONTAINERD_2 if version.startswith("2.") else _CONTAINERD_1}
    if runtime == "cri-o":
        return {"/etc/crio/crio.conf": _CRIO_MAIN, "/etc/crio/crio.conf.d/10-crio.conf": _CRIO}
    return {"/etc/docker/daemon.json": _DOCKER, "/etc/containerd/config.toml": _UNDER_DOCKER}


def folders(runtime: str) -> tuple[str, ...]:
    """Where a pull leaves its layers while it is under way."""
    return {"containerd": (INGEST,), "cri-o": ()}.get(runtime, (DOCKERS_TMP,))
