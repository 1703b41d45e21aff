"""Unit files of container runtimes as their packages bring them, and where a hurried lab is quicker than life."""

from __future__ import annotations

from collections.abc import Mapping

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
    """The unit's file. It restarts as fast as it says, or as fast as the lab's kubelets do if these are quicker."""
    template, pause = _UNITS[unit]
    return template.replace("{pause}", f"{min(pause, restart_sec):g}")
