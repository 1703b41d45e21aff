"""One hostile node among honest ones, through the whole plan and the whole way to an emergency rollback.

Its answers are real ones with a hostile text or number in the place of any word. The honest nodes get the same plan and the
same rollback as without it, and none of them waits for it: it answers after all of them have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest

from rollout.app.isolation import estimate
from rollout.app.ports import Target
from rollout.app.reading import read_receipts, restart_pauses
from rollout.app.rollbacks import RunsToRevert, emergency, pick
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.plans.receipt_history import on_nodes
from rollout.core.presentation.emergency_text import predicted_lines, seen_lines
from rollout.core.presentation.rollback_time import node_time, time_back
from rollout.core.text.terminal import CONTROL
from rollout.kubelet import fields
from tests.app.agents import Agents, access_to, answer, receipt, well
from tests.hostile.beside import ENEMY, FOUND, HONEST, told_beside
from tests.kubelet import nodes
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT
from tests.sampling import sample

AMOUNTS = (
    "0-9999999999", "9" * 26 + "x", "9" * 400, "9" * 400 + "s", "9" * 5000, "-" + "9" * 30, "1e9999", "1e-9999", "9" * 400 + "%", "1E9999999",
    "0-" + "9" * 400, "infinity", ".nan", ".inf", "0x" + "f" * 400, "1h" * 60, "\\x1b[2J", "[" * 40, "{a: {b: 1}}", "~",
)  # fmt: skip
"""In YAML, in a line of the agent, or in neither of them a value."""

NAMED = RunsToRevert(("r9",))


# ------------------------------------------------------------------------------------------------------ the plan


def _field_cases() -> list[tuple[str, str]]:
    names = [name for name in fields.every_name() if not name.startswith("--")] + ["evictionHard.x", "kubeReserved.cpu"]
    return [(name, amount) for name in names for amount in AMOUNTS]


def _with_value(name: str, amount: str) -> bytes:
    outer, _, inner = name.partition(".")
    text = "".join(line for line in CONFIG_TEXT.splitlines(keepends=True) if not line.startswith(f"{outer}:"))
    written = f"{{{inner}: '{amount}'}}" if inner else amount
    return f"{text}{outer}: {written}\n".encode()


@pytest.mark.parametrize(
    ("name", "amount"),
    [("reservedSystemCPUs", "0-9999999999"), *sample("amounts in a kubelet's file", _field_cases(), 60)],
    ids=lambda text: text[:30],
)
def test_no_value_in_one_nodes_file_changes_the_plan_of_the_others(name: str, amount: str) -> None:
    content = _with_value(name, amount)
    state = nodes.regular(CONFIG, content.decode())
    told_beside(nodes.with_file(nodes.kubeadm(), state), nodes.IMAGE_PULLS)


# -------------------------------------------------------------------------------------------------- the emergency


@dataclass
class Last(Agents):
    """The enemy answers after each honest node has answered the same question: nobody waits for it.

    ``heard`` is counted for each question, and ``late`` counts honest nodes that had not been heard then.
    """

    heard: set[str] = field(default_factory=set)
    all_heard: Event = field(default_factory=Event)
    late: list[int] = field(default_factory=list)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        if target.name == ENEMY:
            if not self.all_heard.wait(60):
                self.late.append(len(HONEST) - len(self.heard))
            return super().run(target, command)
        found = super().run(target, command)
        with self.lock:
            self.heard.add(target.name)
            if len(self.heard) == len(HONEST):
                self.all_heard.set()
        return found

    def again(self) -> None:
        self.heard.clear()
        self.all_heard.clear()


STATUS = (
    "token 9 r9 ended", *well(), "healthy yes fine", "started 7", "say done",
    *(receipt(f"r9-{at}", "confirmed", word=word) for at, word in ((1, "receipt"), (1, "history"))), receipt("r8-1", "confirmed"),
)  # fmt: skip


def _status_cases() -> list[tuple[str, ...]]:
    """The answer of a node, with a hostile text in the place of each word of each line, and each line many times."""
    cases: list[tuple[str, ...]] = []
    for at, line in enumerate(STATUS):
        for place in re.finditer(r"[^ =]+", line):
            for amount in AMOUNTS:
                changed = line[: place.start()] + amount + line[place.end() :]
                cases.append((*STATUS[:at], changed, *STATUS[at + 1 :]))
        cases.append((*STATUS[:at], *[line] * 500, *STATUS[at + 1 :]))
    return cases


def _honest() -> dict[tuple[str, str], RemoteAnswer]:
    return {(name, "status"): answer("status", *STATUS) for name in HONEST}


def _rescue(agents: Last, names: tuple[str, ...]) -> tuple[dict[str, str], Iterator[str]]:
    """Node → the transaction that an emergency reverts, and what it prints before."""
    access = access_to(*names)
    reports = read_receipts(access, agents)
    agents.again()
    picked = pick(on_nodes(reports), NAMED)
    found = emergency(reports, "new", picked, FOUND, EMERGENCY_LIMITS, force=False)
    pauses = restart_pauses(access, agents)
    predicted = estimate(lambda: time_back(found.order, node_time(None, pauses)), 60)
    assert predicted is not None, "a node's answer never fails the estimate of the others"
    said = (*seen_lines(found.seen, picked, found.already, "rno"), *predicted_lines(predicted))
    return dict(found.order.transactions), iter(said)


ALONE, _ = _rescue(Last(says=_honest()), tuple(HONEST))


@pytest.mark.parametrize(
    "lines", sample("answers of one node before an emergency", _status_cases(), 150), ids=lambda _: ""
)
def test_no_answer_of_one_node_keeps_the_others_from_their_rollback(lines: tuple[str, ...]) -> None:
    agents = Last(says={**_honest(), (ENEMY, "status"): answer("status", *lines)})
    reverted, said = _rescue(agents, tuple(FOUND.nodes))
    assert {name: tx for name, tx in reverted.items() if name in HONEST} == ALONE
    assert len(ALONE) == len(HONEST)
    assert agents.late == [], "honest nodes waited for the hostile one"
    for text in said:
        assert CONTROL.search(text) is None
