"""Every event in a journal is a document of its own kind, with where the run is after it."""

from __future__ import annotations

import pytest

from rollout.core.model.config_map import ConfigMapOutcome
from rollout.core.model.playbook import RevertScope
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.presentation.event_documents import EVENT_DOCUMENTS, event_document
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    Approved,
    ConfigMapRead,
    ContinueAsked,
    CordonsLifted,
    Event,
    FleetRead,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    Trigger,
    WaveJudged,
    WaveOpened,
    WindowClosed,
    WindowOpened,
)
from rollout.core.run.journal_codec import EVENTS
from rollout.core.run.state import Verb
from rollout.core.text.documents import kind_of
from tests.documents import as_printed
from tests.orders import make_order
from tests.plays import Play

STATE = Play(make_order({"a": 3})).run(until=lambda _: True)
WAVE = STATE.order.waves[0].name
READING = Reading("errors", Verdict.FAIL, "5 samples")

EACH: list[tuple[Event, dict[str, object]]] = [
    (Ticked(1.5), {}),
    (
        Answered(2.0, "a-1", 3, Verb.APPLY, Trigger.REFUSED, "drifted", "é", 7, ("left",), 1.5, "{}", ("img",), 5.0),
        {"node": "a-1", "state": "pending", "trigger": "refused", "token": 7, "pulls": ["img"], "againSeconds": 5.0},
    ),
    (
        WaveOpened(3.0, 0, Verdict.PASS, "fine", "{}", ("s1 https://a.example.net", "s2")),
        {
            "opened": WAVE,
            "silences": [{"identity": "s1", "url": "https://a.example.net"}, {"identity": "s2", "url": ""}],
        },
    ),
    (WaveJudged(3.0, 0, Verdict.FAIL, "5", (READING,)), {"judged": WAVE, "verdict": "fail"}),
    (SilencesLifted(4.0, ("s1",)), {"leftovers": ["s1"]}),
    (CordonsLifted(4.0, ("a-1", "a-2"), "me@here", "OPS-7"), {"nodes": "a-[1-2]", "count": 2, "who": "me@here"}),
    (
        ConfigMapRead(4.0, ConfigMapOutcome.CHANGED, "", "config-map-changed", "others did"),
        {"outcome": "changed-by-others", "digest": None, "reference": "config-map-changed"},
    ),
    (InterruptAsked(4.0), {}),
    (PauseAsked(4.0, "me@here", "lunch", 1), {"who": "me@here", "reason": "lunch", "request": 1}),
    (ContinueAsked(4.0, "me@here", "", 2), {"request": 2}),
    (AbortAsked(4.0, "me@here", "wrong", 3, RevertScope.RUN), {"revert": "run"}),
    (Resumed(5.0, 9), {"token": 9}),
    (FleetRead(5.0, {"a-1": "gone"}, {"a": 3}, {}), {"left": {"a-1": "gone"}, "racks": {"a": 3}, "zones": {}}),
    (WindowClosed(5.0, "frozen", 9.5), {"why": "frozen", "opens": "1970-01-01T00:00:09.500Z"}),
    (WindowOpened(6.0), {}),
    (Approved(6.0, "alice@x", "SHA256:k", "…"), {"person": "alice@x", "key": "SHA256:k"}),
]


@pytest.mark.parametrize(("event", "has"), EACH, ids=[type(event).__name__ for event, _ in EACH])
def test_an_event_as_a_document(event: Event, has: dict[str, object]) -> None:
    found = as_printed(event_document(event, STATE))
    assert (found["kind"], found["run"], found["wave"]) == (type(event).__name__, STATE.order.run, WAVE)
    assert found["at"] == f"1970-01-01T00:00:0{event.at:.3f}Z"
    assert {key: found[key] for key in has} == has


def test_every_event_of_a_journal_has_its_kind() -> None:
    assert {kind_of(each) for each in EVENT_DOCUMENTS} == set(EVENTS) == {type(event).__name__ for event, _ in EACH}
