"""Without an API server no node is drained, and what would be asked of it is named."""

from __future__ import annotations

import pytest

from rollout.adapters.clock import SystemClock
from rollout.app.backends import Backends
from rollout.app.node_drains import DrainRound
from rollout.core.run.events import Trigger
from rollout.errors import RemoteError
from tests.app.site import SMALL


def test_a_back_end_that_is_not_set_empties_no_node() -> None:
    drains = Backends().drains("r1", SMALL, SystemClock())
    why = "no kubeconfig was named [no-endpoint]"
    failed = DrainRound(Trigger.NOT_DRAINED, f"the request to the API server failed: {why}")
    assert drains.round("n1", 30, 1, 100.0, lambda: None) == failed
    assert drains.uncordon("n1", 1) == DrainRound(Trigger.STILL_CORDONED, why)
    assert drains.may_wait("n1", 1.0)
    assert not drains.may_wait("n1", 0.0)
    with pytest.raises(RemoteError, match="no kubeconfig was named"):
        drains.came_back("n1", 1.0)
