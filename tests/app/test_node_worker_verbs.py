"""What a worker does for each command of the machine, with agents in memory; and what a rollback's worker never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.app.backends import Backends
from rollout.app.node_worker import NodeWorker
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import Answered, SilencesLifted, Trigger, WaveOpened
from rollout.core.run.state import Verb
from tests.adapters.kubernetes.node_gates import Watch
from tests.app.agents import Agents, answer
from tests.app.site import ACCESS, SMALL
from tests.app.test_wave_gates import SILENCING, Around, alerts
from tests.gates.askers import askers


def worker(nodes: Agents, plan: Plan | None = SMALL, around: Around | None = None) -> NodeWorker:
    made = around or Around()
    backends = Backends(askers=askers(made), wait=made.clock.wait)
    return NodeWorker("r1", ACCESS, nodes, made, Watch(), plan, plan is None, backends=backends, who="me@here")


def test_wave_gates_are_asked_by_the_controller_not_by_a_node() -> None:
    nodes, around = Agents(), Around()
    working = worker(nodes, replace(SMALL, gates=(alerts(SILENCING),)), around)
    opened = working(OpenWave(0, ("n1",)))
    assert isinstance(opened, WaveOpened)
    assert (opened.verdict, len(opened.silences), len(around.standing_now)) == (Verdict.PASS, 1, 1)
    lifted = working(LiftSilences(opened.silences))
    assert isinstance(lifted, SilencesLifted)
    assert (lifted.leftovers, around.standing_now) == ((), {})
    assert nodes.asked == []


@pytest.mark.parametrize(
    "command",
    [
        *(
            Ask("n1", verb, 1, "r1-1", 3)
            for verb in (Verb.APPLY, Verb.MEASURE, Verb.CONFIRM, Verb.DRAIN, Verb.UNCORDON)
        ),
        OpenWave(0, ("n1",)),
        JudgeWave(0),
    ],
)
def test_a_rollback_has_no_plan_and_does_nothing_that_needs_one(command: Ask | OpenWave | JudgeWave) -> None:
    """Such a command is a bug in rollout: it must not become an answer of the node."""
    nodes = Agents()
    with pytest.raises(LookupError):
        worker(nodes, None)(command)
    assert not {"apply", "confirm"}.intersection(nodes.verbs("n1"))


def test_a_node_without_a_planned_drain_is_not_drained() -> None:
    nodes = Agents()
    with pytest.raises(LookupError):
        worker(nodes)(Ask("n1", Verb.DRAIN, 1, "r1-1", 3, left=60.0))
    assert nodes.verbs("n1") == ["status"], "it was claimed and read, and not changed"


def test_a_claim_that_a_rollback_should_have_taken_over_is_refused_as_false() -> None:
    """If it were believed, one forged answer would stop the rollback on all other nodes."""
    nodes = Agents({("n1", "status"): answer("status", "refused claimed run r9 has it")})
    read = Ask("n1", Verb.READ, 1, "r1-1", 3)
    over = worker(nodes, None)(read)
    assert isinstance(over, Answered)
    assert (over.trigger, over.reference) == (Trigger.REFUSED, "false-claim")
    honest = worker(nodes)(read)
    assert isinstance(honest, Answered)
    assert (honest.trigger, honest.reference) == (Trigger.REFUSED, "claimed"), (
        "a run that takes over no claims accepts the answer"
    )


def test_an_impossible_token_is_refused_and_not_used() -> None:
    """If it were believed, each next run would need a higher token, until no agent accepts it any more."""
    nodes = Agents({("n1", "status"): answer("status", f"token {10**14} r9 live", "refused fenced a newer run")})
    found = worker(nodes)(Ask("n1", Verb.READ, 1, "r1-1", 3))
    assert isinstance(found, Answered)
    assert (found.trigger, found.reference, found.counter) == (Trigger.REFUSED, "false-token", 0)
