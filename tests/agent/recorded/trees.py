"""Nodes as agents of older commits left them: a tree of files for each commit and state, in one archive a commit.

``make`` records them; ``node_as_left`` restores one. Recorded trees contain ``HERE`` instead of the folder of the recording.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from tests.agent.node import Node

FOLDER = Path(__file__).parent
HERE = "/recorded"
"""The node's root in a recorded tree."""

COMMITS = {
    "30c6390": "the first agent",
    "dbd1e97": "before runtimes and the limit of guards",
    "51b96ba": "a guard of two parts",
    "e04e9b0": "the last with a boot unit in multi-user.target",
}
STATES = ("armed", "half-confirmed", "confirmed", "reverting", "reverted")

KUBELET_MADE = 1_700_000_000
"""The modification time of the kubelet's binary: receipts contain it."""


def archive(commit: str) -> Path:
    return FOLDER / f"{commit}.tar.xz"


def said_root(root: Path, old: str, new: str) -> None:
    """Units and timers contain the node's root: it is another folder now."""
    for file in (*root.glob("etc/systemd/system/rollout-*"), *root.glob("run/standin/rollout-*")):
        file.write_text(file.read_text().replace(old, new))


def node_as_left(fresh: Node, commit: str, state: str) -> Node:
    """``fresh``, with the files that the agent of ``commit`` left in ``state``."""
    shutil.rmtree(fresh.root)
    with tarfile.open(archive(commit)) as trees:
        members = [member for member in trees if member.name.split("/")[0] == state]
        trees.extractall(fresh.root.parent, members, filter="fully_trusted")  # noqa: S202 - recorded by us
    (fresh.root.parent / state).rename(fresh.root)
    said_root(fresh.root, HERE, str(fresh.root))
    fresh.kubelet_listens()  # recorded trees have no sockets: older agents did not read them
    same_kubelet(fresh)
    return fresh


def same_kubelet(node: Node) -> None:
    os.utime(node.bin / "kubelet", (KUBELET_MADE, KUBELET_MADE))
