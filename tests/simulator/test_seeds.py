"""Random fleets and faults, every law after every event: hundreds of plays, each the same for the same seed.

Every tree plays 250 others of a hundred thousand. `make simulate` plays all of them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.simulator.draw import scenario
from rollout.simulator.play import Play
from rollout.simulator.scenario import Fault, FaultKind
from rollout.simulator.tally import cores, page, played, played_on_all_cores, rows
from tests.sampling import DEPTH, Depth, dice

ALL = 100_000
SEEDS = 10_000 if DEPTH is Depth.NIGHT else 250
ENDINGS = {"done", "halted"} | ({"preflight", "interrupted"} if DEPTH is Depth.NIGHT else set())
"""Kinds of faults that certainly occur among so many seeds.

One run of fifty ends before it begins, one of a hundred is interrupted.
"""


@pytest.mark.process
def test_drawn_seeds_keep_every_law() -> None:
    first = dice("simulation").randrange(ALL - SEEDS)
    tally = played_on_all_cores(first, SEEDS, lambda _: None, workers=min(2, cores()))
    assert tally.broken == {}, "`rollout simulate --seed N` prints the story"
    assert tally.seeds == SEEDS
    assert all(tally.faults[kind] > SEEDS // 500 for kind in FaultKind), "every kind of fault was among them"
    assert tally.killed > SEEDS / 10
    assert set(tally.endings) >= ENDINGS


def test_a_run_that_an_unlock_ended_is_resumed_and_leaves_no_node_unread() -> None:
    """The engine is away when a confirm is sent, the controller dies, and an unlock ends the claim: the node refuses the next one."""
    end = Play(scenario(201_534)).run()
    assert end.broken == ""
    told = [each.words for each in end.story if each.who.startswith("controller")]
    claimed = next(at for at, words in enumerate(told) if words.startswith("ends: claimed (ended-here"))
    assert told[claimed + 1] == "resumes r1"
    assert end.ending != "claimed"


def test_an_apply_that_arrives_after_its_run_has_ended_restarts_no_node_with_pods_on_it() -> None:
    """The link was cut, and the run halted meanwhile: the node keeps its cordon until it is read."""
    end = Play(scenario(18_975)).run()
    assert end.broken == ""
    told = [each.words for each in end.story]
    halted = next(at for at, words in enumerate(told) if words.startswith("ends: halted"))
    assert halted < told.index("r1-1 is armed") < told.index("is uncordoned")


def test_a_seed_gives_the_same_story_every_time() -> None:
    for seed in (3, 17, 58, 161):
        first, second = Play(scenario(seed)).run(), Play(scenario(seed)).run()
        assert [str(told) for told in first.story] == [str(told) for told in second.story]
        assert first.story


def test_an_emergency_leaves_no_cordon_of_the_run_that_it_took_over() -> None:
    assert Play(replace(scenario(170), faults=(Fault(FaultKind.EMERGENCY, at=27.0),))).run().broken == ""


def test_a_controller_that_thaws_leaves_no_cordon() -> None:
    assert Play(replace(scenario(3050), faults=(Fault(FaultKind.FROZEN, at=76.0, lasting=45.0),))).run().broken == ""


def test_a_controller_that_thaws_lifts_no_cordon_of_its_successor() -> None:
    """Without a token on the cordon the node is restarted with pods on it."""
    assert Play(replace(scenario(3113), faults=(Fault(FaultKind.FROZEN, at=31.0, lasting=45.0),))).run().broken == ""


def test_restarts_that_were_journaled_late_keep_their_distance() -> None:
    slow = Fault(FaultKind.WRITE_FAILS, at=11.4, lasting=2.0, amount=1.0)
    assert Play(replace(scenario(1535), faults=(slow,))).run().broken == ""


def test_an_agent_that_is_killed_anywhere_in_an_apply_or_a_confirm_leaves_its_node_to_its_guard() -> None:
    for tenth in range(100):
        played = Play(replace(scenario(58), faults=(_of_a_node(58, FaultKind.AGENT_KILLED, at=tenth / 10),))).run()
        assert (played.broken, "agent killed" in str(played.story)) == ("", True)


def test_a_restart_that_fails_in_the_revert_fails_its_node_until_it_is_seen() -> None:
    """Its gates fail, so it reverts; its kubelet's process is unchanged."""
    sick = _of_a_node(58, FaultKind.SICK_AFTER_CHANGE)
    kept = _of_a_node(58, FaultKind.RESTART_FAILS, lasting=250.0)
    played = Play(replace(scenario(58), faults=(sick, kept))).run()
    assert played.broken == ""
    assert "is not restarted with the old files" in " ".join(map(str, played.story))


def _of_a_node(seed: int, kind: FaultKind, *, at: float = 0.0, lasting: float = 0.0) -> Fault:
    """A fault of the node that is changed first."""
    return Fault(kind, min(scenario(seed).order.nodes.items(), key=lambda item: item[1].wave)[0], at, lasting)


def test_the_page_contains_what_was_counted() -> None:
    tally = played(0, 20)
    text = page(tally, "make simulate SEEDS=20")
    for name, number in rows(tally):
        assert f"| {name} | {number} |" in text
    for kind in FaultKind:
        assert f"| {kind} | {tally.faults[kind]} |" in text
