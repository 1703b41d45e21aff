"""CRI-O's stand-in in the lab."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.runtimes.stand_in import (
    IMAGE,
    LOGRUS,
    DaemonStandIn,
    FileTree,
    PullLines,
    ReadKeys,
    RuntimeExitError,
    RuntimeStandIn,
    duration_problem,
    option,
    toml,
)

_UNIT_FILE = """\
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
_MAIN = """\
# The CRI-O configuration file; what this site changes lies in crio.conf.d.
[crio]

[crio.api]

[crio.image]
"""
_PACKAGED = """\
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"
"""
_KEYS = ReadKeys(texts=frozenset({"pull_progress_timeout", "root", "signature_policy"}))
_REQUEST = "id=5f6c0f4e-6b8a-4c55-9a5e-8d0c7a3b1e9d name=/runtime.v1.ImageService/PullImage"


def _read(_version: str, arguments: tuple[str, ...], tree: FileTree) -> None:
    main = option(arguments, "--config", "-c") or "/etc/crio/crio.conf"
    folder = option(arguments, "--config-dir", "-d") or "/etc/crio/crio.conf.d"
    for path in (main, *(f"{folder}/{name}" for name in tree.names(folder))):
        if tree.read(path) is None:
            continue
        timeout = _value(toml(tree, path, _KEYS), "pull_progress_timeout")
        problem = duration_problem(str(timeout)) if timeout is not None else ""
        if problem:
            raise RuntimeExitError(f"validating root config: {path}: {problem}")


def _value(document: Mapping[str, object], key: str) -> object:
    """The key's value in any table."""
    for name, value in document.items():
        found = _value(value, key) if isinstance(value, dict) else value if name == key else None
        if found is not None:
            return found
    return None


def _reload(_arguments: tuple[str, ...], _tree: FileTree) -> str:
    return "Reloading configuration"


def _programs(version: str) -> Mapping[str, str]:
    return {"crio": f"crio version {version}"}


def _files(_version: str) -> Mapping[str, str]:
    return {"/etc/crio/crio.conf": _MAIN, "/etc/crio/crio.conf.d/10-crio.conf": _PACKAGED}


DAEMON = DaemonStandIn(
    _UNIT_FILE,
    10,
    _read,
    PullLines(
        f'{LOGRUS}info msg="Pulling image: {IMAGE}" {_REQUEST}',
        f'{LOGRUS}info msg="Pulled image: {IMAGE.rpartition(":")[0]}@sha256:0f" {_REQUEST}',
    ),
    _reload,
)
RUNTIME = RuntimeStandIn(_programs, _files, "cri-o", "crio", "1.30.0")
