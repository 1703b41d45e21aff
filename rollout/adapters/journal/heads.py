"""The heads of runs' hash chains, kept outside the database: changes to the database alone are detected.

A chain reveals a change in its middle, but not a cut at its tail: the shorter chain is still valid. So the head (number
and hash of the last event) is also in a file, one for each run, written after the events. The file may be behind the
database, after a power cut or when another machine writes, but never ahead of it.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from rollout.app.ports import RunHeader
from rollout.core.run.journal_codec import GENESIS, chain
from rollout.core.text import json_text

Head = tuple[int, str]
"""The number and hash of the last event of a run; number 0 is its header."""

FOLDER = "heads"


def beginning(header: RunHeader) -> str:
    """The first hash of a run's chain: over everything that was fixed before its first event.

    A changed row may contain a value of another type, because SQLite stores any type.
    """
    plan = header.plan if isinstance(header.plan, bytes) else repr(header.plan).encode()
    at = float(header.at) if isinstance(header.at, (int, float)) else header.at
    version = (header.version,) if header.version else ()  # older versions neither wrote nor hashed it
    fields = (
        header.run,
        header.cluster,
        header.goal,
        header.order,
        header.counter,
        at,
        header.who,
        header.reason,
        *version,
    )
    texts = [
        repr(str(field) if isinstance(field, str) else field) for field in fields
    ]  # an enum value is read back as text
    return chain(GENESIS, f"{hashlib.sha256(plan).hexdigest()} {json.dumps(texts)}")


class Heads:
    """Heads in ``folder``; ``None``: no heads are kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder / FOLDER if folder else None

    def file(self, run: str) -> Path | None:
        return self._folder / quote(run, safe="") if self._folder else None

    def keep(self, run: str, head: Head) -> None:
        """A failed write does not stop the run: an older head is also valid."""
        path = self.file(run)
        if path is None:
            return
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.new")
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(head), encoding="ascii")
            fresh.replace(path)

    def kept(self, run: str) -> Head | None:
        """``None`` when no head was kept, or it cannot be read."""
        path = self.file(run)
        try:
            head = json_text.parse(path.read_text(encoding="ascii")) if path else None
        except (OSError, ValueError):
            return None
        match head:
            case [int(number), str(hashed)]:
                return number, hashed
        return None
