"""A journal folded into a story, and the story as text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from rollout.core.model.playbook import Limits, RevertScope, Share
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.pages.document import report_document, report_lines
from rollout.core.presentation.pages.health_gates import Number, number_in
from rollout.core.presentation.pages.moments import fallen, moments
from rollout.core.presentation.pages.parts import story_parts
from rollout.core.presentation.pages.sections import next_steps, numbers, steps, taken_back
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import rehearsed, summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, summary_lines
from rollout.core.run.events import AbortAsked, PauseAsked, Resumed
from rollout.core.run.state import Ending, Goal, LeftOut, NodeState, Phase, Rehearsal, Verb
from tests.core.presentation import journals
from tests.core.presentation.journals import story_of
from tests.documents import as_printed
from tests.orders import make_order
from tests.plays import Play, confirmed_before


@pytest.fixture(scope="module")
def halted() -> Story:
    plan, play = journals.halted()
    return story_of(play, plan)


@pytest.fixture(scope="module")
def gate_failed() -> Story:
    plan, play = journals.gate_failed()
    return story_of(play, plan)


def texts(story: Story) -> list[str]:
    return [moment.text for moment in moments(story)]


def place(said: list[str], words: str) -> int:
    """The place of the one sentence with these words."""
    (found,) = [at for at, text in enumerate(said) if words in text]
    return found


def test_the_updated_counts_equal_the_final_counts(halted: Story) -> None:
    for index, wave in enumerate(halted.past.order.waves):
        for kind in NodeState:
            counted = sum(halted.state.nodes[name].state is kind for name in wave.nodes)
            assert halted.samples[-1].waves[index].get(kind, 0) == counted


def test_time_never_goes_backwards_in_a_story_even_if_a_later_controllers_clock_does() -> None:
    game = Play(make_order({"a": 20}, limits=Limits(per_rack=Share(percent=50.0))))
    game.set_clock(1000.0)
    game.run(until=lambda s: s.phase is Phase.SOAKING)
    game.set_clock(900.0)
    game.crash_and_resume()
    game.go_on()
    story = story_of(game)
    times = [sample.at for sample in story.samples]
    assert times == sorted(times)
    assert all(span.began <= span.ended for span in story.spans)
    assert "a new controller took over with token 2" in texts(story)


def test_a_halted_run_has_sentences_from_its_beginning_to_its_halt_and_its_end(halted: Story) -> None:
    said = texts(halted)
    order = [
        place(said, "began: 478 nodes to be claimed"),
        place(said, "wave canary begins: 5 nodes"),
        place(said, "wave canary applied in"),
        place(said, "wave canary passed"),
        place(said, "wave 25 % begins"),
        place(said, "kubelet.service failed: exit code 1"),
        place(said, "halted: 2 of 60 nodes of rack04 failed"),
        place(said, "the run halted [taken-back-with-others]"),
        place(said, "ended: "),
    ]
    assert order == sorted(order)
    assert "5 of 5 nodes reverted once, healthy" in said[place(said, "wave canary applied in")]


def test_a_run_that_was_resumed_and_halted_again_shows_both_halts() -> None:
    plan, play = journals.halted_anew(240)
    play.feed(Resumed(play.now + 60, 2))
    play.go_on()
    story = story_of(play, plan)
    said = texts(story)
    halts = [text for text in said if text.startswith("halted: ")]
    accepted = place(said, "a new controller took over with token 2; the halt was accepted")
    assert len(halts) == 2
    assert said.index(halts[0]) < accepted < said.index(halts[1])
    mixed = [found for found in fallen(story) if found.first < story.halts[0][0] and found.last > story.halts[1][0]]
    assert not mixed, "nodes that failed under one controller are not folded with those under the next"


def test_failures_are_folded_by_message(halted: Story) -> None:
    found = {kind.reference: kind for kind in fallen(halted)}
    assert len(found["unit-failed"].nodes) == 2
    assert all(halted.past.order.nodes[name].rack == "rack04" for name in found["unit-failed"].nodes)
    assert found["connect-timeout"].state is NodeState.UNREACHABLE


def test_a_failed_gate_is_shown_with_its_evidence(gate_failed: Story) -> None:
    (bad,) = [judged for judged in gate_failed.judged if judged.reading.verdict is Verdict.FAIL]
    assert bad.reading.gate == "pull errors"
    assert any("halted: gate 'pull errors': touched 0.31" in text for text in texts(gate_failed))


def test_requests_from_another_terminal_are_shown() -> None:
    plan, play = journals.stopped(lambda s: s.wave == 1)
    play.feed(PauseAsked(play.now, "bob\x1b[2J", "lunch", 1))
    assert "paused by bob: lunch" in texts(story_of(play, plan))


def test_the_next_steps_are_commands() -> None:
    def commands(story: Story) -> list[str]:
        return [command.split()[1] for command, _ in next_steps(story.state)]

    plan, play = journals.done()
    assert commands(story_of(play, plan)) == ["rollback", "verify"]
    plan, play = journals.halted()
    assert commands(story_of(play, plan)) == ["resume", "plan", "rollback"]
    plan, play = journals.stopped(lambda s: s.wave == 1)
    assert commands(story_of(play, plan)) == ["watch", "pause", "abort"]


def test_no_command_is_recommended_that_a_later_run_made_useless() -> None:
    plan, play = journals.halted()
    story = story_of(play, plan)
    holding = tuple(name for name, record in story.state.nodes.items() if record.state is NodeState.CONFIRMED)
    partly = Afterwards(rolled_back={"r2": holding[:1]})
    assert [command.split()[1] for command, _ in next_steps(story.state, partly)] == ["plan", "rollback"]
    wholly = Afterwards(rolled_back={"r2": holding}, is_rolled_back=True, may_undo=False)
    assert list(next_steps(story.state, wholly)) == []
    said = "\n".join((*summary_lines(summarize(story.state), wholly), *report_lines(story, wholly)))
    assert "rollout resume" not in said
    assert "rollout rollback" not in said
    assert "rollout resume" in "\n".join(summary_lines(summarize(story.state)))


def test_the_counts_of_the_page_are_those_after_later_rollbacks() -> None:
    plan, play = journals.halted()
    story = story_of(play, plan)
    states = Counter(record.state for record in story.state.nodes.values())
    confirmed = tuple(name for name, record in story.state.nodes.items() if record.state is NodeState.CONFIRMED)
    shown = numbers(story, Afterwards(rolled_back={"r2": confirmed}))
    assert f"<b>{states[NodeState.REVERTED] + len(confirmed):,}</b>reverted" in shown
    assert "confirmed" not in shown
    assert f"<b>{states[NodeState.CONFIRMED]:,}</b>confirmed" in numbers(story)


def test_only_what_has_finished_is_compared_with_its_prediction() -> None:
    plan, play = journals.halted()
    story = story_of(play, plan)
    rows = re.findall("<tr>(.*?)</tr>", story_parts(story)["predicted"])[1:]
    finished, unfinished = rows[: story.state.wave], rows[story.state.wave :]
    assert finished
    assert all("longer" in row or "shorter" in row for row in finished)
    assert not any("longer" in row or "shorter" in row for row in unfinished)
    assert "not finished" in rows[-1]
    plan, play = journals.done()
    rows = re.findall("<tr>(.*?)</tr>", story_parts(story_of(play, plan))["predicted"])[1:]
    assert all("longer" in row or "shorter" in row for row in rows)


def test_a_rollback_has_a_story_too() -> None:
    game = confirmed_before(make_order({"a": 4}, goal=Goal.REVERT))
    game.run()
    story = story_of(game)
    assert fallen(story) == ()
    assert texts(story)[-1] == "ended: 4 reverted"


def test_the_text_has_the_story_without_the_log(halted: Story) -> None:
    lines = list(report_lines(halted))
    text = "\n".join(lines)
    assert lines[0] == "run r20261120-160000-ab12 on rno: halted, exit code 3"
    assert lines[1].startswith("  changes: serializeImagePulls: true → false; ")
    assert "confirmed; began 2026-11-20 16:00:00 UTC, took 2 min" in lines[2]
    assert lines[3] == "  by ann@ops: pulls time out"
    for words in (
        "What happened",
        "■ halted: 2 of 60",
        "What the gates measured",
        "Budgets, when it halted",
        "used up",
    ):
        assert words in text
    assert "rollout rollback r20261120-160000-ab12   revert every node that has the change" in text
    assert all(line.isprintable() for line in lines)


def test_the_document_has_the_same_facts(gate_failed: Story) -> None:
    document = as_printed(report_document(gate_failed, NOTHING_SINCE))
    assert (document["kind"], document["who"], document["summary"]["ending"]) == ("Report", "ann@ops", "halted")
    assert {gate["verdict"] for gate in document["gates"]} == {"pass", "fail"}
    assert document["next"][0]["command"] == "rollout resume r20261120-160000-ab12"
    assert document["moments"][0]["at"] == document["began"] == "2026-11-20T16:00:00.000Z"
    assert document["ended"] > document["gates"][-1]["at"] > document["began"]


NUMBERS = [
    (
        "touched 0.31 (median of 3, 0.2 to 0.4), control 0.0092 (median of 100, 0 to 1): 0.3 higher",
        Number(0.31, 0.0092),
    ),
    ("5 samples, 1 to 3.5; at most 4", Number(3.5, 4.0)),
    ("5 samples, 1 to 3.5; at least 0.5", Number(1.0, 0.5)),
    ("1 sample, 2 to 2; no threshold", Number(2.0, None)),
    ('2 of 5 samples beyond: {node="a-1"} 7e-05, {node="a-2"} 9; at most 1e-05', Number(7e-05, 1e-05)),
    ("answered 200", None),
    ("no alert fires", None),
    ("", None),
]


@pytest.mark.parametrize(("evidence", "number"), NUMBERS, ids=[text[:20] or "nothing" for text, _ in NUMBERS])
def test_the_number_in_a_gates_evidence(evidence: str, number: Number | None) -> None:
    assert number_in(evidence) == number


def test_reverted_nodes_are_shown_with_the_user_who_requested_it() -> None:
    plan, play = journals.stopped(lambda s: s.wave == 1)
    play.feed(AbortAsked(play.now, "bob", "wrong week", 1, RevertScope.RUN))
    play.go_on()
    story = story_of(play, plan)
    assert any("aborted by bob: wrong week (revert: run)" in text for text in texts(story))
    assert "because the run halted, as bob requested (revert: run)" in taken_back(story)
    assert any("as bob requested (revert: run)" in line for line in report_lines(story))


def test_nodes_reverted_by_the_playbook_are_shown_as_such(halted: Story) -> None:
    assert "as the playbook sets it (revert: wave)" in taken_back(halted)


def test_a_node_that_was_not_cleaned_up_is_named(halted: Story) -> None:
    (name,) = [name for name, record in halted.state.nodes.items() if record.state is NodeState.UNREACHABLE]
    assert "every node cleaned up" not in texts(halted)
    assert f"477 of 478 nodes cleaned up; not cleaned up, or not known: {name}" in texts(halted)
    game = Play(make_order({"a": 2}))
    game.run()
    assert "every node cleaned up" in texts(story_of(game))


def test_nodes_that_another_run_has_are_not_counted_as_cleaned_up() -> None:
    """They are asked nothing: their cordons and guards are the other run's, or are left to the nodes."""
    game = Play(make_order({"a": 6}))
    game.run(until=lambda state: any(record.state is NodeState.APPLIED for record in state.nodes.values()))
    game.claim_for_another(*game.order.nodes)
    end = game.go_on()
    assert end.ending is Ending.CLAIMED
    asked = {ask.node for ask in game.asked if ask.verb is Verb.CLEAN}
    assert asked != game.order.nodes.keys()
    assert "every node cleaned up" not in texts(story_of(game))


def test_a_rollback_that_left_nodes_out_does_not_claim_that_nothing_is_left() -> None:
    order = make_order({"a": 2}, goal=Goal.REVERT)
    missing = replace(order, left_out=(LeftOut("silent", "did not answer; pending recovery", "a-9", 1),))
    for made, said in ((order, "Nothing is left to be done."), (missing, "No command of rollout does the rest")):
        game = confirmed_before(made)
        game.run()
        assert said in str(steps(story_of(game)))


def test_a_rehearsal_found_in_a_receipt_does_not_claim_that_the_node_was_healthy() -> None:
    """The controller died while the canary was reverted: nobody saw its health."""
    waves = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))
    game = Play(make_order({"a": 4}, waves, rehearsal=True))
    game.run(until=lambda state: state.nodes["a-1"].asked is Verb.REVERT)
    game.crash(away=20.0)
    game.resume()
    end = game.go_on()
    assert end.nodes["a-1"].rehearsal is Rehearsal.DONE
    assert end.nodes["a-1"].revert_seconds == 0
    assert "1 of 1 node reverted once, 0 of them observed healthy" in str(rehearsed(end))
