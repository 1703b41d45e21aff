"""An API server for real nodes that no API server knows: it lists their Nodes, Ready since when the test says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.adapters.web import Reply, Seen, web


@contextmanager
def api(folder: Path, ready_since: Mapping[str, float]) -> Iterator[str]:
    """``ready_since``: Node → seconds since the epoch; it may change. Yields the inventory's endpoints, in this folder."""

    def answer(seen: Seen) -> Reply:
        items = [_node(name, since) for name, since in ready_since.items()]
        if urlsplit(seen.path).path != "/api/v1/nodes":
            items = []
        return Reply(body=json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())

    with web() as server:
        server.answer = answer
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        yield "endpoints: {kubeconfig: kubeconfig}\n"


def _node(name: str, since: float) -> dict[str, object]:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at, "lastHeartbeatTime": at}
    return {
        "metadata": {"name": name, "uid": name, "labels": {}, "creationTimestamp": at},
        "spec": {},
        "status": {"conditions": [ready], "nodeInfo": {}, "addresses": []},
    }
