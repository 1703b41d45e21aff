"""Runs that pages show, told from the journal as they go on. Each is read once, whatever the number of readers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from rollout.app.after_run import afterwards
from rollout.app.following import attendance, order_of, plan_of
from rollout.app.freezes import freeze_in
from rollout.app.ports import PastRuns, RunHeader
from rollout.app.run_changes import change_of
from rollout.core.presentation.pages.story import Past, Story, StoryFold, tell
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards
from rollout.core.run.events import Answered
from rollout.core.run.journal_codec import decode_event, decode_events
from rollout.core.run.state import NodeRecord, Phase
from rollout.core.run.transitions import IllegalMoveError
from rollout.errors import StateError

LOOK_EVERY = 0.4
"""Seconds for which a look is used again."""

RECENT = 3.0
"""Seconds for which a look may name the state in a page's title, before the page's own look corrects it."""

AFTERWARDS_EVERY = 10.0
"""Seconds between two searches for what happened after a run: they read the headers of later runs."""

MOST_RUNS = 8
"""Runs kept in memory."""


@dataclass(frozen=True, slots=True)
class Look:
    """A run at ``at``, seconds since the epoch. ``changed``: node → the number of the look that found it changed last.

    Numbers of looks of one ``source`` count together.
    """

    source: str
    number: int
    at: float
    story: Story
    after: Afterwards
    changed: Mapping[str, int]


class LiveRun:
    """Thread-safe. ``clock``: seconds since the epoch."""

    def __init__(self, journal: PastRuns, run: str, clock: Callable[[], float]) -> None:
        header = journal.header(run)
        self.past = _past(journal, header)
        self._journal, self._run, self._clock = journal, run, clock
        self._fold = StoryFold(self.past)
        self._source = f"{clock():.6f}"
        self._lock = Lock()
        self._records: Mapping[str, NodeRecord] = {}
        self._searched: tuple[float, Afterwards] = (float("-inf"), NOTHING_SINCE)
        self._look: Look | None = None
        self._shown = 0  # events in the last look

    @property
    def recent(self) -> Look | None:
        """The newest look of any reader, without a wait for the journal; ``None``: none in the last ``RECENT`` seconds."""
        look = self._look
        return look if look is not None and 0 <= self._clock() - look.at < RECENT else None

    def look(self) -> Look:
        """The run now, at most ``LOOK_EVERY`` seconds old. ``StateError``: the journal cannot be read."""
        with self._lock:
            now = self._clock()
            if self._look is None or not 0 <= now - self._look.at < LOOK_EVERY:
                self._look = self._looked(self._look, now)
            return self._look

    def _looked(self, before: Look | None, now: float) -> Look:
        try:
            for text in self._journal.events(self._run, self._fold.events):
                self._fold.take(decode_event(text))
        except IllegalMoveError as exc:
            message = f"event {self._fold.events} of {self._run} cannot be followed: {exc}"
            raise StateError("journal-unreadable", message) from exc
        news = self._fold.events != self._shown  # an earlier look may have read them, and then lost the journal
        after = self._afterwards(now, anew=news)
        self._shown = self._fold.events
        if before is not None and not news:
            return Look(self._source, before.number, now, before.story, after, before.changed)
        number = before.number + 1 if before else 1
        records, known = self._fold.state.nodes, self._records
        changed = {name: number for name, record in records.items() if known.get(name) is not record}
        self._records = records
        if before is not None:
            changed = {**before.changed, **changed}
        return Look(self._source, number, now, self._fold.story(), after, changed)

    def _afterwards(self, now: float, *, anew: bool) -> Afterwards:
        """Nothing can follow a run while its controller works on it."""
        state = self._fold.state
        if state.phase is not Phase.ENDED:
            controller = attendance(self._journal, state.order.cluster, self._run)
            if controller.alive:
                return Afterwards(now, controller, frozen=freeze_in(self._journal, state.order.cluster))
        at, known = self._searched
        if anew or now - at >= AFTERWARDS_EVERY:
            frozen = freeze_in(self._journal, state.order.cluster)
            known = replace(afterwards(self._journal, state, now), frozen=frozen)
            self._searched = (now, known)
        return known

    def answers(self, node: str) -> tuple[Answered, ...]:
        """What a node answered so far, in order."""
        named = f'"{node}"'
        events = (decode_event(text) for text in self._journal.events(self._run) if named in text)
        return tuple(event for event in events if isinstance(event, Answered) and event.node == node)


class LiveRuns:
    """The runs that were read last, each once. Thread-safe. ``journal`` opens it, or is the one that is open."""

    def __init__(self, journal: Callable[[], PastRuns], clock: Callable[[], float]) -> None:
        self.journal, self._clock = journal, clock
        self._lock = Lock()
        self._kept: OrderedDict[str, LiveRun] = OrderedDict()

    def get(self, run: str) -> LiveRun:
        """``StateError``: ``no-such-run``, ``another-version``."""
        with self._lock:
            if run not in self._kept:
                self._kept[run] = LiveRun(self.journal(), run, self._clock)
                while len(self._kept) > MOST_RUNS:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(run)
            return self._kept[run]


def _past(journal: PastRuns, header: RunHeader) -> Past:
    change = change_of(journal, header)
    return Past(order_of(header), header.counter, header.at, header.who, header.reason, plan_of(header), change)


# A run's story from the journal, read once: what ``report`` shows.


def tell_run(journal: PastRuns, run: str) -> Story:
    """Read a run into its story. A plan that this version cannot read is left out."""
    header = journal.header(run)
    try:
        return tell(_past(journal, header), decode_events(journal.events(run)))
    except IllegalMoveError as exc:
        raise StateError("journal-unreadable", f"the journal of {run} cannot be followed: {exc}") from exc
