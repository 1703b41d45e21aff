"""A command's dialogue with sudo: when to send the password, when the input, and when neither.

Wrong passwords lock accounts, and a node may lie: a hostile one prints whatever a sudo prints that accepts a password. So the
number of nodes that accepted it, less those that rejected it, limits how many may have it without an answer, and the
first rejections stop it. A node that was sent the password and did not start the command counts as one that rejected it,
whatever it printed: each sudo words that in its own way. Only a sudo that asks again is said to have rejected it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from functools import cache

from rollout.adapters.ssh.ascii_text import printable
from rollout.app.ports import Target
from rollout.errors import RemoteError
from rollout.kubelet.agent import sudo

SURE = 3
"""So many nodes must have accepted the password before ``TOO_MANY`` rejections no longer stop it."""
TOO_MANY = 2
PATIENCE = 30.0
"""Seconds for sudo to answer the password. Until then the node counts as unanswered, and others may have to wait for it."""
WRONG = "sudo-password-wrong"


class Proof:
    """What nodes answered to the password so far. Thread-safe.

    Each node counts once, by its last answer. At no time are more sent passwords unanswered than
    ``max(1, accepted - rejected)``. It is sent to no node any more when at least ``TOO_MANY`` nodes have rejected it and
    fewer than ``SURE``, or no more than those, have accepted it.
    """

    def __init__(self, password: sudo.Secret) -> None:
        self.password = password
        self._lock = threading.Lock()
        self._unanswered = 0
        self._accepted: set[Target] = set()
        self._rejected: set[Target] = set()
        self._stopped_by = ""

    def may_send(self, target: Target) -> bool:
        """Whether it is this node's turn; then it counts until ``accepted`` or ``rejected``.

        Raises ``RemoteError`` when its turn will never come.
        """
        with self._lock:
            if target in self._rejected:
                raise RemoteError(WRONG, "this node has not accepted the password before; it is not sent again")
            if self._stopped_by:
                raise RemoteError(WRONG, f"not sent: {self._stopped_by} did not accept it, and too few other nodes did")
            if self._unanswered >= max(1, len(self._accepted) - len(self._rejected)):
                return False
            self._unanswered += 1
            return True

    def accepted(self, target: Target) -> None:
        with self._lock:
            self._unanswered -= 1
            self._accepted.add(target)

    def rejected(self, target: Target) -> None:
        with self._lock:
            self._unanswered -= 1
            self._accepted.discard(target)
            self._rejected.add(target)
            few = len(self._accepted) < SURE or len(self._accepted) <= len(self._rejected)
            if len(self._rejected) >= TOO_MANY and few:
                self._stopped_by = ", ".join(sorted(printable(each.name, 80) for each in self._rejected)[:TOO_MANY])


@cache
def proof_of(password: sudo.Secret) -> Proof:
    """One for each password of a process: what one part of it has learned holds for all of them."""
    return Proof(password)


class Elevation:
    """One command's dialogue with sudo on one node."""

    def __init__(self, proof: Proof, target: Target, clock: Callable[[], float] = time.monotonic) -> None:
        self._proof = proof
        self._target = target
        self._clock = clock
        self._nonce = secrets.token_hex(16)
        self._sent_at: float | None = None
        self._unanswered = False
        self.through = False
        self.waiting = False  # for the password's turn: there is no wake-up event

    def line(self, bare: str) -> str:
        return sudo.asking(bare, self._nonce)

    def next(self, stderr: bytes) -> bytes:
        """The password, when it is due, else nothing; ``through``: the command waits for its own input.

        Raises ``RemoteError`` when sudo rejects it.
        """
        prompt = sudo.heard(stderr, self._nonce)
        if prompt.ready:
            self.through = True
            if self._unanswered:
                self._unanswered = False
                self._proof.accepted(self._target)
        elif prompt.asked and self._sent_at is None:
            self.waiting = not self._proof.may_send(self._target)
            if self.waiting:
                return b""
            self._sent_at, self._unanswered = self._clock(), True
            return f"{self._proof.password.reveal()}\n".encode()
        elif prompt.asked > 1:
            raise self._rejection("sudo rejected the password")
        elif self._sent_at is not None and self._clock() - self._sent_at > PATIENCE:
            raise self._rejection(f"sudo did not answer the password within {PATIENCE:g} s")
        return b""

    def rest(self, stderr: bytes) -> bytes:
        """The command's own output, without sudo's before it."""
        return sudo.heard(stderr, self._nonce).rest

    def ended(self, stderr: bytes, status: int) -> RemoteError:
        """Why sudo ended, with this exit status, without starting anything."""
        sent = self._sent_at is not None
        self.give_up()
        return RemoteError(*sudo.refusal(stderr, self._nonce, status=status, sent=sent))

    def give_up(self) -> None:
        """The dialogue is over, whatever ended it: without an accepted password it was rejected."""
        if self._unanswered:
            self._unanswered = False
            self._proof.rejected(self._target)

    def _rejection(self, message: str) -> RemoteError:
        self.give_up()
        return RemoteError(WRONG, message)
