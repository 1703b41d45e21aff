"""Which runs have ended, according to this journal. A claim that an ended run left on a node is void."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from rollout.app.following import replay_if_readable
from rollout.app.ports import Journal
from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.state import Phase

HasEnded = Callable[[str], bool]


def none_has_ended(_run: str) -> bool:
    return False


class EndedRuns:
    """Called on many threads with the run that a node names. Replays each run once. An unknown run has not ended."""

    def __init__(self, journal: Journal, cluster: str) -> None:
        self._journal = journal
        self._cluster = cluster
        self._lock = Lock()
        self._known: dict[str, bool] = {}

    def __call__(self, run: str) -> bool:
        with self._lock:
            if run not in self._known:
                self._known[run] = self._has_ended(run)
            return self._known[run]

    def _has_ended(self, run: str) -> bool:
        if all(header.run != run for header in self._journal.runs(self._cluster)):
            return False
        state = replay_if_readable(self._journal, run)
        if state is None:
            return self._journal.summary(run) is not None  # of another version
        return state.phase is Phase.ENDED


def gives_way(looked: Report, has_ended: HasEnded) -> bool:
    """Whether the claim on a node belongs to a run that has ended and left nothing armed there.

    ``looked``: read without a claim of ours. A newer token then takes the node over. The node refuses anything that the
    ended run may still send, because its token is older.
    """
    if looked.token is None or not looked.token.live or not has_ended(looked.token.run):
        return False
    return not any(receipt.state in _UNDER_WAY for receipt in looked.receipts)


_UNDER_WAY = frozenset({ReceiptState.ARMED, ReceiptState.REVERTING})
