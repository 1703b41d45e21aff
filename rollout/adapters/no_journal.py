"""A journal that stores nothing, for an emergency without a journal: the receipts on the nodes are the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rollout.app.ports import Holder, Note, RunHeader
from rollout.core.model.regions import RegionStanding
from rollout.errors import StateError

if TYPE_CHECKING:
    from rollout.core.presentation.summary import RunSummary
    from rollout.core.run.events import Request
    from rollout.core.run.state import RunState


class NoJournal:
    """Writes are discarded; there is nothing to read."""

    def begin(self, header: RunHeader) -> None:
        """Nothing is kept."""

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        """Nothing is kept."""

    def keep_end(self, state: RunState) -> None:
        """Nothing is kept."""

    def summary(self, run: str) -> RunSummary | None:  # noqa: ARG002 - the port's signature
        return None

    def header(self, run: str) -> RunHeader:
        raise StateError("no-such-run", f"run {run!r} cannot be found: no journal is in use")

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def head(self, run: str) -> tuple[int, str]:  # noqa: ARG002 - the port's signature
        return 0, ""

    def kept_end(self, run: str) -> str | None:  # noqa: ARG002 - the port's signature
        return None

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def listed(self) -> tuple[RunHeader, ...]:
        return ()

    def highest_counter(self, cluster: str) -> int:  # noqa: ARG002 - the port's signature
        return 0

    def acquire(self, cluster: str, run: str) -> None:
        """The nodes' tokens are the lock."""

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        """The nodes' tokens are the lock."""

    def release(self, cluster: str, run: str) -> None:
        """The nodes' tokens are the lock."""

    def holder(self, cluster: str) -> Holder | None:  # noqa: ARG002 - the port's signature
        return None

    def unlock(self, cluster: str, note: Note) -> None:
        """Nothing is kept."""

    def note(self, cluster: str, note: Note) -> None:
        """Nothing is kept."""

    def notes(self, cluster: str) -> tuple[Note, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:  # noqa: ARG002 - the port's signature
        raise StateError("no-such-run", f"run {run!r} cannot be found: no journal is in use")

    def withdraw(self, request: int) -> None:
        """Nothing is kept."""

    def requests(self, run: str, after: int) -> tuple[Request, ...]:  # noqa: ARG002 - the port's signature
        return ()
