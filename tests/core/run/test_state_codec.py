"""The state of a run as text: what is read is what was written, or it is refused. Every simulated run of other tests ends with this, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from rollout.core.model.approvals import Approval
from rollout.core.model.config_map import ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.fleet_changes import FewerNodes
from rollout.core.model.playbook import Cause
from rollout.core.model.report import LastLog
from rollout.core.run.journal_codec import decode_event, decode_order
from rollout.core.run.machine import opening, step
from rollout.core.run.state import (
    ClosedWindow,
    Ending,
    Halt,
    NodeRecord,
    Pause,
    Phase,
    Rehearsal,
    RunState,
    Verb,
)
from rollout.core.run.state_codec import decode_state, encode_state
from tests.core.run.drawn import STATES
from tests.core.run.recorded.make import FILE
from tests.orders import make_order

ORDER = make_order({"a": len(STATES)})
FULL = NodeRecord(
    cause=Cause.FAILED, accepted=True, owed=True, to_revert=True, cordoned=True, uncordons=2, rehearsal=Rehearsal.BACK,
    busy_until=5.5, leftovers=("a timer", "ä\ud800"), asked=Verb.CONFIRM, serial=7, retry_at=8.25, attempt=3, since=9.5,
    reference="ssh-timeout", message="no banner \x1b[31m", orphaned=True, touched=True, shown=True, passes=4,
    apply_seconds=1.5, revert_seconds=2.5, drained_seconds=3.5, baseline="{}", cancelled=("registry/a:1",),
    log=LastLog("exit 1", ("one", "two")), pod_starts=5, pulls_done=6, tx="r0-1",
)  # fmt: skip
"""No field but its state has its default."""


def a_run() -> RunState:
    nodes = {name: replace(FULL, current=state) for name, state in zip(ORDER.nodes, STATES, strict=True)}
    return RunState(
        order=ORDER, counter=3, phase=Phase.HALTING, wave=1, nodes=nodes, now=99.5, started=(1.5, 2.5), round=1,
        round_at=2.5, data_by=3.5, gate_asked=True, gate_passes=4, reached=2, opened=0, baselines={-1: "b", 10: "a"},
        silences=("s http://x",), lifting=True, leftovers=("a file",), paused=Pause("me", "lunch", 4.5, held=True),
        closed=ClosedWindow("night", 5.5, None), approved=(Approval("ann", "k", "s"),), promoted=1, heard=9,
        halt=Halt(Ending.HALTED, "budget", "two nodes", 6.5), highest=12, claims=2, ending=Ending.CLAIMED,
        interrupted=True, fewer=FewerNodes({"a": 2}, {"z": 1}),
        config_map=ConfigMapStanding(
            sent=True, asked=True, restores=True, outcome=ConfigMapOutcome.REFUSED, reference="r", message="m"
        ),
    )  # fmt: skip


def test_each_part_of_a_state_is_read_as_it_was_written() -> None:
    state = a_run()
    default = NodeRecord()
    assert all(getattr(FULL, each.name) != getattr(default, each.name) for each in fields(NodeRecord)[1:])
    assert all(getattr(state, each.name) != each.default for each in fields(RunState))
    again = decode_state(encode_state(state), ORDER)
    assert again == state
    assert repr(again) == repr(state), "numbers and words of the same kinds"


def test_the_recorded_run_is_the_same_after_each_of_its_events() -> None:
    first, *events, _ = FILE.read_text().splitlines()
    state, _ = opening(decode_order(first), 1, 0.0)
    for text in events:
        state, _ = step(state, decode_event(text))
        assert decode_state(encode_state(state), state.order) == state


def without(part: str) -> Callable[[Any], None]:
    return lambda body: body["run"].pop(part)


def put(*place: Any) -> Callable[[Any], None]:
    *path, last, value = place

    def change(body: Any) -> None:
        for key in path:
            body = body[key]
        body[last] = value

    return change


CHANGES: dict[str, Callable[[Any], None]] = {
    "a part is missing": without("phase"),
    "a part is unknown": put("run", "mood", 1),
    "a part has another type": put("run", "wave", "1"),
    "no part": put("run", 3),
    "another column": put("columns", 0, "present"),
    "no rows": put("nodes", 7),
    "a node is missing": lambda body: body["nodes"].pop(),
    "a node is no row": put("nodes", 0, {}),
    "a row is too short": lambda body: body["nodes"][0].pop(),
    "a state that is none": put("nodes", 0, 0, "is", "Asleep"),
    "a state without its kind": put("nodes", 0, 0, {}),
    "no state": put("nodes", 0, 0, ["Pending"]),
    "a wave that is none": put("run", "baselines", {"first": "x"}),
    "no baselines": put("run", "baselines", []),
    "a verb that is none": put("nodes", 0, 10, "dance"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_anything_else_is_refused(change: Callable[[Any], None]) -> None:
    body = json.loads(encode_state(a_run()))
    change(body)
    with pytest.raises(ValueError):  # noqa: PT011 - each of them
        decode_state(json.dumps(body), ORDER)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", "[" * 100_000])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each of them
        decode_state(text, ORDER)
