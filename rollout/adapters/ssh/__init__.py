"""Nodes over SSH: the only package that imports paramiko."""

from rollout.adapters.ssh.limits import SshLimits
from rollout.adapters.ssh.nodes import SshNodes

__all__ = ["SshLimits", "SshNodes"]
