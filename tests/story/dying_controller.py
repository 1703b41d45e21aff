"""``rollout`` that kills itself (SIGKILL) at the N-th write of its journal: right before it, or right after it.

After the write, the events are durable and no command that follows from them was started. Before it, answers had
arrived and were not written. ``DIE_AT`` is N; ``DIE_WHEN`` is ``before`` or ``after``. The number of writes goes to
``DIE_COUNT``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from rollout.adapters import journal
from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.main import main
from rollout.core.presentation.summary import RunSummary

writes = 0


def at_write(when: str) -> None:
    if when == os.environ["DIE_WHEN"] and writes == int(os.environ["DIE_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal(SqlJournal):
    """Counts the writes."""

    def begin(self, header: RunHeader) -> None:
        self._counted()
        super().begin(header)
        at_write("after")

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        self._counted()
        super().append(run, events, ended)
        at_write("after")

    def _counted(self) -> None:
        global writes  # noqa: PLW0603 - one controller a process
        writes += 1
        Path(os.environ["DIE_COUNT"]).write_text(str(writes))
        at_write("before")


setattr(journal, "SqlJournal", DyingJournal)  # noqa: B010 - the composition root uses it from there
main()
