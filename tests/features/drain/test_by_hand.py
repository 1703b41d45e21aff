"""The command that lifts cordons by hand, as the real kubectl reads it: of the selected run, of no active run."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rollout.features.drain.asking.cordons import by_hand
from tests.controllers import PATIENCE

pytestmark = pytest.mark.process

BY = "rollout/cordoned-by"


def node(name: str, *cordoned_by: str) -> object:
    annotations = {"annotations": {"a": "b", BY: cordoned_by[0]}} if cordoned_by else {}
    return {"metadata": {"name": name, **annotations}}


NODES = {
    "kind": "NodeList",
    "apiVersion": "v1",
    "items": [node("n1", "r1"), node("n2", "r2"), node("n3", "r3"), node("n4"), node("n5", "")],
}
KIND = {"name": "nodes", "singularName": "", "namespaced": False, "kind": "Node", "verbs": ["get", "list"]}
SAYS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [KIND]},
    "/api/v1/nodes": NODES,
}


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        said = SAYS.get(self.path.partition("?")[0])
        self.send_response(200 if said else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(said or {}).encode())

    def log_message(self, *_words: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Api) as api:
        thread = threading.Thread(target=api.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{api.server_port}"
        api.shutdown()


@pytest.mark.parametrize(
    ("run", "spared", "named"),
    [("r2", (), ["n2"]), ("", ("r1", "r3"), ["n2"]), ("", ("r2",), ["n1", "n3"]), ("", (), ["n1", "n2", "n3"])],
)
def test_the_command_lifts_only_the_cordons_of_the_selected_run(
    server: str, tmp_path: Path, run: str, spared: tuple[str, ...], named: list[str]
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NOT TESTED: kubectl is not installed")
    looks, rest = by_hand(run, spared).split(" | ", 1)
    asked = looks.replace("kubectl ", f"kubectl --server {server} --cache-dir {tmp_path} ", 1)
    done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stdout.split() == named, done.stderr
    assert rest.startswith('xargs -r -I{} sh -c "kubectl uncordon {} && kubectl annotate node {} rollout/cordoned-by-')
