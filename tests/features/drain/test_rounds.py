"""One round of a drain: the requests to the API server, what its answers mean, and when the wait ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from rollout.app.backends import NoCluster
from rollout.app.node_drains import LATER, DrainRound, NotOursError
from rollout.core.model.playbook import Drain, EvictToo
from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.core.run.events import Trigger
from rollout.errors import AwayError, RemoteError
from rollout.features.drain.asking.rounds import LATEST, MOST_NEWCOMERS, SLACK, SOON, Drains
from rollout.features.drain.rules import Cordon, Eviction, EvictionAnswer
from rollout.kubelet.restarts.termination import budget

RUN, NODE, MINOR, TOKEN = "r1", "n1", 30, 3
WEB, DB = LeavingPod("u1", "shop/web-1"), LeavingPod("u2", "shop/db-0", grace=60)
AGENT = LeavingPod("u3", "kube-system/agent", stays="daemon-set")
DELETED = {"deletion_grace": 30, "deleted": "2026-11-21T10:00:30Z"}


@dataclass
class Api(NoCluster):
    """The pods of one node, and an answer to each eviction; ``now`` is the clock of both sides."""

    pods: dict[str, LeavingPod] = field(default_factory=dict)
    answers: dict[str, EvictionAnswer] = field(default_factory=dict)
    whose: Cordon = Cordon.NONE
    trouble: RemoteError | None = None
    asked: list[str] = field(default_factory=list)
    now: float = 1000.0

    def missing_to_drain(self) -> tuple[str, ...]:
        return ()

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        assert (node, run, counter) == (NODE, RUN, TOKEN)
        self._fail()
        self.whose = Cordon.OURS if self.whose is Cordon.NONE else self.whose
        return self.whose

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
        assert counter == TOKEN
        self._fail()
        if self.whose is Cordon.OURS:
            self.whose = Cordon.NONE
        return self.whose

    def leaving(self, node: str, timeout: float) -> tuple[LeavingPod, ...]:
        self._fail()
        return tuple(self.pods.values())

    def evict(self, pod: LeavingPod, timeout: float) -> EvictionAnswer:
        self.asked.append(pod.name)
        answer = self.answers.get(pod.name, EvictionAnswer(Eviction.ACCEPTED))
        if answer.eviction is Eviction.ACCEPTED:
            self.pods[pod.uid] = replace(pod, **DELETED)  # type: ignore[arg-type]
        return answer

    def _fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble


@dataclass
class Clock:
    of: Api

    def now(self) -> float:
        return self.of.now

    def wall(self) -> str:
        return ""


def ours() -> None:
    """The node is this controller's."""


Round = Callable[[float], DrainRound]


def given(
    *pods: LeavingPod, policy: Drain | None = None, over_others: bool = False, **api: object
) -> tuple[Api, Round]:
    made = Api({pod.uid: pod for pod in pods}, **api)  # type: ignore[arg-type]
    drains = Drains(RUN, policy or Drain(), over_others, made, Clock(made))
    return made, lambda left: drains.round(NODE, MINOR, TOKEN, left, ours)


def test_a_node_is_empty_when_its_pods_are_gone_not_when_their_eviction_was_accepted() -> None:
    api, go = given(WEB, DB, AGENT)
    said = go(100.0)
    assert (said.trigger, said.again) == (Trigger.DRAINING, SOON)
    assert api.asked == [WEB.name, DB.name]
    assert go(98.0).trigger is Trigger.DRAINING
    assert api.asked == [WEB.name, DB.name], "a terminating pod is not evicted again"
    del api.pods[WEB.uid], api.pods[DB.uid]
    assert go(96.0) == DrainRound(Trigger.DRAINED)


def test_what_it_waits_for_names_the_pod_that_may_take_longest() -> None:
    _, go = given(WEB, DB)
    seconds = budget(replace(DB, deletion_grace=30), MINOR).seconds
    assert seconds == 30.0
    go(100.0)
    assert (
        "2 remaining pods; pod shop/web-1 may take 45 s more to terminate (its grace period of 30 s)"
        in go(98.0).message
    )


@pytest.mark.parametrize("whose", [Cordon.OTHERS, Cordon.ANOTHER_RUN, Cordon.NEWER])
def test_a_node_with_a_cordon_of_others_is_not_drained(whose: Cordon) -> None:
    api, go = given(WEB, whose=whose)
    said = go(100.0)
    assert (said.trigger, said.reference) == (Trigger.NOT_DRAINED, "not-drained")
    assert api.asked == []


class Lifting(Api):
    """Somebody lifts each cordon at once."""

    def missing_to_drain(self) -> tuple[str, ...]:
        return ()

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        super().cordon(node, run, counter, timeout)
        self.whose = Cordon.NONE
        return self.whose


def test_a_node_with_a_cordon_that_others_lift_at_once_is_not_drained() -> None:
    api = Lifting({WEB.uid: WEB})
    drains = Drains(RUN, Drain(), over_others=False, cluster=api, clock=Clock(api))
    said = drains.round(NODE, MINOR, TOKEN, 100.0, ours)
    assert (said.trigger, said.message) == (Trigger.NOT_DRAINED, "its cordon was lifted at once, but not by this run")
    assert api.asked == []


def test_cordons_of_others_do_not_stop_a_drain_if_the_playbook_allows_it_but_those_of_another_run_do() -> None:
    api, go = given(WEB, over_others=True, whose=Cordon.OTHERS)
    assert go(100.0).trigger is Trigger.DRAINING
    assert api.asked == [WEB.name]
    for whose in (Cordon.ANOTHER_RUN, Cordon.NEWER):
        _, go = given(WEB, over_others=True, whose=whose)
        assert go(100.0).trigger is Trigger.NOT_DRAINED


def test_a_budget_is_retried_after_its_own_delay_up_to_a_limit() -> None:
    for asks, waits in ((0.0, LATER), (12.0, 12.0), (3600.0, LATEST)):
        blocked = EvictionAnswer(Eviction.BLOCKED, "web needs 3 healthy pods", asks)
        _, go = given(WEB, answers={WEB.name: blocked})
        said = go(100.0)
        assert (said.trigger, said.again) == (Trigger.DRAINING, waits)
        assert "1 pod could not be evicted yet: pod shop/web-1: web needs 3 healthy pods" in said.message


def test_a_node_is_not_changed_if_a_budget_blocks_its_drain_until_the_time_is_over() -> None:
    api, go = given(WEB, answers={WEB.name: EvictionAnswer(Eviction.BLOCKED, "no")})
    go(1.0)
    said = go(0.0)
    assert said == DrainRound(Trigger.NOT_DRAINED, "time limit reached with 1 pod not evicted: shop/web-1: no")
    assert api.asked == [WEB.name], "after the time limit no pod is evicted"


def test_an_eviction_that_is_finally_refused_is_not_retried() -> None:
    _, go = given(WEB, answers={WEB.name: EvictionAnswer(Eviction.REFUSED, "more than one PodDisruptionBudget")})
    said = go(100.0)
    assert said.trigger is Trigger.NOT_DRAINED
    assert said.message == "an eviction was refused permanently: pod shop/web-1: more than one PodDisruptionBudget"


@pytest.mark.parametrize(
    ("pod", "word"), [(replace(WEB, controlled=False), "bare"), (replace(WEB, local=True), "local")]
)
def test_a_pod_that_would_be_lost_for_good_is_not_evicted_unless_it_is_named(pod: LeavingPod, word: str) -> None:
    api, go = given(pod, DB)
    assert go(100.0).trigger is Trigger.NOT_DRAINED
    assert api.asked == [], "no other pod of its node is evicted either"
    _, go = given(pod, policy=Drain(60.0, frozenset({EvictToo(word)})))
    assert go(100.0).trigger is Trigger.DRAINING
    _, go = given(replace(pod, **DELETED))  # type: ignore[arg-type]
    assert go(100.0).trigger is Trigger.DRAINING, "it is already terminating"


# Waiting has an end.


def test_a_slow_deletion_within_the_kubelets_time_extends_the_wait_and_is_reported() -> None:
    slow = replace(DB, containers=(ContainerEnd("db", hook=True),))
    api, go = given(slow)
    go(10.0)
    ends = budget(api.pods[slow.uid], MINOR)
    assert ends.seconds is not None
    api.now += 20.0
    said = go(0.0)
    assert said.trigger is Trigger.DRAINING
    assert said.message.startswith(
        "the drain is extended beyond its time limit, because its pods are being deleted slowly: pod shop/db-0 may take "
    )
    assert said.message.endswith(f"more to terminate ({ends.text})")
    api.now += ends.seconds + SLACK - 20.0
    said = go(0.0)
    assert said.trigger is Trigger.NOT_DRAINED
    assert said.message.startswith(
        "time limit reached with pods still terminating: pod shop/db-0 has been terminating for "
    )


def test_a_pod_with_a_finalizer_is_named_with_it() -> None:
    api, go = given(replace(WEB, held_by=("example.net/backup",)))
    go(10.0)
    api.now += 3600.0
    assert go(0.0).message.endswith("its kubelet may take at most 30 s; held by example.net/backup")


def test_an_unbounded_termination_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = replace(budget(WEB, MINOR), seconds=None, text="docker then waits for ever")
    monkeypatch.setattr("rollout.features.drain.asking.rounds.budget", lambda *_: endless)
    _, go = given(WEB)
    go(10.0)
    assert "pod shop/web-1 may never terminate: docker then waits for ever" in go(5.0).message
    said = go(0.0)
    assert said.trigger is Trigger.NOT_DRAINED
    assert said.message.endswith("and may never end: docker then waits for ever")


def test_an_unreachable_api_server_is_waited_for_as_long_as_the_pods_have_time() -> None:
    api, go = given(WEB, trouble=AwayError("not-reached", "connection refused"))
    assert go(5.0) == DrainRound(
        Trigger.DRAINING, "the request to the API server failed: connection refused [not-reached]", LATER
    )
    assert go(0.0).trigger is Trigger.NOT_DRAINED
    api.trouble = None
    assert go(5.0).trigger is Trigger.DRAINING


def test_missing_drain_rights_are_reported_at_once() -> None:
    _, go = given(WEB, trouble=RemoteError("forbidden", "nodes is forbidden"))
    assert go(100.0).trigger is Trigger.NOT_DRAINED


def test_a_failed_request_during_an_extended_wait_is_retried() -> None:
    """The pods still terminate in time. One reset connection must not make their evictions useless."""
    api, go = given(replace(DB, grace=3600))
    go(10.0)
    api.now += 20.0
    api.trouble = AwayError("not-reached", "connection reset")
    assert go(0.0).trigger is Trigger.DRAINING
    api.now += 3600.0 + SLACK
    assert go(0.0).trigger is Trigger.NOT_DRAINED, "its time is over"


def test_pods_that_keep_coming_to_a_cordoned_node_end_its_drain() -> None:
    """The pods tolerate the cordon. Without a limit, each round would evict the pods that arrived after the last."""
    api, go = given(WEB)
    for number in range(MOST_NEWCOMERS):
        assert go(900.0).trigger is Trigger.DRAINING, number
        api.pods = {f"new{number}": replace(WEB, uid=f"new{number}")}
    assert go(900.0).trigger is Trigger.DRAINING
    api.pods = {"last": replace(WEB, uid="last")}
    said = go(900.0)
    assert said.trigger is Trigger.NOT_DRAINED
    assert said.message == "pods keep arriving although it is cordoned: shop/web-1 tolerates the cordon"
    assert len(api.asked) == 1 + MOST_NEWCOMERS + 1


@pytest.mark.parametrize(
    "denial",
    [
        AwayError("http-429", "answered 429: Eviction triggered evacuation"),  # KubeVirt
        AwayError("http-500", 'admission webhook "d.strimzi.io" denied the request: Eviction triggered rolling update'),
        AwayError("http-500", 'failed calling webhook "x": context deadline exceeded: Eviction triggered nothing'),
        RemoteError("http-400", 'admission webhook "x" denied the request: Eviction triggered a backup'),
        RemoteError("http-422", 'admission webhook "x" denied the request: Eviction triggered a backup'),
        AwayError("conflict", "Eviction triggered a conflict"),
    ],
)
def test_a_webhook_that_delays_one_eviction_does_not_block_other_evictions(denial: RemoteError) -> None:
    """Strimzi's Drain Cleaner denies with 500 and has its operator roll the pod, KubeVirt denies with 429 and moves the machine."""
    api, go = given(WEB, DB)
    evict = api.evict

    def webhook(pod: LeavingPod, timeout: float) -> EvictionAnswer:
        if pod is WEB:
            raise denial
        return evict(pod, timeout)

    api.evict = webhook  # type: ignore[method-assign]
    said = go(100.0)
    assert (said.trigger, api.asked) == (Trigger.DRAINING, [DB.name])
    assert f"1 pod could not be evicted yet: pod {WEB.name}: {denial.message}" in said.message
    assert "budget" not in said.message
    late = go(0.0)
    assert late.trigger is Trigger.NOT_DRAINED
    assert f"{WEB.name}: {denial.message}" in late.message, "why, also where the drain ends"


def test_webhooks_that_hang_do_not_take_the_time_of_each_round() -> None:
    """A webhook has 10 s to answer (its timeoutSeconds), unless it sets another time."""
    hung = [replace(WEB, uid=f"h{at}", name=f"shop/hung-{at}") for at in range(3)]
    api, go = given(*hung, DB)
    evict = api.evict

    def slow(pod: LeavingPod, timeout: float) -> EvictionAnswer:
        if pod in hung:
            api.now += timeout
            raise AwayError("deadline", "no answer in 10 s")
        return evict(pod, timeout)

    api.evict = slow  # type: ignore[method-assign]
    said = go(600.0)
    assert (said.trigger, api.asked) == (Trigger.DRAINING, [])
    assert "2 pods could not be evicted yet: pod shop/hung-0: no answer in 10 s; pod shop/hung-1" in said.message
    assert go(600.0).trigger is Trigger.DRAINING
    assert api.asked == [DB.name]


def test_without_a_connection_no_other_eviction_is_requested_in_this_round() -> None:
    api, go = given(WEB, DB)
    evict = api.evict

    def cut_off(pod: LeavingPod, timeout: float) -> EvictionAnswer:
        evict(pod, timeout)
        raise AwayError("not-reached", "Connection refused")

    api.evict = cut_off  # type: ignore[method-assign]
    assert go(100.0).trigger is Trigger.DRAINING
    assert api.asked == [WEB.name]


# The cordon.


@pytest.mark.parametrize("whose", sorted(set(Cordon) - {Cordon.NEWER}))
def test_only_a_cordon_that_could_not_be_lifted_remains(whose: Cordon) -> None:
    api, _ = given(whose=whose)
    drains = Drains(RUN, Drain(), over_others=False, cluster=api, clock=Clock(api))
    assert drains.uncordon(NODE, TOKEN).trigger is Trigger.UNCORDONED
    api.trouble = AwayError("not-reached", "connection refused")
    assert drains.uncordon(NODE, TOKEN) == DrainRound(Trigger.STILL_CORDONED, "connection refused [not-reached]")


def test_a_frozen_controller_does_not_report_its_successors_cordon_as_lifted() -> None:
    api, _ = given(whose=Cordon.NEWER)
    drains = Drains(RUN, Drain(), over_others=False, cluster=api, clock=Clock(api))
    assert drains.uncordon(NODE, TOKEN) == DrainRound(Trigger.STILL_CORDONED, "a newer controller of this run has it")


def test_a_frozen_controller_neither_evicts_nor_uncordons_after_its_successor_has_cordoned() -> None:
    for refused in (False, True):
        api, _ = given(WEB, whose=Cordon.NEWER)
        drains = Drains(RUN, Drain(), over_others=False, cluster=api, clock=Clock(api))

        def not_ours(refused: bool = refused) -> None:
            raise NotOursError(refused=refused)

        with pytest.raises(NotOursError):
            drains.round(NODE, MINOR, TOKEN, 100.0, not_ours)
        assert (api.whose, api.asked) == (Cordon.NEWER, [])
