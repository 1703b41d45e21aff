"""Nodes that pull images when a rollout reaches them."""

from __future__ import annotations

import pytest

from rollout.core.run.postponed import ASK_AGAIN
from rollout.core.run.state import PostponedFor
from tests.controllers import PATIENCE, until
from tests.sampling import sample
from tests.story.conftest import Site
from tests.story.test_faults import FEW, begun, few, nothing_left, policy, said, transactions, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

__all__ = ["few"]

APPLY = ("apply", "--cluster", "small", "--limit", ",".join(FEW), "--yes")
BUSY, STUCK = "small-002", "small-003"


@pytest.mark.parametrize("then", sample("pulls that continue", ["skip", "override"], 1))
def test_a_run_waits_for_a_node_that_pulls_and_then_skips_or_changes_it(few: Site, then: str) -> None:
    policy(
        few,
        "guard: 60s",
        f"guard: 60s\npullsInFlight: {{within: {1.5 * ASK_AGAIN[PostponedFor.PULLS]:g}s, then: {then}}}",
    )
    few.fault("small-[002-003]", "pulling")
    before = few.everything(STUCK)
    with begun(few, *APPLY) as process:
        until(lambda: (where(few).get("pulling") or {}).get("count") == 2, PATIENCE, "both are waited for")
        assert "waits: 2 nodes pull images (small-[002-003])" in few.rollout("status").out
        until(lambda: where(few)["counts"].get("confirmed") == 4, PATIENCE, "the others go first")
        assert transactions(few, BUSY) == transactions(few, STUCK) == [], "nothing of rollout is on them"
        few.fault(BUSY, "--clear")
        assert process.wait(PATIENCE) == (4 if then == "skip" else 0), said(few)
    assert few.is_new(BUSY)
    assert few.is_new(STUCK) is (then == "override")
    status = few.rollout("status").out
    if then == "skip":
        assert few.everything(STUCK) == before
        assert "refused (1) small-003: it is pulling an unnamed image [pulls-in-flight]" in status
    else:
        assert "changed while they pulled images; the pulls were cancelled: small-003" in status
    nothing_left(few, *FEW)


def test_a_playbook_that_overrides_pulls_asks_no_node(few: Site) -> None:
    policy(few, "guard: 60s", "guard: 60s\npullsInFlight: override")
    few.fault(STUCK, "pulling")
    done = few.rollout(*APPLY)
    assert done.code == 0, done.out + done.err
    assert few.is_new(STUCK)
