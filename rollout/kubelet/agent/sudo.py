"""sudo, without a password and with one: what to say to it, and what it says.

With a password, sudo is told to read it from standard input (``-S``) and to ask by a prompt that nobody can guess. The
password is sent only after that prompt, so it can never reach a shell as a command or a program as its input; what the
command itself reads is sent only after a shell that sudo started said ``ready``. Neither mark is in the command line as
it is printed: sudo turns ``%%`` into ``%``, and printf puts ``ready`` together. A shell that echoes what it was given
(``set -x``, an error message) proves nothing.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from rollout.core.text.terminal import printable

READY = 'printf "rollout %s ready\\n" "$0" >&2; exec "$@"'

_REFUSALS = (
    (rb"must have a tty|a terminal is required", "sudo-needs-tty", "sudo wants a terminal here (requiretty)"),
    (rb"not in the sudoers|not allowed to|may not run sudo", "sudo-not-allowed", "sudo does not allow it to this user"),
    (rb"account .*(?:locked|expired)|account validation", "sudo-not-allowed", "the account is locked or expired"),
    (
        rb"incorrect password|try again|no password was provided",
        "sudo-password-wrong",
        "sudo did not take the password",
    ),
    (rb"sudo['\x22:]?.*(?:not found|No such file)", "no-sudo", "there is no sudo on the node"),
)


class Secret:
    """A word that is not for printing: whatever shows the object shows nothing of it."""

    __slots__ = ("_word",)

    def __init__(self, word: str) -> None:
        self._word = word

    def reveal(self) -> str:
        return self._word

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is not written anywhere")


def quiet(line: str) -> str:
    """``line``, a simple command, as root where no password is wanted; sudo never asks."""
    return f"sudo -n -- {line}"


def asking(line: str, nonce: str) -> str:
    """``line``, a simple command, as root; sudo may ask. Only what ``heard`` hears counts as its question."""
    head = ("env", "LC_ALL=C", "sudo", "-S", "-p", f"[rollout %% {nonce}]", "--", "sh", "-c", READY, nonce)
    return f"{shlex.join(head)} {line}"


@dataclass(frozen=True, slots=True)
class SudoOutput:
    """What came on standard error: how often sudo asked; whether the command is about to start; what it wrote since."""

    asked: int
    ready: bool
    rest: bytes


def heard(stderr: bytes, nonce: str) -> SudoOutput:
    before, ready, rest = stderr.partition(f"rollout {nonce} ready\n".encode())
    return SudoOutput(before.count(f"[rollout % {nonce}]".encode()), bool(ready), rest)


def refusal(stderr: bytes, nonce: str) -> tuple[str, str]:
    """Reference and words for a sudo that ended and started nothing."""
    said = stderr.replace(f"[rollout % {nonce}]".encode(), b"")
    lines = [line for line in said[-4096:].decode("ascii", "replace").splitlines() if line.strip()]
    detail = f": {printable(lines[-1])}" if lines else ""
    for pattern, reference, words in _REFUSALS:
        if re.search(pattern, said):
            return reference, words + detail
    return "sudo-failed", f"sudo started nothing{detail}"
