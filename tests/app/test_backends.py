"""A back end that is not set reports that for every request: its gate is UNKNOWN, never a pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollout.app.backends import Backends
from rollout.app.ports import Silence
from rollout.core.model.pods import LeavingPod
from rollout.errors import RemoteError

NOBODY = Backends()
SILENCE = Silence("node", "n1", 60.0, "me@here", "")


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (NOBODY.cluster.nodes, "kubeconfig"),
        (lambda: NOBODY.cluster.look("n1", 1.0), "kubeconfig"),
        (lambda: NOBODY.cluster.configz("n1", 1.0), "kubeconfig"),
        (NOBODY.cluster.missing_rights, "kubeconfig"),
        (NOBODY.cluster.missing_to_drain, "kubeconfig"),
        (lambda: NOBODY.cluster.cordon("n1", "r1", 1, 1.0), "kubeconfig"),
        (lambda: NOBODY.cluster.uncordon("n1", "r1", 1, 1.0), "kubeconfig"),
        (lambda: NOBODY.cluster.leaving("n1", 1.0), "kubeconfig"),
        (lambda: NOBODY.cluster.placed("n1", 1.0), "kubeconfig"),
        (lambda: NOBODY.cluster.evict(LeavingPod("u1", "shop/web"), 1.0), "kubeconfig"),
        (lambda: NOBODY.metrics.query("", "up", 1.0), "Prometheus"),
        (lambda: NOBODY.alerts.firing("", (), 1.0), "Alertmanager"),
        (lambda: NOBODY.alerts.known("", (), 1.0), "Alertmanager"),
        (lambda: NOBODY.alerts.silence("", SILENCE, 1.0), "Alertmanager"),
        (lambda: NOBODY.alerts.standing("", "rollout", 1.0), "Alertmanager"),
        (lambda: NOBODY.alerts.lift("", "s1", 1.0), "Alertmanager"),
        (lambda: NOBODY.pages.get("http://here/", 1.0), "HTTP client"),
    ],
)
def test_a_back_end_that_is_not_set_is_named(ask: Callable[[], object], what: str) -> None:
    with pytest.raises(RemoteError) as raised:
        ask()
    assert (raised.value.reference, raised.value.message) == ("no-endpoint", f"no {what} was named")
