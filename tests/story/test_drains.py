"""A change that some nodes' pods would not survive: those nodes are drained first, and restored afterwards.

By the command line, on the lab: its API server accepts cordons and evictions, and its pods move to other nodes.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.app.following import replay
from rollout.app.runs import leased
from rollout.core.model.live import LiveNode
from rollout.core.run.drains import AGAIN_EVERY
from rollout.core.run.events import AbortAsked, Answered, Event, Ticked, Trigger
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.machine import step
from rollout.core.run.state import Phase, Verb
from rollout.features.drain.client import DrainingCluster
from rollout.features.drain.rules import Eviction
from tests.controllers import PATIENCE, Done, until
from tests.story.conftest import Site, served
from tests.story.test_faults import begun, nothing_left, policy, said, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

CHANGED = ("small-001", "small-002", "small-061")
ROOMY = ("small-003", "small-062", "small-063")
FIRST = CHANGED[0]
LIMIT = ",".join(CHANGED)
APPLY = ("apply", "--cluster", "small", "--limit", LIMIT, "--yes")
SECONDS = 10.0


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    """Six nodes of two pods each: a daemon set's and a replica set's. Three of them get a limit of one pod."""
    with served(tmp_path, "small-[001-003,061-063]") as made:
        path = made.folder / "inventories/small.yaml"
        path.write_text(f"{path.read_text()}endpoints: {{kubeconfig: {made.lab / 'kubeconfig'}}}\n")
        policy(made, "serializeImagePulls: false", "serializeImagePulls: false\n  maxPods: 1")
        policy(made, "guard: 60s", "guard: 60s\ndisruption: drain-and-restart\ndrain: 2m")
        yield made


@contextmanager
def api(site: Site) -> Iterator[DrainingCluster]:
    cluster = DrainingCluster(ApiClient(load_kubeconfig(str(site.lab / "kubeconfig"))))
    try:
        yield cluster
    finally:
        cluster.close()


def nodes(site: Site) -> dict[str, LiveNode]:
    with api(site) as cluster:
        return {node.name: node for node in cluster.nodes()}


def going(site: Site, node: str) -> set[str]:
    """The pods on a node that a drain evicts."""
    with api(site) as cluster:
        return {pod.name for pod in cluster.leaving(node, SECONDS) if not pod.stays}


def cordons(site: Site) -> dict[str, str]:
    return {name: node.cordoned_by for name, node in nodes(site).items() if node.unschedulable}


def plan(site: Site, code: int = 0) -> tuple[Done, dict[str, Any]]:
    done = site.rollout("plan", "--cluster", "small", "--limit", LIMIT, "--out", "p.json")
    assert done.code == code, done.err
    return done, json.loads((site.folder / "p.json").read_text())


def run_of(site: Site) -> str:
    run: str = where(site)["run"]
    return run


# Draining and uncordoning.


def test_a_node_that_would_lose_pods_is_drained_changed_confirmed_and_uncordoned_and_its_pods_run_elsewhere(
    few: Site,
) -> None:
    done, made = plan(few)
    drains = {name: node["drain"] for name, node in made["nodes"].items()}
    assert {name: drain["pods"] for name, drain in drains.items()} == dict.fromkeys(CHANGED, 1)
    assert "3 nodes, 3 pods to evict: small-[001-002,061]; each node has 2 min, else it is left alone" in done.out
    assert "3 pods would be rejected after the change" in done.out
    applied = few.rollout(*APPLY)
    assert applied.code == 0, applied.out + applied.err
    assert all(few.is_new(name) for name in CHANGED)
    assert [going(few, name) for name in CHANGED] == [set()] * 3
    assert sum(len(going(few, name)) for name in ROOMY) == 6
    assert cordons(few) == {}
    nothing_left(few, *CHANGED)


def test_without_drain_and_restart_the_same_nodes_are_refused_and_no_pod_is_touched(few: Site) -> None:
    policy(few, "disruption: drain-and-restart\n", "")
    done, made = plan(few, 4)
    assert {entry["reference"] for entry in made["left"]} == {"pods-would-be-rejected"}
    assert "drain it first, or set `disruption: drain-and-restart`" in done.out


def test_a_canary_that_rehearses_is_drained_once_and_stays_empty_until_it_is_confirmed_again(few: Site) -> None:
    policy(few, "rehearsal: false", "rehearsal: true")
    applied = few.rollout(*APPLY)
    assert applied.code == 0, applied.out + applied.err
    assert all(few.is_new(name) for name in CHANGED)
    assert cordons(few) == {}


# Pods that are not evicted.


def test_a_budget_that_blocks_evictions_leaves_its_node_unchanged_and_the_others_are_changed(few: Site) -> None:
    policy(few, "drain: 2m", "drain: 4s")
    few.fault("small-002", "pdb-blocks")
    before, there = few.everything("small-002"), going(few, "small-002")
    done = few.rollout(*APPLY)
    assert done.code == 4, done.out + done.err
    status = few.rollout("status").out
    assert "refused (1) small-002: " in status
    assert "[not-drained]" in status
    assert [few.is_new(name) for name in CHANGED] == [True, False, True]
    assert few.everything("small-002") == before
    assert going(few, "small-002") >= there
    assert cordons(few) == {}
    nothing_left(few, *CHANGED)


def test_a_slow_pod_is_waited_for_as_long_as_its_kubelet_may_take_and_is_named(few: Site) -> None:
    """Kubelets 1.20 deduct the hook: the pod may use its grace period of 12 s and 2 s more. The playbook gives 4 s."""
    policy(few, "drain: 2m", "drain: 4s")
    few.fault(FIRST, "slow-termination", "--after", "12")
    (slow,) = going(few, FIRST)
    done = few.rollout(*APPLY)
    assert done.code == 0, done.out + done.err
    told = f"{FIRST}: the drain is extended beyond its time limit, because its pods are being deleted slowly: pod {slow} may take "
    assert told in done.out
    assert all(few.is_new(name) for name in CHANGED)
    assert f"the drain of {FIRST} takes longer than its time limit: " in few.rollout("report").out
    assert cordons(few) == {}


def test_a_pod_that_a_finalizer_holds_is_not_waited_for_any_longer_than_its_kubelet_may_take(few: Site) -> None:
    policy(few, "drain: 2m", "drain: 4s")
    few.fault(FIRST, "finalizer")
    done = few.rollout(*APPLY)
    assert done.code in (3, 4), done.out + done.err
    status = few.rollout("status").out
    assert "time limit reached with pods still terminating: pod " in status
    assert "held by " in status
    assert not few.is_new(FIRST)
    assert cordons(few) == {}


def test_a_cordon_of_others_is_left_alone(few: Site) -> None:
    plan(few)
    few.fault("small-002", "cordoned")
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code == 4, done.out + done.err
    assert "it was cordoned after the plan was made, but not by rollout [not-drained]" in few.rollout("status").out
    assert cordons(few) == {"small-002": ""}
    assert len(going(few, "small-002")) >= 1


def test_a_node_that_should_keep_its_pods_is_not_changed_after_pods_of_a_drained_node_arrived(few: Site) -> None:
    """All pods fit when it was planned. Then the first node's pods could only move to this node."""
    policy(few, "perRack: 25%", "perRack: 1")
    few.fault("small-[003,061-063]", "cordoned")
    with api(few) as cluster:
        (pod,) = [pod for pod in cluster.leaving("small-002", SECONDS) if not pod.stays]
        assert cluster.evict(pod, SECONDS).eviction is Eviction.ACCEPTED
    until(lambda: len(going(few, FIRST)) == 2, PATIENCE, "it went to the only node that takes it")
    pair = f"{FIRST},small-002"
    few.rollout("plan", "--cluster", "small", "--limit", pair, "--out", "p.json")
    made = json.loads((few.folder / "p.json").read_text())["nodes"]
    assert {name: bool(node["drain"]) for name, node in made.items()} == {FIRST: True, "small-002": False}
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code in (3, 4), done.out + done.err
    assert (
        "pods arrived after the plan was made: 2 pods would be rejected after the change" in few.rollout("status").out
    )
    assert [few.is_new(FIRST), few.is_new("small-002")] == [True, False]
    assert len(going(few, "small-002")) == 2, "and none of them was lost"
    nothing_left(few, FIRST, "small-002")


# A controller that ends.


def drained_now(site: Site) -> bool:
    return where(site).get("draining") is not None


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT])
def test_a_run_can_be_resumed_after_its_controller_ends_in_a_drain(few: Site, signal_: signal.Signals) -> None:
    """If it is killed, its cordon stays with the run's mark. If it is interrupted, it lifts the cordon first."""
    few.fault(FIRST, "pdb-blocks")
    with begun(few, *APPLY) as process:
        until(lambda: drained_now(few) and cordons(few) == {FIRST: run_of(few)}, PATIENCE, "the canary is drained")
        os.killpg(process.pid, signal_)
        code = process.wait(PATIENCE)
    if signal_ is signal.SIGKILL:
        assert cordons(few) == {FIRST: run_of(few)}
    else:
        assert code == 130, said(few)
        assert cordons(few) == {}
        assert where(few)["counts"] == {"pending": 3}
    assert not few.is_new(FIRST)
    few.fault(FIRST, "--clear")
    done = few.rollout("resume", run_of(few), "--yes")
    assert done.code == 0, done.out + done.err
    assert all(few.is_new(name) for name in CHANGED)
    assert cordons(few) == {}
    nothing_left(few, *CHANGED)


def test_a_pause_uncordons_a_draining_node_and_continuing_drains_it_again(few: Site) -> None:
    few.fault(FIRST, "pdb-blocks")
    with begun(few, *APPLY) as process:
        until(lambda: drained_now(few) and cordons(few), PATIENCE, "the canary is drained")
        few.rollout("pause", run_of(few), "--reason", "lunch")
        until(lambda: cordons(few) == {}, PATIENCE, "its cordon is lifted")
        assert where(few)["counts"] == {"pending": 3}
        few.fault(FIRST, "--clear")
        few.rollout("continue", "--yes", run_of(few))
        assert process.wait(PATIENCE) == 0, said(few)
    assert all(few.is_new(name) for name in CHANGED)
    assert cordons(few) == {}


def test_a_drain_waits_for_an_unreachable_api_server(few: Site) -> None:
    few.fault(FIRST, "pdb-blocks")
    with begun(few, *APPLY) as process:
        until(lambda: drained_now(few) and cordons(few), PATIENCE, "the canary is drained")
        few.fault("api", "api-down")
        until(
            lambda: "the request to the API server failed" in (where(few)["draining"] or {}).get("waitsFor", ""),
            PATIENCE,
            "the error is shown",
        )
        few.fault(FIRST, "--clear")
        few.fault("api", "--clear")
        assert process.wait(PATIENCE) == 0, said(few)
    assert cordons(few) == {}


@pytest.mark.night  # the tries are two minutes; tests/core/run/test_drains.py has them in virtual time
def test_a_cordon_that_cannot_be_lifted_is_reported_and_recover_lifts_it(few: Site) -> None:
    few.fault(FIRST, "pdb-blocks")
    with begun(few, "apply", "--cluster", "small", "--limit", FIRST, "--yes") as process:
        until(lambda: drained_now(few) and cordons(few), PATIENCE, "it is drained")
        few.fault("api", "api-forbidden")
        assert process.wait(PATIENCE) == 4, said(few)
    status = few.rollout("status").out
    assert f"may still be cordoned by this run: {FIRST}" in status
    assert f"left behind: {FIRST}: its cordon could not be lifted: " in status
    few.fault("api", "--clear")
    few.fault(FIRST, "--clear")
    assert cordons(few) == {FIRST: run_of(few)}
    caught = few.rollout("resume", "--recover-only", run_of(few), "--yes")
    assert caught.code == 0, caught.out + caught.err
    assert cordons(few) == {}
    assert few.is_new(FIRST), "skipping it charged no node"


def test_recover_lifts_the_cordons_of_a_halted_run(few: Site) -> None:
    """Like after two minutes without an API server at the run's end: the Node has the run's mark, and the journal
    records it.
    """
    few.fault(FIRST, "pdb-blocks")
    with begun(few, "apply", "--cluster", "small", "--limit", FIRST, "--yes") as process:
        until(lambda: drained_now(few) and cordons(few), PATIENCE, "it is drained")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    run = run_of(few)
    dead = few.rollout("resume", "--recover-only", run, "--yes")
    assert (dead.code, f"rollout resume {run}" in dead.err) == (5, True), "it has not ended, so it is resumed"
    ended_halted(few, run)
    lifted = few.rollout("resume", "--recover-only", run, "--yes")
    assert lifted.code == 0, lifted.all
    assert (
        lifted.out
        == f"cordons lifted: 1 node  {FIRST}\nrun {run} ended halted; for its pending recoveries: rollout resume {run}\n"
    )
    assert cordons(few) == {}
    told = few.rollout("status", run).out
    assert "may still be cordoned" not in told, "the journal records it"
    assert "cordons lifted later, " in few.rollout("report", run).out
    again = few.rollout("resume", "--recover-only", run, "--yes")
    assert (again.code, f"rollout resume {run}" in again.err) == (5, True), "there is no cordon to lift any more"


def test_a_rollback_that_lifts_cordons_of_a_halted_run_records_that(few: Site) -> None:
    few.fault(FIRST, "pdb-blocks")
    with begun(few, "apply", "--cluster", "small", "--limit", FIRST, "--yes") as process:
        until(lambda: drained_now(few) and cordons(few), PATIENCE, "it is drained")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    run = run_of(few)
    ended_halted(few, run)
    assert "may still be cordoned by this run" in few.rollout("status", run).out
    back = few.rollout("rollback", run, "--yes", "--reason", "OPS-7")
    assert back.code == 0, back.all
    assert f"cordons lifted: 1 node  {FIRST}" in back.out
    assert cordons(few) == {}
    assert "may still be cordoned" not in few.rollout("status", run).out
    told = few.rollout("report", run).out
    assert "cordons lifted later, " in told
    assert f": OPS-7: {FIRST}" in told


def ended_halted(site: Site, run: str) -> None:
    """Journal that the run halted and could not lift its cordon, as its controller would have done."""
    with closing(SqlJournal(site.folder / site.state)) as journal, leased(journal, "small", run):
        state, at = replay(journal, run), 0.0
        events: list[str] = []
        while state.phase is not Phase.ENDED:
            at = max(state.now, at) + AGAIN_EVERY
            asked = [(name, record) for name, record in state.nodes.items() if record.asked]
            event: Event = AbortAsked(at, "me", "", 1) if state.halt is None else Ticked(at)
            if state.halt is not None and asked:
                name, record = asked[0]
                assert record.asked is not None
                event = Answered(at, name, record.serial, record.asked, ANSWERS[record.asked])
            state, _ = step(state, event)
            events.append(encode_event(event))
        journal.append(run, events)


ANSWERS = {Verb.DRAIN: Trigger.DRAINING, Verb.UNCORDON: Trigger.STILL_CORDONED, Verb.CLEAN: Trigger.CLEANED}


# Reverted by another run.


def test_reverting_a_run_that_died_in_a_drain_lifts_its_cordons_even_without_its_journal(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [canary, {perRack: 1}, rest]")
    few.fault("small-002", "pdb-blocks")
    with begun(few, *APPLY) as process:
        until(
            lambda: "small-002" in cordons(few) and few.is_new(FIRST),
            PATIENCE,
            "the canary is changed, the next is drained",
        )
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    away = few.apart("elsewhere").rollout("rollback", "--cluster", "small", "--limit", LIMIT, "--emergency", "--yes")
    assert away.code == 0, away.out + away.err
    assert "cordons lifted: " in away.out
    assert cordons(few) == {}
    assert not any(few.is_new(name) for name in CHANGED)


def test_a_rollback_without_an_api_server_works_and_prints_how_to_lift_cordons_by_hand(few: Site) -> None:
    few.fault("small-002", "pdb-blocks")
    with begun(few, *APPLY) as process:
        until(
            lambda: "small-002" in cordons(few) and few.is_new(FIRST),
            PATIENCE,
            "the canary is changed, the next is drained",
        )
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    few.fault("api", "api-down")
    back = few.rollout("rollback", run_of(few), "--yes")
    assert back.code == 0, back.out + back.err
    assert "by hand: kubectl get nodes" in back.out
    assert not any(few.is_new(name) for name in CHANGED)
    few.fault("api", "--clear")
    again = few.rollout("rollback", "--cluster", "small", "--limit", LIMIT, "--emergency", "--yes")
    assert cordons(few) == {}, again.out + again.err
