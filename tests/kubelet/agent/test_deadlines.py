"""The controller waits at least as long as the agent may work; or the reason is in the table, and a lost answer is read back."""

from __future__ import annotations

import re

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.core.run.events import Trigger as On
from rollout.core.run.state import Goal, NodeState
from rollout.core.run.transitions import Circumstances, Heard, Next, move
from rollout.kubelet.agent.deadlines import COMMAND_MARGIN, MARGIN, TIMES
from rollout.kubelet.agent.protocol import VERBS
from tests.orders import in_state

PROGRAM = agent_program()
CALLED = {"freeze": "freeze", "unfreeze": "freeze"}
"""Verbs with their deadline in a function of this name."""
REST = {"apply": 150}
"""Seconds that a verb gets anew while it works: an apply, for its revert."""
WHILE = {"apply": NodeState.APPLYING, "confirm": NodeState.APPLIED}
"""A node's state while a verb with a shorter wait is at work."""


def allowed(verb: str) -> int:
    """The deadline that the verb's function sets first."""
    name = CALLED.get(verb, f"verb_{verb}")
    body = re.search(rf"(?ms)^{name}\(\) \{{.*?^\}}", PROGRAM)
    assert body is not None, verb
    found = re.search(r"^  allow (\d+)$", body[0], re.MULTILINE)
    assert found is not None, verb
    return int(found[1])


def test_the_table_has_every_verb_of_the_controller() -> None:
    assert TIMES.keys() == VERBS.keys()


@pytest.mark.parametrize("verb", TIMES)
def test_the_agent_works_as_long_as_the_table_has(verb: str) -> None:
    assert allowed(verb) + REST.get(verb, 0) == TIMES[verb].works


@pytest.mark.parametrize("verb", TIMES)
def test_the_controller_waits_longer_or_the_reason_is_given(verb: str) -> None:
    times = TIMES[verb]
    assert (times.waits >= times.works + MARGIN) is (times.why_shorter == "")


@pytest.mark.parametrize("verb", [verb for verb, times in TIMES.items() if times.why_shorter])
def test_an_answer_that_is_not_waited_for_is_read_back_and_charged_for_nothing(verb: str) -> None:
    found = move(in_state(WHILE[verb]), Heard(On.LOST), Circumstances(0.0, Goal.APPLY, 180.0))
    assert (found.to.state, found.then, found.charge) == (NodeState.UNKNOWN, Next.READ, None)


def test_a_measurement_waits_for_its_command_gates_too() -> None:
    """Each sets the deadline anew, so that the agent may work for all of them."""
    assert re.findall(r"allow \$\(\(\$2 \+ (\d+)\)\)", PROGRAM) == [str(COMMAND_MARGIN)]
