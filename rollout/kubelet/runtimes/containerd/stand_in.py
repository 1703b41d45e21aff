"""containerd's stand-in in the lab.

A real containerd with an invalid value for its CRI plugin continues without the plugin; here it just continues.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator, Mapping

from rollout.kubelet.runtimes.stand_in import (
    IMAGE,
    LOGRUS,
    DaemonStandIn,
    FileTree,
    PullLines,
    ReadKeys,
    RuntimeExitError,
    RuntimeStandIn,
    option,
    toml,
)

_UNIT_FILE = """\
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
_CONFIG_1 = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
_CONFIG_2 = """\
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'registry.k8s.io/pause:3.10'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
INGEST = "/var/lib/containerd/io.containerd.content.v1.content/ingest"
_COMMIT = "0cae528dd6cb557f7201036e9f43420650207b58"
_KEYS = ReadKeys(
    texts=frozenset({"image_pull_progress_timeout", "config_path", "sandbox_image", "root"}),
    numbers=frozenset({"max_concurrent_downloads"}),
)


def _read(version: str, arguments: tuple[str, ...], tree: FileTree) -> None:
    path = option(arguments, "--config", "-c") or "/etc/containerd/config.toml"
    if tree.read(path) is None:
        if option(arguments, "--config", "-c"):
            raise RuntimeExitError(f"failed to load TOML: {path}: no such file or directory")
        return
    waiting, seen = [path], set()
    while waiting:
        path = waiting.pop(0)
        if path not in seen:
            seen.add(path)
            document = toml(tree, path, _KEYS)
            _check_version(version, document)
            waiting += _imports(tree, path, document)


def _check_version(version: str, document: Mapping[str, object]) -> None:
    given, most = document.get("version", 1), 2 if version.startswith("1.") else 3
    if not isinstance(given, int) or not 1 <= given <= most:
        raise RuntimeExitError(f"expected containerd config version equal to or less than `{most}`, got `{given}`")


def _imports(tree: FileTree, path: str, document: Mapping[str, object]) -> Iterator[str]:
    imports = document.get("imports", [])
    for pattern in imports if isinstance(imports, list) else ():
        whole = posixpath.join(posixpath.dirname(path), str(pattern))
        folder, _, name = whole.rpartition("/")
        if "*" not in name:
            yield whole
            continue
        yield from (f"{folder}/{entry}" for entry in tree.names(folder) if fnmatch.fnmatchcase(entry, name))


def _programs(version: str) -> Mapping[str, str]:
    module = "github.com/containerd/containerd" + ("/v2" if version.startswith("2.") else "")
    return {"containerd": f"containerd {module} v{version} {_COMMIT}"}


def _files(version: str) -> Mapping[str, str]:
    """containerd 2 has version 3 of its file."""
    return {"/etc/containerd/config.toml": _CONFIG_2 if version.startswith("2.") else _CONFIG_1}


DAEMON = DaemonStandIn(
    _UNIT_FILE,
    5,
    _read,
    PullLines(
        f'{LOGRUS}info msg="PullImage \\"{IMAGE}\\""',
        f'{LOGRUS}info msg="PullImage \\"{IMAGE}\\" returns image reference \\"sha256:0f\\""',
        f'{LOGRUS}error msg="PullImage \\"{IMAGE}\\" failed" error="rpc error: code = Canceled desc = context canceled"',
        f"{INGEST}/0f1e2d3c/data",
    ),
)
# Kubernetes 1.35 is the last minor that supports containerd 1.x (its release announcement, 2025-12-17).
RUNTIME = RuntimeStandIn(_programs, _files, "containerd", "containerd", "1.7.2", (INGEST,), later={36: "2.1.4"})


# As k3s and RKE2 contain it.

EMBEDDED_ENDPOINT = "unix:///run/k3s/containerd/containerd.sock"
EMBEDDED_LOG = "containerd/containerd.log"
"""Below the folder of the agent."""
EMBEDDED_STARTED = 'time="2026-11-27T10:00:00Z" level=info msg="starting containerd" revision=lab version=v2.1.4-k3s1\n'
"""The first line of each start."""
