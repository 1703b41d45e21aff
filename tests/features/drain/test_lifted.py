"""What the journal records about cordons that were lifted after a run."""

from __future__ import annotations

from pathlib import Path

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.runs import leased
from rollout.core.presentation.summary import run_summary
from rollout.core.run.events import CordonsLifted
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import Phase
from rollout.features.drain.asking.cordons import Lifted, write_down_lifted
from tests.app.site import SMALL, Site


def test_only_nodes_that_are_still_cordoned_are_left_out() -> None:
    lifted = Lifted(("n1",), (("n2", "forbidden"),))
    assert lifted.without(("n1", "n2", "n3")) == ("n1", "n3"), "the cordon of n3 was lifted by hand"


def test_lifted_cordons_are_the_runs_last_event_with_operator_and_reason(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path)
    end = Site(journal).apply()
    with leased(journal, SMALL.cluster, "r1"):
        write_down_lifted(journal, end, (), 9e9, "ann@desk", "")
        write_down_lifted(journal, end, ("n1", "n2"), 1.0, "ann@desk", "OPS-7")
    events = [decode_event(text) for text in journal.events("r1")]
    assert events[-1] == CordonsLifted(end.now, ("n1", "n2"), "ann@desk", "OPS-7"), "this machine's clock is behind"
    assert not any(isinstance(event, CordonsLifted) for event in events[:-1]), (
        "nothing was lifted, so nothing is journaled"
    )
    after = replay(journal, "r1")
    assert after.phase is Phase.ENDED
    assert journal.summary("r1") == run_summary(after), "a summary counts only if it covers all events of its run"
