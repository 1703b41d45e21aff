"""The node gates that ask the API server, with a fake server: no missing or outdated answer passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from rollout.app.backends import Backends, NoCluster
from rollout.app.node_gates import AGAIN_READY, NodeGates, UntouchableError
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.live import Container, Lease, LiveNode, Pod, Sight
from rollout.core.model.report import Outcome, Report
from rollout.core.run.commands import Ask
from rollout.core.run.events import Trigger
from rollout.core.run.state import Verb
from rollout.errors import AwayError, RemoteError
from rollout.gates.api_checks.query import ApiCheck
from rollout.gates.page.query import HttpQuery
from tests.adapters.kubernetes.node_gates import CHANGE, DONE, FAILED, PASSED, UNKNOWN, Watch, plan

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)  # fmt: skip
WEB = Pod("u1", "shop/web", "Running", containers=(Container("app", "docker://aaaa", 0, "running"),))
REJECTED = replace(WEB, phase="Failed", reason="OutOfcpu", message="too little")
SEEN = Sight(NODE, Lease("1", "2026-11-20T12:00:00Z"), (WEB,), 10)
RENEWED = replace(SEEN, lease=Lease("2", "2026-11-20T12:00:10Z"), pods_at=11)
AWAY = AwayError("not-reached", "Connection refused")
GATES = (
    Gate(ApiCheck("nodeReady"), GateScope.NODE, "nodeReady"),
    Gate(ApiCheck("podsKept"), GateScope.NODE, "podsKept"),
)


def unready(sight: Sight, message: str = "") -> Sight:
    return replace(sight, node=replace(NODE, ready="False", ready_message=message))


@dataclass
class Api(NoCluster):
    """The result of each look, in turn; the last one repeats."""

    shows: list[Sight | RemoteError]
    looks: int = 0
    newer_than: list[int | None] = field(default_factory=list)

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:
        self.looks += 1
        self.newer_than.append(newer_than)
        shown = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
        if isinstance(shown, RemoteError):
            raise shown
        return shown


@dataclass
class Asked:
    """The gates of one node, over what the API server shows from its baseline on."""

    api: Api
    of: Sequence[Gate] = GATES
    clock: Watch = field(default_factory=Watch)
    baseline: str = ""

    def __post_init__(self) -> None:
        self.gates = NodeGates(plan("n1", *self.of), self.clock, Backends(cluster=self.api, wait=self.clock.wait))

    def before(self) -> Asked:
        self.baseline = self.gates.baseline("n1")
        return self

    def now(self, tx: str = "r1-1", report: Report = DONE) -> tuple[Trigger, str, str]:
        return self.gates.judged(Ask("n1", Verb.MEASURE, 1, tx, 1, self.baseline), report, CHANGE)


def asked(*shows: Sight | RemoteError, of: Sequence[Gate] = GATES) -> Asked:
    return Asked(Api(list(shows)), of)


# ------------------------------------------------------------------------------------------------- baseline


def test_gates_that_need_no_api_server_ask_none() -> None:
    made = asked(AWAY, of=())
    assert made.before().baseline == ""
    assert made.now() == (PASSED, "", "")
    assert made.api.looks == 0


def test_a_node_that_was_not_ready_before_is_not_touched_and_has_a_reason() -> None:
    with pytest.raises(UntouchableError) as raised:
        asked(unready(SEEN, "KubeletNotReady: cni")).before()
    said = "its Node is not Ready before the change: KubeletNotReady: cni"
    assert (raised.value.reference, raised.value.message) == ("not-ready-before", said)


def test_a_node_without_a_baseline_is_not_touched() -> None:
    made = asked(AWAY)
    with pytest.raises(UntouchableError) as raised:
        made.before()
    assert raised.value.reference == "baseline-unknown"
    assert 0 < sum(made.clock.waits) <= GATES[0].timeout, "it was retried for exactly the gate's timeout"


def test_a_node_that_we_restarted_may_be_not_ready_for_a_moment() -> None:
    made = asked(unready(SEEN), unready(SEEN), SEEN)
    made.gates.forget("n1")
    assert made.before().baseline
    assert made.api.looks == 3


def test_a_node_that_we_restarted_and_that_stays_not_ready_is_not_touched_again() -> None:
    made = asked(unready(SEEN))
    made.gates.forget("n1")
    with pytest.raises(UntouchableError) as raised:
        made.before()
    assert raised.value.reference == "not-ready-before"
    assert sum(made.clock.waits) == AGAIN_READY


def test_readiness_counts_only_for_its_own_gate() -> None:
    assert asked(unready(SEEN), of=GATES[1:]).before().baseline


# ---------------------------------------------------------------------------------------------- judgement


def test_a_ready_node_with_all_its_pods_passes() -> None:
    made = asked(SEEN, SEEN, RENEWED).before()
    assert made.now()[0] is UNKNOWN, "ready, but its lease may be from before the restart"
    assert made.now() == (PASSED, "", "")


def test_the_worst_gate_counts() -> None:
    made = asked(SEEN, replace(SEEN, pods=(REJECTED,))).before()
    trigger, reference, evidence = made.now()
    assert (trigger, reference) == (FAILED, "gate-podsKept"), evidence


def test_a_missing_answer_of_the_node_is_unknown() -> None:
    lost = replace(DONE, outcome=Outcome.LOST, reference="deadline", message="not finished after 30 s")
    made = asked(SEEN).before()
    assert made.now(report=lost) == (UNKNOWN, "deadline", "not finished after 30 s")
    assert made.now(report=replace(DONE, measurement=None))[0] is UNKNOWN
    assert made.api.looks == 1


def test_an_unreachable_api_server_is_unknown() -> None:
    made = asked(SEEN, AWAY).before()
    trigger, reference, evidence = made.now()
    assert (trigger, reference, "Connection refused" in evidence) == (UNKNOWN, "gate-nodeReady", True)


@pytest.mark.parametrize("written", ["", "{", '{"v": 99}'])
def test_without_a_baseline_nothing_passes(written: str) -> None:
    """A later controller has only the journal, perhaps of another version."""
    made = asked(RENEWED)
    made.baseline = written
    trigger, _, evidence = made.now()
    assert (trigger, "no baseline" in evidence) == (UNKNOWN, True)


def test_the_gates_ask_for_a_newer_list_of_pods_than_the_last_one() -> None:
    made = asked(SEEN, RENEWED, replace(RENEWED, pods_at=15)).before()
    made.now()
    made.now()
    assert made.api.newer_than == [None, 10, 11]


def test_a_pod_that_was_seen_while_it_was_deleted_may_be_gone_at_the_next_reading() -> None:
    agent = replace(WEB, uid="u7", name="kube-system/agent", controller="DaemonSet")
    seen = replace(RENEWED, pods=(WEB, agent))
    leaving, gone = replace(seen, pods=(WEB, replace(agent, deleting=True))), replace(seen, pods=(WEB,))
    late = replace(gone, lease=Lease("3", "2026-11-20T12:00:20Z"))
    made = asked(replace(seen, lease=SEEN.lease), leaving, late).before()
    assert [made.now()[0], made.now()[0]] == [UNKNOWN, PASSED]
    unseen = asked(replace(seen, lease=SEEN.lease), gone, late).before()
    assert [unseen.now()[0], unseen.now()[0]] == [UNKNOWN, UNKNOWN]


def test_an_outdated_list_of_pods_never_passes() -> None:
    """An API server's cache may be outdated: the failure that the gate looks for may not be visible yet."""
    made = asked(SEEN, replace(RENEWED, pods_at=9), RENEWED, replace(RENEWED, pods_at=10)).before()
    assert "its cache is behind" in made.now()[2], "than the baseline"
    assert "its cache is behind" not in made.now()[2]
    assert "its cache is behind" in made.now()[2], "than the last list that was judged"


@pytest.mark.parametrize("restarted", [False, True])
def test_each_transaction_is_watched_anew_for_a_renewed_lease(*, restarted: bool) -> None:
    later = replace(RENEWED, lease=Lease("3", "2026-11-20T12:00:20Z"))
    made = asked(SEEN, SEEN, RENEWED, RENEWED, later).before()
    assert [made.now()[0] for _ in range(2)] == [UNKNOWN, PASSED]
    if restarted:
        made.gates.forget("n1")
    assert [made.now("r1-2")[0] for _ in range(2)] == [UNKNOWN, PASSED], "the restart of a rehearsal's second change"


def test_a_lease_that_comes_after_the_first_look_is_the_one_that_must_be_renewed() -> None:
    made = asked(SEEN, replace(SEEN, lease=None), SEEN, RENEWED).before()
    assert [made.now()[0] for _ in range(3)] == [UNKNOWN, UNKNOWN, PASSED]


def test_a_node_that_is_not_ready_fails_only_after_its_window() -> None:
    made = asked(SEEN, unready(SEEN)).before()
    assert made.now()[0] is UNKNOWN
    made.clock.at += CHANGE.settle + 1.0
    assert made.now()[0] is FAILED


def started(*since: str) -> Pod:
    containers = (Container(f"app{n}", "docker://bbbb", 0, "running", since=at) for n, at in enumerate(since))
    return replace(WEB, uid="b", containers=tuple(containers))


@pytest.mark.parametrize(
    "pod",
    [
        started("2026-11-20T08:00:00Z"),
        started("2026-11-20T08:00:00Z", "2026-11-20T12:00:05Z"),
        started(""),
        started(),
    ],
    ids=["older", "one of its containers is older", "not known", "no container"],
)
def test_a_pod_that_a_lagging_baseline_lacks_is_no_pod_start(pod: Pod) -> None:
    made = asked(replace(SEEN, pods=()), replace(RENEWED, pods=(pod,))).before()
    made.now()
    assert made.gates.started == {"n1": 0}


def test_only_pods_that_are_new_and_certainly_started_count_as_pod_starts() -> None:
    """What was there, was over, waits for its images, or was rejected, is no pod start."""
    over = replace(WEB, uid="aaaa", phase="Succeeded")
    before = replace(SEEN, pods=(WEB, over))
    new = [
        replace(started("2026-11-20T12:00:05Z"), uid=f"b{n}", phase=phase)
        for n, phase in enumerate(("Running", "Succeeded", "Pending", "Failed"))
    ]
    made = asked(before, replace(before, pods=(WEB, over, *new)), AWAY).before()
    made.now()
    assert made.gates.started == {"n1": 2}
    made.now()
    assert made.gates.started == {}, "an API server that does not answer: not known"


def test_a_gate_that_asks_others_is_unknown_on_a_node_and_never_passes() -> None:
    page = Gate(HttpQuery("http://h/"), GateScope.NODE, "page")
    assert asked(AWAY, of=(page,)).now() == (UNKNOWN, "gate-page", "http is not measured on a node")


# ------------------------------------------------------------------------------------------------- flapping


def ready_since(at: str, sight: Sight = RENEWED, ready: str = "True") -> Sight:
    return replace(sight, node=replace(NODE, ready=ready, ready_since=at))


def test_a_node_that_was_not_ready_between_two_readings_flaps() -> None:
    """It is Ready whenever it is read: only the time since which it is so shows it."""
    made = asked(
        ready_since("08:00", SEEN), ready_since("08:00", SEEN), ready_since("08:00"), ready_since("12:01")
    ).before()
    assert made.now()[0] is UNKNOWN, "its lease is not renewed yet"
    made.clock.at += CHANGE.settle + 1
    assert made.now() == (PASSED, "", "")
    made.clock.at += 60
    said = "it flaps: Ready since 12:01, at the last reading since 08:00"
    assert made.now() == (FAILED, "gate-nodeReady", said)
    assert made.now() == (PASSED, "", ""), "each reading reports what it observed itself"


def test_the_flip_of_a_restart_is_not_flapping() -> None:
    """Kubelets up to 1.30 report NotReady once: within the window, or seen as it ends."""
    unready_then = ready_since("12:00", SEEN, "False")
    made = asked(ready_since("08:00", SEEN), ready_since("08:00", SEEN), unready_then, ready_since("12:01")).before()
    made.now()
    made.clock.at += CHANGE.settle
    assert made.now()[0] is UNKNOWN
    made.clock.at += 2
    assert made.now() == (PASSED, "", "")


def test_a_node_that_does_not_tell_since_when_it_is_ready_is_judged_by_its_lease() -> None:
    made = asked(SEEN, SEEN, RENEWED, ready_since("12:01"), ready_since("12:01")).before()
    made.now()
    made.clock.at += CHANGE.settle + 1
    assert [made.now()[0] for _ in range(3)] == [PASSED] * 3
