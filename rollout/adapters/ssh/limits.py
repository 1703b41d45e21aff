"""Every limit of an SSH session, and the deadline type for them."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass, replace

KIB = 1024
MIB = 1024 * KIB
PROCESSORS = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class SshLimits:
    """Seconds, counts and bytes. All waits of one ``run`` also end with the deadline of its command.

    ``handshakes`` limits concurrent key exchanges and authentications (they cost the controller CPU), ``sessions`` the
    open connections. A node that hangs before its banner takes no handshake slot.

    For each bastion: ``bastion_handshakes`` of nodes behind it, ``tunnels`` through one connection (sshd uses a file
    descriptor for each), ``bastion_connections`` to it. After a failed connection, requests within ``bastion_rest``
    fail at once: 2,000 nodes behind a hanging bastion do not wait for it one after the other.
    """

    connect: float = 10.0  # name look-up and TCP; ConnectTimeout of ssh_config overrides it
    banner: float = 10.0
    handshake: float = 20.0  # key exchange and host key, from the moment it gets its slot
    auth: float = 20.0
    touch: float = 30.0  # more time to authenticate when a hardware key may wait for a touch
    channel: float = 10.0
    refusals: float = 2.0  # sshd may not have closed the last session yet (MaxSessions): retry for this long
    handshakes: int = 48
    sessions: int = 2000
    bastion_handshakes: int = 24
    bastion_connections: int = 24
    bastion_rest: float = 5.0
    bastion_probe: float = 3.0  # after a late tunnel: time limit of the bastion's own liveness check
    tunnels: int = 100
    proxy_commands: int = 64  # programs of ProxyCommand at once: each is a process with three of our file descriptors
    proxy_starts: int = 2 * PROCESSORS
    proxy_pace: float = 2.0  # then a start that brings nothing delays no other: one a second for each processor
    proxy_wait: float = 1800.0  # for a place among the programs; it does not count towards a command's deadline
    tries: int = 2  # connections dropped before the banner (MaxStartups)
    begin: float = 60.0  # from the start of a shell until it has begun
    greeting: int = 64 * KIB  # what a login shell may print before that
    stdout: int = 4 * MIB
    stderr: int = 64 * KIB
    flood: int = 64 * MIB  # output discarded past the caps before the connection is dropped
    held: float = 5.0  # silence after the exit status when something keeps the output open
    trusted: float = 5.0  # a conversation that was idle for longer is probed before the next request
    idle: float = 600.0  # an idle connection is closed: firewalls, ChannelTimeout and sudo's limits forget it too
    close: float = 5.0


SPARE_FILES = 200
"""Open files of this process that are no connections to nodes."""


def within_files(limits: SshLimits) -> SshLimits:
    """``limits`` with at most as many sessions as this process may open; each takes one descriptor.

    The soft limit is raised for them, up to the hard one.
    """
    wanted = limits.sessions + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return replace(limits, sessions=max(1, min(limits.sessions, most - SPARE_FILES)))


class Deadline:
    """A moment on the monotonic clock. The remaining time is never negative."""

    __slots__ = ("at",)

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + max(0.0, seconds)

    def left(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def within(self, seconds: float) -> Deadline:
        """The earlier of this deadline and one in so many seconds."""
        return Deadline(min(self.left(), seconds))
