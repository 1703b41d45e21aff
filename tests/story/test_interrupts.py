"""Ctrl-C, as a terminal sends it: to the whole process group.

The first finishes nodes in flight, the second stops; both runs can be resumed.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, Process, until
from tests.story.conftest import Site, fresh
from tests.story.silent import silent
from tests.story.test_faults import FEW, apply, begun, few, nothing_left, policy, said, transactions, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

__all__ = ["few"]

ALL = ",".join(FEW)


def ctrl_c(process: Process) -> None:
    os.killpg(process.pid, signal.SIGINT)


def test_after_the_first_ctrl_c_nodes_in_flight_finish_and_the_run_can_be_resumed(few: Site) -> None:
    before = few.everything(*FEW)
    policy(few, "pace: 20", "pace: 0.5")  # a node every two seconds: there is always one that has not begun
    with begun(few, "apply", "--cluster", "small", "--limit", ALL, "--yes") as process:
        until(lambda: transactions(few, "small-061"), PATIENCE, "the second wave has begun")
        ctrl_c(process)
        assert process.wait(PATIENCE) == 130, said(few)
    told = few.plain(said(few))
    assert "interrupted" in told
    assert f"rollout resume {where(few)['run']}" in told, "it prints how to continue"
    nothing_left(few, *FEW)
    found = where(few)
    assert (found["ending"], found["exitCode"]) == ("interrupted", 130)
    new = [name for name in FEW if few.is_new(name)]
    assert {"small-001", "small-061"} <= set(new), "nodes in flight finished"
    assert found["counts"] == {"confirmed": len(new), "pending": len(FEW) - len(new)}
    assert len(new) < len(FEW), "no other node was started"
    old = [name for name in FEW if name not in new]
    assert few.everything(*old) == {k: v for k, v in before.items() if k.split("/")[0] in old}
    assert "interrupted" in few.rollout("status").out

    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert where(few)["counts"] == {"confirmed": len(FEW)}
    assert all(few.is_new(name) for name in FEW)
    nothing_left(few, *FEW)


def test_the_second_ctrl_c_stops_at_once_and_nodes_revert_themselves_or_are_resumed(few: Site) -> None:
    few.fault("small-001", "drop-mid-apply", "--after", "0.2")
    with begun(fresh(few), "apply", "--cluster", "small", "--limit", "small-[001-002,061]", "--yes") as process:
        until(lambda: transactions(few, "small-001"), PATIENCE, "the canary's transaction has begun")
        ctrl_c(process)
        until(lambda: "halting" in said(few), PATIENCE, "the first one was taken")
        ctrl_c(process)
        assert process.wait(PATIENCE) == 130, said(few)
    assert "rollout resume" in said(few)
    assert "stopped at once; nothing is lost" in said(few)
    assert where(few)["ending"] is None, "it did not end by itself"
    few.fault("small-001", "--clear")
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert where(few)["counts"] == {"confirmed": 3}
    nothing_left(few, "small-001", "small-002", "small-061")


def test_ctrl_c_during_a_rollback_reverts_no_more_until_resumed(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ALL).code == 0
    with begun(few, "rollback", where(few)["run"], "--yes", "--pace", "0.7") as process:
        until(lambda: "=5m" not in few.flags("small-001"), PATIENCE, "one is being reverted")
        ctrl_c(process)
        assert process.wait(PATIENCE) == 130, said(few)
    nothing_left(few, *FEW)
    found = where(few)
    new = [name for name in FEW if few.is_new(name)]
    assert found["ending"] == "interrupted"
    assert found["counts"] == {"confirmed": len(new), "reverted": len(FEW) - len(new)}
    assert len(new) >= 3, "the rest was not started"
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)


def wave_gate(site: Site, script: str) -> Path:
    """A wave gate that first records the wave."""
    asked, gate = site.folder / "asked", site.folder / "gate.sh"
    gate.write_text(f'echo "$ROLLOUT_WAVE" >>{asked}\n{script}\n')
    policy(site, "soak: 600ms", f"gates: {{wave: [{{command: [sh, {gate}]}}]}}\nsoak: 600ms")
    asked.touch()
    return asked


def test_a_wave_that_was_interrupted_in_its_gates_has_not_passed(few: Site) -> None:
    """The signal reaches the gate's command too; that is no verdict on the wave, and resuming asks again."""
    patient = few.folder / "patient"
    patient.touch()
    asked = wave_gate(few, f"while [ -e {patient} ]; do sleep 0.1; done")
    with begun(few, "apply", "--cluster", "small", "--limit", "small-[001-002]", "--yes") as process:
        until(asked.read_text, PATIENCE, "the canary's gate runs")
        ctrl_c(process)
        assert process.wait(PATIENCE) == 130, said(few)
    found = where(few)
    assert (found["ending"], found["counts"]) == ("interrupted", {"confirmed": 1, "pending": 1})
    assert few.is_new("small-001"), "an interrupt reverts nothing"
    patient.unlink()
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    asked_again = ["canary", "canary", "rest", "rest"]  # in both rounds of each soak
    assert asked.read_text().split() == ["canary", *asked_again], "the canary is judged before the rest is touched"


def test_a_wave_is_soaked_and_judged_again_if_its_controller_died_in_the_soak(few: Site) -> None:
    asked = wave_gate(few, "exit 0")
    policy(few, "soak: 600ms", "soak: 30s")
    with begun(few, "apply", "--cluster", "small", "--limit", "small-[001-002]", "--yes") as process:
        until(lambda: "soaking" in said(few), PATIENCE, "the canary soaks")
        process.kill()
        process.wait()
    with begun(few, "resume", "--yes") as process:
        until(lambda: "soaking" in said(few), PATIENCE, "resumed: the journal already contained the soak")
        assert transactions(few, "small-002") == [], "the canary's soak is not over"
        ctrl_c(process)
        assert process.wait(PATIENCE) == 130, said(few)
    assert where(few)["counts"] == {"confirmed": 1, "pending": 1}
    assert asked.read_text() == ""


def test_ctrl_c_while_nodes_are_read_does_not_wait_and_changes_nothing(few: Site) -> None:
    before = few.everything(*FEW)
    with silent(few, "small-062") as silence:
        began = time.monotonic()
        few.rollout("plan", "--cluster", "small", "--limit", ALL)
        held_up = time.monotonic() - began
        silence.came.clear()
        with begun(few, "apply", "--cluster", "small", "--limit", ALL, "--yes") as process:
            until(lambda: silence.came, PATIENCE, "the nodes are being read")
            began = time.monotonic()
            ctrl_c(process)
            assert process.wait(PATIENCE) == 130, said(few)
            assert time.monotonic() - began < held_up / 2, "not delayed by the hanging node, as planning was"
    assert said(few).split("\n") == ["", "interrupted; nothing was started", ""]
    assert few.everything(*FEW) == before
    assert all(transactions(few, name) == [] for name in FEW)
    assert not (few.node("small-001") / "var/lib/rollout").exists(), "not even claimed"
    assert few.rollout("status").code == 2, "no run was journaled"
