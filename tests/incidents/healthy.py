"""Records the log of a healthy kubelet 1.20.2 and of its containerd, in which ``diagnose`` must find nothing.

``python -m tests.incidents.healthy --minutes 60 --verbosity 4`` writes ``results/healthy.md``; ``--log FILE`` keeps the log. Pods come
and go, each in its own way; their images come from a registry through containerd; the kubelet restarts, at times at which no pod
begins or ends. How often each preStop hook ran is counted by the runtime that ran it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.incidents.machine import CONTAINERD, PODS, Machine, machine, plain_http, until
from tests.incidents.registry import Registry, serving
from tests.places import ROOT

PAGE = ROOT / "results/healthy.md"
RESULTS = Path(__file__).with_name("healthy.json")
LIVES = 70.0, 200.0
"""Seconds from a pod's manifest to its removal."""
APART = 5.0, 15.0
"""Seconds between two pods."""
RESTARTS = 900.0
"""Seconds between two restarts of the kubelet."""
IMAGES = 60
SIZE = 300_000
_FIFO = "var/log/kubelet.log"
_PROBES = {
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
    "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 10},
}
WAYS = ((30, 1, 1), (15, 5, 2), (10, 3, 1), (30, 0, 0.2), (30, 0, 20), (5, 0, 60), (60, 10, 5))
"""Of a container: its grace period, the seconds of its preStop hook (0: it has none), and those it needs after SIGTERM."""


@dataclass(slots=True)
class _Pods:
    """The pods that are there, and those that have been; by name, when each is to go."""

    made: Machine
    host: str
    chance: random.Random
    due: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def add(self) -> None:
        grace, hook, stop = WAYS[self.count % len(WAYS)]
        name = f"web-{self.count}"
        extra: dict[str, object] = {**_PROBES, "env": [{"name": "STOP_SECONDS", "value": str(stop)}]}
        if hook:
            extra["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", str(hook)]}}}
        self.made.pod(name, f"{self.host}/shop/web:{self.chance.randrange(IMAGES)}", grace=grace, extra=extra)
        self.due[name] = time.monotonic() + self.chance.uniform(*LIVES)
        self.count += 1

    def remove(self, before: float) -> None:
        for name in [name for name, at in self.due.items() if at <= before]:
            self.made.remove(name)
            del self.due[name]

    def settled(self) -> bool:
        """Whether all that came have started, and all that went have ended."""
        told = self.made.log("pods-cri")
        ended = self.count - len(self.due)
        return told.count("container started") >= self.count and told.count("container ended") >= ended


def recorded(made: Machine, log: Path, *, minutes: float, verbosity: int) -> dict[str, Any]:
    """Runs the pods, and tells what happened. The log of the kubelet is in ``log``, outside of the node, which has a small disk."""
    made.write("etc/systemd/system/kubelet.service.d/log.conf", f"[Service]\nStandardError=append:/{_FIFO}\n")
    restarts, chance = 0, random.Random(1)  # noqa: S311 - the same pods each time
    with serving(Registry((made.gateway, 0), size=SIZE)) as registry, _drained(made.node.root / _FIFO, log):
        plain_http(made, registry.host)
        made.kubelet(PODS, CONTAINERD, verbosity=verbosity)
        pods = _Pods(made, registry.host, chance)
        began = restarted = time.monotonic()
        while (now := time.monotonic()) - began < minutes * 60:
            if now - restarted > RESTARTS:
                until("no pod begins or ends", pods.settled)
                made.node.exec("systemctl", "restart", "kubelet")
                restarted, restarts = time.monotonic(), restarts + 1
                until("the kubelet has started", partial(_starts, log, restarts + 1))
            pods.remove(now)
            pods.add()
            until("the next pod comes", partial(_is_over, now + chance.uniform(*APART)))
        until("no pod begins", pods.settled)
        pods.remove(float("inf"))
        until("all pods have ended", pods.settled)
        seconds = time.monotonic() - began
    runs = Counter(re.findall(r"hook begins (\w+)", made.log("pods-cri")))
    content = log.read_bytes()
    return {
        "verbosity": verbosity, "minutes": round(seconds / 60, 1), "restarts": restarts, "pods": pods.count,
        "pulls": len(re.findall(r'PullImage .* returns image reference', made.log("containerd"))), "hooks": runs.total(),
        "hooks that ran twice": sum(times > 1 for times in runs.values()), "lines": content.count(b"\n"),
        "load": round(os.getloadavg()[2], 1),
    }  # fmt: skip


def _is_over(at: float) -> bool:
    return time.monotonic() >= at


def _starts(log: Path, number: int) -> bool:
    return log.read_bytes().count(b"Starting kubelet main sync loop") >= number


@contextmanager
def _drained(fifo: Path, log: Path) -> Iterator[None]:
    """What is written into the pipe goes to the file. It stays open for reading, so that no writer waits or fails."""
    os.mkfifo(fifo)
    end = os.open(fifo, os.O_RDWR)
    with log.open("wb") as file:
        reader = subprocess.Popen(["cat"], stdin=end, stdout=file)
        try:
            yield
        finally:
            reader.kill()
            reader.wait()
            os.close(end)


def diagnosed(made: Machine, *logs: Path) -> list[dict[str, str]]:
    words = [word for log in logs for word in ("--logs", str(log))]
    found = json.loads(made.rollout("diagnose", *words, "--cluster", "real", "-o", "json"))["findings"]
    return [{name: each[name] for name in ("id", "confidence", "cause")} for each in found]


_HEAD = """\
# A kubelet with nothing wrong

`make healthy-log` runs a real kubelet 1.20.2 on a real systemd node, with a real containerd that pulls from a registry. Pods come and go: with and without preStop hooks, quick, slow, and killed at
the end of their grace periods. The kubelet restarts when no pod begins or ends. `rollout diagnose` reads the kubelet's log and containerd's journal, and must find nothing. A pod's container has no process;
the runtime that stands for it counts how often its hook runs.

| verbosity | minutes | restarts | pods that came and went | images pulled | preStop hooks | of them more than once | lines | findings |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page(results: dict[str, Any]) -> str:
    columns = ("minutes", "restarts", "pods", "pulls", "hooks", "hooks that ran twice", "lines")
    rows = [
        f"| `-v={name}` | {' | '.join(str(run[column]) for column in columns)} | {_told(run['findings'])} |"
        for name, run in sorted(results.items())
    ]
    return _HEAD + "\n".join(rows) + "\n"


def _told(findings: list[dict[str, str]]) -> str:
    return "; ".join(f"`{each['id']}`, {each['confidence']}: {each['cause']}" for each in findings) or "none"


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.incidents.healthy", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--verbosity", type=int, default=4)
    parser.add_argument("--log", type=Path, help="keep the log here, compressed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollout-healthy-") as folder, machine(Path(folder)) as made:
        kubelet, containerd = Path(folder) / "kubelet.log", Path(folder) / "containerd.log"
        run = recorded(made, kubelet, minutes=given.minutes, verbosity=given.verbosity)
        containerd.write_text(made.log("containerd"))
        if given.log:
            given.log.write_bytes(gzip.compress(kubelet.read_bytes(), 9, mtime=0))
            given.log.with_suffix(".containerd.gz").write_bytes(gzip.compress(containerd.read_bytes(), 9, mtime=0))
            given.log.with_suffix(".runtime.log").write_text(made.log("pods-cri"))
        run["findings"] = diagnosed(made, kubelet, containerd)
    print(json.dumps(run, indent=1))  # noqa: T201 - a program's own words
    found = results() | {str(given.verbosity): run}
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
