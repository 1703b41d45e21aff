"""How runs ended, one row a run: written with its last event, read by whatever version comes later."""

from __future__ import annotations

import json

import sqlalchemy as sa

from rollout.adapters.journal.tables import SUMMARIES
from rollout.core.presentation.run_summary import Nodes, RunSummary
from rollout.core.text import json_text
from rollout.errors import StateError


def put(connection: sa.Connection, run: str, events: int, summary: RunSummary) -> None:
    """In place of an earlier one: a run that is resumed ends again."""
    connection.execute(sa.delete(SUMMARIES).where(SUMMARIES.c.run == run))
    connection.execute(
        sa.insert(SUMMARIES).values(
            run=run,
            events=events,
            ended=summary.ended,
            ending=summary.ending,
            exit_code=summary.exit_code,
            why=summary.why,
            counter=summary.counter,
            nodes=json.dumps({state: {"count": n.count, "nodes": n.nodes} for state, n in summary.nodes.items()}),
            owed=summary.owed,
            cordoned=summary.cordoned,
            reverted=json.dumps(dict(summary.reverted)),
        )
    )


def get(connection: sa.Connection, run: str, events: int) -> RunSummary | None:
    """``None`` where there is none that covers all ``events`` of the run."""
    row = connection.execute(sa.select(SUMMARIES).where(SUMMARIES.c.run == run)).first()
    if row is None or row.events != events:
        return None
    try:
        nodes = {
            str(state): Nodes(int(found["count"]), str(found["nodes"]))
            for state, found in json_text.parse(row.nodes).items()
        }
        reverted = {str(other): str(names) for other, names in json_text.parse(row.reverted).items()}
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise StateError("journal-broken", f"the summary of {run} is not the one that was written") from exc
    return RunSummary(
        row.ended, row.ending, row.exit_code, row.why, row.counter, nodes, row.owed, row.cordoned, reverted
    )
