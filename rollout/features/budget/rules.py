"""The time that the end of one pod may take, on the kubelets of each range of minors, against its grace period and a limit.

The arithmetic is in ``kubelet.restarts.termination``. Until the pod leaves the API, its volumes are unmounted and its
network is torn down: that time is not bounded by the pod's spec and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout.core.model.pods import LeavingPod
from rollout.core.text.terminal import printable, seconds_text
from rollout.kubelet.restarts.termination import DEDUCTED, ORDERED, OVERRIDDEN, Termination, budget

_RANGES = (
    (OVERRIDDEN - 1, f"up to 1.{OVERRIDDEN - 1}"),
    (OVERRIDDEN, f"1.{OVERRIDDEN} to 1.{DEDUCTED - 1}"),
    (DEDUCTED, f"1.{DEDUCTED}"),
    (ORDERED, f"1.{ORDERED} and later"),
)
"""The first minor of a range with its own rules (of the first range: its last), and the range for people."""


@dataclass(frozen=True, slots=True)
class RangeBudget:
    """The end of the pod on kubelets of a range. ``own``: the range of the asked kubelet, or none was asked."""

    kubelets: str
    end: Termination
    own: bool


@dataclass(frozen=True, slots=True)
class PodBudget:
    """``limit``: seconds that somebody waits for the end, ``None`` if not named."""

    pod: LeavingPod
    ranges: tuple[RangeBudget, ...]
    limit: float | None


def pod_budget(pod: LeavingPod, minor: int | None, limit: float | None) -> PodBudget:
    """With a minor: its range, and each later range for an upgrade."""
    own = max((first for first, _ in _RANGES if minor is not None and first <= minor), default=_RANGES[0][0])
    ranges = tuple(
        RangeBudget(text, budget(pod, first), minor is None or first == own)
        for first, text in _RANGES
        if minor is None or first >= own
    )
    return PodBudget(pod, ranges, limit)


def pod_budget_lines(found: PodBudget) -> Iterator[str]:
    yield printable(f"pod {found.pod.name}: terminationGracePeriodSeconds {found.pod.grace}")
    own = next(each for each in found.ranges if each.own)
    for each in found.ranges:
        change = "" if each.own else f"; {_change(own.end, each.end)}"
        yield f"  kubelet {each.kubelets}: {_length(each.end)}{_against(each.end, found)}{change}"
        for seconds, rule in each.end.parts if each.own or each.end.parts != own.end.parts else ():
            yield f"    {seconds:4} s  {printable(rule)}"
    yield "  Not counted: unmounting and network teardown, until the pod leaves the API."


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """Seconds and the rule that adds them."""

    seconds: int
    rule: str


@dataclass(frozen=True, slots=True)
class RangePart:
    """The end of the pod on kubelets of a range. ``seconds`` ``None``: no bound; ``within_limit`` ``None``: no limit was named."""

    kubelets: str
    seconds: float | None
    within_limit: bool | None
    parts: tuple[BudgetPart, ...]


@dataclass(frozen=True, slots=True)
class PodBudgetDocument:
    """How long the end of a pod may take."""

    pod: str
    termination_grace_period_seconds: int
    limit_seconds: float | None
    budgets: tuple[RangePart, ...]


def pod_budget_document(found: PodBudget) -> PodBudgetDocument:
    return PodBudgetDocument(
        pod=found.pod.name,
        termination_grace_period_seconds=found.pod.grace,
        limit_seconds=found.limit,
        budgets=tuple(
            RangePart(
                kubelets=each.kubelets,
                seconds=each.end.seconds,
                within_limit=None if found.limit is None else _within(each.end, found.limit),
                parts=tuple(BudgetPart(seconds, rule) for seconds, rule in each.end.parts),
            )
            for each in found.ranges
        ),
    )


def _length(end: Termination) -> str:
    return "no limit" if end.seconds is None else f"at most {seconds_text(end.seconds)}"


def _against(end: Termination, found: PodBudget) -> str:
    over = (end.seconds or 0.0) - max(found.pod.grace, 0)
    text = f", {seconds_text(over)} more than the grace period" if over > 0 else ""
    if found.limit is None:
        return text
    verdict = "within" if _within(end, found.limit) else "over"
    return f"{text}, {verdict} the limit of {seconds_text(found.limit)}"


def _within(end: Termination, limit: float) -> bool:
    return end.seconds is not None and end.seconds <= limit


def _change(own: Termination, other: Termination) -> str:
    if own.seconds is None or other.seconds is None or own.seconds == other.seconds:
        return "an upgrade changes nothing" if own.seconds == other.seconds else "an upgrade changes it"
    more = other.seconds - own.seconds
    return f"an upgrade makes it {seconds_text(abs(more))} {'longer' if more > 0 else 'shorter'}"
