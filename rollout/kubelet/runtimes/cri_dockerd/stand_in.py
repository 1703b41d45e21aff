"""cri-dockerd's stand-in in the lab."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.runtimes.dockerd import stand_in as dockerd
from rollout.kubelet.runtimes.stand_in import (
    IMAGE,
    LOGRUS,
    DaemonStandIn,
    FileTree,
    PullLines,
    RuntimeExitError,
    RuntimeStandIn,
    duration_problem,
)

_UNIT_FILE = """\
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
_FLAGS = frozenset(
    (
        *("container-runtime-endpoint", "network-plugin", "pod-infra-container-image", "image-pull-progress-deadline"),
        *("cni-bin-dir", "cni-conf-dir", "cri-dockerd-root-directory", "docker-endpoint", "log-level", "hairpin-mode"),
        *("ipv6-dual-stack", "pod-cidr", "runtime-cgroups", "streaming-bind-addr", "network-plugin-mtu"),
    )
)


def _read(_version: str, arguments: tuple[str, ...], _tree: FileTree) -> None:
    for word, following in zip(arguments[1:], (*arguments[2:], ""), strict=True):
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            continue
        if name[2:] not in _FLAGS:
            raise RuntimeExitError(f"unknown flag: {name}")
        if name == "--image-pull-progress-deadline":
            problem = duration_problem(value if equals else following)
            if problem:
                raise RuntimeExitError(f'invalid argument "{value}" for "{name}" flag: {problem}')


def _programs(_version: str) -> Mapping[str, str]:
    return {
        "docker": "Docker version 23.0.6, build ef23cbc",
        "containerd": "containerd github.com/containerd/containerd v1.6.21 3dce8eb055cbb6872793272b4f20ed16117344f8",
        "cri-dockerd": "cri-dockerd 0.3.4 (e88b1605)",
    }


DAEMON = DaemonStandIn(
    _UNIT_FILE,
    2,
    _read,
    PullLines(
        f'{LOGRUS}info msg="Pulling image {IMAGE}: 0f1e2d3c4b5a: Downloading [=====>     ] 1.1GB/2.9GB"',
        f'{LOGRUS}info msg="Stop pulling image {IMAGE}: Status: Downloaded newer image for {IMAGE}"',
        f'{LOGRUS}info msg="Stop pulling image {IMAGE}: 0f1e2d3c4b5a: Downloading [=====>     ] 1.1GB/2.9GB"',
    ),
)
RUNTIME = RuntimeStandIn(
    _programs,
    dockerd.files,
    "docker",
    "docker",
    folders=(dockerd.TMP,),
    endpoint="unix:///var/run/cri-dockerd.sock",
)
