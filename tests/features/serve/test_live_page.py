"""The parts of the live page, and of a node's page: their order, what they fold, and that text stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from rollout.core.model.playbook import Cause, OnLateHarm
from rollout.core.model.report import LastLog
from rollout.core.presentation.freeze_text import FreezeNoted
from rollout.core.presentation.headline import ChangedSetting, WhatChanged
from rollout.core.presentation.pages.document import report_document
from rollout.core.presentation.pages.markup import Axis, Html
from rollout.core.presentation.pages.parts import idle, story_parts
from rollout.core.presentation.pages.story import Past, Story, tell
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, Attendance, summary_lines
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.events import Answered, ContinueAsked, PauseAsked, Trigger
from rollout.core.run.late_watch import LateStatus, LateWord
from rollout.core.run.retries import need_a_plan
from rollout.core.run.state import NodeState, Pause, Verb
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import wall
from rollout.features.serve.words.index_page import index_body
from rollout.features.serve.words.live_page import live_body, live_head, now_parts, waiting
from rollout.features.serve.words.node_page import node_body, node_head
from rollout.features.serve.words.plan_page import plan_body, plan_head
from tests.core.presentation import journals
from tests.core.presentation.journals import BEGAN, Told, plan_of, play_of, story_of
from tests.core.presentation.listed import LISTED, listed
from tests.core.presentation.test_page import Outline
from tests.orders import in_state


@cache
def halted() -> Story:
    plan, play = journals.halted(240)
    return story_of(play, plan)


def parts_of(story: Story, after: Afterwards = NOTHING_SINCE) -> dict[str, Html]:
    return {**story_parts(story), **now_parts(story, after, story.ended)}


def page(story: Story) -> str:
    order = story.past.order
    return live_head(order.run, order.cluster, order.goal) + live_body(parts_of(story))


def held_for(seconds: float) -> Story:
    """A wave that an operator paused, and continued after so many seconds."""
    plan = plan_of(60)
    play = play_of(plan)
    play.run(until=lambda state: state.wave == 1)
    play.feed(PauseAsked(play.now, "ann@ops", "lunch", 1))
    play.go_on(until=lambda state: state.now > play.began + seconds, patience=2 * seconds)
    play.feed(ContinueAsked(play.now, "ann@ops", "", 2))
    play.go_on()
    return story_of(play, plan)


def test_the_culprit_stands_before_the_nodes_that_were_reverted_with_it() -> None:
    failures = story_parts(halted())["failures"]
    culprit, others = failures.index("unit-failed"), failures.index("taken-back-with-others")
    assert culprit < others


def test_budgets_have_numbers_and_the_one_that_was_used_up_is_first() -> None:
    distance = story_parts(halted())["distance"]
    first = re.findall(r"<tr.*?</tr>", distance)[1]
    assert "2 of 239" in first
    assert "used up" in first


def test_each_wave_has_its_predicted_and_its_actual_time() -> None:
    predicted = story_parts(halted())["predicted"]
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", predicted)
    assert [row[0] for row in rows][-1] == "all"
    assert "not begun" in {row[3] for row in rows}
    assert all(row[2] for row in rows)


def test_a_long_hold_is_folded_on_the_time_axis_and_the_rest_keeps_its_width() -> None:
    story = held_for(28_800.0)
    (fold,) = idle(story)
    assert fold.ended - fold.began > 28_000
    axis = Axis(story.began, story.ended, idle(story))
    assert axis.seconds < 900
    assert axis.x(fold.ended) - axis.x(fold.began) < 100
    assert axis.x(story.began) < axis.x(fold.began) < axis.x(fold.ended) < axis.x(story.ended)
    assert not any(fold.began < story.began + tick < fold.ended for tick in axis.ticks())
    drawn = story_parts(story)["time"]
    assert "without a change of a node" in drawn
    assert "≈ 8 h" in drawn or "≈ 7 h" in drawn
    assert "without a change of a node" not in story_parts(halted())["time"]


def test_what_waits_for_an_operator_has_its_command() -> None:
    story = halted()
    commands = [command for _, command in waiting(story.state)]
    run = story.past.order.run
    again = (
        f"rollout plan --cluster {story.past.order.cluster} --playbook NAME --limit '{fold(need_a_plan(story.state))}'"
    )
    assert commands == [f"rollout resume {run}", again, f"rollout rollback {run}"]
    _, play = journals.stopped(lambda state: state.wave == 2)
    paused = replace(play.state, paused=Pause("ann@ops", "lunch", BEGAN))
    assert next(waiting(paused)) == ("Go on with the next nodes", f"rollout continue {run}")


def test_a_dead_controller_is_said_with_the_command_that_continues() -> None:
    plan, play = journals.stopped(lambda state: state.wave == 2)
    story = story_of(play, plan)
    dead = Afterwards(story.ended, Attendance(alive=False, host="desk", silent=41.2))
    now = parts_of(story, dead)["now"]
    assert "no controller is at work on this run: the last heartbeat came 41 s ago from desk" in now
    assert f"rollout resume {story.past.order.run}" in now
    assert "no controller" not in parts_of(story)["now"]


FROZEN = 'rno is frozen by ann@ops since {}: year end; <code class="command">rollout cluster unfreeze --cluster rno --reason …</code> lifts it'


def test_a_freeze_is_shown_with_the_command_that_lifts_it() -> None:
    story = halted()
    frozen = FreezeNoted("f-1", 7, BEGAN, "ann@ops", "year end", marked="n1")
    said = FROZEN.format(wall(BEGAN))
    assert said in parts_of(story, replace(NOTHING_SINCE, frozen=frozen))["now"]
    assert "unfreeze" not in parts_of(story)["now"]


def test_the_first_page_shows_it_at_its_cluster() -> None:
    on = (BEGAN, "ann@ops", "frozen as f-1 with token 7: year end")
    marked = (BEGAN, "ann@ops", "freeze f-1 is on n1")
    off = (BEGAN, "ann@ops", "unfrozen as f-1 with token 8: over")
    assert FROZEN.format(wall(BEGAN)) in index_body((LISTED,), "here", {"rno": [on, marked]})
    assert "unfreeze" not in index_body((LISTED,), "here", {"rno": [on, off]})


def test_text_from_a_node_or_a_person_stays_text_and_secrets_are_left_out() -> None:
    evil = "<script>alert(1)</script>\x1b[2J\x00\u202e\"'><img src=x onerror=alert(2)> password=hunter2"
    base = halted()
    name = next(iter(base.state.nodes))
    record = in_state(NodeState.FAILED, cause=Cause.FAILED, message=evil, reference=evil, leftovers=(evil,))
    story = replace(
        base,
        past=replace(base.past, who=evil, reason=evil),
        state=replace(base.state, nodes={**base.state.nodes, name: record}),
        wrongs=(replace(base.wrongs[0], message=evil, reference=evil), *base.wrongs),
    )
    answers = (Answered(story.ended, name, 1, Verb.APPLY, Trigger.REVERTED_UNHEALTHY, "sick", evil),)
    change = WhatChanged(evil, (ChangedSetting(evil, evil, evil),), (evil,))
    found = listed(change=change, cluster=evil, who=evil, reason=evil, why=evil, pending_recovery=PendingNodes(evil))
    node = node_head(story.past.order, name) + node_body(story, name, answers)
    plan = story.past.plan
    assert plan is not None
    rude = replace(plan, playbook=evil, waves=tuple(replace(wave, name=evil) for wave in plan.waves))
    index = live_head("r1", evil, "apply") + index_body((found,), evil, {evil: [(BEGAN, evil, evil)]})
    for text in (page(story), node, index, plan_head(story.past.order) + plan_body(rude, "")):
        outline = Outline()
        outline.feed(re.sub(r"<(?:link|input|wbr)[^>]*>", "", text))
        assert outline.tags.count("script") == 1, "ours, in the head"
        assert "img" not in outline.tags
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
        assert "alert(1)" in text
    assert "hunter2" not in node


def test_a_late_watch_waits_for_an_operator_when_it_found_harm_or_was_forgotten() -> None:
    plan, play = journals.done(60)
    story = story_of(play, plan)
    run, ends = story.past.order.run, story.ended + 3600

    def shown(now: float, **found: object) -> str:
        late = LateStatus(ends, OnLateHarm.NOTIFY, None, None, "", (), "", "")
        after = Afterwards(late=replace(late, **found))  # type: ignore[arg-type]
        return now_parts(story, after, now)["waits"]

    assert f"rollout watch --late {run}</code>" in shown(ends - 1)
    assert f"rollout watch --late {run} --once" in shown(ends)
    harm = shown(ends - 1, harm="3 failures in a row", verdict=LateWord.FAILED)
    assert "Late harm: 3 failures in a row" in harm
    assert f"rollout rollback {run}" in harm
    assert "watch --late" not in shown(ends, ended="it passed")


def test_the_index_shows_what_operators_did_without_a_run() -> None:
    text = index_body((LISTED,), "here", {"rno": [(BEGAN, "ann@ops", "exec 1"), (BEGAN, "bob@ops", "unlocked")]})
    assert text.index("unlocked") < text.index("exec 1"), "the newest first"
    assert "2 records of commands and unlocks" in text
    assert "rollout verify --cluster rno" in text
    assert "Waits for you" not in text
    plans = (WaitingPlan("a.plan.json", "rno", "ab12", ("the plan has 0 of 1 approval",)),)
    text = index_body((LISTED,), "here", {}, plans)
    assert "a.plan.json on rno: the plan has 0 of 1 approval" in text
    assert '<code class="command">rollout approve a.plan.json --key FILE</code>' in text


def test_the_page_of_a_plan_has_its_diffs_waves_and_numbers() -> None:
    plan, play = journals.halted(240)
    text = plan_head(play.order) + plan_body(plan, "abc123")
    assert "abc123" in text
    for words in ("+serializeImagePulls: false", "Limits and gates", "Left alone", "Emergency rollback of all of it"):
        assert words in text, words
    assert text.count(">halts when<") == 1
    assert plan.waves[-1].name in text
    assert "no plan that this version" in plan_body(None, "")


def with_record(story: Story, name: str, **changes: object) -> Story:
    record = replace(story.state.nodes[name], **changes)  # type: ignore[arg-type]
    return replace(story, state=replace(story.state, nodes={**story.state.nodes, name: record}))


def test_a_node_has_its_answers_with_times_and_its_diff() -> None:
    plan, play = journals.halted(240)
    story = story_of(play, plan)
    name = next(name for name, record in story.state.nodes.items() if record.reference == "unit-failed")
    answers = [event for event in play.journal if isinstance(event, Answered) and event.node == name]
    text = node_body(story, name, answers)
    assert "exit code 1, &lt;failed to parse kubelet flag&gt;" in text
    assert "journalctl -u kubelet" in text, "it sent no log"
    log = LastLog("code=exited, status=1/FAILURE", ("kubelet[77]: <failed> to parse kubelet flag",))
    logged = with_record(story, name, log=log)
    for shown in (node_body(logged, name, answers), page(logged), parts_of(logged)["failures"]):
        assert (
            f"{name}: its process exited (code=exited, status=1/FAILURE); the last log lines before its revert" in shown
        )
        assert "kubelet[77]: &lt;failed&gt; to parse kubelet flag" in shown
    failures = report_document(logged, Afterwards()).failures
    assert [each.log.lines for each in failures if each.log] == [log.lines]
    said = "\n".join(summary_lines(summarize(logged.state)))
    assert "\n      kubelet[77]: <failed> to parse kubelet flag\n" in said
    verbs = re.findall(r"class=\"when\">[\d:]+</td><td[^>]*>(\w+)</td>", text)
    assert verbs[:2] == ["read", "apply"]
    assert "+serializeImagePulls: false" in text
    assert f"rollout diagnose --cluster rno --limit {name}" in text


def test_a_story_can_be_told_again_and_again_while_events_come() -> None:
    plan, play = journals.halted(120)
    whole = story_of(play, plan)
    told = Told(play.order)
    assert told.journal == []
    part = tell(Past(play.order, 1, play.began, "ann@ops", "pulls time out", plan), play.journal[:200])
    assert part.events == 200
    assert part.state != whole.state


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Trigger.REVERTED_UNHEALTHY, "unhealthy, reverted"),
        (Trigger.REVERTED_BY_GUARD, "reverted by its guard"),
        (Trigger.STILL_UNHEALTHY, "reverted, still unhealthy"),
        (Trigger.GATES_PASSED, "gates passed"),
    ],
)
def test_answers_of_a_node_have_words_for_people(trigger: Trigger, words: str) -> None:
    story = halted()
    name = next(iter(story.state.nodes))
    text = node_body(story, name, (Answered(story.ended, name, 1, Verb.APPLY, trigger, "", ""),))
    assert f">{words}</td>" in text
