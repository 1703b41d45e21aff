"""A run's story from the journal: what ``report`` shows."""

from __future__ import annotations

from contextlib import suppress

from rollout.app.following import order_of
from rollout.app.ports import Journal
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.pages.story import Past, Story, tell
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.transitions import IllegalMoveError
from rollout.errors import InputError, StateError


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
