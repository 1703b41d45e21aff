"""Container runtimes of the lab's nodes: their programs, units, files, and what kubeadm tells the kubelet about them."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.lab import configs, runtime_configs

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


def programs(runtime: str, label: str) -> Mapping[str, str]:
    """The runtime's programs and what each prints as its version."""
    said = version(runtime, label)
    if runtime == "containerd":
        module = "github.com/containerd/containerd" + ("/v2" if said.startswith("2.") else "")
        return {"containerd": f"containerd {module} v{said} {_COMMIT}"}
    if runtime == "cri-o":
        return {"crio": f"crio version {said}"}
    return _FIXED.get(runtime, {})


def services(runtime: str) -> tuple[str, ...]:
    """The units of everything that runs for it."""
    return tuple(_SERVICES[program] for program in programs(runtime, ""))


def version(runtime: str, said: str) -> str:
    """The version of the runtime's program, whether or not its label says one; ``""`` where docker's are fixed."""
    return said or _DEFAULT_VERSIONS.get(runtime, "")


def files(runtime: str, said: str) -> Mapping[str, str]:
    """The runtime's own configuration."""
    return runtime_configs.files(runtime, version(runtime, said))


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
