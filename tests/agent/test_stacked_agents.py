"""The nodes of ``tests/app/stacked_agents.py`` keep and answer what the real agent does, verb by verb."""

from __future__ import annotations

from random import Random

import pytest

from rollout.core.model.report import RemoteCommand
from rollout.core.model.verification import Verification
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report, parse_verification
from tests.agent.node import CONFIG, DROPIN, FLAGS, OLD, Node, order
from tests.app.agents import access_to
from tests.app.stacked_agents import StackedAgents, StackedNode

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

PATHS = (CONFIG, FLAGS, DROPIN)
STEPS = 9


class Both:
    """The same requests for a real agent and for its model."""

    def __init__(self, node: Node) -> None:
        self.real = node
        self.model = StackedNode({path: content for path, content in OLD.items() if content is not None})
        self.agents = StackedAgents({"n1": self.model})
        self.target = access_to("n1").targets["n1"]

    def do(self, verb: str, command: RemoteCommand) -> str:
        """The reference of both answers; ``""``: done."""
        one, other = (
            parse_report("n1", verb, found, 1.0)
            for found in (self.real.run(command), self.agents.run(self.target, command))
        )
        assert (one.outcome, one.reference) == (other.outcome, other.reference)
        return one.reference

    def compare(self) -> None:
        command = agent_call.verify("", unit="kubelet.service", sudo=False, deadline=60)
        other = parse_verification("n1", self.agents.run(self.target, command))
        assert isinstance(other, Verification)
        one = self.real.verify()
        assert (one.receipts, one.token) == (other.receipts, other.token)
        assert {entry.path: (entry.tx, entry.digest) for entry in one.expected} == {
            entry.path: (entry.tx, entry.digest) for entry in other.expected
        }
        assert {path: file.digest for path, file in one.files.items()} == {
            path: file.digest for path, file in other.files.items()
        }


@pytest.mark.parametrize("seed", range(8))
def test_random_verbs_lead_to_the_same_receipts_files_and_expectations(node: Node, seed: int) -> None:
    dice, both = Random(seed), Both(node)  # noqa: S311 - reproducible
    applied: list[str] = []
    for number in range(STEPS):
        run = f"run-{number}"
        token = {"run": run, "counter": number + 1}
        if not applied or dice.random() < 0.5:
            tx = f"t{number}"
            new = {path: f"{path} {number}\n".encode() for path in dice.sample(PATHS, dice.randint(1, 3))}
            made = order(tx, run, number + 1, old={path: node.read(path) for path in PATHS}, new=new)
            assert both.do("apply", agent_call.apply(node.program, made, sudo=False, deadline=60)) == ""
            keep = dice.randint(1, 4)
            confirm = agent_call.confirm(node.program, tx=tx, keep=keep, sudo=False, deadline=60, **token)  # type: ignore[arg-type]
            assert both.do("confirm", confirm) == ""
            applied.append(tx)
        else:
            tx, force = dice.choice(applied), dice.random() < 0.3
            both.do("revert", agent_call.revert(node.program, tx=tx, force=force, sudo=False, deadline=60, **token))  # type: ignore[arg-type]
        both.do("cleanup", agent_call.cleanup(node.program, sudo=False, deadline=60, **token))  # type: ignore[arg-type]
        both.compare()
    counter = STEPS + 1
    both.do("forget", agent_call.forget(node.program, run="run-9", counter=counter, sudo=False, deadline=60))
    both.compare()
