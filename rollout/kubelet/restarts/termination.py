"""How long a kubelet may take to end a deleted pod; the computation differs between four ranges of minors.

Source: ``killContainer`` and ``executePreStopHook`` in pkg/kubelet/kuberuntime/kuberuntime_container.go,
``calculateEffectiveGracePeriod`` in pkg/kubelet/pod_workers.go (from 1.22), kuberuntime_termination_order.go beside the
first (from 1.29). The API server sets the granted period, ``CheckGracefulDelete`` in pkg/registry/core/pod/strategy.go.

* up to 1.21: a preStop hook counts against the grace period, and the runtime gets the rest, at least 2 s; an override
  (only kubelets themselves pass one) replaces that number unchecked, so a negative one reaches the runtime;
* 1.22 to 1.27: the grace period itself is always such an override, at least 1 s: the time of the hook is added to it
  (kubernetes #115817, #117798), and the minimum of 2 s is lost;
* 1.28: the override comes first, then the hook is deducted, then the minimum of 2 s applies;
* from 1.29: a pod with sidecars (restartable init containers) ends in order: each of them waits for the others within
  the same grace period, and all that still wait at its end get the 2 s at the same moment. Before, a preStop
  hook of the kind ``sleep`` is unknown, and fails at once (KEP-3960).

Hooks and waits are deducted in whole seconds, rounded down: a sidecar with a hook and a wait may get one second twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import ceil

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import EvictToo
from rollout.core.model.pods import ContainerEnd, LeavingPod

# Pods that a drain does not evict by itself, because the pod or its data would be lost.
#
# The same two kinds for which ``kubectl drain`` needs ``--force`` and ``--delete-emptydir-data``.


def kept_back(pod: LeavingPod, evict_too: Collection[EvictToo]) -> str:
    """Why a pod may not be evicted, and the setting that allows it; ``""``: it may be evicted, or it stays anyway."""
    if pod.stays:
        return ""
    if not pod.controlled and EvictToo.BARE not in evict_too:
        return f"nothing recreates pod {pod.name}; `drain: {{evictToo: [bare]}}` allows its eviction"
    if pod.local and EvictToo.LOCAL not in evict_too:
        return f"pod {pod.name} has an emptyDir; `drain: {{evictToo: [local]}}` allows its eviction"
    return ""


FLOOR = 2
"""Seconds that every container gets in minors with a minimum (``minimumGracePeriodInSeconds``)."""
OVERRIDDEN, DEDUCTED, ORDERED = 22, 28, 29
"""The first minors that always pass an override, that deduct hooks from it, and that end sidecars last."""


@dataclass(frozen=True, slots=True)
class Termination:
    """The most seconds from a pod's deletion until its last container is killed (``None``: no bound), and the cause.

    ``parts``: seconds and the rule that adds them; their sum is ``seconds``.
    """

    seconds: float | None
    text: str
    parts: tuple[tuple[int, str], ...] = ()


def budget(pod: LeavingPod, minor: int) -> Termination:
    """The time that a pod's end may take on a kubelet of this minor; a granted period overrides the pod's own."""
    running = tuple(_known(each, minor) for each in pod.containers)
    ends = [_end(pod, each, minor) for each in running or (ContainerEnd(""),)]
    if minor >= ORDERED and any(container.sidecar for container in pod.containers):
        ends.append(_last(pod))
    return max(ends, key=_length)


def _known(container: ContainerEnd, minor: int) -> ContainerEnd:
    """The container as a kubelet of this minor ends it."""
    fails = container.sleep_action and minor < ORDERED
    return replace(container, hook=False, hook_sleeps=0) if fails else container


def worst(pods: Iterable[LeavingPod], minor: int) -> tuple[Termination, LeavingPod] | None:
    """The longest end among the pods that a drain evicts, and the first such pod; ``None``: it evicts none."""
    budgets = [(budget(pod, minor), pod) for pod in pods if not pod.stays]
    return max(budgets, key=lambda found: _length(found[0]), default=None)


def timeout(minor: int, grace: int, hook: int = 0, override: int | None = None) -> int | None:
    """The seconds that a runtime gets to stop a container with a hook that took ``hook`` seconds.

    ``None``: a negative number, with which docker waits without a limit and kills nothing (daemon/stop.go in moby
    20.10).
    """
    if minor < DEDUCTED and override is not None:
        return override if override >= 0 else None
    return max((grace if override is None else override) - hook, FLOOR)


_SHELLS = re.compile(r"(?:/(?:usr/)?bin/)?(?:ba|da|a)?sh")
_SLEEP = re.compile(r"(?:/(?:usr/)?bin/)?sleep")
_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def exec_sleep(command: Sequence[str]) -> int:
    """The seconds of an exec hook that only sleeps: ``sleep 3`` or ``sh -c "sleep 3"``, rounded up; ``0``: another hook."""
    words = list(command)
    if len(words) == 3 and _SHELLS.fullmatch(words[0]) and words[1] in ("-c", "-ec"):
        words = words[2].strip().rstrip(";").split()
    times = [_TIME.fullmatch(word) for word in words[1:]]
    if not times or not _SLEEP.fullmatch(words[0]):
        return 0
    seconds = [float(found[1]) * _UNITS[found[2]] for found in times if found]
    return ceil(sum(seconds)) if len(seconds) == len(times) else 0


def _end(pod: LeavingPod, container: ContainerEnd, minor: int) -> Termination:
    """The end of one container that waits for no other."""
    granted = _granted(pod)
    override = _effective(granted, pod) if minor >= OVERRIDDEN else None
    grace = override if override is not None and minor >= DEDUCTED else granted
    hook = _hook(container, grace)
    given = timeout(minor, grace, hook, override)
    if given is None:
        return Termination(
            None, f"kubelet 1.{minor} passes {override} s to the runtime, and docker then waits without a limit"
        )
    if OVERRIDDEN <= minor < DEDUCTED:
        rest = "the whole grace period again: the hook is not deducted" if hook else "the grace period"
    elif grace - hook < given:
        rest = f"every container gets at least {FLOOR} s"
    else:
        rest = "the rest of the grace period" if hook else "the grace period"
    if container.sleep_action and not container.hook:
        rest += f"; the sleep action of the preStop hook is not known before 1.{ORDERED} and fails at once"
    kind = "sleeps" if container.hook_sleeps else "may use all of the grace period"
    parts = ((hook, f"the preStop hook of {container.name} {kind}"), (given, rest))[0 if hook else 1 :]
    if hook:
        return Termination(hook + given, _with_hook(container, minor, grace, hook, given), parts)
    message = (
        f"its grace period of {given} s" if given == grace else f"a kubelet 1.{minor} gives every container {given} s"
    )
    return Termination(given, message, parts)


def _with_hook(container: ContainerEnd, minor: int, grace: int, hook: int, given: int) -> str:
    takes = f"the preStop hook of {container.name} " + (
        f"sleeps {hook} s" if container.hook_sleeps else f"may use all {grace} s of the grace period"
    )
    if OVERRIDDEN <= minor < DEDUCTED:
        return f"{takes}, which a kubelet 1.{minor} does not deduct: the container then has {given} s"
    if hook + given == grace:
        return f"{takes} of its grace period of {grace} s"
    return f"{takes}, and the container then has {given} s"


def _last(pod: LeavingPod) -> Termination:
    """The end of the sidecars: they wait for the others until the grace period is over."""
    grace = _effective(_granted(pod), pod)
    sidecars = [container for container in pod.containers if container.sidecar]
    twice = 1 if any(sidecar.hook and not sidecar.hook_sleeps for sidecar in sidecars) else 0
    message = (
        f"sidecar {sidecars[0].name} waits for the others through the grace period of {grace} s and then has {FLOOR} s"
    )
    parts = (
        (grace, "the other containers end within the grace period, and the sidecars wait for them"),
        (twice, "a sidecar's hook and its wait are each rounded down to a second"),
        (FLOOR, f"every container gets at least {FLOOR} s, the sidecars after the others"),
    )
    return Termination(grace + twice + FLOOR, message, tuple(part for part in parts if part[0]))


def _granted(pod: LeavingPod) -> int:
    """The period from the API server. A negative one is 1 s from 1.22 on; before, it was none, which is shorter."""
    if pod.deletion_grace is not None:
        return pod.deletion_grace
    return pod.grace if pod.grace >= 0 else 1


def _effective(granted: int, pod: LeavingPod) -> int:
    """``calculateEffectiveGracePeriod``: without a granted period the pod's own, and at least 1 s."""
    return max(granted or pod.grace, 1)


def _hook(container: ContainerEnd, grace: int) -> int:
    """The longest time of the hook; the grace period ends it, and it does not start without one."""
    if not container.hook or grace <= 0:
        return 0
    return min(container.hook_sleeps or grace, grace)


def _length(termination: Termination) -> float:
    return float("inf") if termination.seconds is None else termination.seconds
