"""What people approved is applied once: after it was reverted for harm, its approvals are good for nothing."""

from __future__ import annotations

import subprocess

import pytest

from tests.story.conftest import Site
from tests.story.test_faults import few, where

pytestmark = pytest.mark.process
__all__ = ["few"]


def test_an_approval_applies_nothing_a_second_time_by_this_journal_or_by_what_the_nodes_keep(few: Site) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "alice"]
    subprocess.run(words, cwd=few.folder, check=True)
    (few.folder / "allowed_signers").write_text(f"alice@x {(few.folder / 'alice.pub').read_text()}")
    with (few.folder / "inventories/small.yaml").open("a") as file:
        file.write("approvals: {count: 1, allowedSigners: allowed_signers}\n")
    for words in (
        ["plan", "--cluster", "small", "--limit", "small-001", "--out", "p.plan.json"],
        ["approve", "p.plan.json", "--key", "alice", "--yes"],
        ["apply", "p.plan.json", "--yes"],
        ["rollback", "RUN", "--yes"],
    ):
        done = few.rollout(*(where(few)["run"] if word == "RUN" else word for word in words))
        assert done.code == 0, done.out + done.err
    again = few.rollout("apply", "p.plan.json", "--yes")
    elsewhere = few.apart("elsewhere").rollout("apply", "p.plan.json", "--yes")
    for refused, why in ((again, "has applied this plan already"), (elsewhere, "changed small-001 since this plan")):
        assert (refused.code, "[approval-used]" in refused.err, why in refused.err) == (2, True, True), refused.err
    assert not few.is_new("small-001")
