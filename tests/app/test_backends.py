"""An API server that is not set reports that for every request: its gate is UNKNOWN, never a pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollout.app.backends import Backends
from rollout.errors import RemoteError

NOBODY = Backends()


@pytest.mark.parametrize(
    "ask",
    [
        NOBODY.cluster.nodes,
        lambda: NOBODY.cluster.look("n1", 1.0),
        lambda: NOBODY.cluster.configz("n1", 1.0),
        NOBODY.cluster.missing_rights,
        lambda: NOBODY.cluster.placed("n1", 1.0),
    ],
)
def test_a_back_end_that_is_not_set_is_named(ask: Callable[[], object]) -> None:
    with pytest.raises(RemoteError) as raised:
        ask()
    assert (raised.value.reference, raised.value.message) == ("no-endpoint", "no kubeconfig was named")
