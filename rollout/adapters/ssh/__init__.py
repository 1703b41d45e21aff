"""Nodes over SSH: the only package that imports paramiko."""

from rollout.adapters.ssh.limits import SshLimits, within_files
from rollout.adapters.ssh.nodes import SshNodes
from rollout.adapters.ssh.resolve import Resolver

__all__ = ["Resolver", "SshLimits", "SshNodes", "within_files"]
