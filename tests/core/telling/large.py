"""What a report of 2,000 nodes costs, in a process of its own: ``python -m tests.core.telling.large`` prints it as JSON.

A process of its own because coverage, which the tests run under, makes everything several times as slow.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from rollout.core.run.journal_codec import decode_event, encode_event
from rollout.core.telling.pages.page import page
from rollout.core.telling.pages.story import Past, tell
from tests.core.telling.journals import plan_of, play_of


def _reading(events: Sequence[str]) -> float:
    began = time.process_time()
    for event in events:
        decode_event(event)
    return time.process_time() - began


def main() -> None:
    plan = plan_of(2040)
    play = play_of(plan)
    play.grain = 3.0  # seconds of answers at a time: how the journal came about is not what is measured
    play.run()
    events = [encode_event(event) for event in play.journal]
    reading = _reading(events)
    began = time.process_time()
    past = Past(play.order, 1, play.began, "ann@ops", "pulls time out", plan)
    text = page(tell(past, (decode_event(event) for event in events)))
    took = time.process_time() - began
    reading = max(reading, _reading(events))  # beside other work a processor's caches are smaller for a while
    cost = {
        "nodes": len(play.order.nodes),
        "events": len(events),
        "bytes": len(text.encode()),
        "seconds": took,
        "reading": reading,
    }
    json.dump(cost, sys.stdout)


if __name__ == "__main__":
    main()
