"""The lines of a run without a terminal: one for each important event, and none twice."""

from __future__ import annotations

import io
from collections.abc import Callable

from rollout.adapters.progress import PlainProgress
from rollout.core.model.approvals import USED
from rollout.core.model.playbook import Limits, Share
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    Event,
    InterruptAsked,
    PauseAsked,
    Trigger,
)
from rollout.core.run.machine import opening, step
from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState, Verb
from rollout.core.text.terminal import seconds_text
from tests.orders import make_order
from tests.plays import Play, confirmed_before

WAVES = (("canary", lambda name: name.endswith("-1")), ("rest", lambda _: True))


def play(**how: frozenset[str] | bool) -> Play:
    limits = Limits(per_rack=Share(percent=50.0))
    return Play(make_order({"a": 10, "b": 10}, WAVES, limits=limits, **how))  # type: ignore[arg-type]


def told(game: Play) -> list[str]:
    """The lines for a journal."""
    out = io.StringIO()
    progress = PlainProgress(out)
    state, _ = opening(game.order, 1, game.began)
    for event in game.journal:
        before, (state, _) = state, step(state, event)
        progress.on_event(event, before, state)
    if state.phase is Phase.ENDED:
        progress.on_end(state)
    return out.getvalue().splitlines()


def after(game: Play, when: Callable[[RunState], bool], event: Callable[[float], Event]) -> Play:
    game.run(until=when)
    game.feed(event(game.now))
    return game


def applying(state: RunState) -> bool:
    return any(record.state is NodeState.APPLYING for record in state.nodes.values())


def test_a_successful_run_prints_a_few_lines_and_its_summary() -> None:
    game = play()
    game.run()
    lines = told(game)
    assert lines[0] == "claimed 20 nodes of test as r1, token 1"
    assert lines[1].startswith("wave canary (2 nodes): 2 confirmed in ")
    assert lines[2] == "wave canary: passed"
    assert "cleaning up on every node" in lines
    assert lines[-1] == "  all: 20 confirmed"


def test_only_nodes_that_accepted_the_claim_count_as_claimed() -> None:
    """One does not answer, one refuses as another machine: the line counts neither of them. One took the claim, and another run
    has changed it since people approved.
    """
    order = make_order({"a": 60, "b": 60}, WAVES, budgets=(), limits=Limits(preflight=Share(percent=50.0)))
    before, _ = opening(order, 1, 0.0)
    out = io.StringIO()
    progress = PlainProgress(out)
    wrong = {
        "a-5": (Trigger.UNREACHED, "ssh-timeout"),
        "b-7": (Trigger.REFUSED, "machine-id-changed"),
        "b-8": (Trigger.REFUSED, USED),
    }
    for name, record in before.nodes.items():
        event = Answered(1.0, name, record.serial, Verb.READ, *wrong.get(name, (Trigger.UNTOUCHED, "")))
        after, _ = step(before, event)
        progress.on_event(event, before, after)
        before = after
    assert "claimed 118 nodes of test as r1, token 1; 2 not claimed" in out.getvalue().splitlines()


def test_a_repeated_rollback_claims_and_reverts_only_what_is_left() -> None:
    """``recover`` of one node out of four is no failure to claim the other three, and it reverts one."""
    game = confirmed_before(make_order({"a": 4}, goal=Goal.REVERT, limits=Limits(pace=30.0)))
    game.cut_off("a-4")
    assert game.run().nodes["a-4"].owed
    game.reconnect("a-4")
    game.resume()
    begun, before = len(game.journal), game.state
    out = io.StringIO()
    progress = PlainProgress(out)
    assert game.go_on().ending is Ending.DONE
    for event in game.journal[begun:]:
        after, _ = step(before, event)
        progress.on_event(event, before, after)
        before = after
    lines = out.getvalue().splitlines()
    assert "claimed 1 node of test as r1, token 2" in lines
    assert "reverting 1 node, at most 30 nodes/s" in lines


def test_the_rehearsal_is_reported_once() -> None:
    game = play(rehearsal=True)
    end = game.run()
    slowest = seconds_text(max(record.revert_seconds for record in end.nodes.values()))
    before_the_summary = told(game)[: told(game).index("run r1 on test: done, exit code 0")]
    (line,) = [line for line in before_the_summary if line.startswith("rehearsal: ")]
    assert line.startswith(f"rehearsal: 2 of 2 nodes reverted once, healthy, in at most {slowest} per node")


def test_a_pause_and_its_end_are_reported() -> None:
    game = after(play(), applying, lambda at: PauseAsked(at, "ann@ops", "lunch", 1))
    assert "paused by ann@ops (lunch): `rollout continue r1` continues it; 2 nodes of 2 racks: applying" in told(game)
    game.feed(ContinueAsked(game.now, "ann@ops", "", 2))
    assert told(game)[-1] == "the run continues"


def test_a_hold_prints_how_to_promote() -> None:
    game = play(hold=frozenset({"canary"}))
    game.run(until=lambda state: state.paused is not None)
    assert told(game)[-1].endswith("`rollout continue r1` promotes")


def test_an_abort_and_an_interrupt_are_reported_once() -> None:
    game = after(play(), applying, lambda at: AbortAsked(at, "ann@ops", "enough", 1))
    game.go_on()
    assert [line for line in told(game) if line.startswith("halting")] == [
        "halting: aborted by ann@ops: enough [aborted]"
    ]
    game = after(play(), applying, InterruptAsked)
    game.go_on()
    assert told(game).count("stopping: finishing nodes in flight first; interrupt again to stop at once") == 1


def test_the_first_failed_node_of_each_kind_is_reported() -> None:
    game = play()
    for name in ("b-4", "b-5"):
        game.sicken(name)
    game.run()
    bad = [line for line in told(game) if "more of this kind are in the summary" in line]
    assert len(bad) == 1
