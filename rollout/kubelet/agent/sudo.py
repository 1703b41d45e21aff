"""sudo, with and without a password: what is sent to it, and what it answers.

With a password, sudo reads it from standard input (``-S``) and asks with a prompt that nobody can guess. The password
is sent only after that prompt, so it can never reach a shell as a command or a program as its input. The input of the
command itself is sent only after a shell that sudo started has printed ``ready``. Neither mark is in the command line
as it is printed: sudo turns ``%%`` into ``%``, and printf puts ``ready`` together. A shell that echoes its input (``set
-x``, an error message) proves nothing.
"""

from __future__ import annotations

import re
import shlex

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable

READY = 'printf "rollout %s ready\\n" "$0" >&2; exec "$@"'

_REFUSALS = (
    (rb"must have a tty|a terminal is required", "sudo-needs-tty", "sudo requires a terminal (requiretty)"),
    (
        rb"not in the sudoers|not allowed to|may not run sudo",
        "sudo-not-allowed",
        "sudo does not allow this user to run the command",
    ),
    (rb"account .*(?:locked|expired)|account validation", "sudo-not-allowed", "the account is locked or expired"),
    (
        rb"incorrect password|try again|no password was provided",
        "sudo-password-wrong",
        "sudo rejected the password",
    ),
    (rb"sudo['\x22:]?.*(?:not found|No such file)", "no-sudo", "sudo is not installed on the node"),
)


class Secret:
    """A secret word: no form of printing the object shows it."""

    __slots__ = ("_word",)

    def __init__(self, word: str) -> None:
        self._word = word

    def reveal(self) -> str:
        return self._word

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret cannot be written")


def quiet(line: str) -> str:
    """``line``, a simple command, as root if no password is required; sudo never asks."""
    return f"sudo -n -- {line}"


def asking(line: str, nonce: str) -> str:
    """``line``, a simple command, as root; sudo may ask. Only what ``heard`` detects counts as its question."""
    head = ("env", "LC_ALL=C", "sudo", "-S", "-p", f"[rollout %% {nonce}]", "--", "sh", "-c", READY, nonce)
    return f"{shlex.join(head)} {line}"


@dataclass(frozen=True, slots=True)
class SudoOutput:
    """The standard error: how often sudo asked, whether the command is about to start, and what was written since."""

    asked: int
    ready: bool
    rest: bytes


def heard(stderr: bytes, nonce: str) -> SudoOutput:
    before, ready, rest = stderr.partition(f"rollout {nonce} ready\n".encode())
    return SudoOutput(before.count(f"[rollout % {nonce}]".encode()), bool(ready), rest)


def refusal(stderr: bytes, nonce: str) -> tuple[str, str]:
    """Reference and text for a sudo that ended without starting the command."""
    said = stderr.replace(f"[rollout % {nonce}]".encode(), b"")
    lines = [line for line in said[-4096:].decode("ascii", "replace").splitlines() if line.strip()]
    detail = f": {printable(lines[-1])}" if lines else ""
    for pattern, reference, words in _REFUSALS:
        if re.search(pattern, said):
            return reference, words + detail
    return "sudo-failed", f"sudo did not start the command{detail}"
