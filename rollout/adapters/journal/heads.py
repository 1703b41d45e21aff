"""The heads of runs' chains outside of the database: who changes the database alone is found out.

A chain shows a change in its middle. Its end shows nothing: events that are cut off at the tail leave a shorter chain that
is whole. So the head (number and hash of the last event) also stands in a file, one for each run, written after the events are.
It may be behind the database, after a power cut or where another machine writes, and is never before it.
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
"""The number and the hash of the last event of a run; number 0: of its header."""

FOLDER = "heads"


def beginning(header: RunHeader) -> str:
    """The hash that a run's chain begins with: over all that was fixed before its first event.

    Who changes a row may leave a value of another type there: SQLite keeps what it is given.
    """
    plan = header.plan if isinstance(header.plan, bytes) else repr(header.plan).encode()
    at = float(header.at) if isinstance(header.at, (int, float)) else header.at
    version = (header.version,) if header.version else ()  # older versions wrote none, and hashed none
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
    ]  # a word of an enum is read back as a text
    return chain(GENESIS, f"{hashlib.sha256(plan).hexdigest()} {json.dumps(texts)}")


class Heads:
    """In ``folder``; ``None``: none are kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder / FOLDER if folder else None

    def file(self, run: str) -> Path | None:
        return self._folder / quote(run, safe="") if self._folder else None

    def keep(self, run: str, head: Head) -> None:
        """What cannot be kept is no reason to stop a run: an older head is true as well."""
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
        """``None``: none was kept, or none that can be read."""
        path = self.file(run)
        try:
            found = json_text.parse(path.read_text(encoding="ascii")) if path else None
        except (OSError, ValueError):
            return None
        match found:
            case [int(number), str(hashed)]:
                return number, hashed
        return None
