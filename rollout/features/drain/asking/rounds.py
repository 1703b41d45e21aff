"""A node's pods before its change: one round of draining it through the API server, a look for pods that arrived since,
and lifting its cordon.

A round cordons the node if needed, evicts every pod that must leave and is not already terminating, and reports the
pods that remain. The API server enforces the disruption budgets. An accepted eviction is not enough: a node is empty
only when its pods are *gone*. Pods that a drain leaves (daemon set pods, static pods, finished pods) stay. The wait
ends at the playbook's time. It is extended only if all remaining pods are terminating and their kubelet may still
take that long, by its own arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from rollout.app.node_drains import LATER, DrainRound, MakeDrains, NotOursError
from rollout.app.ports import Clock
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Drain
from rollout.core.model.pods import LeavingPod
from rollout.core.run.events import Trigger
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.errors import AwayError, RemoteError
from rollout.features.drain.asking.cluster import DrainCluster
from rollout.features.drain.rules import Cordon, Eviction, EvictionAnswer
from rollout.kubelet.restarts.termination import Termination, budget, kept_back

ASK_SECONDS = 10.0
"""Seconds for one request."""

ROUND_SECONDS = 20.0
"""Seconds after which a round requests no more evictions. The next round does."""

SOON = 2.0
"""Seconds until the next round while pods terminate. While evictions are blocked, it is ``LATER``."""

LATEST = 30.0
"""Most seconds until the next round, whatever wait a budget requests."""

SLACK = 15.0
"""Seconds from the end of a pod's last container until the API server has removed it, with a margin."""

MOST_NEWCOMERS = 10
"""Most pods that may come to a cordoned node and be evicted again.

Then the drain is given up: they would keep coming.
"""

_FINAL = frozenset({"forbidden", "no-endpoint", "no-such-node", "not-found"})
"""References of errors that a retry does not fix."""

SHOWN = 3


@dataclass(slots=True)
class Drains:
    """The drains of one run. Called on many threads, on one at a time for a node.

    ``ending``: pod uid → since when the pod is known to terminate. ``latest``: node → until when its last pod may
    terminate, if all its pods terminate. ``found``: the pod uids of its first round. ``newcomers``: how many others
    were evicted since. ``blocked``: node → pod uid → the API server's latest answer to its eviction, while that is refused.
    """

    run: str
    policy: Drain
    over_others: bool  # a cordon of others does not stop the drain
    cluster: DrainCluster
    clock: Clock
    ending: dict[str, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    found: dict[str, frozenset[str]] = field(default_factory=dict)
    newcomers: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, dict[str, str]] = field(default_factory=dict)

    def round(self, node: str, minor: int, counter: int, seconds_left: float, check: Callable[[], None]) -> DrainRound:
        """``counter``: of the token. ``seconds_left``: seconds that the pods still have. ``check`` raises ``NotOursError``.

        ``check`` is called after the cordon and before each eviction: a controller that was frozen in between has
        been taken over. Its cordon is then lifted again.
        """
        try:
            said = self._round(node, minor, counter, seconds_left, check)
        except RemoteError as error:
            message = f"the request to the API server failed: {error.message} [{error.reference}]"
            final = error.reference in _FINAL and not isinstance(error, AwayError)
            if not final and self.may_wait(node, seconds_left):
                return DrainRound(Trigger.DRAINING, message, LATER)
            said = DrainRound(Trigger.NOT_DRAINED, message)
        if said.trigger is not Trigger.DRAINING:
            for known in (self.latest, self.found, self.newcomers, self.blocked):
                known.pop(node, None)
        return said

    def may_wait(self, node: str, seconds_left: float) -> bool:
        """Whether to repeat a request without an answer: the drain has time left, or its pods may still terminate."""
        return bool(seconds_left) or self.clock.now() < self.latest.get(node, 0.0)

    def _round(self, node: str, minor: int, counter: int, seconds_left: float, check: Callable[[], None]) -> DrainRound:
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
        went = self._evict(node, pods, minor, check) if seconds_left else self._overtime(node, pods, minor)
        self._note_latest(node, pods, minor)
        return went

    def _note_latest(self, node: str, pods: Sequence[LeavingPod], minor: int) -> None:
        """0 while a pod does not terminate yet, or has no bound on its termination."""
        ends = [self._left(pod, budget(pod, minor)) for pod in pods if pod.uid in self.ending]
        bounded = [end for end in ends if end is not None]
        self.latest[node] = self.clock.now() + max(bounded) if len(bounded) == len(pods) else 0.0

    def _note(self, pods: Iterable[LeavingPod]) -> None:
        for pod in pods:
            self.ending.setdefault(pod.uid, self.clock.now())

    def _evict(self, node: str, pods: Sequence[LeavingPod], minor: int, check: Callable[[], None]) -> DrainRound:
        """Evict the pods that do not terminate yet, within the round's time.

        A pod that can never leave ends the drain.
        """
        until = self.clock.now() + ROUND_SECONDS
        blocked: list[str] = []
        wait = SOON
        tried = self.blocked.get(node, {})
        for pod in sorted(
            pods, key=lambda pod: pod.uid in tried
        ):  # one that hangs again must not take the time of others
            if pod.deletion_grace is not None or self.clock.now() >= until:
                continue
            check()
            answer = self._ask_to_go(pod)
            said = f"pod {pod.name}: {printable(answer.message)}"
            if answer.eviction is Eviction.REFUSED:
                return DrainRound(Trigger.NOT_DRAINED, f"an eviction was refused permanently: {said}")
            if answer.eviction is Eviction.BLOCKED:
                blocked.append(said)
                self.blocked.setdefault(node, {})[pod.uid] = printable(answer.message)
                wait = max(wait, LATER, min(answer.retry_after, LATEST))
            else:
                self._note([pod])
                if self._comes_for_ever(node, pod):
                    return DrainRound(
                        Trigger.NOT_DRAINED,
                        f"pods keep arriving although it is cordoned: {pod.name} tolerates the cordon",
                    )
        waits = [counted(len(pods), "remaining pod")]
        if blocked:
            waits.append(f"{counted(len(blocked), 'pod')} could not be evicted yet: {_listed(blocked)}")
        slow = self._slowest([pod for pod in pods if pod.uid in self.ending], minor)
        if slow:
            waits.append(slow)
        return DrainRound(Trigger.DRAINING, "; ".join(waits), wait)

    def _ask_to_go(self, pod: LeavingPod) -> EvictionAnswer:
        """An error answer may be of a webhook that denies this eviction only: with 429 (KubeVirt), 500 (Strimzi) or any other status.
        One that hangs takes 10 s, as long as a request may.

        So other pods are evicted too, and this one again in the next round. Without a connection no other pod is tried.
        """
        try:
            return self.cluster.evict(pod, ASK_SECONDS)
        except RemoteError as error:
            if not error.reference.startswith("http-") and error.reference not in ("conflict", "deadline"):
                raise
            return EvictionAnswer(Eviction.BLOCKED, error.message)

    def _comes_for_ever(self, node: str, pod: LeavingPod) -> bool:
        """Whether too many pods came after the cordon."""
        if pod.uid not in self.found.get(node, ()):
            self.newcomers[node] = self.newcomers.get(node, 0) + 1
        return self.newcomers.get(node, 0) > MOST_NEWCOMERS

    def _slowest(self, pods: Sequence[LeavingPod], minor: int) -> str:
        """The pod that may take longest to terminate."""
        ends = [(self._left(pod, found), pod, found) for pod in pods for found in (budget(pod, minor),)]
        bounded = [each for each in ends if each[0] is not None]
        if len(bounded) < len(ends):
            pod, found = next((pod, found) for seconds_left, pod, found in ends if seconds_left is None)
            return f"pod {pod.name} may never terminate: {found.text}"
        if not bounded:
            return ""
        seconds_left, pod, found = max(bounded, key=lambda each: each[0] or 0.0)
        return f"pod {pod.name} may take {seconds_text(seconds_left or 0.0)} more to terminate ({found.text})"

    def _left(self, pod: LeavingPod, found: Termination) -> float | None:
        """Seconds that its kubelet may still take; ``None``: no bound."""
        if found.seconds is None:
            return None
        return max(0.0, self.ending[pod.uid] + found.seconds + SLACK - self.clock.now())

    def _overtime(self, node: str, pods: Sequence[LeavingPod], minor: int) -> DrainRound:
        """The drain's time is over.

        Only a deletion that is slow, but within its kubelet's time, is still waited for.
        """
        there = [pod for pod in pods if pod.deletion_grace is None]
        if there:
            answers = self.blocked.get(node, {})
            each = [": ".join(filter(None, (printable(pod.name, 120), answers.get(pod.uid)))) for pod in there]
            return DrainRound(
                Trigger.NOT_DRAINED,
                f"time limit reached with {counted(len(there), 'pod')} not evicted: {_listed(each)}",
            )
        over = [said for pod in pods if (said := self._beyond(pod, budget(pod, minor)))]
        if over:
            return DrainRound(Trigger.NOT_DRAINED, f"time limit reached with pods still terminating: {_listed(over)}")
        said = f"the drain is extended beyond its time limit, because its pods are being deleted slowly: {self._slowest(pods, minor)}"
        return DrainRound(Trigger.DRAINING, said, SOON)

    def _beyond(self, pod: LeavingPod, found: Termination) -> str:
        """Why a terminating pod is not waited for any longer; ``""``: it still has time."""
        since = seconds_text(self.clock.now() - self.ending[pod.uid])
        seconds_left = self._left(pod, found)
        if seconds_left is None:
            return f"pod {pod.name} has been terminating for {since} and may never end: {found.text}"
        if seconds_left:
            return ""
        held = f"; held by {', '.join(printable(name, 80) for name in pod.held_by)}" if pod.held_by else ""
        return f"pod {pod.name} has been terminating for {since}; its kubelet may take at most {seconds_text(found.seconds or 0.0)}{held}"

    def came_back(self, node: str, seconds_left: float) -> str:
        there = [pod.name for pod in self.cluster.leaving(node, seconds_left) if not pod.stays]
        if not there:
            return ""
        return f"{counted(len(there), 'pod')} arrived since it was drained, such as {printable(there[0], 200)}"

    def uncordon(self, node: str, counter: int) -> DrainRound:
        """Lift the cordon with this run's mark and no newer token. Cordons of others stay."""
        try:
            whose = self.cluster.uncordon(node, self.run, counter, ASK_SECONDS)
        except RemoteError as error:
            return DrainRound(Trigger.STILL_CORDONED, f"{error.message} [{error.reference}]")
        if whose is Cordon.NEWER:
            return DrainRound(Trigger.STILL_CORDONED, _WHOSE[whose])
        if whose is Cordon.OURS:
            return DrainRound(Trigger.STILL_CORDONED, "the API server still shows it")
        return DrainRound(Trigger.UNCORDONED)


_WHOSE = {
    Cordon.NONE: "its cordon was lifted at once, but not by this run",
    Cordon.NEWER: "a newer controller of this run has it",
    Cordon.OTHERS: "it was cordoned after the plan was made, but not by rollout",
    Cordon.ANOTHER_RUN: "another run has cordoned it: `rollout resume` of that run lifts it",
}


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    return "; ".join(said[:SHOWN]) + more


def drains_over(cluster: DrainCluster) -> MakeDrains:
    return lambda run, plan, clock: Drains(run, plan.drain, plan.cordoned, cluster, clock)
