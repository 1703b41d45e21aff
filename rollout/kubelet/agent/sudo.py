"""sudo, with and without a password, and doas without one: what is sent to it, and what it answers.

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
from rollout.core.model.ways_in import Become
from rollout.core.text.terminal import printable

READY = 'printf "rollout %s ready\\n" "$0" >&2; exec "$@"'

_ITS_LINE = rb"(?m)^(?:sudo|sudo-rs|doas): .*"
"""The node's login shell and its files print before: a message counts only in a line that sudo writes."""
_FORBIDDEN = (
    (
        _ITS_LINE + rb"(?:must have a tty|a terminal is required)",
        "sudo-needs-tty",
        "sudo requires a terminal (requiretty)",
    ),
    (
        rb"(?m)^Sorry, user .* (?:is not allowed to execute|may not run sudo)|is not in the sudoers file|is not allowed to run sudo on",
        "sudo-not-allowed",
        "sudo does not allow this user to run the command",
    ),
    (
        _ITS_LINE + rb"(?:not allowed to|may not run|I'm afraid I can't do that|Operation not permitted)",
        "sudo-not-allowed",
        "sudo does not allow this user to run the command",
    ),
    (
        rb"(?m)^(?>.*?account ).*?(?:locked|expired)|account validation",
        "sudo-not-allowed",
        "the account is locked or expired",
    ),
    (_ITS_LINE + rb"no new privileges", "sudo-not-allowed", "the node's sshd or login lets no program gain privileges"),
)
"""What sudo, sudo-rs and doas print in the locale C when they refuse, before they ask or after: it only refines what their end shows."""
_NOT_STARTED = (126, 127)
"""Exit statuses of a shell, and of ``env``, for a program that is missing or may not be run."""


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


def quiet(line: str, become: Become = Become.SUDO) -> str:
    """``line``, a simple command, as root if no password is required; the program never asks."""
    return f"env LC_ALL=C {become} -n -- {line}"


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


def refusal(stderr: bytes, nonce: str, *, status: int, sent: bool) -> tuple[str, str]:
    """Reference and text for a sudo that ended with this exit status without starting the command.

    ``sent``: it got the password. What sudo did decides; what it printed is shown, and names the reason where it is known.
    """
    prompt = re.escape(f"[rollout % {nonce}]".encode())
    said = re.sub(rb"(?:\[sudo: )?" + prompt + rb"(?:\] Password: )?", b"", stderr)  # sudo-rs puts more around it
    for pattern, reference, words in _FORBIDDEN:
        if re.search(pattern, said):
            return reference, words + _last(said)
    if sent:
        return "sudo-password-wrong", f"sudo got the password and ended without starting the command{_last(said)}"
    if status in _NOT_STARTED:
        return "no-sudo", f"sudo is not installed on the node, or this user may not run it{_last(said)}"
    return "sudo-failed", f"sudo ended with exit status {status} and neither asked nor started the command{_last(said)}"


def refused_quietly(stderr: bytes, status: int) -> tuple[str, str] | None:
    """The same for ``quiet``, where a password may be all that is missing; ``None`` if not sudo but a later program ended."""
    if by_doas := _refused_by_doas(stderr, status):
        return by_doas
    if status in _NOT_STARTED and b"sudo" in stderr:
        return refusal(stderr, "", status=status, sent=False)
    if status != 1 or not (_SUDOS.search(stderr) or any(re.search(pattern, stderr) for pattern, _, _ in _FORBIDDEN)):
        return None
    reference, message = refusal(stderr, "", status=status, sent=False)
    return ("no-sudo" if reference == "sudo-failed" else reference), message


_OF_DOAS = (
    (rb"not permitted", "doas-not-allowed", "doas does not permit this user to run the command"),
    (rb"[Aa]uth", "doas-needs-password", "doas requires a password, and rollout gives it none"),
    (rb"", "no-doas", "doas is not usable on the node"),
)
"""How its messages differ: opendoas and OpenBSD's have no translations."""


def _refused_by_doas(stderr: bytes, status: int) -> tuple[str, str] | None:
    """A login shell may print before."""
    begins = _NO_DOAS if status in _NOT_STARTED else _DOAS
    first = begins.search(stderr) if status == 1 or status in _NOT_STARTED else None
    if first is None:
        return None
    return next(
        (reference, words + _last(first[0])) for pattern, reference, words in _OF_DOAS if re.search(pattern, first[0])
    )


_DOAS = re.compile(rb"(?m)^doas: .*")
_NO_DOAS = re.compile(rb"(?m)^(?:env: .*\bdoas\b|doas: ).*")
_SUDOS = re.compile(rb"(?m)^(?:sudo|sudo-rs|doas):")
"""How each message of theirs begins, in every language."""


def _last(said: bytes) -> str:
    lines = [line for line in said[-4096:].decode("ascii", "replace").splitlines() if line.strip()]
    return f": {printable(lines[-1])}" if lines else ""
