"""What a report of 2,000 nodes costs, in a process of its own: ``python -m tests.core.presentation.large`` prints it as JSON.

A process of its own because coverage, which the tests run under, makes everything several times as slow. What it costs is
told in calls of functions, which no other load on the machine changes.
"""

from __future__ import annotations

import json
import sys

from rollout.core.presentation.pages.page import page
from rollout.core.presentation.pages.story import Past, tell
from rollout.core.run.journal_codec import decode_event, encode_event
from tests.core.presentation.journals import plan_of, play_of
from tests.cost import calls


def main() -> None:
    plan = plan_of(2040)
    play = play_of(plan)
    play.grain = 3.0  # seconds of answers at a time: the making of the journal is not measured
    play.run()
    events = [encode_event(event) for event in play.journal]
    past = Past(play.order, 1, play.began, "ann@ops", "pulls time out", plan)
    pages: list[str] = []
    cost = {
        "nodes": len(play.order.nodes),
        "events": len(events),
        "reading": calls(lambda: [decode_event(event) for event in events]),
        "calls": calls(lambda: pages.append(page(tell(past, (decode_event(event) for event in events))))),
        "bytes": len(pages[0].encode()),
    }
    json.dump(cost, sys.stdout)


if __name__ == "__main__":
    main()
