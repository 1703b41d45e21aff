"""What a run did: its story, from its journal alone."""

from __future__ import annotations

from rollout.app.after_run import afterwards
from rollout.app.call import CallPorts
from rollout.app.chosen_run import chosen_run
from rollout.app.live_run import tell_run
from rollout.app.past_runs import past_run
from rollout.app.run_documents import Recorded, recorded
from rollout.core.model.frozen import dataclass
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.past_run import PastRun
from rollout.core.presentation.summary_text import Afterwards


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run of this version, and what came after its events."""

    story: Story
    after: Afterwards


@dataclass(frozen=True, slots=True)
class PastRunReport:
    """A run of another version, which has no story."""

    past: PastRun
    recorded: Recorded


def report_run(call: CallPorts, run: str, *, needs_story: bool) -> RunReport | PastRunReport:
    """``run`` ``""``: the newest. ``needs_story``: ``StateError`` ``another-version`` instead of a report without one."""
    journal = call.past_runs()
    run = chosen_run(call, journal, run)
    past = None if needs_story else past_run(journal, run)
    if past is not None:
        return PastRunReport(past, recorded(journal, past.cluster, run))
    story = tell_run(journal, run)
    return RunReport(story, afterwards(journal, story.state, call.clock.now()))
