"""Container runtimes of the lab's nodes: their programs, units, files, and kubeadm's kubelet flags for them."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.lab import configs

# The runtimes' own configuration as on most nodes, by runtime and version.


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
_CRIO_CONF = """\
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"
"""
_DAEMON_JSON = """\
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


def config_files(runtime: str, version: str) -> Mapping[str, str]:
    """Path → text. containerd 2 has version 3 of its file; docker's packages disable containerd's CRI."""
    if runtime == "containerd":
        return {"/etc/containerd/config.toml": _CONTAINERD_2 if version.startswith("2.") else _CONTAINERD_1}
    if runtime == "cri-o":
        return {"/etc/crio/crio.conf": _CRIO_MAIN, "/etc/crio/crio.conf.d/10-crio.conf": _CRIO_CONF}
    return {"/etc/docker/daemon.json": _DAEMON_JSON, "/etc/containerd/config.toml": _UNDER_DOCKER}


def folders(runtime: str) -> tuple[str, ...]:
    """The folder for layers of a running pull."""
    return {"containerd": (INGEST,), "cri-o": ()}.get(runtime, (DOCKERS_TMP,))


# Unit files of container runtimes from their packages, with faster restarts in a fast lab.


_CONTAINERD = """\
[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec={pause}
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""

_DOCKER = """\
[Unit]
Description=Docker Application Container Engine
Documentation=https://docs.docker.com
After=network-online.target docker.socket firewalld.service containerd.service
Wants=network-online.target containerd.service
Requires=docker.socket

[Service]
Type=notify
ExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
ExecReload=/bin/kill -s HUP $MAINPID
TimeoutStartSec=0
RestartSec={pause}
Restart=always
StartLimitBurst=3
StartLimitInterval=60s
LimitNOFILE=infinity
Delegate=yes
KillMode=process
OOMScoreAdjust=-500

[Install]
WantedBy=multi-user.target
"""

_CRI_DOCKER = """\
[Unit]
Description=CRI Interface for Docker Application Container Engine
Documentation=https://docs.mirantis.com
After=network-online.target firewalld.service docker.service
Wants=network-online.target
Requires=cri-docker.socket

[Service]
Type=notify
ExecStart=/usr/bin/cri-dockerd --container-runtime-endpoint fd://
ExecReload=/bin/kill -s HUP $MAINPID
TimeoutSec=0
RestartSec={pause}
Restart=always
StartLimitBurst=3
StartLimitInterval=60s
TasksMax=infinity
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
"""

_CRIO = """\
[Unit]
Description=Container Runtime Interface for OCI (CRI-O)
Documentation=https://github.com/cri-o/cri-o
Wants=network-online.target
Before=kubelet.service
After=network-online.target

[Service]
Type=notify
EnvironmentFile=-/etc/sysconfig/crio
Environment=GOTRACEBACK=crash
ExecStart=/usr/bin/crio \\
          $CRIO_CONFIG_OPTIONS \\
          $CRIO_RUNTIME_OPTIONS \\
          $CRIO_STORAGE_OPTIONS \\
          $CRIO_NETWORK_OPTIONS \\
          $CRIO_METRICS_OPTIONS
ExecReload=/bin/kill -s HUP $MAINPID
TasksMax=infinity
LimitNOFILE=1048576
LimitNPROC=1048576
LimitCORE=infinity
OOMScoreAdjust=-999
TimeoutStartSec=0
Restart=on-failure
RestartSec={pause}

[Install]
WantedBy=multi-user.target
Alias=cri-o.service
"""

_UNITS: Mapping[str, tuple[str, float]] = {
    "containerd.service": (_CONTAINERD, 5),
    "docker.service": (_DOCKER, 2),
    "cri-docker.service": (_CRI_DOCKER, 2),
    "crio.service": (_CRIO, 10),
}
"""The unit's file, and its own RestartSec."""


def text(unit: str, restart_sec: float) -> str:
    """The unit's file. RestartSec is its own, or that of the lab's kubelets if shorter."""
    template, pause = _UNITS[unit]
    return template.replace("{pause}", f"{min(pause, restart_sec):g}")


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
_PULL_TOOLS = {
    "dockershim": ("docker",),
    "cri-dockerd": ("docker",),
    "containerd": ("crictl", "ctr"),
    "cri-o": ("crictl",),
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
    """The runtime's programs and the version that each prints."""
    text = version(runtime, label)
    if runtime == "containerd":
        module = "github.com/containerd/containerd" + ("/v2" if text.startswith("2.") else "")
        return {"containerd": f"containerd {module} v{text} {_COMMIT}"}
    if runtime == "cri-o":
        return {"crio": f"crio version {text}"}
    return _FIXED.get(runtime, {})


def pull_tools(runtime: str) -> tuple[str, ...]:
    """The programs that pull through it."""
    return _PULL_TOOLS[runtime]


def services(runtime: str) -> tuple[str, ...]:
    """The units of all its daemons."""
    return tuple(_SERVICES[program] for program in programs(runtime, ""))


def version(runtime: str, message: str) -> str:
    """The version of the runtime's program, also without a version label; ``""`` if docker's are fixed."""
    return message or _DEFAULT_VERSIONS.get(runtime, "")


def files(runtime: str, message: str) -> Mapping[str, str]:
    """The runtime's own configuration."""
    return config_files(runtime, version(runtime, message))


def socket(runtime: str) -> str:
    """The kubelet's endpoint of the runtime, a URL; dockershim is in the kubelet itself."""
    return f"unix://{_SOCKETS[runtime]}" if runtime in _SOCKETS else ""


def flags(runtime: str, minor: int) -> tuple[str, ...]:
    """The flags that kubeadm of this minor writes into KUBELET_KUBEADM_ARGS."""
    pause = (f"--pod-infra-container-image={_pause(minor)}",) if minor < 35 else ()
    if runtime == "dockershim":
        return ("--network-plugin=cni", *pause)
    endpoint = (f"--container-runtime-endpoint={socket(runtime)}",) if minor < configs.ENDPOINT_FROM else ()
    return (*(("--container-runtime=remote",) if minor < 27 else ()), *endpoint, *pause)


def _pause(minor: int) -> str:
    return "registry.k8s.io/pause:3.10" if minor >= 32 else "k8s.gcr.io/pause:3.2"
