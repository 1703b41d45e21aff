"""Broken disks, nodes that die and return, garbage answers, wrong clocks, flapping kubelets: reports and endings.

Each story ends with everything reverted: every file of every node as before, and nothing of rollout left. docs/lab.md
lists the faults.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controllers import PATIENCE, Done, until
from tests.sampling import sample
from tests.story.conftest import Site
from tests.story.test_faults import FEW, apply, few, nothing_left, plan, policy, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

__all__ = ["few"]  # the fixture

BUDGETS = "{wave: 2, rack: 2, fleet: 2}"
PLENTY = "{wave: 6, rack: 6, fleet: 6}"


def troubles(site: Site) -> dict[str, tuple[str, str]]:
    """Node → state and reference, by the journal."""
    found: dict[str, tuple[str, str]] = {}
    for entry in where(site)["troubles"]:
        if entry["reference"] != "taken-back-with-others":
            found[entry["nodes"]] = (entry["state"], entry["reference"])
    return found


def planned(site: Site, *more: str) -> Any:
    made = plan(site, ",".join(FEW), *more)
    assert len(made["nodes"]) == 6
    return made


def carried_out(site: Site) -> Done:
    return site.rollout("apply", "p.json", "--yes")


def taken_back(site: Site, before: dict[str, str]) -> None:
    """An emergency rollback. Afterwards every node is as it was before, whatever happened to it."""
    site.fault("@all", "--clear")
    until(lambda: all(site.is_well(name) for name in FEW), PATIENCE, "kubelets that crashed are back")
    done = site.rollout("rollback", "--cluster", "small", "--emergency", "--yes", "--limit", ",".join(FEW))
    assert done.code == 0, done.out + done.err
    assert site.everything(*FEW) == before
    nothing_left(site, *FEW)


def test_each_node_ends_by_its_own_fault_and_the_run_names_it(few: Site) -> None:
    before = few.everything(*FEW)
    policy(few, BUDGETS, PLENTY)
    planned(few)
    few.fault("small-001", "clock-step", "--after", "-86400")  # the canary
    few.fault("small-002", "full-disk", "--at", "staging")
    few.fault("small-003", "read-only", "--at", "receipt")
    few.fault("small-061", "dies-and-returns", "--at", "switch", "--for", "1")
    few.fault("small-062", "never-healthy")
    few.fault("small-062", "full-disk", "--at", "switch", "--add")
    few.fault("small-063", "full-disk", "--at", "switch")  # before that, the guard could not have tried a revert
    done = carried_out(few)
    assert done.code == 4, done.out + done.err
    assert troubles(few) == {
        "small-002": ("refused", "no-room"),
        "small-003": ("refused", "state-not-writable"),
        "small-061": ("reverted", "not-confirmed-in-time"),
        "small-062": ("reverted", "unhealthy"),
    }
    logs = {entry["nodes"]: entry["log"] for entry in where(few)["troubles"]}
    assert logs["small-062"]["node"] == "small-062"
    assert logs["small-062"]["lines"]
    assert logs["small-061"] is None, "its guard reverted it, and nobody asked for its log"
    assert [few.is_new(name) for name in FEW] == [True, False, False, False, False, True]
    assert where(few)["counts"] == {"confirmed": 2, "refused": 2, "reverted": 2}
    assert "left behind: small-003" in done.out, "a read-only disk cannot be cleaned up, and that is reported"
    still = {path: content for path, content in before.items() if path.startswith(("small-061", "small-062"))}
    assert few.everything("small-061", "small-062") == still, "the same bytes, with a full disk and after a power cut"
    taken_back(few, before)


def test_a_confirmed_change_is_reverted_on_a_full_disk(few: Site) -> None:
    before = few.everything(*FEW)
    assert apply(few, ",".join(FEW)).code == 0
    few.fault("small-[001-002]", "full-disk")
    done = few.rollout("rollback", where(few)["run"], "--yes")
    assert done.code == 0, done.out + done.err
    assert few.everything(*FEW) == before
    taken_back(few, before)


def test_a_power_cut_just_before_the_confirm_is_durable_ends_with_the_old_files(few: Site) -> None:
    before = few.everything(*FEW)
    planned(few)
    few.fault("small-062", "dies-and-returns", "--at", "confirm", "--for", "1")
    done = carried_out(few)
    assert done.code == 4, done.out + done.err
    assert troubles(few) == {"small-062": ("reverted", "not-confirmed-in-time")}
    assert [few.is_new(name) for name in FEW] == [True, True, True, True, False, True]
    taken_back(few, before)


def test_a_node_that_died_before_anything_was_durable_is_done_when_it_returns(few: Site) -> None:
    before = few.everything(*FEW)
    planned(few)
    few.fault("small-062", "dies-and-returns", "--at", "receipt", "--for", "4")
    done = carried_out(few)
    assert done.code == 0, done.out + done.err
    assert all(few.is_new(name) for name in FEW)
    taken_back(few, before)


def test_a_slow_disk_takes_longer_and_one_that_is_too_slow_for_its_guard_is_refused(few: Site) -> None:
    before = few.everything(*FEW)
    policy(few, "guard: 60s", "guard: 20s")
    planned(few)
    few.fault("small-061", "slow-disk", "--for", "0.05")
    few.fault("small-062", "slow-disk", "--for", "1.2")
    done = carried_out(few)
    assert done.code == 4, done.out + done.err
    ((name, (state, reference)),) = troubles(few).items()
    assert (name, state) == ("small-062", "refused"), (reference, done.out)
    assert reference in ("guard-not-proven", "too-late", "not-durable"), (
        "its time was over while it armed, or right after it"
    )
    assert [few.is_new(name) for name in FEW] == [True, True, True, True, False, True]
    taken_back(few, before)


def test_kubelets_that_flap_are_seen_in_the_soak_and_halt_the_run(few: Site) -> None:
    before = few.everything(*FEW)
    planned(few)
    few.fault("small-[062-063]", "flapping-kubelet", "--after", "1")
    done = carried_out(few)
    assert done.code == 3, done.out + done.err
    found = troubles(few)
    assert {reference.partition("-")[0] for _, reference in found.values()} <= {"gate", "unhealthy"}
    assert "halting: 2 of 5 nodes of wave 'rest' failed" in done.out
    assert [few.is_new(name) for name in FEW] == [True, False, False, False, False, False], (
        "its wave is reverted with them"
    )
    taken_back(few, before)


def test_a_stranger_on_the_health_port_is_no_healthy_kubelet(few: Site) -> None:
    """It answers `ok`. A plan refuses the node and names the reason."""
    few.fault("small-001", "health-port-taken")
    done = few.rollout("plan", "--cluster", "small", "--limit", "small-001", "-o", "json")
    assert "healthz-not-its-own" in done.out, done.out + done.err
    few.fault("small-001", "--clear")
    assert len(plan(few, "small-001")["nodes"]) == 1


@pytest.mark.night
def test_a_stranger_that_takes_the_health_port_during_an_apply_has_it_reverted(few: Site) -> None:
    before = few.everything(*FEW)
    planned(few)
    few.fault("small-001", "health-port-taken", "--at", "apply")
    done = carried_out(few)
    assert done.code in (3, 4), done.out + done.err
    assert "another process than" in json.dumps(where(few)["troubles"])
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)


LIARS = [
    ("host-key-change", "host-key-changed", "its host key is not the known one"),
    ("garbage-output", "bad-answer", "small-062 unreachable: line 6, receipt: without cause"),
    ("endless-output", "output-flood", "the answer does not end"),
]


@pytest.mark.parametrize(("fault", "reference", "words"), sample("invalid answers", LIARS, 1))
def test_a_node_with_invalid_answers_is_not_planned_and_has_a_pending_recovery_in_a_run(
    few: Site, fault: str, reference: str, words: str
) -> None:
    before = few.everything(*FEW)
    planned(few, "--save-snapshot", "s.json")
    few.fault("small-062", fault)
    assert "small-062" not in plan(few, ",".join(FEW))["nodes"]
    planned(few, "--snapshot", "s.json")
    done = carried_out(few)
    assert done.code == 4, done.out + done.err
    assert troubles(few) == {"small-062": ("unreachable", reference)}
    assert words in done.out + done.err
    assert not set("\x1b\x07\0") & set(done.out + done.err), "its output never reaches the terminal unfiltered"
    assert where(few)["pendingRecovery"]["nodes"] == "small-062"
    assert "healthy yes" not in done.out
    assert [few.is_new(name) for name in FEW] == [True, True, True, True, False, True]
    taken_back(few, before)


@pytest.mark.night  # given up a minute after its guard must have fired
def test_a_node_with_invalid_answers_during_an_apply_reverts_itself(few: Site) -> None:
    """The guard reverts, because the controller cannot read the node. A false report of a confirm is not believed."""
    before = few.everything(*FEW)
    policy(few, BUDGETS, PLENTY)
    policy(few, "guard: 60s", "guard: 15s")  # the test waits for it
    planned(few)
    few.fault("small-003", "garbage-output", "--at", "apply")
    few.fault("small-062", "endless-output", "--at", "apply")
    few.fault("small-063", "read-only", "--at", "switch")
    done = carried_out(few)
    assert done.code == 4, done.out + done.err
    assert {state for state, _ in troubles(few).values()} == {"unreachable"}
    assert where(few)["pendingRecovery"]["nodes"] == "small-[003,062-063]"
    assert [few.is_new(name) for name in FEW] == [True, True, False, True, False, False]
    few.fault("@all", "--clear")
    caught = few.rollout("resume", "--recover-only", "--yes")
    assert caught.code == 4, caught.out + caught.err
    assert where(few)["pendingRecovery"]["nodes"] == "", "with valid answers again, their results are known"
    assert where(few)["counts"] == {"confirmed": 3, "reverted": 3}
    taken_back(few, before)
