"""Where notices are sent: addresses with secrets, from the environment or a private file, never from arguments."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rollout.adapters.owners import REMEDY, others_hold
from rollout.errors import UsageError

FILE_VARIABLE = "ROLLOUT_NOTICES_FILE"
VARIABLE = "ROLLOUT_NOTICES"
LINK_VARIABLE = "ROLLOUT_NOTICES_LINK"
_MOST_BYTES = 64 * 1024


def addresses(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of ``ROLLOUT_NOTICES`` (separated by spaces) and of the lines of ``ROLLOUT_NOTICES_FILE``.

    ``UsageError`` for a file that cannot be read, or that other users can read.
    """
    file = environment.get(FILE_VARIABLE, "")
    lines = _private_text(Path(file)).splitlines() if file else []
    written = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return (*environment.get(VARIABLE, "").split(), *written)


def _private_text(path: Path) -> str:
    """Checks the open file, so that nobody can replace it after the check."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if why := others_hold(path):
                raise UsageError("notices-not-private", why, hint=REMEDY)
            if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
                raise UsageError(
                    "notices-not-private", f"{path} is not a file that only you can read", hint=f"chmod 600 {path}"
                )
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError as exc:
        raise UsageError("notices-unreadable", f"{path}: {exc.strerror}") from exc
