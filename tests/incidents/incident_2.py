"""Incident 2: the end of a pod with two containers, a grace period of 5 s and a hook of 3 s for each.

Its kubelet had a patch that no release has. So the log of the write-up is judged as it is; the arithmetic of each range of
kubelets is printed by ``rollout diagnose pod``; and the same pod is ended by a real kubelet 1.20.2 without the patch.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.features.diagnose.rules.logs import RECORDED
from tests.incidents.machine import PODS, Machine, until
from tests.incidents.watching import seconds

GRACE, HOOK, STOP = 5, 3, 10
"""Seconds: of the pod, of each hook, and what a container needs after SIGTERM."""
LIMIT = "30s"
"""What the write-up's scheduler waited."""
_HOOK: dict[str, object] = {
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(HOOK)]}}},
    "env": [{"name": "STOP_SECONDS", "value": str(STOP)}],
}
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "krds", "namespace": "shop"},
    "spec": {"terminationGracePeriodSeconds": GRACE, "containers": [{"name": name, "image": "r.example/krds:1", **_HOOK} for name in ("agent", "krds")]},
}  # fmt: skip
_LINE = re.compile(
    r'^(\S+) \S+ kubelet\[\d+\]: .*\] (SyncLoop \(REMOVE, "file"\): "krds|.*?ContainerDied|Killing container ".*?" with a (\d+) second)',
    re.MULTILINE,
)


def from_its_log(made: Machine) -> dict[str, Any]:
    (made.folder / "incident-2.log").write_text((RECORDED / "incident-2.kubelet.log").read_text())
    found = json.loads(made.rollout("diagnose", "--logs", "incident-2.log", "--cluster", "rno", "-o", "json"))[
        "findings"
    ]
    return {each["id"]: {name: each[name] for name in ("confidence", "cause")} for each in found}


def matrix(made: Machine) -> Any:
    """By the range of kubelets: the most seconds, and which rule adds which."""
    (made.folder / "pod.json").write_text(json.dumps(POD))
    return json.loads(made.rollout("diagnose", "pod", "pod.json", "--within", LIMIT, "-o", "json"))


def measured(made: Machine) -> dict[str, Any]:
    """The same pod on a real kubelet 1.20.2: what it grants each container, and the seconds until both have ended."""
    made.kubelet(PODS, PODS)
    made.pod("krds", "r.example/krds:1", grace=GRACE, extra=_HOOK)
    until("the pod runs", lambda: 'reason="Started"' in made.log() and "krds" in made.log())
    made.remove("krds")
    until("it has ended", lambda: "ContainerDied" in made.log())
    lines = _LINE.findall(made.log())
    begin = next(seconds(at) for at, what, _ in lines if what.startswith("SyncLoop (REMOVE"))
    grants = sorted({int(grace) for _, what, grace in lines if what.startswith("Killing")})
    end = next(seconds(at) for at, what, _ in lines if what.endswith("ContainerDied"))
    return {"kubelet": "1.20.2", "granted": grants, "seconds": round(end - begin, 1)}
