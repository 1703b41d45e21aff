"""Incident 1 with its own parts: a kubelet 1.20.2 with dockershim pulls through a real dockerd 20.10.

A pod's first image is that of its sandbox, and it passes the same deadline: so no container has to run.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from tests.incidents.machine import Machine, until
from tests.incidents.registry import Fault, Registry, serving
from tests.incidents.watching import seconds, since, starts

SILENCE = 74.0
"""Seconds. The write-up measured 1 min 14 s."""
FIRST = 7.0
"""Seconds that the first half of the layer takes. dockershim looks every 10 s, from the begin of the pull on."""
_DOCKERD = """\
[Service]
ExecStart=/opt/kubernetes/dockerd --containerd=/run/containerd/containerd.sock --iptables=false --ip6tables=false --ip-masq=false \\
  --ip-forward=false --bridge=none --storage-driver=vfs --data-root=/run/docker-data --exec-root=/run/docker-exec \\
  --exec-opt native.cgroupdriver=cgroupfs --insecure-registry={registry}
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""
_FLAGS = ("--container-runtime=docker", "--cgroup-driver=cgroupfs", "--v=3")
_LINE = r"^(\S+) \S+ kubelet\[\d+\]: .*\] "
_ASKED = re.compile(_LINE + "Pulling image .* without credentials", re.MULTILINE)
_CUT = re.compile(_LINE + r"(Cancel pulling image .* because of no progress for \S+),", re.MULTILINE)
_PULLED = re.compile(_LINE + r"Stop pulling image .*Downloaded newer image", re.MULTILINE)


def reproduced(made: Machine) -> dict[str, Any]:
    with serving(Registry((made.gateway, 0), fault=Fault(silence=SILENCE, first=FIRST))) as registry:
        made.write("etc/systemd/system/docker.service", _DOCKERD.format(registry=registry.host))
        made.node.exec("ln", "-s", "/bin/true", "/usr/bin/runc")  # dockerd looks for it at its start
        made.node.exec("systemctl", "daemon-reload")
        made.node.exec("systemctl", "enable", "--now", "docker")
        until("dockerd answers", lambda: "API listen on" in made.log("docker"))
        made.start_kubelet(*_FLAGS, f"--pod-infra-container-image={registry.host}/pause:1")
        made.pod("first", "r.example/web:1")
        until("the pull is cancelled", lambda: _CUT.search(made.log()))
        log = made.log()
        began = time.time()
        made.change("imagePullProgressDeadline: 5m")
        applied = time.time() - began
        until("the pull ends", lambda: _PULLED.search(made.log()))
        after = since(made.log(), starts(made.log())[-1])
    cut = _CUT.search(log)
    return {
        "runtime": "dockershim 1.20.2 over dockerd 20.10.24", "before": _seconds(log, _CUT), "line": cut[2] if cut else "",
        "finding": _finding(made, log), "apply": round(applied, 1), "after": _seconds(after, _PULLED),
        "cancelled after the remedy": len(_CUT.findall(after)),
    }  # fmt: skip


def _seconds(log: str, end: re.Pattern[str]) -> float:
    """From the first pull to the first such line."""
    begin, found = _ASKED.search(log), end.search(log)
    assert begin is not None
    assert found is not None
    return round(seconds(found[1]) - seconds(begin[1]), 1)


def _finding(made: Machine, log: str) -> dict[str, Any]:
    (made.folder / "kubelet.log").write_text(log)
    found = json.loads(made.rollout("diagnose", "--logs", "kubelet.log", "--cluster", "real", "-o", "json"))["findings"]
    return next(
        ({name: each[name] for name in ("confidence", "cause", "proposal")} for each in found if each["id"] == "pull-progress-deadline"), {}
    )  # fmt: skip
