"""Incident 1: a pull that shows no progress for 74 s is cancelled by a deadline of 1 min, and passes with one of 5 min.

The write-up's kubelet had docker, and dockershim's deadline. Here the deadline is that of a real containerd, through CRI, and the
silence is a layer that stops in the middle of its download. All times are those of the incident.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from tests.features.diagnose.rules.logs import RECORDED
from tests.incidents.machine import CONTAINERD, Machine, plain_http, until
from tests.incidents.registry import Fault, Registry, serving

SILENCE = 74.0
"""Seconds. The write-up measured 1 min 14 s."""
FIRST = 7.0
"""Seconds that the first half of the layer takes. containerd looks every 10 s from the begin of the pull on, and cancels at the
first look at which the silence exceeds the deadline: 60 s are over at the look after 70 s or the one after 80 s, 74 s after 81 s.
"""
LONGEST = "600"
"""Seconds: the deadline of the request itself."""
_DEADLINE = '[plugins."io.containerd.grpc.v1.cri"]\n'
_CANCEL = re.compile(r'msg="(cancel pulling image .*?)"(?: |$)', re.MULTILINE)


def reproduced(made: Machine) -> dict[str, Any]:
    made.kubelet(CONTAINERD, CONTAINERD)
    path = "etc/containerd/config.toml"
    config = (made.node.root / path).read_text()
    made.write(path, config.replace(_DEADLINE, f'{_DEADLINE}  image_pull_progress_timeout = "1m0s"\n'))
    made.node.exec("systemctl", "restart", "containerd")
    with serving(Registry((made.gateway, 0), fault=Fault(silence=SILENCE, first=FIRST))) as registry:
        plain_http(made, registry.host)
        before = _pull(made, f"{registry.host}/cassini/cassini:1")
        log = made.log("containerd")
        cancelled = _CANCEL.search(log.replace('\\"', "'"))
        finding = _deadline(made, log)
        made.kubelet(CONTAINERD, CONTAINERD)
        began = time.time()
        made.change("imagePullProgressDeadline: 5m")
        applied = time.time() - began
        after = _pull(made, f"{registry.host}/cassini/cassini:2")
    return {
        "runtime": f"containerd {made.node.exec('containerd', '--version').split()[2]}",
        "silence": SILENCE, "deadline before": "1m0s", "before": before, "line": cancelled[1] if cancelled else "", "finding": finding,
        "apply": round(applied, 1), "deadline after": _in_force(made), "after": after,
    }  # fmt: skip


def _pull(made: Machine, image: str) -> dict[str, Any]:
    until(
        "containerd answers",
        lambda: "containerd" in made.node.exec("sh", "-c", "ls /run/containerd/containerd.sock || :"),
    )
    began = time.monotonic()
    command = f"/opt/kubernetes/pods-cri pull /run/containerd/containerd.sock {image} {LONGEST} 2>&1 || :"
    said = made.node.exec("sh", "-c", command)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "ended": "sha256:" in said and "rpc error" not in said,
        "said": _short(said),
    }


def _short(said: str) -> str:
    found = re.search(r"desc = .*?((?:[\w ]+: )?context canceled)", said, re.DOTALL)
    return found[1] if found else said.strip()[:19]


def _deadline(made: Machine, log: str) -> dict[str, Any]:
    (made.folder / "containerd.log").write_text(log)
    found = json.loads(made.rollout("diagnose", "--logs", "containerd.log", "--cluster", "real", "-o", "json"))[
        "findings"
    ]
    return next(
        ({name: each[name] for name in ("confidence", "cause", "proposal")} for each in found if each["id"] == "pull-progress-deadline"), {}
    )  # fmt: skip


def _in_force(made: Machine) -> str:
    found = re.search(
        r'image_pull_progress_timeout = "(.*?)"', (made.node.root / "etc/containerd/config.toml").read_text()
    )
    return found[1] if found else ""


def from_its_events(made: Machine) -> dict[str, Any]:
    """What ``diagnose`` reports of the events in the write-up, and of nothing else."""
    (made.folder / "events.txt").write_text((RECORDED / "incident-1.events.txt").read_text())
    found = json.loads(made.rollout("diagnose", "--events", "events.txt", "--cluster", "rno", "-o", "json"))["findings"]
    return {each["id"]: {name: each[name] for name in ("confidence", "cause", "proposal")} for each in found}
