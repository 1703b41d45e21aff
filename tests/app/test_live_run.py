"""A run that is followed gives the same story as one that is read at its end, and names what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.live_run import AFTERWARDS_EVERY, MOST_RUNS, RECENT, LiveRun, LiveRuns, tell_run
from rollout.app.ports import Note
from rollout.core.model.freeze import NodeFreeze
from rollout.core.presentation.freeze_text import FreezeNoted, frozen_note, unfrozen_note
from rollout.core.run.journal_codec import encode_event
from rollout.errors import StateError
from tests.core.presentation import journals
from tests.features.serve.serving import keep

RUN = "r20261120-160000-ab12"


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = journals.BEGAN

    def __call__(self) -> float:
        return self.at


def test_a_run_followed_in_pieces_gives_the_story_of_the_whole(tmp_path: Path) -> None:
    plan, play = journals.halted(120)
    journal = keep(tmp_path, RUN, plan, play, 0)
    now = Now()
    live = LiveRun(journal, RUN, now)
    known = dict(live.look().story.state.nodes)
    for begin in range(0, len(play.journal), 37):
        journal.append(RUN, [encode_event(event) for event in play.journal[begin : begin + 37]])
        now.at += 1.0
        before, look = live.look, live.look()
        state = look.story.state
        changed = {name for name, number in look.changed.items() if number == look.number}
        assert {name for name in known if known[name] != state.nodes[name]} <= changed
        assert before() is look, "the same look for everyone within its time"
        known = dict(state.nodes)
    assert live.look().story == tell_run(journal, RUN)
    journal.close()


def test_a_look_that_is_not_new_names_no_state(tmp_path: Path) -> None:
    """The title of a page is sent before the journal is read: an old state in it would be wrong until the page is there."""
    plan, play = journals.done(60)
    now = Now()
    live = LiveRun(keep(tmp_path, RUN, plan, play), RUN, now)
    assert live.recent is None
    look = live.look()
    assert live.recent is look
    now.at += RECENT
    assert live.recent is None


def test_without_new_events_nothing_is_told_anew(tmp_path: Path) -> None:
    plan, play = journals.done(60)
    now = Now()
    with_end = keep(tmp_path, RUN, plan, play)
    live = LiveRun(with_end, RUN, now)
    first = live.look()
    now.at += 60.0
    second = live.look()
    assert second.story is first.story
    assert second.number == first.number
    with_end.close()


def test_a_controller_that_died_is_seen_without_an_event(tmp_path: Path) -> None:
    plan, play = journals.stopped(lambda state: state.wave == 2)
    journal = keep(tmp_path, RUN, plan, play, len(play.journal))
    now = Now()
    live = LiveRun(journal, RUN, now)
    assert live.look().after.controller.alive
    journal.release(plan.cluster, RUN)
    now.at += 1.0
    assert not live.look().after.controller.alive
    journal.close()


def test_a_freeze_of_its_cluster_is_seen_with_and_without_a_controller(tmp_path: Path) -> None:
    plan, play = journals.stopped(lambda state: state.wave == 2)
    journal = keep(tmp_path, RUN, plan, play, len(play.journal))
    now = Now()
    live = LiveRun(journal, RUN, now)
    assert live.look().after.frozen is None
    freeze = NodeFreeze(7, "f-1", "ann@desk", "year end")
    journal.note(plan.cluster, Note(now.at, "ann@desk", frozen_note(freeze)))
    now.at += 1.0
    shown = FreezeNoted("f-1", 7, journals.BEGAN, "ann@desk", "year end")
    assert live.look().after.frozen == shown
    journal.release(plan.cluster, RUN)
    now.at += AFTERWARDS_EVERY
    assert live.look().after.frozen == shown
    journal.note(plan.cluster, Note(now.at, "ann@desk", unfrozen_note(freeze)))
    now.at += AFTERWARDS_EVERY
    assert live.look().after.frozen is None
    journal.close()


def test_answers_of_one_node_are_its_own(tmp_path: Path) -> None:
    plan, play = journals.halted(120)
    journal = keep(tmp_path, RUN, plan, play)
    live = LiveRun(journal, RUN, Now())
    name = next(iter(play.order.nodes))
    found = live.answers(name)
    assert found
    assert {answer.node for answer in found} == {name}
    journal.close()


def test_only_the_runs_that_were_read_last_are_kept(tmp_path: Path) -> None:
    plan, play = journals.done(60)
    names = [f"r20261120-16000{number}-ab12" for number in range(MOST_RUNS + 1)]
    for name in names:
        keep(tmp_path, name, plan, play).close()
    journal = SqlJournal(tmp_path / "state")
    runs = LiveRuns(lambda: journal, Now())
    first = runs.get(names[0])
    assert runs.get(names[0]) is first
    for name in names[1:]:
        runs.get(name)
    assert runs.get(names[0]) is not first
    with pytest.raises(StateError, match="no run"):
        runs.get("r0")
    journal.close()
