"""How long a kubelet may take to end a pod that was deleted, by its own arithmetic, which is another one in each of four ages.

Source: ``killContainer`` and ``executePreStopHook`` in pkg/kubelet/kuberuntime/kuberuntime_container.go,
``calculateEffectiveGracePeriod`` in pkg/kubelet/pod_workers.go (1.22 on), kuberuntime_termination_order.go beside the first
(1.29 on); what is granted is the API server's, ``CheckGracefulDelete`` in pkg/registry/core/pod/strategy.go.

* up to 1.21: a preStop hook counts against the grace period, and the runtime is given what is left, 2 s at least; an override
  (only kubelets themselves pass one) replaces that number unchecked, so that a negative one reaches the runtime;
* 1.22 to 1.27: the grace period itself is always such an override, 1 s at least: what the hook took comes on top
  (kubernetes #115817, #117798), and the floor of 2 s is lost;
* 1.28: the override comes first, then the hook is deducted, then the floor of 2 s;
* 1.29 on: a pod with sidecars (restartable init containers) ends in order: each of them waits for the others within the same
  grace period, and all that still wait when it is over are given the 2 s at the same moment.

Hooks and waits are deducted in whole seconds, cut off: of a sidecar that has a hook and then waits a second may be given twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rollout.core.model.playbook import EvictToo
from rollout.core.model.pods import ContainerEnd, LeavingPod

# Which pods a drain does not evict by itself, because what they are or hold ends with them.
#
# The same two that ``kubectl drain`` asks ``--force`` and ``--delete-emptydir-data`` for.


def kept_back(pod: LeavingPod, evict_too: Collection[EvictToo]) -> str:
    """Why a pod may not be evicted, with what would let it; ``""``: it may, or it stays anyway."""
    if pod.stays:
        return ""
    if not pod.controlled and EvictToo.BARE not in evict_too:
        return f"nothing recreates pod {pod.name}; `drain: {{evictToo: [bare]}}` allows its eviction"
    if pod.local and EvictToo.LOCAL not in evict_too:
        return f"pod {pod.name} has an emptyDir; `drain: {{evictToo: [local]}}` allows its eviction"
    return ""


FLOOR = 2
"""Seconds every container gets where anything is checked at all (``minimumGracePeriodInSeconds``)."""
OVERRIDDEN, DEDUCTED, ORDERED = 22, 28, 29
"""The minors that always pass an override, that deduct hooks from it, and that end sidecars last."""


@dataclass(frozen=True, slots=True)
class Termination:
    """Seconds from a pod's deletion until its last container has been killed, at worst (``None``: no bound), and why so many."""

    seconds: float | None
    text: str


def budget(pod: LeavingPod, minor: int) -> Termination:
    """What a pod's end may take on a kubelet of this minor; what it was granted counts more than what it asks for."""
    ends = [_end(pod, each, minor) for each in pod.containers or (ContainerEnd(""),)]
    if minor >= ORDERED and any(each.sidecar for each in pod.containers):
        ends.append(_last(pod))
    return max(ends, key=_length)


def worst(pods: Iterable[LeavingPod], minor: int) -> tuple[Termination, LeavingPod] | None:
    """Of the pods that a drain makes go, the first of those that may take longest; ``None``: none is to go."""
    budgets = [(budget(pod, minor), pod) for pod in pods if not pod.stays]
    return max(budgets, key=lambda found: _length(found[0]), default=None)


def timeout(minor: int, grace: int, hook: int = 0, override: int | None = None) -> int | None:
    """The seconds a runtime is given to stop a container whose hook took ``hook`` of them.

    ``None``: a negative number, with which docker waits for ever and kills nothing (daemon/stop.go in moby 20.10).
    """
    if minor < DEDUCTED and override is not None:
        return override if override >= 0 else None
    return max((grace if override is None else override) - hook, FLOOR)


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
    if hook:
        return Termination(hook + given, _with_hook(container, minor, grace, hook, given))
    said = (
        f"its grace period of {given} s" if given == grace else f"a kubelet 1.{minor} gives every container {given} s"
    )
    return Termination(given, said)


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
    sidecars = [each for each in pod.containers if each.sidecar]
    twice = 1 if any(each.hook and not each.hook_sleeps for each in sidecars) else 0
    said = (
        f"sidecar {sidecars[0].name} waits for the others through the grace period of {grace} s and then has {FLOOR} s"
    )
    return Termination(grace + twice + FLOOR, said)


def _granted(pod: LeavingPod) -> int:
    """What the API server grants or has granted: of a negative grace period 1 s from 1.22 on; before, none, which is sooner."""
    if pod.deletion_grace is not None:
        return pod.deletion_grace
    return pod.grace if pod.grace >= 0 else 1


def _effective(granted: int, pod: LeavingPod) -> int:
    """``calculateEffectiveGracePeriod``: nothing granted means what the pod asks for, and 1 s is the least."""
    return max(granted or pod.grace, 1)


def _hook(container: ContainerEnd, grace: int) -> int:
    """What the hook takes at worst; it is cut off with the grace period, and not begun without one."""
    if not container.hook or grace <= 0:
        return 0
    return min(container.hook_sleeps or grace, grace)


def _length(found: Termination) -> float:
    return float("inf") if found.seconds is None else found.seconds
