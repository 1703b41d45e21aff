"""Every bound of an SSH session, and the one kind of deadline they are measured with."""

from __future__ import annotations

import time
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class SshLimits:
    """Seconds, counts and bytes. All waits of one ``run`` also end with the deadline of its command.

    ``handshakes`` bounds key exchanges and authentications under way (they cost the controller CPU), ``sessions`` the
    connections that are open; a node that hangs before its banner takes no place in the handshake gate.

    Of each bastion: ``bastion_handshakes`` of nodes behind it under way, ``tunnels`` through one connection to it (sshd
    gives each a file descriptor), ``bastion_connections`` to it. After it could not be reached, who asks within
    ``bastion_rest`` is told so at once: 2,000 nodes behind a bastion that hangs do not wait for it one after the other.
    """

    connect: float = 10.0  # name look-up and TCP; ConnectTimeout of ssh_config goes before it
    banner: float = 10.0
    handshake: float = 20.0  # key exchange and host key, from the moment it may start
    auth: float = 20.0
    touch: float = 30.0  # more time to authenticate where a hardware key may wait for a finger
    channel: float = 10.0
    refusals: float = 2.0  # sshd may not have closed the last session yet (MaxSessions): asked again for so long
    handshakes: int = 48
    sessions: int = 2000
    bastion_handshakes: int = 24
    bastion_connections: int = 24
    bastion_rest: float = 5.0
    bastion_probe: float = 3.0  # it opened no tunnel in time: so long for any sign of life from itself
    tunnels: int = 100
    tries: int = 2  # connections dropped before the banner (MaxStartups)
    stdout: int = 4 * MIB
    stderr: int = 64 * KIB
    flood: int = 64 * MIB  # output discarded past the caps before the connection is given up
    held: float = 5.0  # quiet time after the exit status when something keeps the output open
    close: float = 5.0


class Deadline:
    """A moment on the monotonic clock. What is left of it is never negative."""

    __slots__ = ("at",)

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + max(0.0, seconds)

    def left(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def within(self, seconds: float) -> Deadline:
        """The sooner of this deadline and one in so many seconds."""
        return Deadline(min(self.left(), seconds))
