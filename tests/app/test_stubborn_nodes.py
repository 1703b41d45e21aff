"""A node that gives one answer to a verb for ever, whatever was asked before: the run ends, and says what is open there."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.core.model.playbook import Cause
from rollout.core.model.report import RemoteAnswer
from rollout.core.run.events import AWAY, Event
from rollout.core.run.state import Ending, NodeState, Phase
from tests.app.agents import SILENT, Agents, answer, receipt, well
from tests.app.site import Site
from tests.sampling import sample

pytestmark = pytest.mark.drawn(48)

NODE, TX = "n1", "r1-n1-1"
LONGEST = 3 * (180.0 + 60.0)
"""Seconds: an attempt, a second one, and a revert have each their patience."""

REFUSALS = (
    "drifted",
    "locked",
    "fenced",
    "claimed",
    "frozen",
    "too-late",
    "not-durable",
    "pulls-in-flight",
    "voided",
    "no-sudo",
)
"""The references that mean something to a run, and one that does not."""


class StuckError(Exception):
    """The run goes on after every patience has ended."""


class Stubborn(Site):
    def collect(self, timeout: float) -> tuple[Event, ...]:
        if self.at > 1000.0 + LONGEST:
            raise StuckError(self.nodes.verbs(NODE)[-6:])
        return super().collect(timeout)


def says(verb: str, state: str) -> RemoteAnswer:
    if state in REFUSALS:
        return answer(verb, f"refused {state} /etc/x")
    if state in NO_ANSWERS:
        return NO_ANSWERS[state]
    return answer(verb, "token 1 r1 live", *well(), receipt(TX, state), receipt(TX, state, word="receipt"))


NO_ANSWERS = {
    "silent": SILENT,
    "lost": RemoteAnswer(None, b"", b"", started=True, reference="connection-lost", message="cut off"),
    "away": RemoteAnswer(None, b"", b"", started=False, reference=AWAY, message="no worker answers"),
}
STATES = (*NO_ANSWERS, "armed", "reverting", "confirmed", "reverted", *REFUSALS)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", ["confirm", "revert", "apply", "status", "cleanup"])
def test_a_run_ends_though_a_node_gives_one_answer_for_ever(tmp_path: Path, verb: str, state: str) -> None:
    agents = Agents(says={(NODE, verb): says(verb, state)})
    if verb == "revert":  # something must be reverted
        agents.says[NODE, "confirm"] = says("confirm", "drifted")
    site = Stubborn(SqlJournal(tmp_path), agents)
    end = site.apply()
    record = end.nodes[NODE]
    assert end.phase is Phase.ENDED
    assert record.state in (*SETTLED, NodeState.PENDING) or end.ending is Ending.CLAIMED
    assert record.owed or record.state is not NodeState.UNREACHABLE


VERBS = ("apply", "confirm", "revert", "status")
ANSWERS = list(itertools.product((None, *STATES), repeat=len(VERBS)))
"""One answer for ever to each verb; ``None``: the true one."""


@pytest.mark.parametrize("states", sample("answers of a stubborn node", ANSWERS, 30), ids=str)
def test_a_run_ends_whatever_a_node_answers_to_each_verb(tmp_path: Path, states: tuple[str | None, ...]) -> None:
    agents = Agents(
        says={(NODE, verb): says(verb, state) for verb, state in zip(VERBS, states, strict=True) if state is not None}
    )
    end = Stubborn(SqlJournal(tmp_path), agents).apply()
    record = end.nodes[NODE]
    assert record.state in SETTLED or end.ending is Ending.CLAIMED  # another run has its nodes
    assert record.owed or record.state is not NodeState.UNREACHABLE


@pytest.mark.parametrize("state", STATES)
def test_a_rollback_ends_though_a_node_gives_one_answer_for_ever(tmp_path: Path, state: str) -> None:
    site = Stubborn(SqlJournal(tmp_path))
    assert site.apply().nodes[NODE].state is NodeState.CONFIRMED
    site.at, site.nodes.says = 1000.0, {(NODE, "revert"): says("revert", state)}
    end = site.roll_back("r1")
    assert end.phase is Phase.ENDED
    assert (end.nodes[NODE].state is NodeState.REVERTED) == (state == "reverted") != end.nodes[NODE].owed


SETTLED = (NodeState.CONFIRMED, NodeState.REVERTED, NodeState.FAILED, NodeState.REFUSED, NodeState.UNREACHABLE)


@pytest.mark.parametrize("state", NO_ANSWERS)
def test_an_apply_that_never_arrives_is_tried_three_times_and_then_charged(tmp_path: Path, state: str) -> None:
    site = Stubborn(SqlJournal(tmp_path), Agents(says={(NODE, "apply"): says("apply", state)}))
    record = site.apply().nodes[NODE]
    assert (record.state, record.cause, record.owed) == (NodeState.UNREACHABLE, Cause.UNREACHABLE, True)
    assert [words["tx"] for name, words in site.nodes.asked if (name, words["verb"]) == (NODE, "apply")] == [
        "r1-1",
        "r1-2",
        "r1-3",
    ]


def test_a_node_that_stays_armed_is_pending_recovery_and_says_why(tmp_path: Path) -> None:
    site = Stubborn(SqlJournal(tmp_path), Agents(says={(NODE, "confirm"): says("confirm", "drifted")}))
    record = site.apply().nodes[NODE]
    assert (record.state, record.reference, record.owed) == (NodeState.FAILED, "still-armed", True)
    assert "its guard or a revert must have ended that; before: /etc/x" in record.message
