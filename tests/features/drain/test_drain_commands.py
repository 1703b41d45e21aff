"""A drain by the worker: it asks first the node, then the API server; and cordons that others must lift."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rollout.app.backends import Backends
from rollout.app.node_worker import CLAIM_AGAIN, NodeWorker
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import LessRoom, Plan, PlannedDrain
from rollout.core.model.pods import ContainerRequest, PlacedPod
from rollout.core.model.report import RemoteAnswer
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.state import Verb
from rollout.errors import AwayError, RemoteError
from rollout.features.drain.asking.cordons import Lifted, lift_cordons
from rollout.features.drain.asking.rounds import drains_over
from rollout.features.drain.rules import Cordon
from tests.app.test_node_worker import ARMED, PLAN, Outside, said, worker
from tests.features.drain.test_rounds import WEB
from tests.features.drain.test_rounds import Api as Pods

DRAINED = PlannedDrain(1, WEB.name, 30.0, "", 30)
TO_DRAIN = replace(PLAN, nodes={"n1": replace(PLAN.nodes["n1"], drain=DRAINED)})
UNTOUCHED = said("", "status")


def draining(outside: Outside, api: Pods) -> NodeWorker:
    made = worker(outside, TO_DRAIN)
    backends = Backends(cluster=api, drains=drains_over(api))
    return NodeWorker(made.run, made.access, outside, outside, outside, made.plan, backends=backends)  # type: ignore[arg-type] # one fake behind three ports


def asked(working: NodeWorker, verb: Verb = Verb.DRAIN) -> Answered:
    found = working(Ask("n1", verb, 5, "r1-1", 3, left=100.0))
    assert isinstance(found, Answered)
    return found


def test_a_node_is_claimed_again_only_before_its_first_round() -> None:
    outside, api = Outside([UNTOUCHED]), Pods({WEB.uid: WEB})
    working = draining(outside, api)
    assert asked(working).trigger is Trigger.DRAINING
    assert asked(working).trigger is Trigger.DRAINING
    assert len(outside.sent) == 1
    assert b"run=r1" in outside.sent[0].stdin
    assert api.whose is Cordon.OURS


def test_a_controller_that_was_taken_over_in_a_drain_evicts_no_more_pods() -> None:
    refused = said("refused fenced run r9 has it\n", "status")
    outside, api = Outside([UNTOUCHED, refused]), Pods({WEB.uid: WEB})
    working = draining(outside, api)
    assert asked(working).trigger is Trigger.DRAINING
    api.asked.clear()
    api.pods[WEB.uid] = WEB
    working.claimed["n1"] -= CLAIM_AGAIN
    assert asked(working).trigger is Trigger.REFUSED
    assert api.asked == []


def test_a_node_that_briefly_does_not_answer_in_its_drain_is_kept_and_no_pod_is_evicted_meanwhile() -> None:
    silent = RemoteAnswer(None, b"", b"", started=False, reference="connection-refused", message="refused")
    api = Pods({WEB.uid: WEB})
    working = draining(Outside([UNTOUCHED, silent, UNTOUCHED]), api)
    asked(working)
    working.claimed["n1"] -= CLAIM_AGAIN
    api.asked.clear()
    api.pods[WEB.uid] = WEB
    assert asked(working).trigger is Trigger.DRAINING
    assert api.asked == []
    assert asked(working).trigger is Trigger.DRAINING
    assert api.asked == [WEB.name]


def test_no_pod_of_a_frozen_node_is_evicted() -> None:
    """The node would refuse the change for which they leave."""
    outside, api = Outside([said("fact frozen 7 f-1 YW5u eWVhciBlbmQ=\n", "status")]), Pods({WEB.uid: WEB})
    answer = asked(draining(outside, api))
    assert (answer.trigger, answer.reference) == (Trigger.REFUSED, "frozen")
    assert answer.message == "frozen by ann: year end (token 7 of f-1)"
    assert (api.asked, api.whose) == ([], Pods().whose)


class Freezing(Pods):
    """The controller freezes during its cordon, for longer than a claim is trusted."""

    working: NodeWorker | None = None

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        if self.working is not None:
            self.working.claimed[node] -= CLAIM_AGAIN
        return super().cordon(node, run, counter, timeout)


def test_a_controller_that_was_frozen_in_its_cordon_lifts_it_again_and_evicts_no_pod() -> None:
    api = Freezing({WEB.uid: WEB})
    api.working = draining(Outside([UNTOUCHED, said("refused fenced run r1 token 9\n", "status")]), api)
    answer = asked(api.working)
    assert (answer.trigger, answer.reference) == (Trigger.REFUSED, "fenced")
    assert (api.whose, api.asked) == (Cordon.NONE, [])


def test_no_pod_is_evicted_from_a_node_that_does_not_answer_or_that_another_run_holds() -> None:
    refused = said("refused claimed run r9 has it\n", "status")
    silent = RemoteAnswer(None, b"", b"", started=False, reference="connection-refused", message="refused")
    for answer, trigger in ((silent, Trigger.UNREACHED), (refused, Trigger.REFUSED), (ARMED, Trigger.LOST)):
        api = Pods({WEB.uid: WEB})
        assert asked(draining(Outside([answer]), api)).trigger is trigger
        assert (api.whose, api.asked) == (Cordon.NONE, [])


def test_an_empty_node_is_claimed_again_before_its_next_drain() -> None:
    outside, api = Outside([UNTOUCHED, UNTOUCHED]), Pods()
    working = draining(outside, api)
    assert [asked(working).trigger, asked(working).trigger] == [Trigger.DRAINED] * 2
    assert len(outside.sent) == 2


def test_a_cordon_is_lifted_without_contacting_the_node() -> None:
    outside, api = Outside([]), Pods(whose=Cordon.OURS)
    assert asked(draining(outside, api), Verb.UNCORDON).trigger is Trigger.UNCORDONED
    assert api.whose is Cordon.NONE


# Cordons lifted by others: by a rollback of the run.


@dataclass
class Marked(Pods):
    """Nodes and the run of their mark."""

    marks: dict[str, str] = field(default_factory=dict)
    stuck: str = ""

    def nodes(self) -> tuple[LiveNode, ...]:
        return tuple(_node(name, mark) for name, mark in self.marks.items())

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
        if node == self.stuck:
            raise AwayError("not-reached", "gone")
        assert (self.marks[node], counter) == (run, None), "with any token"
        self.marks[node] = ""
        return Cordon.NONE


def _node(name: str, mark: str) -> LiveNode:
    return LiveNode(name, name, "", (), {}, bool(mark), (), "v1.30.4", "", "", "True", cordoned_by=mark)


def test_marked_cordons_are_lifted_from_the_selected_nodes_and_failures_are_named() -> None:
    api = Marked(marks={"a": "r1", "b": "", "c": "r2", "d": "r1"}, stuck="d")
    assert lift_cordons(api, api.nodes(), {"a", "b", "d"}, "r1") == Lifted(("a",), (("d", "gone [not-reached]"),))
    assert api.marks == {"a": "", "b": "", "c": "r2", "d": "r1"}
    assert lift_cordons(api, api.nodes(), {"c"}) == Lifted(("c",))


def test_cordons_of_spared_runs_stay() -> None:
    api = Marked(marks={"a": "r1", "b": "r2"})
    assert lift_cordons(api, api.nodes(), {"a", "b"}, spared=frozenset({"r2"})) == Lifted(("a",))
    assert api.marks == {"a": "", "b": "r2"}


# Pods that arrived since.


@dataclass
class Placing(Pods):
    """Reports the pods on the node right before the change."""

    there: tuple[PlacedPod, ...] = ()
    asked_for: int = 0

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:
        self.asked_for += 1
        self._fail()
        return ROOMY, self.there


ROOMY = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="v1.30.1", runtime="", os_image="", ready="True",
    capacity=(("cpu", "8"), ("pods", "110")), allocatable=(("cpu", "8"), ("memory", "32Gi"), ("pods", "110")),
)  # fmt: skip
ONE_POD = replace(PLAN, nodes={"n1": replace(PLAN.nodes["n1"], less_room=LessRoom(30, 1, 0, 0, 0))})


def there(*names: str) -> tuple[PlacedPod, ...]:
    return tuple(PlacedPod("n1", f"shop/{name}", f"2026-11-2{at}T10:00:00Z") for at, name in enumerate(names))


def changing(api: Placing, plan: Plan) -> tuple[Answered, Outside]:
    outside = Outside([ARMED])
    made = worker(outside, plan)
    backends = Backends(cluster=api, drains=drains_over(api), wait=lambda _: None)
    working = NodeWorker(made.run, made.access, outside, outside, outside, plan, backends=backends)  # type: ignore[arg-type]
    return asked(working, Verb.APPLY), outside


def test_a_node_is_not_changed_or_charged_if_pods_that_arrived_since_the_plan_would_not_fit() -> None:
    answer, outside = changing(Placing(there=there("web-1", "web-2")), ONE_POD)
    assert (answer.trigger, outside.sent) == (Trigger.NOT_DRAINED, [])
    assert answer.message.startswith(
        "pods arrived after the plan was made: 1 pod would be rejected after the change: shop/web-2"
    )


def test_pods_that_fit_do_not_stop_a_change_and_without_less_room_no_server_is_asked() -> None:
    api = Placing(there=there("web-1"))
    assert changing(api, ONE_POD)[0].trigger is Trigger.ARMED
    assert api.asked_for == 1
    assert changing(api, PLAN)[0].trigger is Trigger.ARMED
    assert api.asked_for == 1


def test_a_pod_with_a_device_in_an_init_container_that_arrived_stops_the_change() -> None:
    """A node with devices is looked at again even where the change takes no room."""
    gpu = (("nvidia.com/gpu", "1"),)
    asks = (ContainerRequest(gpu, init=True), ContainerRequest(gpu))
    pod = PlacedPod("n1", "ml/train", "2026-11-20T10:00:00Z", asks)
    no_less = replace(PLAN, nodes={"n1": replace(PLAN.nodes["n1"], less_room=LessRoom(30, None, 0, 0, 0))})
    answer, outside = changing(Placing(there=(pod,)), no_less)
    assert (answer.trigger, outside.sent) == (Trigger.NOT_DRAINED, [])
    assert "ml/train (UnexpectedAdmissionError: an init container has a device" in answer.message
    assert changing(Placing(there=there("web-1")), no_less)[0].trigger is Trigger.ARMED


def test_a_node_with_unknown_pods_is_not_changed() -> None:
    answer, outside = changing(Placing(trouble=RemoteError("forbidden", "pods is forbidden")), ONE_POD)
    assert (answer.trigger, outside.sent) == (Trigger.NOT_DRAINED, [])
    assert answer.message == "its pods could not be listed: pods is forbidden [forbidden]"


def test_a_drained_node_with_new_pods_is_not_changed() -> None:
    answer, outside = changing(Placing({WEB.uid: WEB}), TO_DRAIN)
    assert (answer.trigger, outside.sent) == (Trigger.NOT_DRAINED, [])
    assert answer.message == "1 pod arrived since it was drained, such as shop/web-1"
    assert changing(Placing(), TO_DRAIN)[0].trigger is Trigger.ARMED
