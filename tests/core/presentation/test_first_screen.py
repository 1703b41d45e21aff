"""The first screen of a run: its state with the reason, only commands that can be used now, what changes, what failed, when it ends."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rollout.core.model.report import LastLog
from rollout.core.presentation.glance import Mood, glance
from rollout.core.presentation.headline import ChangedSetting, WhatChanged
from rollout.core.presentation.pages.first_screen import wave_progress
from rollout.core.presentation.pages.markup import copied
from rollout.core.presentation.pages.parts import story_parts
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.remaining import wave_ends
from rollout.core.presentation.run_list import RunStanding
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, Attendance, RolledBack
from rollout.core.run.state import Ending, Halt, Pause
from rollout.features.serve.words.index_page import ChosenRuns, index_body
from rollout.features.serve.words.live_page import now_parts, waiting
from tests.core.presentation import journals
from tests.core.presentation.journals import BEGAN, done_story, story_of, story_under_way
from tests.core.presentation.listed import listed

DEAD = Afterwards(controller=Attendance(alive=False, host="desk", silent=41.0))


@cache
def halted() -> Story:
    plan, play = journals.halted(240)
    return story_of(play, plan)


def with_state(story: Story, **changes: object) -> Story:
    return replace(story, state=replace(story.state, **changes))  # type: ignore[arg-type]


PAUSED = {"paused": Pause("ann@ops", "lunch", BEGAN)}
HELD = {"paused": Pause("", "holds after wave canary", BEGAN, held=True)}
HALTING = {"halt": Halt(Ending.HALTED, "budget-spent", "2 of 60 nodes of rack04 failed", BEGAN)}


@pytest.mark.parametrize(
    ("story", "after", "title", "mood"),
    [
        (halted(), NOTHING_SINCE, "HALTED – rno: 2 of 239 nodes of the fleet failed", Mood.BAD),
        (story_under_way(), NOTHING_SINCE, "RUNNING – rno: wave 25 %, 7 of 119 nodes confirmed", Mood.PLAIN),
        (story_under_way(), DEAD, "NO CONTROLLER – rno: wave 25 %, 7 of 119 nodes confirmed", Mood.BAD),
        (with_state(story_under_way(), **PAUSED), NOTHING_SINCE, "PAUSED – rno: paused by ann@ops: lunch", Mood.WARN),
        (with_state(story_under_way(), **HELD), NOTHING_SINCE, "ON HOLD – rno: it holds after wave canary", Mood.WARN),
        (with_state(story_under_way(), **HALTING), NOTHING_SINCE, "HALTING – rno: 2 of 60 nodes of rack04", Mood.BAD),
        (done_story(), Afterwards(rolled_back={"r2": ("a", "b")}, is_rolled_back=True), "ROLLED BACK – rno: 2 nodes by run r2", Mood.PLAIN),
        (done_story(), NOTHING_SINCE, "DONE, INCOMPLETE – rno: 119 of 119 nodes confirmed, 1 not in the run", Mood.WARN),
    ],
)  # fmt: skip
def test_the_title_has_the_state_and_its_reason(story: Story, after: Afterwards, title: str, mood: Mood) -> None:
    seen = glance(story.state, after)
    assert seen.title("rno").startswith(title)
    assert seen.mood is mood
    assert seen.sign.strip()
    assert (seen.sign == "✓") is (mood is Mood.GOOD), "a tick only where nothing is left to be looked at"


def test_the_title_of_a_run_that_was_rolled_back_in_part_has_both() -> None:
    after = Afterwards(rolled_back={"r2": ("tess-node-0001",)})
    title = glance(halted().state, after).title("rno")
    assert title.startswith("HALTED – rno: 2 of 239 nodes")
    assert glance(halted().state, after).reason.endswith("; 1 node rolled back by run r2")


def commands(story: Story, after: Afterwards = NOTHING_SINCE) -> list[str]:
    return [command.split()[1] for _, command in waiting(story.state, after)]


def test_only_commands_that_can_be_used_now_are_shown() -> None:
    assert commands(story_under_way()) == ["watch", "pause", "abort"], "its controller lives: no resume"
    assert commands(with_state(story_under_way(), **PAUSED)) == ["continue", "abort"]
    assert commands(with_state(story_under_way(), **HALTING)) == ["watch"]
    assert commands(story_under_way(), DEAD) == ["resume", "rollback"]
    assert commands(halted()) == ["resume", "plan", "rollback"]
    assert commands(halted(), replace(NOTHING_SINCE, followed_by="r9", may_undo=False)) == ["plan"]


def test_each_command_has_a_button_that_copies_it() -> None:
    shown = now_parts(halted(), replace(NOTHING_SINCE, playbook="image-pulls"), halted().ended)["waits"]
    assert shown.count('class="copy"') == shown.count("<code") == 3
    without_playbook = now_parts(halted(), NOTHING_SINCE, halted().ended)["waits"]
    assert "--playbook NAME" in without_playbook
    assert without_playbook.count('class="copy"') == 2


def test_what_changes_has_old_and_new_values_and_the_diff() -> None:
    change = story_parts(halted())["change"]
    assert "<b>serializeImagePulls</b>: <del>true</del> → <ins>false</ins>" in change
    assert "+serializeImagePulls: false" in change
    assert "playbook image-pulls" in change
    back = replace(halted().past, plan=None, change=WhatChanged("", (ChangedSetting("a", "2", "1"),), ("r7",)))
    assert '<a href="../runs/r7">r7</a>' in story_parts(replace(halted(), past=back))["change"]


def test_failed_nodes_have_the_last_line_of_their_kubelet_or_the_command_that_reads_it() -> None:
    assert "journalctl -u kubelet" in story_parts(halted())["failed"]
    name = next(name for name, record in halted().state.nodes.items() if record.reference == "unit-failed")
    ended = "systemd[1]: kubelet.service: Failed with result 'exit-code'."  # says nothing of the cause
    log = LastLog("exit-code", ("first line", "last line <of the log>", ended))
    nodes = {**halted().state.nodes, name: replace(halted().state.nodes[name], log=log)}
    failed = story_parts(with_state(halted(), nodes=nodes))["failed"]
    assert "last line &lt;of the log&gt;" in failed
    assert "first line" not in failed
    assert story_parts(done_story())["failed"] == "<p>No node failed.</p>"


def test_a_run_reverts_only_what_failed_in_one_short_sentence() -> None:
    plan = journals.plan_of(240)
    play = journals.play_of(plan, budgets=(journals.BUDGETS[0],))
    play.sicken(plan.waves[-1].nodes[0])
    play.run()
    assert "Reverted: 1 node that failed." in now_parts(story_of(play, plan), NOTHING_SINCE, BEGAN)["now"]


def test_a_run_without_a_controller_waits_for_nothing() -> None:
    plan, play = journals.stopped(lambda state: any(record.state == "applying" for record in state.nodes.values()))
    story = story_of(play, plan)
    at_work, lost = (
        now_parts(story, Afterwards(controller=Attendance(alive)), BEGAN + 60)["now"] for alive in (True, False)
    )
    assert ("Waits for: " in at_work, "In flight when its controller ended: " in at_work) == (True, False)
    assert ("Waits for: " in lost, "In flight when its controller ended: " in lost) == (False, True)
    assert "given up" not in lost


def test_waves_have_an_expected_end_only_where_one_can_be_known() -> None:
    story = story_under_way()
    ends = wave_ends(story.state, story.ended)
    assert list(ends) == list(range(story.state.wave, len(story.past.order.waves)))
    assert list(ends.values()) == sorted(ends.values())
    assert "expected end" in wave_progress(story, NOTHING_SINCE, story.ended)
    for other in (halted(), done_story(), with_state(story, **PAUSED), with_state(story, **HALTING)):
        assert "expected end" not in wave_progress(other, NOTHING_SINCE, other.ended)
    assert "expected end" not in wave_progress(story, DEAD, story.ended), "nobody works on it"
    held = tuple(replace(wave, hold=at == 3) for at, wave in enumerate(story.past.order.waves))
    upto = wave_ends(replace(story.state, order=replace(story.state.order, waves=held)), story.ended)
    assert list(upto) == [2, 3], "nobody knows when a hold ends"


def test_the_run_that_rolled_it_back_is_a_link() -> None:
    after = Afterwards(rolled_back={"r2": ("tess-node-0001",)}, is_rolled_back=True)
    now = now_parts(done_story(), after, done_story().ended)["now"]
    assert '<a href="../runs/r2">r2</a>' in now
    assert "↩ Rolled back" in now
    assert "banner good" not in now


def test_the_list_has_a_row_with_columns_for_each_run_and_a_filter_in_the_address() -> None:
    back = RolledBack("r2", "n[1-2]", 2)
    runs = [
        listed(
            run="r2", goal="revert", state=RunStanding.DONE, exit_code=0, change=WhatChanged("", (), ("r1",)), why=""
        ),
        listed(rolled_back=(back,), is_rolled_back=True),
        listed(run="r0", state=RunStanding.ON_HOLD, ended=None, exit_code=None, who="bob@ops", why="it holds"),
    ]
    text = index_body(runs, "here", {}, (), ChosenRuns(), BEGAN + 60)
    for title in ("state", "change", "nodes done", "duration", "who", "when"):
        assert f">{title}</th>" in text
    assert "↩ halted, rolled back (exit code 3)" in text
    assert "‖ on hold" in text
    assert "<b>serializeImagePulls: true → false</b>" in text
    assert '<a href="runs/r2">r2</a>' in text, "the run links to its rollback"
    assert '<a href="runs/r1">r1</a>' in text, "and the rollback to its run"
    assert "60 s so far" in text
    assert text.count("<td") == 18
    for chosen, count in (
        (ChosenRuns(state="at-work"), 1),
        (ChosenRuns(who="ann"), 2),
        (ChosenRuns(text="SERIALIZE"), 2),
        (ChosenRuns(cluster="rno", state="halted"), 1),
        (ChosenRuns(cluster="elsewhere"), 0),
    ):
        assert f"{count} of 3 runs" in index_body(runs, "here", {}, (), chosen, BEGAN)
    assert 'value="SERIALIZE"' in index_body(runs, "here", {}, (), ChosenRuns(text="SERIALIZE"), BEGAN)


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"state": RunStanding.DONE, "exit_code": 0}, "✓"),
        ({"state": RunStanding.DONE, "exit_code": 4}, "▲"),
        (
            {
                "state": RunStanding.DONE,
                "exit_code": 0,
                "rolled_back": (RolledBack("r2", "n[1-2]", 2),),
                "is_rolled_back": True,
            },
            "↩",
        ),
        ({"state": RunStanding.HALTING}, "■"),
        ({"state": RunStanding.NO_CONTROLLER}, "?"),
    ],
)
def test_only_a_run_that_is_done_everywhere_and_in_force_has_a_tick(changes: dict[str, object], sign: str) -> None:
    text = index_body([listed(**changes)], "here", {}, (), ChosenRuns(), BEGAN)
    assert f'<span class="word">{sign} ' in text


@pytest.mark.parametrize(
    ("command", "has_button"),
    [
        ("rollout resume r1", True),
        ("rollout cluster unlock --cluster rno --reason …", False),
        ("rollout status --state DIR r1", False),
        ("rollout approve rno.plan.json --key FILE", False),
        (f"rollout plan --limit {','.join(f'n{at}x' for at in range(300))}", True),
        (f"rollout plan --limit {'n' * 2_000}", False),
    ],
)
def test_a_command_is_copied_only_if_it_is_whole(command: str, has_button: bool) -> None:
    assert ("<button" in copied(command)) == has_button
