"""dockerd's stand-in in the lab, below those of dockershim and cri-dockerd."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rollout.kubelet.runtimes.stand_in import (
    DaemonStandIn,
    FileTree,
    PullLines,
    ReadKeys,
    RuntimeExitError,
    option,
)

_UNIT_FILE = """\
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
_UNDER_DOCKER = """\
disabled_plugins = ["cri"]
"""
TMP = "/var/lib/docker/tmp"
_DIRECTIVES = frozenset(
    (
        *(
            "exec-opts",
            "log-driver",
            "log-opts",
            "log-level",
            "storage-driver",
            "storage-opts",
            "data-root",
            "live-restore",
        ),
        *("registry-mirrors", "insecure-registries", "debug", "hosts", "bridge", "iptables", "dns", "features", "mtu"),
        *("cgroup-parent", "default-ulimits", "experimental", "group", "labels", "metrics-addr", "bip", "proxies"),
        *("max-concurrent-downloads", "max-concurrent-uploads", "max-download-attempts", "userland-proxy", "init"),
    )
)
_KEYS = ReadKeys(numbers=frozenset({"max-concurrent-downloads", "max-download-attempts", "max-concurrent-uploads"}))


def _read(_version: str, arguments: tuple[str, ...], tree: FileTree) -> None:
    path = option(arguments, "--config-file") or "/etc/docker/daemon.json"
    content, head = tree.read(path), f"unable to configure the Docker daemon with file {path}: "
    if content is None:
        return
    try:
        document = json.loads(content)
    except ValueError as error:
        raise RuntimeExitError(f"{head}{error}") from None
    if not isinstance(document, dict):
        raise RuntimeExitError(f"{head}json: cannot unmarshal into Go value of type map[string]interface {{}}")
    unknown = [name for name in document if name not in _DIRECTIVES]
    if unknown:
        raise RuntimeExitError(
            f"{head}the following directives don't match any configuration option: {', '.join(unknown)}"
        )
    twice = [name for name in document if option(arguments, f"--{name}")]
    if twice:
        raise RuntimeExitError(
            f"{head}the following directives are specified both as a flag and in the configuration file: {twice[0]}"
        )
    _KEYS.check(document, head)


def _reload(arguments: tuple[str, ...], tree: FileTree) -> str:
    _read("", arguments, tree)
    return "Reloaded configuration: {}"


def files(_version: str) -> Mapping[str, str]:
    """Its own configuration; its packages disable the CRI of the containerd below it."""
    return {"/etc/docker/daemon.json": _DAEMON_JSON, "/etc/containerd/config.toml": _UNDER_DOCKER}


DAEMON = DaemonStandIn(
    _UNIT_FILE,
    2,
    _read,
    PullLines(layer=f"{TMP}/GetImageBlob918273645"),  # it writes no line
    _reload,
    over=("containerd.service",),
)
