"""One round of draining a node through the API server, and the lifting of its cordon.

A round: cordon the node if it is not yet, evict every pod that is to go and is not ending already, and say who is still there.
Budgets are the API server's matter; what it accepts is not gone, and a node is empty only when its pods are *gone*. Pods that a
drain leaves (of daemon sets, static ones, those that are over) stay. The wait has an end: the playbook's, and beyond it only
where all that is left are pods that end already and whose kubelet may still take that long, by its own arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rollout.app.ports import Clock, Cluster
from rollout.core.model.playbook import Drain
from rollout.core.model.pods import Cordon, Eviction, EvictionAnswer, LeavingPod
from rollout.core.run.drains import REFERENCE
from rollout.core.run.events import Trigger
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.errors import AwayError, RemoteError
from rollout.kubelet.restarts.termination import Termination, budget, kept_back

ASK_SECONDS = 10.0
"""Seconds for one question."""

ROUND_SECONDS = 20.0
"""Seconds after which a round asks for no more evictions: the next one does."""

SOON, LATER = 2.0, 5.0
"""Seconds until the next round, while pods end; while some may not go."""

LATEST = 30.0
"""Seconds until the next round at most, whatever a budget asks to wait."""

SLACK = 15.0
"""Seconds from the end of a pod's last container until the API server has it gone, with time to spare."""

MOST_NEWCOMERS = 10
"""Pods that come to a cordoned node and are evicted again, before its drain is given up: they would come for ever."""

_FINAL = frozenset({"forbidden", "no-endpoint", "no-such-node", "not-found"})
"""References of errors that asking again does not mend."""

SHOWN = 3


@dataclass(frozen=True, slots=True)
class DrainRound:
    """How a round went: ``message`` is what it waits for or why it is over, ``again`` the seconds until the next."""

    trigger: Trigger
    message: str = ""
    again: float = 0.0

    @property
    def reference(self) -> str:
        return REFERENCE if self.trigger is Trigger.NOT_DRAINED else ""


class NotOursError(Exception):
    """Whether the node is still this controller's is not so, or not known: ``refused`` says which."""

    def __init__(self, *, refused: bool) -> None:
        super().__init__("not ours")
        self.refused = refused


@dataclass(slots=True)
class Drains:
    """The drains of one run. Called on many threads, on one at a time for a node.

    ``ending`` is since when a pod, by its uid, is known to end; ``latest``, of a node all of whose pods end, until when the last of
    them may; ``found`` are the uids of its first round, ``newcomers`` how many others were evicted since.
    """

    run: str
    policy: Drain
    over_others: bool  # others' cordons are no reason to leave a node alone
    cluster: Cluster
    clock: Clock
    ending: dict[str, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    found: dict[str, frozenset[str]] = field(default_factory=dict)
    newcomers: dict[str, int] = field(default_factory=dict)

    def round(self, node: str, minor: int, counter: int, left: float, check: Callable[[], None]) -> DrainRound:
        """``counter``: of the token; ``left``: seconds that the pods still have. ``check`` raises ``NotOursError``; it is asked
        after the cordon and before each eviction: a controller that was frozen in between has been taken over, and its cordon is lifted again.
        """
        try:
            said = self._round(node, minor, counter, left, check)
        except RemoteError as error:
            message = f"the API server could not be asked: {error.message} [{error.reference}]"
            final = error.reference in _FINAL and not isinstance(error, AwayError)
            if not final and self.may_wait(node, left):
                return DrainRound(Trigger.DRAINING, message, LATER)
            said = DrainRound(Trigger.NOT_DRAINED, message)
        if said.trigger is not Trigger.DRAINING:
            for known in (self.latest, self.found, self.newcomers):
                known.pop(node, None)
        return said

    def may_wait(self, node: str, left: float) -> bool:
        """Whether a question that was not answered is one to ask again: its pods have time, or are in their own."""
        return bool(left) or self.clock.now() < self.latest.get(node, 0.0)

    def _round(self, node: str, minor: int, counter: int, left: float, check: Callable[[], None]) -> DrainRound:
        whose = self.cluster.cordon(node, self.run, counter, ASK_SECONDS)
        try:
            check()
        except NotOursError as error:
            if error.refused and whose is Cordon.OURS:
                self.uncordon(node, counter)
            raise
        if whose is not Cordon.OURS and not (whose is Cordon.OTHERS and self.over_others):
            return DrainRound(Trigger.NOT_DRAINED, _WHOSE[whose])
        pods = [pod for pod in self.cluster.leaving(node, ASK_SECONDS) if not pod.stays]
        if not pods:
            return DrainRound(Trigger.DRAINED)
        self._note(pod for pod in pods if pod.deletion_grace is not None)
        self.found.setdefault(node, frozenset(pod.uid for pod in pods))
        lost = [said for pod in pods if pod.deletion_grace is None and (said := kept_back(pod, self.policy.evict_too))]
        if lost:
            return DrainRound(Trigger.NOT_DRAINED, _listed(lost))
        went = self._evict(node, pods, minor, check) if left else self._overtime(pods, minor)
        self._note_latest(node, pods, minor)
        return went

    def _note_latest(self, node: str, pods: Sequence[LeavingPod], minor: int) -> None:
        """As long as a pod does not end yet, or may for ever, there is no such time."""
        ends = [self._left(pod, budget(pod, minor)) for pod in pods if pod.uid in self.ending]
        bounded = [end for end in ends if end is not None]
        self.latest[node] = self.clock.now() + max(bounded) if len(bounded) == len(pods) else 0.0

    def _note(self, pods: Iterable[LeavingPod]) -> None:
        for pod in pods:
            self.ending.setdefault(pod.uid, self.clock.now())

    def _evict(self, node: str, pods: Sequence[LeavingPod], minor: int, check: Callable[[], None]) -> DrainRound:
        """Ask for those that do not end yet, within the round's time; a pod that may never go ends the drain."""
        until = self.clock.now() + ROUND_SECONDS
        blocked: list[str] = []
        wait = SOON
        for pod in pods:
            if pod.deletion_grace is not None or self.clock.now() >= until:
                continue
            check()
            answer = self._ask_to_go(pod)
            said = f"pod {pod.name}: {printable(answer.message)}"
            if answer.eviction is Eviction.REFUSED:
                return DrainRound(Trigger.NOT_DRAINED, f"an eviction was refused for good: {said}")
            if answer.eviction is Eviction.BLOCKED:
                blocked.append(said)
                wait = max(wait, LATER, min(answer.retry_after, LATEST))
            else:
                self._note([pod])
                if self._comes_for_ever(node, pod):
                    return DrainRound(
                        Trigger.NOT_DRAINED, f"pods keep coming although it is cordoned: {pod.name} tolerates that"
                    )
        waits = [f"{_still(pods)} to go"]
        if blocked:
            waits.append(f"a budget keeps {counted(len(blocked), 'pod')}: {_listed(blocked)}")
        slow = self._slowest([pod for pod in pods if pod.uid in self.ending], minor)
        if slow:
            waits.append(slow)
        return DrainRound(Trigger.DRAINING, "; ".join(waits), wait)

    def _ask_to_go(self, pod: LeavingPod) -> EvictionAnswer:
        """A 429 without a budget is of this pod only (an admission webhook), or of a busy server: either way others are asked, too."""
        try:
            return self.cluster.evict(pod, ASK_SECONDS)
        except AwayError as error:
            if error.reference != "http-429":
                raise
            return EvictionAnswer(Eviction.BLOCKED, error.message)

    def _comes_for_ever(self, node: str, pod: LeavingPod) -> bool:
        """Whether it is one too many of those that came after the cordon."""
        if pod.uid not in self.found.get(node, ()):
            self.newcomers[node] = self.newcomers.get(node, 0) + 1
        return self.newcomers.get(node, 0) > MOST_NEWCOMERS

    def _slowest(self, pods: Sequence[LeavingPod], minor: int) -> str:
        """The one that may take longest still."""
        ends = [(self._left(pod, found), pod, found) for pod in pods for found in (budget(pod, minor),)]
        bounded = [each for each in ends if each[0] is not None]
        if len(bounded) < len(ends):
            pod, found = next((pod, found) for left, pod, found in ends if left is None)
            return f"pod {pod.name} may take for ever to end: {found.text}"
        if not bounded:
            return ""
        left, pod, found = max(bounded, key=lambda each: each[0] or 0.0)
        return f"pod {pod.name} may take {seconds_text(left or 0.0)} more to end ({found.text})"

    def _left(self, pod: LeavingPod, found: Termination) -> float | None:
        """Seconds its kubelet may still take; ``None``: without a bound."""
        if found.seconds is None:
            return None
        return max(0.0, self.ending[pod.uid] + found.seconds + SLACK - self.clock.now())

    def _overtime(self, pods: Sequence[LeavingPod], minor: int) -> DrainRound:
        """Their time is over. Deletion that is slow but in time is waited for; nothing else is."""
        there = [pod for pod in pods if pod.deletion_grace is None]
        if there:
            return DrainRound(Trigger.NOT_DRAINED, f"in time {_still(there)} could not go: {_listed(_names(there))}")
        over = [said for pod in pods if (said := self._beyond(pod, budget(pod, minor)))]
        if over:
            return DrainRound(Trigger.NOT_DRAINED, f"deleted in time, and not gone: {_listed(over)}")
        said = f"its time is over and is extended: deletion is slow, not scheduling; {self._slowest(pods, minor)}"
        return DrainRound(Trigger.DRAINING, said, SOON)

    def _beyond(self, pod: LeavingPod, found: Termination) -> str:
        """Why a pod that ends is not waited for any longer; ``""``: it still may take its time."""
        since = seconds_text(self.clock.now() - self.ending[pod.uid])
        left = self._left(pod, found)
        if left is None:
            return f"pod {pod.name} ends for {since} and may for ever: {found.text}"
        if left:
            return ""
        held = f", held by {', '.join(printable(name, 80) for name in pod.held_by)}" if pod.held_by else ""
        return f"pod {pod.name} ends for {since}, where its kubelet may take {seconds_text(found.seconds or 0.0)}{held}"

    def uncordon(self, node: str, counter: int) -> DrainRound:
        """Lift the cordon that bears this run's mark and no newer token; others' are not looked at twice."""
        try:
            whose = self.cluster.uncordon(node, self.run, counter, ASK_SECONDS)
        except RemoteError as error:
            return DrainRound(Trigger.STILL_CORDONED, f"{error.message} [{error.reference}]")
        if whose is Cordon.NEWER:
            return DrainRound(Trigger.STILL_CORDONED, _WHOSE[whose])
        if whose is Cordon.OURS:
            return DrainRound(Trigger.STILL_CORDONED, "the API server says that it is still there")
        return DrainRound(Trigger.UNCORDONED)


_WHOSE = {
    Cordon.NONE: "its cordon was taken off again at once by others",
    Cordon.NEWER: "another controller of this run has it",
    Cordon.OTHERS: "others have cordoned it since the plan",
    Cordon.ANOTHER_RUN: "another run has cordoned it: `rollout resume` of that run lifts it",
}


def _still(pods: Sequence[LeavingPod]) -> str:
    return counted(len(pods), "pod")


def _names(pods: Sequence[LeavingPod]) -> list[str]:
    return [printable(pod.name, 120) for pod in pods]


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    return "; ".join(said[:SHOWN]) + more
