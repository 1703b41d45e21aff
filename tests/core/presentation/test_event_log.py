"""The log of a run with details: few lines for many nodes, and the culprit before those reverted with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from rollout.core.model.playbook import Cause
from rollout.core.presentation.event_log import MOST_OF_A_KIND, EventLog, LogLine, Tone
from rollout.core.presentation.summary import WITH_OTHERS, troubles
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, FleetRead, Trigger
from rollout.core.run.machine import opening, step
from rollout.core.run.state import Ending, Failed, Goal, NodeState, Phase, Reverted, Verb, altered
from tests.core.presentation import journals
from tests.orders import make_order
from tests.plays import EVER, Drive, Play, leave_confirmed


def told(play: Drive) -> list[LogLine]:
    log = EventLog(details=True)
    state, _ = opening(play.order, 1, play.began)
    lines: list[LogLine] = []
    for event in play.journal:
        before, (state, _) = state, step(state, event)
        lines += log.lines(event, before, state)
    return lines


def test_nodes_that_succeed_have_no_line_and_each_that_failed_has_one() -> None:
    _, play = journals.halted(480)
    lines = [line.text for line in told(play)]
    charged = [name for name, record in play.state.nodes.items() if record.cause is not None]
    assert 1 < len(charged) <= MOST_OF_A_KIND
    for name in charged:
        assert sum(line.startswith(f"  {name} ") for line in lines) >= 1, name
    assert len(lines) < 40
    halted = next(at for at, line in enumerate(lines) if line.startswith("halting: "))
    together = next(at for at, line in enumerate(lines) if "reverted because the run halted" in line)
    first = min(at for at, line in enumerate(lines) if any(line.startswith(f"  {name} ") for name in charged))
    assert first < halted < together


def test_nodes_that_left_are_named_and_a_revert_without_a_fault_of_the_node_says_so() -> None:
    play = Play(make_order({"a": 2}))
    play.run(until=lambda state: state.phase is Phase.RUNNING)
    left = FleetRead(play.now, {"a-1": "gone"}, {"a": 1}, {})
    log = EventLog(details=True)
    assert [line.text for line in log.lines(left, play.state, play.state)] == ["no longer in the inventory: a-1"]
    record = play.state.nodes["a-1"]
    reverted = replace(record, current=Reverted())
    after = altered(play.state, {"nodes": {**play.state.nodes, "a-1": reverted}})
    event = Answered(play.now, "a-1", 1, Verb.REVERT, Trigger.REVERTED_ON_REQUEST)
    (line,) = log.lines(event, play.state, after)
    assert "a-1 reverted: reverted with the run" in line.text
    charged = {**play.state.nodes, "a-1": replace(reverted, current=Failed(), cause=Cause.FAILED)}
    (line,) = log.lines(event, play.state, altered(play.state, {"nodes": charged}))
    assert "reverted with the run" not in line.text, "it was not reverted"


def test_waves_begin_and_pass_and_their_gates_have_a_line() -> None:
    _, play = journals.gate_failed()
    found = told(play)
    lines = [line.text for line in found]
    first, second, *_ = play.order.waves
    assert f"wave {first.name} ({len(first.nodes)} node{'s' * (len(first.nodes) > 1)}) begins" in lines
    assert f"wave {first.name}: passed" in lines
    (failed,) = [line for line in found if line.text.startswith(f"gates of wave {second.name}: FAIL")]
    assert "is worse" in failed.text
    assert failed.tone is Tone.BAD


def test_the_culprit_is_listed_before_the_many_that_were_reverted_with_it() -> None:
    _, play = journals.halted(480)
    found = troubles(play.state)
    others = [each.reference == WITH_OTHERS for each in found]
    assert others == sorted(others)
    assert others[-1]
    assert found[-1].count > found[0].count


def test_a_wave_without_a_changed_node_has_not_passed() -> None:
    """After a resume, a wave may have no node left to change."""
    play = Play(make_order({"a": 3, "b": 3}, (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))))
    play.sicken("a-1")
    assert play.run().ending is Ending.HALTED
    play.resume()
    play.go_on()
    lines = [line.text for line in told(play)]
    assert "wave canary: over, none of its nodes is changed" in lines
    assert "wave canary: passed" not in lines


def rack(size: int) -> Play:
    return Play(make_order({"a": size}, (("all", lambda _: True),)))


def claims_and_halts(play: Drive) -> list[str]:
    return [line.text.partition(" ")[0] for line in told(play) if line.text.startswith(("claimed ", "halting: "))]


def test_a_run_that_halts_while_it_claims_its_nodes_has_not_claimed_them() -> None:
    """It said that it had claimed every node, and then that another run has one of them."""
    held = rack(3)
    held.claim_for_another("a-1")
    assert held.run().ending is Ending.CLAIMED
    assert claims_and_halts(held) == ["halting:"]
    silent = rack(3)
    silent.cut_off("a-1", "a-2", "a-3")
    assert silent.run().ending is Ending.PREFLIGHT
    assert claims_and_halts(silent) == ["halting:"]


def test_a_run_that_halts_later_has_claimed_its_nodes_before() -> None:
    sick = rack(3)
    sick.sicken("a-1", "a-2", "a-3")
    assert sick.run().ending is Ending.HALTED
    assert claims_and_halts(sick) == ["claimed", "halting:"]


class Unwilling(Play):
    """A rollback. ``unwilling``: node → the reference of its refusal of every read and revert, until ``until``."""

    unwilling: Mapping[str, str] = MappingProxyType({})
    until = EVER

    def said(self, ask: Ask, event: Answered) -> Answered:
        reference = self.unwilling.get(ask.node)
        if reference is None or self.now >= self.until or ask.verb is Verb.CLEAN:
            return event
        return replace(event, trigger=Trigger.REFUSED, reference=reference, message="the state cannot be written")


@pytest.mark.parametrize("reference", ["read-only", "no-room", "locked", "cut-off", ""])
@pytest.mark.parametrize("until", [40.0, EVER])
def test_a_rollback_that_waits_for_nodes_tells_once_which_why_and_how_long_and_then_what_came_out(
    reference: str, until: float
) -> None:
    play = Unwilling(make_order({"a": 4}, goal=Goal.REVERT))
    leave_confirmed(play, play.order.nodes)
    play.until = until
    if reference == "cut-off":
        play.links["a-2"].cuts.append((1.5, until))  # it has been claimed
    elif reference:
        play.unwilling = {"a-2": reference}
    end = play.run()
    lines = [line.text for line in told(play)]
    began = [line for line in lines if line.startswith("waiting for ")]
    over = [line for line in lines if line.startswith("waited ")]
    if not reference:
        assert began == over == []
        return
    assert len(began) == len(over) == 1, lines
    assert "waiting for 1 node that must answer, " in began[0]
    assert " at most: a-2: " in began[0]
    assert reference == "cut-off" or f"the state cannot be written [{reference}]" in began[0]
    assert over[0].endswith(f": a-2 {end.nodes['a-2'].state}")
    assert end.nodes["a-2"].state is (NodeState.UNREACHABLE if until == EVER else NodeState.REVERTED)
    assert lines.index(began[0]) < lines.index(over[0])
