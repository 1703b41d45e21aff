"""``approvals`` in playbooks and inventories: what it means, and every mistake with its place."""

from __future__ import annotations

import pytest

from rollout.core.reading.inventory_file import load_inventory
from rollout.errors import InputError, Place
from rollout.features.approvals.rules import ApprovalRule
from tests.core.reading.test_playbook_file import BARE, load

INVENTORY = "cluster: c\napiServer: v1.30.1\nnodes: {n1: }\n"

WRITTEN = "approvals: {count: 2, allowedSigners: keys/signers, people: [alice@x, bob@x], besidesApplier: false}\n"


def test_a_playbook_and_an_inventory_write_approvals_alike() -> None:
    assert load(BARE + WRITTEN).conditions == (
        ApprovalRule(Place("p.yaml", 3, 20), 2, "keys/signers", ("alice@x", "bob@x"), besides_applier=False),
    )
    short = "approvals: {count: 1, allowedSigners: signers}\n"
    assert load_inventory(INVENTORY + short, "c.yaml").conditions == (
        ApprovalRule(Place("c.yaml", 4, 20), 1, "signers"),
    )
    assert load(BARE).conditions == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("approvals: {count: 0, allowedSigners: a}", "p.yaml:3:20: `count` must be at least 1, not 0 [out-of-range]"),
        ("approvals: {count: 1}", "p.yaml:3:12: `allowedSigners` is missing [missing-key]"),
        (
            "approvals: {count: 1, allowedSigners: -oProxyCommand=x}",
            "p.yaml:3:39: `allowedSigners` must be the path of a file, relative to the project [bad-path]",
        ),
        (
            "approvals: {count: 1, allowedSigners: a, people: ['*@x']}",
            "p.yaml:3:51: `people[0]`: `*@x` is not a person of a file of allowed signers [bad-person]",
        ),
    ],
)
def test_mistakes_are_reported_with_their_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load(f"{BARE}{text}\n")
    assert said in [str(problem) for problem in raised.value.problems]
