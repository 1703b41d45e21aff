"""Nodes over SSH: the only package that imports paramiko."""

from rollout.adapters.ssh.limits import SshLimits
from rollout.adapters.ssh.nodes import SshNodes
from rollout.adapters.ssh.resolve import Resolver

__all__ = ["Resolver", "SshLimits", "SshNodes"]
