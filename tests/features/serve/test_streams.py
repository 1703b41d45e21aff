"""What a browser is sent of a run while the journal goes away and comes back: no outage leaves a page that is not true."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.live_run import LOOK_EVERY, LiveRun, tell_run
from rollout.app.ports import Holder
from rollout.core.run.journal_codec import encode_event
from rollout.errors import StateError
from rollout.features.serve.client import snapshots
from rollout.features.serve.client.snapshots import Browser, RenderedParts
from tests.core.presentation import journals
from tests.features.serve.serving import keep

RUN = "r20261120-160000-ab12"


class Away(SqlJournal):
    """``lost``: so many of its next leases cannot be read."""

    lost = 0

    def holder(self, cluster: str) -> Holder | None:
        if self.lost:
            self.lost -= 1
            raise StateError("journal-away", "the server is starting up")
        return super().holder(cluster)


@pytest.mark.process
def test_a_page_is_told_how_a_run_stands_when_the_journal_is_back(tmp_path: Path) -> None:
    """Nothing has changed meanwhile, so nothing else would replace the words of the outage."""
    plan, play = journals.stopped(lambda state: state.wave == 2)
    keep(tmp_path, RUN, plan, play, len(play.journal)).close()
    journal = Away(tmp_path / "state")
    seconds = iter(range(1000))
    live = LiveRun(journal, RUN, lambda: journals.BEGAN + next(seconds))
    said: list[str] = []

    async def listen() -> None:
        events = snapshots.snapshots(live, RenderedParts(), Browser(), lambda: len(said) == 4)
        async for event in events:
            said.append(event)
            journal.lost = int(len(said) == 2)

    asyncio.run(listen())
    assert said[2].startswith("event: trouble\n")
    assert '"standing":"running"' in said[3]
    journal.close()


def test_events_that_were_read_before_an_outage_are_shown_after_it(tmp_path: Path) -> None:
    """The journal goes away between the events and the lease: the events are read once, and must not be forgotten."""
    plan, play = journals.halted(120)
    keep(tmp_path, RUN, plan, play, 40).close()
    journal, now = Away(tmp_path / "state"), [journals.BEGAN]
    live = LiveRun(journal, RUN, lambda: now[0])
    live.look()
    journal.append(RUN, [encode_event(event) for event in play.journal[40:-1]])
    now[0] += LOOK_EVERY
    journal.lost = 1
    try:
        live.look()
    except StateError:
        now[0] += LOOK_EVERY
    look = live.look()
    assert look.story == tell_run(journal, RUN)
    assert {name for name, number in look.changed.items() if number == look.number}
    journal.close()
