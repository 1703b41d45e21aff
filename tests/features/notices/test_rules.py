"""Which events of a run are told to people, in which words."""

from __future__ import annotations

from rollout.core.model.playbook import RevertScope
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.notices import Notice, NoticeKind, lost
from rollout.core.run.events import PauseAsked, WindowClosed
from rollout.core.run.state import Goal, NodeState
from rollout.features.late_watch.words import late_harm, late_unknown
from rollout.features.notices.rules import notices_of
from tests.orders import make_order
from tests.plays import Play, confirmed_before

K = NoticeKind
WAVES = (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))


def told(play: Play) -> list[Notice]:
    """The notices of a play, gathered at every step."""
    found: list[Notice] = []
    stepped = play.stepped

    def gather(event, before, commands):  # type: ignore[no-untyped-def]
        stepped(event, before, commands)
        found.extend(notices_of(event, before, play.state))

    play.stepped = gather  # type: ignore[method-assign]
    return found


def test_a_run_tells_its_start_its_canary_and_its_end() -> None:
    play = Play(make_order({"a": 3}, WAVES))
    found = told(play)
    play.run()
    assert [(each.kind, each.title) for each in found] == [
        (K.STARTED, "test: run r1 started"),
        (K.CANARY_DONE, "test: run r1 canary done"),
        (K.ENDED, "test: run r1 ended: done"),
    ]
    assert found[0].lines == ("it changes 3 nodes in 2 waves", "rollout status r1")
    assert found[2].lines == ("3 confirmed; exit code 0", "rollout report r1")


def test_a_start_counts_the_nodes_that_it_may_change() -> None:
    play = Play(make_order({"a": 300}, WAVES))
    play.cut_off("a-30")
    found = told(play)
    play.run(until=lambda s: s.phase == "running")
    assert found[0].lines[0] == "it changes 299 nodes in 2 waves"


def test_a_halt_says_why_and_what_is_reverted() -> None:
    play = Play(make_order({"a": 3}, WAVES, wave_gates=True, on_failure=RevertScope.RUN))
    found = told(play)
    play.run(until=lambda s: s.wave == 1 and s.nodes["a-2"].state is NodeState.CONFIRMED)
    play.wave_verdict = Verdict.FAIL
    play.go_on()
    kinds = [each.kind for each in found]
    assert kinds == [K.STARTED, K.CANARY_DONE, K.HALTED, K.REVERTS, K.ENDED]
    assert found[2].lines[0] == "as told [wave-gate-fail]"
    assert "nodes to be reverted" in found[3].lines[0]


def test_waits_are_told_once_with_their_reason() -> None:
    play = Play(make_order({"a": 3}, WAVES, hold=frozenset({"canary"})))
    found = told(play)
    play.run(until=lambda s: s.paused is not None)
    play.go_on(until=lambda s: s.now > play.began + 200)
    assert [each.lines[0] for each in found if each.kind is K.WAITS] == [
        "on hold: holds after wave canary; gates are still checked; `rollout continue r1` promotes"
    ]
    other = Play(make_order({"a": 3}))
    found = told(other)
    other.run(until=lambda s: s.phase == "running")
    other.feed(WindowClosed(other.now, "frozen", None))
    other.feed(PauseAsked(other.now, "ops", "lunch", 1))
    assert [each.lines[0].split(":")[0] for each in found if each.kind is K.WAITS] == [
        "change window closed",
        "paused by ops (lunch)",
    ]
    assert [each.lines[1] for each in found if each.kind is K.WAITS] == ["rollout status r1", "rollout continue r1"]


def test_a_canary_without_a_changed_node_is_not_done() -> None:
    play = Play(make_order({"a": 3}, WAVES))
    play.sicken("a-1")
    found = told(play)
    play.run()
    play.resume()
    play.go_on()
    kinds = [each.kind for each in found]
    assert (kinds.count(K.ENDED), kinds.count(K.CANARY_DONE)) == (2, 0)


def test_a_rollback_and_a_new_controller_are_starts() -> None:
    play = confirmed_before(make_order({"a": 2}, goal=Goal.REVERT))
    found = told(play)
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.REVERTING)
    play.crash_and_resume()
    play.go_on()
    assert [each.lines[0] for each in found if each.kind is K.STARTED][:2] == [
        "it reverts 2 nodes in 1 wave",
        "a new controller took the run over",
    ]


def test_a_lost_controller_is_told_with_the_command_that_continues() -> None:
    play = Play(make_order({"a": 2}))
    play.run(until=lambda s: s.phase == "running")
    found = lost(play.state, "the journal is away\x1b[2J")
    assert (found.title, found.kind) == ("test: run r1 has no controller", K.CONTROLLER_LOST)
    assert "\x1b" not in found.lines[0]
    assert found.body("http://127.0.0.1:8700/") == f"{found.lines[0]}\nrollout resume r1\nhttp://127.0.0.1:8700/"


def test_late_harm_is_told_with_the_command_that_undoes_it() -> None:
    play = Play(make_order({"a": 3}, WAVES))
    play.run()
    found = late_harm(play.state, "2 failures in a row", rolls_back=False)
    assert (found.title, found.lines) == (
        "test: run r1 does harm after its end",
        ("2 failures in a row", "rollout rollback r1"),
    )
    assert "is to be rolled back" in late_harm(play.state, "", rolls_back=True).title
    assert late_unknown(play.state, "away").lines == ("away", "rollout status r1")
