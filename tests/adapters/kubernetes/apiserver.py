"""A real kube-apiserver with Debian's etcd, for one test session. ``build-apiserver.sh`` gets both."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.controllers import PATIENCE, until

BINARY = Path(os.environ.get("ROLLOUT_APISERVER", Path.home() / ".cache/rollout-tests/kube-apiserver"))
ETCD = BINARY.with_name("etcd")
ADMIN, READER, DRAINER, WRITER, NOBODY = "admin-token", "reader-token", "drainer-token", "writer-token", "nobody-token"
LOOKER = "looker-token"
"""It may read the ConfigMaps, and write none."""
GROUP = "rbac.authorization.k8s.io"
LOOKS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
]
DRAINS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
]
WRITES = [
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kubeadm-config"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kubelet-config"], "verbs": ["get", "patch"]},
]
"""The rights that docs/gates.md recommends: no others are needed."""


def role(name: str, rules: list[dict[str, list[str]]]) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def binding(name: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": GROUP}],
        "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": GROUP},
    }


def can_run() -> bool:
    """Whether both exist."""
    return BINARY.exists() and ETCD.exists()


class ApiServer:
    """Runs from ``__init__`` to ``close``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        clients, peers, self._port = _ports(3)
        (folder / "tokens.csv").write_text(
            f'{ADMIN},admin,1,"system:masters"\n{READER},reader,2,""\n{NOBODY},nobody,3,""\n{DRAINER},drainer,4,""\n{WRITER},writer,5,""\n{LOOKER},looker,6,""\n'
        )
        key = folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self._processes = [
            self._start("etcd", str(ETCD), f"--data-dir={folder / 'etcd'}", f"--listen-client-urls=http://127.0.0.1:{clients}",
                        f"--advertise-client-urls=http://127.0.0.1:{clients}", f"--listen-peer-urls=http://127.0.0.1:{peers}",
                        "--unsafe-no-fsync"),
            self._start("kube-apiserver", str(BINARY), f"--etcd-servers=http://127.0.0.1:{clients}", f"--secure-port={self._port}",
                        "--bind-address=127.0.0.1", f"--cert-dir={folder / 'certs'}", f"--token-auth-file={folder / 'tokens.csv'}",
                        "--authorization-mode=RBAC", "--service-account-issuer=https://test", f"--service-account-key-file={key}",
                        f"--service-account-signing-key-file={key}", "--disable-admission-plugins=ServiceAccount",
                        "--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged=true"),
        ]  # fmt: skip
        self.url = f"https://127.0.0.1:{self._port}"
        self._wait()
        for name, user, rules in (
            ("rollout", "reader", LOOKS),
            ("rollout-drains", "drainer", DRAINS),
            ("rollout-writes", "writer", WRITES),
            ("rollout-looks-only", "looker", [{**rule, "verbs": ["get"]} for rule in WRITES]),
        ):
            self.ask("POST", f"/apis/{GROUP}/v1/clusterroles", role(name, rules))
            self.ask("POST", f"/apis/{GROUP}/v1/clusterrolebindings", binding(name, user))

    @property
    def authority(self) -> bytes:
        return (self._folder / "certs/apiserver.crt").read_bytes()

    def ask(
        self, method: str, path: str, document: Any = None, token: str = ADMIN, kind: str = ""
    ) -> tuple[int, bytes]:
        """Status and body; ``kind`` is the document's content type."""
        kind = kind or ("application/strategic-merge-patch+json" if method == "PATCH" else "application/json")
        body = json.dumps(document).encode() if document is not None else None
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(self.url + path, body, headers, method=method)  # noqa: S310
        context = ssl.create_default_context(cadata=self.authority.decode())
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def freezes(self) -> None:
        """It takes connections and answers nothing."""
        self._processes[-1].send_signal(signal.SIGSTOP)

    def thaws(self) -> None:
        self._processes[-1].send_signal(signal.SIGCONT)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(120)

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wait(self) -> None:
        try:
            until(self._is_ready, 300, "the API server is ready")
        except AssertionError:
            log = (self._folder / "kube-apiserver.log").read_text()[-2000:]
            self.close()
            raise RuntimeError(f"the API server did not start: {log}") from None

    def _is_ready(self) -> bool:
        assert all(process.poll() is None for process in self._processes)
        try:
            return self.ask("GET", "/readyz")[0] == self.ask("GET", "/api/v1/namespaces/kube-node-lease")[0] == 200
        except (OSError, ssl.SSLError):
            return False


def _ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()
