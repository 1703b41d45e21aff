"""Rollbacks: by the journal or by what the nodes report; foreign bytes; repeated; in parts; killed controllers."""

from __future__ import annotations

import shutil

import pytest

from tests.controllers import PATIENCE, until
from tests.story.conftest import Site
from tests.story.test_faults import FEW, apply, begun, few, nothing_left, plan, policy, said, transactions, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

__all__ = ["few"]

ALL = ",".join(FEW)


def emergency(site: Site, *words: str) -> tuple[str, ...]:
    return ("rollback", "--cluster", "small", "--emergency", "--limit", ALL, "--yes", *words)


def only(everything: dict[str, str], name: str) -> dict[str, str]:
    return {path: content for path, content in everything.items() if path.split("/")[0] == name}


def test_a_run_is_reverted_in_parts_and_repeating_it_reverts_nothing_older(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ALL).code == 0
    first = where(few)["run"]
    after_first = few.everything(*FEW)
    plan(few, ALL, "--set", "imagePullProgressDeadline=7m")
    assert few.rollout("apply", "p.json", "--yes").code == 0
    second = where(few)["run"]

    one = few.rollout("rollback", second, "--limit", "@a&small-[002-063]!small-003", "--yes", "--reason", "as told")
    assert one.code == 0, one.out + one.err
    assert "to revert, about" in one.out
    assert ["=7m" in few.flags(name) for name in FEW] == [True, False, True, True, True, True]
    rest = few.rollout("rollback", second, "--yes")
    assert rest.code == 0, rest.out + rest.err
    assert few.everything(*FEW) == after_first, "only one run is reverted"
    for again in (("rollback", second, "--yes"), emergency(few)):
        repeated = few.rollout(*again)
        assert repeated.code == 0, repeated.out + repeated.err
        assert few.everything(*FEW) == after_first, "repeating it steps no further"
    nothing_left(few, *FEW)

    named = few.rollout("rollback", first, "--cluster", "small", "--emergency", "--yes", "--limit", ALL)
    assert named.code == 0, named.out + named.err
    assert few.everything(*FEW) == after_first, "the newest transaction of its nodes is of another run: not touched"
    misspelt = few.rollout(*emergency(few), first[:-1] + "x")
    assert misspelt.code == 2, misspelt.out
    assert f"did you mean `{first}`?" in misspelt.err or f"did you mean `{second}`?" in misspelt.err
    shutil.rmtree(few.folder / few.state)
    assert few.rollout(*emergency(few)).code == 0
    assert few.everything(*FEW) == after_first
    assert before != after_first


def test_without_the_journal_a_run_is_reverted_by_what_the_nodes_report(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ALL).code == 0
    shutil.rmtree(few.folder / few.state)
    (few.folder / few.state).write_text("this is no folder; nothing can be kept here\n")
    few.fault("small-062", "refuse")
    back = few.rollout(*emergency(few))
    assert back.code == 4, "one did not answer"
    assert "still pending recovery: small-062" in back.out
    assert "about" in back.out.split("claimed")[0], "the predicted time comes first"
    assert back.err.count("\n") == 1
    assert "no journal" in back.err
    assert [name for name in FEW if few.is_new(name)] == ["small-062"]
    few.fault("small-062", "--clear")
    rest = few.rollout(*emergency(few))
    assert rest.code == 0, rest.out + rest.err
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)


def test_bytes_that_others_wrote_since_are_refused_unless_forced_and_kept_on_the_node(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ALL).code == 0
    run = where(few)["run"]
    flags = few.node("small-002") / "etc/default/kubelet"
    foreign = flags.read_text() + "# by hand, at night\n"
    flags.write_text(foreign)
    edited = few.everything("small-002")
    for words in (("rollback", run, "--yes"), emergency(few)):
        back = few.rollout(*words)
        assert back.code == 4, back.out + back.err
        assert "failed (1) small-002: /etc/default/kubelet [foreign-bytes]" in back.out
        assert few.everything("small-002") == edited, "no byte was changed"
        assert [name for name in FEW if few.is_new(name)] == ["small-002"]
    assert where(few)["pendingRecovery"]["nodes"] == "small-002"
    forced = few.rollout(*emergency(few, "--force"))
    assert forced.code == 0, forced.out + forced.err
    assert few.everything(*FEW) == before
    kept = [path.read_text() for path in few.node("small-002").glob("var/lib/rollout/tx/*/kept.*")]
    assert kept == [foreign]
    nothing_left(few, *FEW)


def test_a_killed_rollback_is_resumed_with_its_options(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ALL).code == 0
    run = where(few)["run"]
    flags = few.node("small-063") / "etc/default/kubelet"
    flags.write_text(flags.read_text() + "# by hand\n")
    with begun(few, "rollback", run, "--yes", "--force", "--pace", "1") as process:
        until(lambda: "=5m" not in few.flags("small-001"), PATIENCE, "one is being reverted")
        process.kill()
        process.wait()
    assert any("5m" in few.flags(name) for name in FEW), said(few)
    found = where(few)
    assert (found["goal"], found["ending"]) == ("revert", None)

    until(lambda: all(few.is_well(name) for name in FEW), PATIENCE, "the restarted nodes are healthy")
    early = apply(few, ALL)
    assert early.code == 5, "a rollback in progress must end first"
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert few.everything(*FEW) == before, "--force counts for the whole run"
    assert where(few)["counts"] == {"reverted": 6}
    nothing_left(few, *FEW)


def test_a_run_that_is_in_progress_or_died_is_reverted_from_any_state(few: Site) -> None:
    before = few.everything(*FEW)
    policy(few, "soak: 600ms", "soak: 30s")
    with begun(few, "apply", "--cluster", "small", "--limit", ALL, "--yes") as process:
        until(lambda: "soaking" in said(few), PATIENCE, "the canary soaks")
        run = where(few)["run"]
        held = few.rollout("rollback", run, "--yes")
        assert held.code == 5, held.out + held.err
        assert "[locked]" in held.err
        process.kill()
        process.wait()
    back = few.rollout("rollback", run, "--yes")
    assert back.code == 0, back.out + back.err
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)
    assert all(transactions(few, name) == [] for name in FEW[1:]), "on untouched nodes only the claim is ended"
    policy(few, "soak: 30s", "soak: 600ms")
    again = apply(few, "small-002")
    assert again.code == 0, again.out + again.err


def test_a_run_is_reverted_although_another_was_resumed_since(few: Site) -> None:
    """Found in use: the rollback did not know the token that the resume had raised."""
    drifted = FEW[1:]
    before = few.everything(*drifted)
    planned = few.rollout("plan", "--cluster", "small", "--limit", ALL, "--out", "again.json")
    assert planned.code == 0, planned.err
    assert few.rollout("apply", "again.json", "--yes").code == 0
    first = few.rollout("status", "-o", "json").json()["run"]
    assert few.rollout("rollback", first, "--limit", FEW[0], "--yes").code == 0, "one node is as the plan found it"
    assert few.rollout("apply", "again.json", "--yes").code == 3, "every other node has drifted from that plan"
    assert few.rollout("resume", "--yes").code in (3, 4)
    back = few.rollout("rollback", first, "--yes")
    assert back.code == 0, back.out + back.err
    assert few.everything(*drifted) == before


def test_rollbacks_of_several_runs_end_at_the_original_bytes_and_claim_nothing_that_others_reverted(few: Site) -> None:
    """Rolled back again under a newer run, a run was reported as reverted on nodes with that run's files."""
    before = few.everything(*FEW)
    runs = []
    for minutes in ("5m", "7m"):
        plan(few, ALL, "--set", f"imagePullProgressDeadline={minutes}")
        assert few.rollout("apply", "p.json", "--yes").code == 0
        runs.append(where(few)["run"])
    below = few.rollout("rollback", runs[0], "--yes")
    assert (below.code, f"first `rollout rollback {runs[1]}`" in below.out) == (4, True), below.all
    for run in reversed(runs):
        back = few.rollout("rollback", run, "--yes")
        assert (back.code, "proof: 6 of 6 nodes reverted" in back.out) == (0, True), back.all
    assert few.everything(*FEW) == before
    found = few.rollout("verify", "--cluster", "small", "--limit", ALL)
    assert (found.code, "6 nodes as rollout left them" in found.out) == (0, True), found.all

    plan(few, ALL, "--set", "imagePullProgressDeadline=9m")
    assert few.rollout("apply", "p.json", "--yes").code == 0
    newest = few.everything(*FEW)
    again = few.rollout("rollback", runs[0], "--yes")
    assert again.code == 0, again.all
    assert "already rolled back by run" in again.out
    assert "proof" not in again.out
    assert few.everything(*FEW) == newest
