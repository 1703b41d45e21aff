"""Records the log of a healthy kubelet 1.20.2 at ``-v=4``: pods come and go, and the kubelet restarts.

``python -m tests.incidents.healthy`` writes ``tests/features/diagnose/rules/recorded/healthy-1.20.2.log.gz``.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from tests.features.diagnose.rules.logs import RECORDED
from tests.incidents.machine import PODS, Machine, machine, until

FILE = RECORDED / "healthy-1.20.2.log.gz"
LINES = 52_000
ROUNDS = 6
PODS_AT_ONCE = 30
_LOG = "var/log/kubelet.log"
_PROBED = {
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
    "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
    "env": [{"name": "STOP_SECONDS", "value": "1"}],
}


def recorded(made: Machine) -> bytes:
    made.write("etc/systemd/system/kubelet.service.d/log.conf", f"[Service]\nStandardError=append:/{_LOG}\n")
    made.kubelet(PODS, PODS)
    path, number = made.node.root / _LOG, 0
    while number < ROUNDS or path.read_bytes().count(b"\n") < LINES:
        names = [f"web-{number}-{each}" for each in range(PODS_AT_ONCE)]
        for each, name in enumerate(names):
            made.pod(name, f"r.example/web:{each % 7}", grace=30, extra=_PROBED)
        until("the pods run", partial(_have_started, path, number))
        if number % 2:
            made.node.exec("systemctl", "restart", "kubelet")
        for name in names:
            made.remove(name)
        until("the pods have ended", partial(_have_ended, path, number))
        number += 1
    return path.read_bytes()


def _have_started(path: Path, number: int) -> bool:
    """Whether there is a line about the sandbox and one about the container of each pod of a round."""
    line = re.compile(rf'SyncLoop \(PLEG\): "(web-{number}-\d+)-.*ContainerStarted'.encode())
    content = path.read_bytes()
    counts = Counter(line.findall(content, max(content.find(f"web-{number}-".encode()), 0)))
    return len(counts) == PODS_AT_ONCE and min(counts.values()) >= 2


def _have_ended(path: Path, number: int) -> bool:
    """Whether all containers of all rounds so far have ended. Each is killed once, also by a kubelet that has just started."""
    return path.read_bytes().count(b"exited normally") >= PODS_AT_ONCE * (number + 1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, machine(Path(folder)) as made:
        FILE.write_bytes(gzip.compress(recorded(made), 9, mtime=0))


if __name__ == "__main__":
    main()
