"""Records the log of a healthy kubelet 1.20.2 at ``-v=4``: pods come and go, and the kubelet restarts.

``python -m tests.incidents.healthy`` writes ``tests/kubelet/diagnosis/recorded/healthy-1.20.2.log.gz``.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections import Counter
from pathlib import Path

from tests.incidents.machine import PODS, Machine, machine, until
from tests.kubelet.diagnosis.logs import RECORDED

FILE = RECORDED / "healthy-1.20.2.log.gz"
LINES = 52_000
PODS_AT_ONCE = 40
_LOG = "var/log/kubelet.log"
_PROBED = {
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
    "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 10},
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
    "env": [{"name": "STOP_SECONDS", "value": "1"}],
}


def recorded(made: Machine) -> bytes:
    made.write("etc/systemd/system/kubelet.service.d/log.conf", f"[Service]\nStandardError=append:/{_LOG}\n")
    made.kubelet(PODS, PODS)
    path, number = made.node.root / _LOG, 0
    while path.read_bytes().count(b"\n") < LINES:
        names = [f"web-{number}-{each}" for each in range(PODS_AT_ONCE)]
        for each, name in enumerate(names):
            made.pod(name, f"r.example/web:{each % 7}", grace=30, extra=_PROBED)
        _wait(path, number, "ContainerStarted")
        if number % 2:
            made.node.exec("systemctl", "restart", "kubelet")
        for name in names:
            made.remove(name)
        _wait(path, number, "ContainerDied")
        number += 1
    return path.read_bytes()


def _wait(path: Path, number: int, event: str) -> None:
    """Until there is a line about the sandbox and one about the container of each pod of a round."""
    line = re.compile(rf'SyncLoop \(PLEG\): "(web-{number}-\d+)-.*{event}'.encode())

    def seen() -> bool:
        counts = Counter(line.findall(path.read_bytes()[begin:]))
        return len(counts) == PODS_AT_ONCE and min(counts.values()) >= 2

    begin = path.read_bytes().find(f"web-{number}-".encode())
    until(event, seen)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, machine(Path(folder)) as made:
        FILE.write_bytes(gzip.compress(recorded(made), 9, mtime=0))


if __name__ == "__main__":
    main()
