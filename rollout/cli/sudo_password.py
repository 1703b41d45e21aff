"""The password for sudo on the nodes: typed, or from a private file. Never an argument, never the environment."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rollout.errors import UsageError
from rollout.kubelet.agent.sudo import Secret

_LONGEST = 1024

sudo_options: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("--ask-sudo-password", is_flag=True, help="Ask once for the password that sudo wants on the nodes."),
    click.option(
        "--sudo-password-file",
        type=click.Path(path_type=Path),
        default=None,
        help="Read it from here: a file that only you can read, or a pipe such as <(pass show sudo).",
    ),
)


def given_password(file: Path | None, *, ask: bool) -> Secret | None:
    """What the two options say; raises ``UsageError``."""
    if ask and file is not None:
        raise UsageError("two-passwords", "--ask-sudo-password and --sudo-password-file say the same thing; take one")
    if file is not None:
        return _checked(_read(file), str(file))
    return _checked(_typed(), "what was typed") if ask else None


def _typed() -> str:
    if not sys.stdin.isatty():
        hint = "say --sudo-password-file where nobody can type"
        raise UsageError("no-terminal", "--ask-sudo-password needs a terminal", hint=hint)
    return str(click.prompt("sudo password", hide_input=True, err=True))


def _read(file: Path) -> str:
    """Checked on the open file, so that it cannot be another one by then."""
    try:
        with file.open("rb", buffering=0) as stream:
            _private(os.fstat(stream.fileno()), file)
            return _all(stream.read).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise UsageError("password-unreadable", f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("password-unusable", f"{file} is not text in UTF-8") from None


def _all(read: Callable[[int], bytes | None]) -> bytes:
    """A pipe gives what it has; one byte more than can be is enough to know."""
    found = b""
    while len(found) <= _LONGEST and (more := read(_LONGEST + 1)):
        found += more
    return found


def _private(status: os.stat_result, file: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_mode & 0o077 or status.st_uid not in (os.geteuid(), 0):
        hint = f"chmod 600 {file}"
        raise UsageError("password-not-private", f"others can read {file}, or it is not yours", hint=hint)


def _checked(word: str, where: str) -> Secret:
    if not word or len(word) > _LONGEST or any(char in word for char in "\n\r\0"):
        raise UsageError("password-unusable", f"{where} is no password: empty, too long, or more than one line")
    return Secret(word)
