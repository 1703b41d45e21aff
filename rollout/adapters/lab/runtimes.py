"""Container runtimes of the lab's nodes: their programs, units, files, and what kubeadm tells the kubelet about them."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.adapters.lab import configs

_FIXED: Mapping[str, Mapping[str, str]] = {
    "dockershim": {
        "docker": "Docker version 20.10.24, build 297e128",
        "containerd": "containerd github.com/containerd/containerd v1.6.20 2806fc1057397dbaeefbea0e4e17bddfbd388f38",
    },
    "cri-dockerd": {
        "docker": "Docker version 23.0.6, build ef23cbc",
        "containerd": "containerd github.com/containerd/containerd v1.6.21 3dce8eb055cbb6872793272b4f20ed16117344f8",
        "cri-dockerd": "cri-dockerd 0.3.4 (e88b1605)",
    },
}
_SERVICES = {
    "docker": "docker.service",
    "containerd": "containerd.service",
    "cri-dockerd": "cri-docker.service",
    "crio": "crio.service",
}
_SOCKETS = {
    "cri-dockerd": "/var/run/cri-dockerd.sock",
    "containerd": "/run/containerd/containerd.sock",
    "cri-o": "/var/run/crio/crio.sock",
}
_DEFAULT_VERSIONS = {"containerd": "1.7.2", "cri-o": "1.30.0"}
_COMMIT = "0cae528dd6cb557f7201036e9f43420650207b58"

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
_CRIO = """\
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"
"""


def programs(runtime: str, version: str) -> Mapping[str, str]:
    """The runtime's programs and what each prints as its version."""
    said = version or _DEFAULT_VERSIONS.get(runtime, "")
    if runtime == "containerd":
        module = "github.com/containerd/containerd" + ("/v2" if said.startswith("2.") else "")
        return {"containerd": f"containerd {module} v{said} {_COMMIT}"}
    if runtime == "cri-o":
        return {"crio": f"crio version {said}"}
    return _FIXED.get(runtime, {})


def services(runtime: str) -> tuple[tuple[str, str], ...]:
    """(program, unit) of everything that runs for it."""
    return tuple((program, _SERVICES[program]) for program in programs(runtime, ""))


def files(runtime: str, version: str) -> Mapping[str, str]:
    """The runtime's own configuration; containerd 2 reads version 3 of the file."""
    if runtime == "containerd" and version:
        return {"/etc/containerd/config.toml": _CONTAINERD_2 if version.startswith("2.") else _CONTAINERD_1}
    return {"/etc/crio/crio.conf.d/10-crio.conf": _CRIO} if runtime == "cri-o" else {}


def folders(runtime: str) -> tuple[str, ...]:
    """What the runtime makes when it starts: dockerd lays the layers that it downloads under ``tmp``."""
    return ("var/lib/docker/tmp",) if runtime in ("dockershim", "cri-dockerd") else ()


def socket(runtime: str) -> str:
    """Where the kubelet finds the runtime, as a URL; dockershim is in the kubelet itself."""
    return f"unix://{_SOCKETS[runtime]}" if runtime in _SOCKETS else ""


def flags(runtime: str, minor: int) -> tuple[str, ...]:
    """What kubeadm of this minor puts into KUBELET_KUBEADM_ARGS."""
    pause = (f"--pod-infra-container-image={_pause(minor)}",) if minor < 35 else ()
    if runtime == "dockershim":
        return ("--network-plugin=cni", *pause)
    endpoint = (f"--container-runtime-endpoint={socket(runtime)}",) if minor < configs.ENDPOINT_FROM else ()
    return (*(("--container-runtime=remote",) if minor < 27 else ()), *endpoint, *pause)


def _pause(minor: int) -> str:
    return "registry.k8s.io/pause:3.10" if minor >= 32 else "k8s.gcr.io/pause:3.2"
