"""A run from another terminal: watch, pause, continue, abort, promote; verify, unlock, forget, recover."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.core.text.nodesets import fold
from tests.controllers import PATIENCE, Done, until
from tests.story.conftest import Site
from tests.story.test_faults import FEW, apply, begun, few, nothing_left, policy, said, token, transactions, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

__all__ = ["few"]

ALL = ",".join(FEW)
APPLY = ("apply", "--cluster", "small", "--limit", ALL, "--yes")


def done(site: Site, *words: str) -> Done:
    """A call that must exit with 0."""
    found = site.rollout(*words)
    assert found.code == 0, found.out + found.err
    return found


def new(site: Site) -> int:
    return sum(site.is_new(name) for name in FEW)


# ------------------------------------------------------------------------------------------- pause, hold, abort, watch


def test_a_wave_that_holds_is_promoted_from_another_terminal(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "the canary has passed and the run holds")
        assert new(few) == 1
        assert "rollout continue" in few.rollout("status").out, "it prints how to promote"
        asked = few.rollout("continue")
        assert (asked.code, "will start more nodes" in asked.err, "[not-confirmed]" in asked.err) == (2, True, True)
        done(few, "continue", "--yes", "--reason", "all quiet")
        assert process.wait(PATIENCE) == 0, said(few)
    assert new(few) == 6


def test_a_paused_run_starts_no_node_until_it_is_continued(few: Site) -> None:
    policy(few, "pace: 20", "pace: 0.3")
    with begun(few, *APPLY) as process:
        until(lambda: transactions(few, "small-061"), PATIENCE, "the second wave has begun")
        told = done(few, "pause", "--reason", "the network team asks")
        assert "rollout continue" in told.out
        until(lambda: set(where(few)["counts"]) <= {"confirmed", "pending"}, PATIENCE, "what was in flight has ended")
        still = new(few)
        assert 2 <= still < 6
        again = few.rollout("pause")
        assert (again.code, "paused-already" in again.err) == (5, True), again.err
        assert "the network team asks" in few.rollout("status").out
        assert new(few) == still
        done(few, "continue", "--yes")
        assert process.wait(PATIENCE) == 0, said(few)
    assert new(few) == 6


def test_a_frozen_cluster_is_changed_by_no_controller_until_it_is_unfrozen(few: Site) -> None:
    """The inventory has 120 nodes, the lab serves 6 of them: the others did not take the freeze, and are named."""
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    other = few.apart("other")
    assert few.rollout("cluster", "freeze", "--cluster", "small").code == 2
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "it holds")
        frozen = few.rollout("cluster", "freeze", "--cluster", "small", "--reason", "incident 4711", "-o", "json")
        assert frozen.code == 4, frozen.err
        assert (frozen.json()["marked"], len(frozen.json()["failed"])) == (fold(FEW), 114)
        assert (frozen.json()["paused"], "is not paused" in frozen.err) == (where(few)["run"], False), "it is held"
        going = few.rollout("continue", "--yes")
        assert (going.code, "[frozen]" in going.err, "incident 4711" in going.err) == (5, True, True), going.err
        elsewhere = other.rollout("plan", "--cluster", "small", "--limit", FEW[1], "--out", "p.json")
        assert (elsewhere.code, "incident 4711" in elsewhere.err) == (0, True), elsewhere.err
        refused = other.rollout("apply", "p.json", "--yes")
        assert (refused.code, "[frozen]" in refused.err, "incident 4711" in refused.err) == (5, True, True), refused.err
        assert "incident 4711" in few.rollout("status").out
        assert new(few) == 1
        thawed = few.rollout("cluster", "unfreeze", "--cluster", "small", "--reason", "it is over", "--yes")
        assert (thawed.code, "unfrozen: 6 nodes of small" in thawed.out) == (4, True), thawed.out + thawed.err
        done(few, "continue", "--yes")
        assert process.wait(PATIENCE) == 0, said(few)
    assert new(few) == 6
    few.rollout("cluster", "freeze", "--cluster", "small", "--reason", "again")
    back = done(few, "rollback", "--cluster", "small", "--limit", ALL, "--emergency", "--yes")
    assert "again" in back.out
    assert new(few) == 0


@pytest.mark.parametrize("revert", ["run", "node"])
def test_an_aborted_run_reverts_the_selected_scope(few: Site, revert: str) -> None:
    before = few.everything(*FEW)
    policy(few, "pace: 20", "pace: 0.1")
    with begun(few, *APPLY) as process:
        until(lambda: where(few)["counts"].get("confirmed", 0) >= 2, PATIENCE, "two are confirmed")
        asked = done(few, "abort", "--revert", revert, "--reason", "wrong value", "-o", "json").json()
        assert (asked["kind"], asked["request"], asked["handled"]) == ("Request", "abort", True)
        assert process.wait(PATIENCE) == 3, said(few)
    assert "wrong value" in said(few)
    if revert == "run":
        assert few.everything(*FEW) == before
    else:
        assert 2 <= new(few) < 6, "confirmed nodes stay, no other node was started"
    nothing_left(few, *FEW)


def test_a_request_to_a_run_without_a_controller_is_refused_with_a_hint(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "it holds")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    refused = few.rollout("continue", "--yes")
    assert (refused.code, "no-controller" in refused.err) == (5, True), refused.err
    assert "--promote" in refused.err
    done(few, "resume", "--promote", "--yes")
    assert new(few) == 6
    ended = few.rollout("pause")
    assert (ended.code, "run-ended" in ended.err) == (5, True), ended.err


def test_watch_ends_with_the_run_and_its_exit_code(few: Site) -> None:
    few.fault("small-[061-063]", "never-healthy")
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "it holds")
        other = few.apart(".rollout")
        with begun(Site(few.folder, few.lab), "continue", "--yes") as word:
            assert word.wait(PATIENCE) == 0
        watched = other.rollout("watch")
        assert process.wait(PATIENCE) == 3
    assert watched.code == 3, watched.err
    assert "halted" in watched.out
    assert "\x1b" not in watched.out, "in a pipe: plain lines"


# ---------------------------------------------------------------------------------------------------------- rehearsal


def test_the_canary_is_reverted_once_and_its_time_predicts_the_rest(few: Site) -> None:
    policy(few, "rehearsal: false", "rehearsal: true")
    planned = done(few, "plan", "--cluster", "small", "--limit", ALL, "--out", "p.json")
    assert "not yet rehearsed" in planned.out
    done(few, "apply", "p.json", "--yes")
    assert new(few) == 6
    assert len(transactions(few, "small-001")) == 2, "applied, reverted, applied again: two transactions"
    assert [len(transactions(few, name)) for name in FEW[1:]] == [1] * 5
    run = where(few)["run"]
    assert "rehearsal" in few.rollout("status").out
    again = done(few, "plan", "--cluster", "small", "--limit", ALL, "--out", "p.json", "--set", "maxPods=99")
    assert f"measured by run {run}" in again.out
    back = done(few, "rollback", "--cluster", "small", "--emergency", "--limit", ALL, "--yes")
    assert f"measured by run {run}" in back.out.split("claimed")[0], "before anything is done"
    assert new(few) == 0


# --------------------------------------------------------------------------------------------------- verify and forget


def verify(site: Site, *words: str) -> Done:
    return site.rollout("verify", "--cluster", "small", "--limit", ALL, *words)


def test_verify_finds_drift_since_the_confirm(few: Site) -> None:
    assert verify(few).code == 0, "no node has anything of rollout"
    assert apply(few, ALL).code == 0
    well = verify(few)
    assert (well.code, "6 nodes as rollout left them" in well.out) == (0, True), well.out
    edited = few.node("small-002") / "var/lib/kubelet/config.yaml"
    edited.write_text(edited.read_text().replace("serializeImagePulls: false", "serializeImagePulls: true"))
    (few.node("small-061") / "etc/default/kubelet").unlink()
    drifted = verify(few)
    assert drifted.code == 10, drifted.out + drifted.err
    assert "content-differs /var/lib/kubelet/config.yaml: 1 node  small-002" in drifted.out
    assert "file-gone /etc/default/kubelet: 1 node  small-061" in drifted.out
    told = verify(few, "-o", "json").json()
    assert set(told["drifted"]) >= {"small-002", "small-061"}
    few.fault("small-003", "refuse")
    unread = verify(few, "--limit", "small-001,small-003")
    assert (unread.code, "not read: 1 node  small-003" in unread.out) == (4, True), unread.out


def test_forget_removes_everything_of_rollout_and_needs_an_ended_run(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    forget = ("uninstall", "--cluster", "small", "--limit", ALL, "--yes", "--reason", "handed over")
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "it holds")
        early = few.rollout(*forget)
        assert (early.code, "locked" in early.err) == (5, True), early.err
        done(few, "continue", "--yes")
        assert process.wait(PATIENCE) == 0, said(few)
    forgotten = done(few, *forget)
    assert "uninstalled: 6 nodes" in forgotten.out
    assert not any((few.node(name) / "var/lib/rollout").exists() for name in FEW)
    assert new(few) == 6, "what is in force stays in force"
    again = done(few, *forget, "-o", "json").json()
    assert (again["kind"], again["forgotten"], again["failed"]) == ("Forget", fold(FEW), [])
    gone = verify(few)
    assert (gone.code, "receipts-gone" in gone.out) == (10, True), gone.out
    policy(few, "{canary: true, hold: true}", "canary")
    done(few, "plan", "--cluster", "small", "--limit", ALL, "--set", "maxPods=99", "--out", "p.json")
    done(few, "apply", "p.json", "--yes")


# -------------------------------------------------------------------------------------------------- unlock and recover


def test_a_cluster_held_by_a_machine_that_no_longer_exists_is_unlocked(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    lost = few.apart("lost")
    with begun(lost, *APPLY) as process:
        until(lambda: where(lost).get("paused"), PATIENCE, "it holds")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    claimed = apply(few, ALL)
    assert claimed.code == 5, claimed.out + claimed.err
    assert "unlock" in claimed.out + claimed.err, "it prints what to do"
    silent = few.rollout("cluster", "unlock", "--cluster", "small", "--limit", ALL, "--yes")
    assert (silent.code, "no-reason" in silent.err) == (2, True), silent.err
    freed = done(
        few, "cluster", "unlock", "--cluster", "small", "--limit", ALL, "--yes", "--reason", "that laptop was stolen"
    )
    assert "unlocked: 6 nodes released" in freed.out
    assert all(token(few, name)[2] == "ended" for name in FEW)
    policy(few, "{canary: true, hold: true}", "canary")
    assert apply(few, ALL).code == 0
    assert new(few) == 6
    back = lost.rollout("resume", "--yes", "--promote")
    assert back.code == 5, back.out + back.err


def test_a_run_that_was_unlocked_is_resumed_where_its_journal_is(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with begun(few, *APPLY) as process:
        until(lambda: where(few).get("paused"), PATIENCE, "it holds")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    unlock = ("cluster", "unlock", "--cluster", "small", "--limit", ALL, "--yes", "--reason", "its machine is gone")
    freed = done(few, *unlock, "-o", "json").json()
    assert (freed["kind"], freed["released"], freed["notReleased"], freed["noAnswer"]) == ("Unlock", fold(FEW), {}, [])
    assert all(token(few, name)[2] == "ended" for name in FEW)
    done(few, "resume", "--yes", "--promote")
    assert new(few) == 6
    nothing_left(few, *FEW)


def test_recover_does_pending_recoveries_when_the_nodes_answer_again(few: Site) -> None:
    policy(few, "wave: 2, rack: 2, fleet: 2", "wave: 3, rack: 3, fleet: 3")
    done(few, "plan", "--cluster", "small", "--limit", ALL, "--out", "p.json")
    few.fault("small-063", "refuse")
    first = few.rollout("apply", "p.json", "--yes")
    assert first.code == 4, first.out + first.err
    assert new(few) == 5
    run = where(few)["run"]
    refused = few.rollout("resume", "--yes")
    assert f"rollout resume --recover-only {run}" in refused.err, refused.err
    few.fault("small-063", "--clear")
    with closing(
        SqlJournal(few.folder / ".rollout")
    ) as journal:  # a request in the run's last second; its terminal was closed
        journal.ask(run, "abort", "anna@laptop", "slow pulls", "run")
    caught_up = done(few, "resume", "--recover-only", "--yes")
    assert (
        "request not handled before the run ended, and ignored now: abort by anna@laptop: slow pulls" in caught_up.out
    )
    assert new(few) == 6
    nothing = few.rollout("resume", "--recover-only", "--yes")
    assert (nothing.code, "nothing-owed" in nothing.err) == (5, True), nothing.err
    nothing_left(few, *FEW)
