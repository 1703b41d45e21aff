"""The counter of a kubelet's image pulls: read through the API server, strict, and with a right of its own."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from rollout.adapters.kubernetes import cluster
from rollout.adapters.kubernetes.cluster import KubernetesCluster
from rollout.adapters.kubernetes.objects import pull_counter
from rollout.core.model.live import PullCounter
from rollout.errors import RemoteError
from tests.adapters.kubernetes.test_kubeconfig import client, config
from tests.adapters.web import Reply, Seen, web

METRICS = """# HELP kubelet_runtime_operations_errors_total [ALPHA] Cumulative number of runtime operation errors by operation type.
# TYPE kubelet_runtime_operations_errors_total counter
kubelet_runtime_operations_errors_total{operation_type="pull_image"} 2
# HELP kubelet_runtime_operations_total [ALPHA] Cumulative number of runtime operations by operation type.
# TYPE kubelet_runtime_operations_total counter
kubelet_runtime_operations_total{operation_type="pull_image"} 7
kubelet_runtime_operations_total{operation_type="version"} 1.234567e+06
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.76398e+09
"""
TOTAL, ERRORS = (f'kubelet_runtime_operations{name}_total{{operation_type="pull_image"}}' for name in ("", "_errors"))


def test_pulls_that_ended_and_those_that_failed() -> None:
    assert pull_counter(METRICS) == PullCounter(7, 2)


def test_a_kubelet_that_has_pulled_nothing_has_no_such_counter() -> None:
    assert pull_counter('kubelet_runtime_operations_total{operation_type="version"} 3\n') == PullCounter(0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>\n",
        f"{ERRORS} 2\n",
        f"# {TOTAL} 2\n",
        *(f"{TOTAL} {value}\n" for value in ("NaN", "+Inf", "-1", "1e300", "x", "")),
        f"{TOTAL} 5\n{ERRORS} NaN\n",
        TOTAL.replace("}", ',more="x"}') + " 5\n",
    ],
)
def test_what_cannot_be_understood_is_not_known(text: str) -> None:
    with pytest.raises(RemoteError, match="bad-answer"):
        pull_counter(text)


@pytest.mark.process
def test_it_is_read_through_the_api_server_and_bounded(
    stack: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(seen: Seen) -> Reply:
        allowed = b"true" if b'"resource": "nodes", "subresource": "proxy"' in seen.body else b"false"
        return Reply(201, b'{"status": {"allowed": %s}}' % allowed) if seen.body else Reply(200, METRICS.encode())

    server = stack.enter_context(web())
    server.answer = answer
    api = KubernetesCluster(client(stack, config(tmp_path, {"token": "t"}, server.url)))
    assert api.pull_counter("n1", 5.0) == PullCounter(7, 2)
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("GET", "/api/v1/nodes/n1/proxy/metrics")
    assert seen.headers["accept"] == "text/plain"
    assert api.missing_to_count_pulls() == ()
    assert "get nodes" in api.missing_rights()
    monkeypatch.setattr(cluster, "MOST_METRICS", 100)
    with pytest.raises(RemoteError, match="too-large"):
        api.pull_counter("n1", 5.0)
    server.answer, server.replies = None, [Reply(403, b'{"message": "nodes is forbidden"}')]
    with pytest.raises(RemoteError, match="nodes is forbidden"):
        api.pull_counter("n1", 5.0)
