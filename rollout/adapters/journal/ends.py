"""The states in which runs ended, kept beside their heads so that nobody has to replay their events to show them.

A state is chained to the last event as one more event would be, and to the version that wrote it. So it is read only if it
belongs to just these events, and nothing was changed. It is no part of the journal: without it the events are replayed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from rollout import __version__
from rollout.core.run.journal_codec import chain

FOLDER = "ends"
MOST = 20
"""States that are kept: some hundred kB each for thousands of nodes, and people look at the newest runs."""


class Ends:
    """States in ``folder``; ``None``: none are kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder / FOLDER if folder else None

    def keep(self, run: str, head: str, state: str) -> None:
        """``head``: the hash of the event that ended the run. A failed write costs a replay."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / quote(run, safe="")
            fresh = path.with_name(f"{path.name}.new")
            fresh.touch(mode=0o600)
            fresh.write_text(f"{_seal(head, state)}\n{state}", encoding="ascii")
            fresh.replace(path)
            by_time = sorted(self._folder.iterdir(), key=lambda kept: kept.stat().st_mtime_ns, reverse=True)
            for older in by_time[MOST:]:
                older.unlink(missing_ok=True)

    def kept(self, run: str, head: str) -> str | None:
        """The state that was kept after the event with this hash; ``None``: there is none."""
        if self._folder is None:
            return None
        try:
            seal, _, state = (self._folder / quote(run, safe="")).read_text(encoding="ascii").partition("\n")
        except (OSError, ValueError):
            return None
        return state if seal == _seal(head, state) else None


def _seal(head: str, state: str) -> str:
    return chain(head, f"{__version__}\n{state}")
