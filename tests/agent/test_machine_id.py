"""The machine-id changes between two verbs of one conversation. Each verb reads it anew, and what it means is named.

Only a plan knows a node by its machine-id: so an apply is refused. A transaction is known by its receipt, on this node's own disk: what was
armed is confirmed, reverted or cleaned up as before, and each read shows the machine-id of now.
"""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome, RemoteCommand
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import NEW, OLD, PROGRAM, Node, order
from tests.agent.test_conversation import talk

pytestmark = pytest.mark.process

OTHER = "f" * 32
TOKEN = {"run": "run-1", "counter": 1}


def _call(name: str, **words: object) -> RemoteCommand:
    command: RemoteCommand = getattr(agent_call, name)(PROGRAM, **words, sudo=False, deadline=60)
    return command


APPLY = agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)
CLAIM = _call("status", claim=Claim(1, "run-1"))
VERBS = {
    "apply": (APPLY, "machine-id-changed", OLD),
    "claim": (CLAIM, "", OLD),
    "void": (_call("status", tx="t1", claim=Claim(1, "run-1"), void=True), "", OLD),
    "cleanup": (_call("cleanup", **TOKEN), "", OLD),
    "armed: claim": (CLAIM, "", NEW),
    "armed: apply again": (APPLY, "", NEW),
    "armed: confirm": (_call("confirm", tx="t1", keep=3, **TOKEN), "", NEW),
    "armed: revert": (_call("revert", tx="t1", **TOKEN), "", OLD),
    "armed: cleanup": (_call("cleanup", **TOKEN), "", NEW),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_after_a_change_of_the_machine_id(node: Node, verb: str) -> None:
    command, reference, files = VERBS[verb]
    with talk(node) as shell:
        assert shell.ask(CLAIM).outcome is Outcome.DONE
        if verb.startswith("armed"):
            assert shell.ask(APPLY).healthy
        node.write("/etc/machine-id", f"{OTHER}\n".encode())
        report = shell.ask(command)
    assert (report.reference, node.files()) == (reference, dict(files)), report
    if reference:
        assert all(word in report.message for word in (OTHER, order().machine_id)), (
            "what was expected, and what is there"
        )
    assert node.verify().machine_id == OTHER


def test_a_guard_reverts_whatever_the_machine_id_is(node: Node) -> None:
    assert node.apply().healthy
    node.write("/etc/machine-id", f"{OTHER}\n".encode())
    assert node.trigger("guard") == 0
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")
