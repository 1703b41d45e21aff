"""Runs of the past from the journal, for people: a run's story, or the summary of a run of another version.

Under this version's rules the events of another version would have another meaning, so they are not replayed, and the
run is never resumed. Only the hashes of its events are checked.
"""

from __future__ import annotations

from contextlib import suppress

from rollout import __version__
from rollout.app.following import order_of, rolled_back_since
from rollout.app.ports import Journal
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.pages.story import Past, Story, tell
from rollout.core.presentation.past_run import PastRun
from rollout.core.run.journal_codec import decode_event, rules_of
from rollout.core.run.state import RULES
from rollout.core.run.transitions import IllegalMoveError
from rollout.errors import InputError, StateError


def past_run(journal: Journal, run: str) -> PastRun | None:
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
        rolled_back=rolled_back_since(journal, run),
    )


# A run's story from the journal: what ``report`` shows.


def tell_run(journal: Journal, run: str) -> Story:
    """Read a run into its story. A plan that this version cannot read is left out."""
    header = journal.header(run)
    plan: Plan | None = None
    if header.plan:
        with suppress(InputError):
            plan = plan_codec.decode(header.plan, f"the plan of {run}")
    past = Past(order_of(header), header.counter, header.at, header.who, header.reason, plan)
    try:
        return tell(past, (decode_event(text) for text in journal.events(run)))
    except IllegalMoveError as exc:
        raise StateError("journal-unreadable", f"the journal of {run} cannot be followed: {exc}") from exc
