"""What the runs of a journal change, from their headers: the settings of a plan, or of the runs that a rollback reverts."""

from __future__ import annotations

from rollout.app.config_map_restores import restored_runs
from rollout.app.ports import PastRuns, RunHeader
from rollout.core.plans import plan_codec
from rollout.core.presentation.headline import WhatChanged, changed_settings, reverted_settings, wanted_settings
from rollout.core.run.journal_codec import decode_order
from rollout.core.run.state import Goal
from rollout.errors import StateError

MOST_REVERTED = 20
"""Runs that a rollback reverts, of which the settings are read."""


def change_of(journal: PastRuns, header: RunHeader) -> WhatChanged:
    """Of a header with its order and plan. A plan or an order of another version gives what can be read of it."""
    if header.goal != Goal.REVERT:
        settings = changed_settings(plan_codec.reasons_in(header.plan))
        settings = settings or wanted_settings(plan_codec.wanted_in(header.plan))
        return WhatChanged(plan_codec.selection_in(header.plan)[0], settings)
    runs = _reverted_runs(journal, header)
    plans = [found.plan for run in runs[:MOST_REVERTED] if (found := _header(journal, run)) is not None]
    settings = tuple(each for plan in plans for each in changed_settings(plan_codec.reasons_in(plan)))
    settings = settings or tuple(each for plan in plans for each in wanted_settings(plan_codec.wanted_in(plan)))
    return WhatChanged("", reverted_settings(settings), runs)


def _reverted_runs(journal: PastRuns, header: RunHeader) -> tuple[str, ...]:
    """By what it did, once it has ended; else by its order."""
    summary = journal.summary(header.run)
    if summary is not None and summary.reverted:
        return tuple(summary.reverted)
    try:
        order = decode_order(header.order)
    except StateError:
        return ()
    runs = dict.fromkeys(transaction.rpartition("-")[0] for transaction in order.transactions.values())
    return tuple(runs) or restored_runs(journal, order)


def _header(journal: PastRuns, run: str) -> RunHeader | None:
    """``None``: a run of another journal."""
    try:
        return journal.header(run)
    except StateError:
        return None
