"""A command's dialogue with sudo: when to send the password, when the input, and when neither.

Wrong passwords lock accounts. So no node gets a password that it rejected before. Until some node has accepted it, at
most two nodes get it: a password that both reject is sent to no other node.
"""

from __future__ import annotations

import secrets
import threading
import time

from rollout.adapters.ssh.troubles import printable
from rollout.app.ports import Target
from rollout.errors import RemoteError
from rollout.kubelet.agent import sudo

UNPROVEN = 2
PATIENCE = 10.0  # a node that answers later does not delay the others' turn
WRONG = "sudo-password-wrong"


class Proof:
    """What nodes answered to the password so far. Thread-safe."""

    def __init__(self, password: sudo.Secret) -> None:
        self.password = password
        self._lock = threading.Lock()
        self._proven = False
        self._turns = UNPROVEN
        self._refused: set[Target] = set()

    def may_send(self, target: Target) -> bool:
        """Whether it is this node's turn. Raises ``RemoteError`` when its turn will never come."""
        with self._lock:
            if target in self._refused:
                raise RemoteError(WRONG, "sudo rejected the password; it is not sent to this node again")
            if self._proven:
                return True
            if len(self._refused) >= UNPROVEN:
                first = ", ".join(sorted(printable(target.name, 80) for target in self._refused))
                raise RemoteError(WRONG, f"not sent: {first} rejected it, and no node has accepted it")
            if not self._turns:
                return False
            self._turns -= 1
            return True

    def taken(self) -> None:
        with self._lock:
            self._proven = True

    def refused(self, target: Target) -> None:
        with self._lock:
            self._refused.add(target)

    def undecided(self) -> None:
        """The node got the password and has not answered."""
        with self._lock:
            self._turns += 1


class Elevation:
    """One command's dialogue with sudo on one node."""

    def __init__(self, proof: Proof, target: Target) -> None:
        self._proof = proof
        self._target = target
        self._nonce = secrets.token_hex(16)
        self._sent_at: float | None = None
        self._turn_held = False
        self.through = False
        self.waiting = False  # for the password's turn: there is no wake-up event

    def line(self, bare: str) -> str:
        return sudo.asking(bare, self._nonce)

    def next(self, stderr: bytes) -> bytes:
        """The password, when it is due, else nothing; ``through``: the command waits for its own input.

        Raises ``RemoteError`` when sudo rejects it.
        """
        said = sudo.heard(stderr, self._nonce)
        self._settle(said)
        if said.ready:
            self.through = True
        elif said.asked and self._sent_at is None:
            return self._password()
        elif said.asked > 1:
            raise RemoteError(WRONG, "sudo rejected the password")
        return b""

    def rest(self, stderr: bytes) -> bytes:
        """The command's own output, without sudo's before it."""
        return sudo.heard(stderr, self._nonce).rest

    def ended(self, stderr: bytes) -> RemoteError:
        """Why sudo ended without starting anything."""
        reference, message = sudo.refusal(stderr, self._nonce)
        if reference == WRONG and self._sent_at is not None:
            self._proof.refused(self._target)
            self._turn_held = False
        return RemoteError(reference, message)

    def give_up(self) -> None:
        """Release the turn, whatever happened."""
        if self._turn_held:
            self._turn_held = False
            self._proof.undecided()

    def _password(self) -> bytes:
        self.waiting = not self._proof.may_send(self._target)
        if self.waiting:
            return b""
        self._sent_at, self._turn_held = time.monotonic(), True
        return f"{self._proof.password.reveal()}\n".encode()

    def _settle(self, said: sudo.SudoOutput) -> None:
        if self._sent_at is None:
            return
        if said.ready:
            self._turn_held = False
            self._proof.taken()
        elif said.asked > 1:
            self._turn_held = False
            self._proof.refused(self._target)
        elif time.monotonic() - self._sent_at > PATIENCE:
            self.give_up()
