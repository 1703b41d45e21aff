"""The nodes' command search path: our stand-ins, and the host's tools without the host's own cluster software."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

ASKING = ("systemctl", "systemd-run", "journalctl", "curl", "clock-step")
"""Stand-ins that ask the lab's state table; all are the one script ``ask``."""
_HIDDEN = frozenset(
    (
        *ASKING,
        *(
            "sudo",
            "wget",
            "docker",
            "dockerd",
            "containerd",
            "ctr",
            "crictl",
            "nerdctl",
            "podman",
            "crio",
            "cri-dockerd",
        ),
        *("kubelet", "kubeadm", "kubectl", "hostname", "machinectl", "reboot", "shutdown", "poweroff", "halt", "init"),
        *("loginctl", "hostnamectl", "timedatectl", "busctl", "systemd-analyze", "telinit", "runlevel"),
    )
)


def install(directory: Path) -> None:
    """Fill ``directory/bin`` (stand-ins) and ``directory/base`` (links to the host's tools)."""
    ours, base = directory / "bin", directory / "base"
    ours.mkdir()
    base.mkdir()
    for entry in files("rollout.lab").joinpath("standins").iterdir():
        if entry.name != "stat" or _in_memory(directory):
            _script(ours / entry.name, entry.read_text(encoding="utf-8"))
    for name in ASKING:
        (ours / name).hardlink_to(ours / "ask")
    seen = set(_HIDDEN)
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if tool.name not in seen:
                seen.add(tool.name)
                (base / tool.name).symlink_to(tool)


def _in_memory(directory: Path) -> bool:
    """Whether the lab lies on a file system that an agent would refuse, as nothing there survives a reboot."""
    shown = subprocess.run(["stat", "-f", "-c", "%T", str(directory)], capture_output=True, text=True, check=False)
    return shown.stdout.strip() in {"tmpfs", "ramfs"}


def search_path(directory: Path, root: str) -> str:
    """``PATH`` on a node."""
    return f"{directory}/bin:{root}/usr/bin:{directory}/base"


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o555)
