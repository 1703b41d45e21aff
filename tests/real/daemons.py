"""The daemons of a real node, seen from outside: which process systemd runs, and what dockerd logs."""

from __future__ import annotations

import re

from tests.bed.node import Node

DOCKER, KUBELET = "docker.service", "kubelet.service"


def processes(node: Node) -> dict[str, tuple[str, ...]]:
    """Unit → MainPID and NRestarts; each must run."""
    found = {}
    for unit in (DOCKER, KUBELET):
        shown = node.exec("systemctl", "show", "-p", "ActiveState,MainPID,NRestarts", "--value", unit).split()
        assert "active" in shown, f"{unit} of {node.name}: {shown}"
        found[unit] = tuple(shown)
    return found


def started(node: Node, unit: str) -> int:
    """When its main process started, by the monotonic clock."""
    return int(node.exec("systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", "--value", unit))


def reloaded(node: Node) -> list[int]:
    """The concurrent downloads that dockerd logged as in force, once for each SIGHUP since boot."""
    return _downloads(node, "Reloaded configuration")


def began(node: Node) -> list[int]:
    """The same for each start since boot."""
    return _downloads(node, "Daemon has completed initialization")


def _downloads(node: Node, words: str) -> list[int]:
    node.exec("journalctl", "--sync")
    lines = node.exec("journalctl", "-q", "-b", "-u", DOCKER, "-o", "cat", "--no-pager").splitlines()
    found = (re.search(r'max-concurrent-downloads[\\"]*:(\d+)', line) for line in lines if words in line)
    return [int(match[1]) for match in found if match]
