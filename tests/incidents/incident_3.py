"""Incident 3: one of two registries hangs, and the pulls from the other one wait in the kubelet's queue.

Four steps on a real kubelet 1.20.2: the queue and its release; what ``rollout diagnose`` reports of it; the remedy by ``rollout
plan`` and ``rollout apply`` while a pull hangs; and another pull that ends while it still hangs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.incidents.machine import CONTAINERD, PODS, Machine, plain_http, until
from tests.incidents.registry import Registry, serving
from tests.incidents.watching import Pulled, begun, ended, of_pod, pulls, since, starts

BEHIND = (5.0, 25.0, 45.0, 65.0)
"""When pods that need the other registry come, in seconds after the pull that hangs."""
HELD = 80.0
"""Seconds for which the registry hangs in the first step."""
WATCHED = 20.0
"""Seconds for which a pull must wait in the third step, before the remedy."""


@dataclass(frozen=True, slots=True)
class Registries:
    """Two of them: ``stall`` stops the first one, ``heal`` lets it go on."""

    slow: str
    quick: str
    stall: Callable[[], object]
    heal: Callable[[], object]


def over_pods_cri(made: Machine) -> dict[str, Any]:
    """The runtime is ours: an image comes at once, or not at all while its registry is stalled."""
    slow, quick = "slow.example:9083", "quick.example:9083"
    switch = f"/run/stalled/{slow}"
    registries = Registries(
        slow, quick, lambda: made.node.exec("touch", switch), lambda: made.node.exec("rm", "-f", switch)
    )
    return _reproduced(made, "a runtime that stalls", PODS, registries)


def over_containerd(made: Machine) -> dict[str, Any]:
    """Images come from real registries through a real containerd; the first registry stops in the middle of layers."""
    with serving(Registry((made.gateway, 0))) as slow, serving(Registry((made.gateway, 0))) as quick:
        for each in (slow, quick):
            plain_http(made, each.host)
        registries = Registries(slow.host, quick.host, slow.fault.flows.clear, slow.fault.flows.set)
        version = made.node.exec("containerd", "--version").split()[2]
        return _reproduced(made, f"containerd {version}", CONTAINERD, registries)


def _reproduced(made: Machine, runtime: str, images: str, registries: Registries) -> dict[str, Any]:
    made.kubelet(PODS, images, verbosity=3)
    before, finding = _queue(made, registries)
    after = _remedy(made, registries)
    return {"runtime": runtime, "before": before, "finding": finding, "after": after}


def _queue(made: Machine, registries: Registries) -> tuple[dict[str, Any], dict[str, Any]]:
    began = time.time()
    registries.stall()
    made.pod("slow-1", f"{registries.slow}/ais/platform:1")
    first = until("the pull that hangs begins", lambda: begun(made.log(), "slow-1"))
    for number, after in enumerate(BEHIND):
        until("the next pod comes", lambda after=after: time.time() >= first + after)  # type: ignore[misc]
        made.pod(f"web-{number}", f"{registries.quick}/shop/web:{number}")
    until("the registry has hung long enough", lambda: time.time() >= first + HELD)
    held = pulls(since(made.log(), began))
    registries.heal()
    until("all pulls end", lambda: all(ended(made.log(), f"web-{number}") for number in range(len(BEHIND))))
    log = since(made.log(), began)
    done = [each for each in pulls(log) if each.reason == "Pulled"]
    waited = [each for each in done if "slow" not in each.pod]
    blocker = next(each for each in done if "slow" in each.pod)
    return (
        {
            "ended while it hung": sum(each.end is not None for each in held),
            "blocker": round(blocker.seconds, 1),
            "waited": [round(each.seconds, 1) for each in waited],
            "ended after the blocker": round(max(each.end or 0.0 for each in waited) - (blocker.end or 0.0), 2),
        },
        diagnosed(made, began),
    )


def _remedy(made: Machine, registries: Registries) -> dict[str, Any]:
    registries.stall()
    made.pod("slow-2", f"{registries.slow}/ais/platform:2")
    first = until("the second pull that hangs begins", lambda: begun(made.log(), "slow-2"))
    made.pod("web-waits", f"{registries.quick}/shop/waits:1")
    until("the pull waits", lambda: begun(made.log(), "web-waits"))
    until("it has waited long enough", lambda: time.time() >= first + WATCHED)
    waiting = not ended(made.log(), "web-waits")
    applied = time.time()
    made.change("serializeImagePulls: false")
    done = time.time()
    until("the pull that waited ends", lambda: ended(made.log(), "web-waits"))
    made.pod("web-new", f"{registries.quick}/shop/new:1")
    until("another pull ends", lambda: ended(made.log(), "web-new"))
    hangs = not ended(made.log(), "slow-2")
    log = made.log()
    registries.heal()
    until("the pull that hung ends", lambda: ended(made.log(), "slow-2"))
    restarted = next(at for at in starts(log) if at > applied)
    return {
        "waited before": waiting,
        "apply": round(done - applied, 1),
        "ended after the restart": round((_last(log, "web-waits").end or 0.0) - restarted, 1),
        "new pull": round(_last(log, "web-new").seconds, 2),
        "the other one still hung": hangs,
        "finding": diagnosed(made, restarted),
    }


def _last(log: str, pod: str) -> Pulled:
    return [each for each in of_pod(log, pod) if each.reason == "Pulled"][-1]


def diagnosed(made: Machine, at: float) -> dict[str, Any]:
    """Of the journal of kubelet and containerd since then: the ids of the findings, and what is proposed for the queue."""
    (made.folder / "kubelet.log").write_text(since(made.log("kubelet", "containerd"), at))
    found = json.loads(made.rollout("diagnose", "--logs", "kubelet.log", "--cluster", "real", "-o", "json"))["findings"]
    queue = next((each for each in found if each["id"] == "serial-pull-queue"), None)
    return {
        "ids": sorted({each["id"] for each in found}),
        **(
            {"confidence": queue["confidence"], "cause": queue["cause"], "proposal": queue["proposal"]} if queue else {}
        ),
    }
