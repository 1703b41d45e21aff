"""Runs of another version of rollout, by what the journal stores of them.

Under this version's rules the events of another version would have another meaning, so they are not replayed, and the
run is never resumed. Only the hashes of its events are checked.
"""

from __future__ import annotations

from rollout import __version__
from rollout.app.node_histories import rolled_back_since
from rollout.app.ports import PastRuns
from rollout.app.run_changes import change_of
from rollout.core.plans import plan_codec
from rollout.core.presentation.past_run import PastRun
from rollout.core.run.journal_codec import rules_of
from rollout.core.run.state import RULES


def past_run(journal: PastRuns, run: str) -> PastRun | None:
    """What is stored of a run of another version; ``None``: this version can read it.

    ``StateError`` ``journal-broken``.
    """
    header = journal.header(run)
    rules = rules_of(header.order)
    if rules == RULES:
        return None
    journal.events(run)  # raises if an event was changed
    return PastRun(
        run=run,
        cluster=header.cluster,
        goal=header.goal,
        began=header.at,
        who=header.who,
        reason=header.reason,
        plan=plan_codec.digest_in(header.plan),
        version=header.version,
        rules=rules,
        ours=(__version__, RULES),
        summary=journal.summary(run),
        change=change_of(journal, header),
        rolled_back=rolled_back_since(journal, run),
    )
