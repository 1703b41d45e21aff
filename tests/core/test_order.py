"""From plans and transactions to orders."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import EMERGENCY_LIMITS, Limits, Share
from rollout.core.run.order import predicted_seconds, revert_order
from rollout.core.run.state import Goal


def order_of(count: int, limits: Limits = EMERGENCY_LIMITS) -> float:
    names = [f"n-{n}" for n in range(count)]
    rack_of = {name: f"r{index // 60}" for index, name in enumerate(names)}
    racks = dict.fromkeys(rack_of.values(), 60)
    made = revert_order("r", "c", dict.fromkeys(names, "r0-1"), rack_of, racks, limits)
    assert made.goal is Goal.REVERT
    return predicted_seconds(made, per_node=20.0)


@pytest.mark.parametrize(
    ("count", "limits", "seconds"),
    [
        (0, EMERGENCY_LIMITS, 20.0),
        (60, EMERGENCY_LIMITS, 40.0),  # half a rack at a time: two rounds
        (2040, EMERGENCY_LIMITS, 220.0),  # 200 at once: eleven rounds
        (60, Limits(per_rack=Share(count=60), in_flight=60, pace=0.5), 140.0),  # the pace decides
    ],
)
def test_how_long_a_rollback_is_predicted_to_take(count: int, limits: Limits, seconds: float) -> None:
    assert order_of(count, limits) == seconds
