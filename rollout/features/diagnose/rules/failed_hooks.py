"""PreStop hooks that failed, or that outlived the grace period. Sources: pkg/kubelet/kuberuntime/kuberuntime_container.go, pkg/kubelet/lifecycle/handlers.go."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, nodes_of, proof, since

ID = "prestop-failed"
LONGEST = 4096
"""Characters of an error that are read."""
_HOOK = re.compile(
    r"(?P<by>Exec|Http|HTTP) lifecycle hook \(.{0,2000}?\) for Container \"(?P<container>[\w.-]{1,253})\" in Pod \"(?P<name>[^\"_]{1,253})_(?P<namespace>[^\"_(]{1,63})\([^\"]{0,64}\"? failed - error: (?P<error>.*?)(?:, message: .*)?",
    re.DOTALL,
)
_HAD_ENDED = re.compile(
    r"code = NotFound |no running task found|is not (?:created or )?running|[Nn]o such container|container not running|task .{1,80} not found"
)
"""The container had ended before its hook began: there was nothing to wait for."""


def failed_hook(message: str) -> dict[str, str]:
    """Of the event ``FailedPreStopHook``: the error, the pod and the container of the hook. From 1.23 on it has none, for the sake of secrets."""
    match = _HOOK.fullmatch(message[:LONGEST])
    if match is None:
        return {}
    pod = f"{match['namespace']}/{match['name']}"
    return {"pod": pod, "container": match["container"], "error": match["error"].strip(": ")}


def hook_findings(facts: Facts) -> Iterator[Finding]:
    """One for each container and what happened to its hook."""
    names = {fact["id"]: (fact["pod"], fact["container"]) for fact in facts.of(Kind.NAMED, Kind.HOOK) if fact["id"]}
    failed: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    late: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.HOOK_FAILED, Kind.HOOK_DONE):
        pod, container = names.get(fact["id"], ("", ""))
        key = fact.node, fact.clock, fact["pod"] or pod, fact["container"] or container or fact["id"][:12]
        if fact.kind is Kind.HOOK_FAILED and not _HAD_ENDED.search(fact["error"]):
            failed[key].append(fact)
        elif fact["late"]:
            late[key].append(fact)
    for key, lines in (failed | late).items():
        _, _, pod, container = key
        held = (f"container {container}" if container else "a container") + (f" of pod {pod}" if pod else "")
        cause, fetch = (_late(lines, held), _LATE_NEXT) if key in late else (_failed(lines, held), _FAILED_NEXT)
        yield Finding(ID, Confidence.CERTAIN, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=fetch)


_FAILED_NEXT = "the hook's command or address by hand in a running container of the pod: whether the image has it, and its exit status"
_LATE_NEXT = "terminationGracePeriodSeconds of the pod, which has to exceed the hook and the end of its container together: rollout diagnose pod FILE"


def _failed(lines: list[Fact], held: str) -> str:
    error = next((line["error"].strip(": ") for line in reversed(lines) if line["error"]), "")
    told = f": {printable(error, 240)}" if error else ""
    times = max(len(lines), *(line.times for line in lines))
    return (
        f"the kubelet reports that the preStop hook of {held} failed{told}. It goes on with SIGTERM and does not wait for the rest of the hook. "
        f"A hook that outlives the grace period, or that ends the container's main process, ends with the container and is reported in the same way. "
        f"Reported {counted(times, 'time')}."
    )


def _late(lines: list[Fact], held: str) -> str:
    return (
        f"the preStop hook of {held} did not end within the grace period of {lines[-1]['late']} s. "
        "The kubelet no longer waited for it and went on with SIGTERM; most kubelets leave 2 s until SIGKILL then."
    )
