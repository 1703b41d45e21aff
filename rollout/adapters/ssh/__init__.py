"""Nodes over SSH: the only package that imports paramiko.

``SshNodes`` imports it, so it is imported when it is asked for: what only reads an ssh_config does without.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from rollout.adapters.ssh.limits import SshLimits, within_files
from rollout.adapters.ssh.resolve import Resolver

if TYPE_CHECKING:
    from rollout.adapters.ssh.nodes import SshNodes

__all__ = ["Resolver", "SshLimits", "SshNodes", "within_files"]


def __getattr__(name: str) -> object:
    if name != "SshNodes":
        raise AttributeError(name)
    # paramiko imports invoke only for `Match exec`, which rollout never runs, and that takes a third of the time: it is hidden meanwhile.
    hidden = "invoke" not in sys.modules
    if hidden:
        sys.modules["invoke"] = None  # type: ignore[assignment]  # Python's way to make an import fail
    try:
        return import_module("rollout.adapters.ssh.nodes").SshNodes
    finally:
        if hidden:
            del sys.modules["invoke"]
