"""One command to one node: what is sent, what the answer means, when a connection is kept."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollout.app.backends import Backends, NoCluster
from rollout.app.node_access import NodeAccess
from rollout.app.node_worker import NodeWorker
from rollout.app.ports import Ran, Target
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.live import Lease, LiveNode, PullCounter, Sight
from rollout.core.model.plan import Change, ChangeGroup, FileChange, Plan, PlannedNode, Wave
from rollout.core.model.playbook import DEFAULT_BUDGETS, Busy, Disruption, Limits, PullsInFlight, RevertScope
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import digest
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, JudgeWave
from rollout.core.run.events import Answered, Trigger, WaveJudged
from rollout.core.run.state import Verb
from rollout.errors import RemoteError
from rollout.gates import table
from rollout.gates.api_checks.query import ApiCheck
from rollout.gates.command.query import CommandQuery
from rollout.gates.table import DEFAULT_GATES

OLD, NEW = b"maxPods: 110\n", b"maxPods: 120\n"
CONFIG = "/var/lib/kubelet/config.yaml"
FILE = FileChange(CONFIG, OLD, NEW, ("maxPods: 110 → 120",))
CHANGE = Change(
    files=(FILE,),
    units=("kubelet.service",),
    reload=False,
    disruption=Disruption.RESTART_KUBELET,
    arguments=(f"--config={CONFIG}",),
    config_path=CONFIG,
    healthz_port=10248,
    settle=0.0,
)
ON_NODE = Gate(CommandQuery(("test", "-d", "/a b")), GateScope.NODE, "disk")
ON_WAVE = Gate(CommandQuery(("check-alerts",)), GateScope.WAVE, "alerts")
PLAN = Plan(
    cluster="c", playbook="p", inventory_digest="", playbook_digest="", taken="", counter=0, limit="",
    groups=(ChangeGroup("g1", "one kind", CHANGE),),
    nodes={"n1": PlannedNode("n1", "n1", "r", "z", "g1", 0, "0" * 32)},
    left=(), waves=(Wave("canary", ("n1",), 1.0),), racks={"r": 1}, limits=Limits(), budgets=DEFAULT_BUDGETS,
    gates=(*DEFAULT_GATES, ON_NODE, ON_WAVE), on_failure=RevertScope.NODE, passes=3, guard=30.0, keep=3,
    pulls=PullsInFlight(0.0, Busy.OVERRIDE),
)  # fmt: skip


class Outside:
    """Fake nodes, local commands and clock; records the requests."""

    def __init__(self, answers: list[RemoteAnswer], statuses: Mapping[str, int | None] | None = None) -> None:
        self.answers = answers
        self.statuses = statuses or {}
        self.sent: list[RemoteCommand] = []
        self.released = 0
        self.environment: Mapping[str, str] = {}
        self.time, self.slow = 7.0, 0.0

    def run(self, *words: object) -> object:
        if isinstance(words[0], Target):
            assert isinstance(words[1], RemoteCommand)
            self.sent.append(words[1])
            self.time += self.slow
            return self.answers.pop(0)
        command, environment, _ = words
        assert isinstance(command, tuple)
        assert isinstance(environment, Mapping)
        self.environment = environment
        return Ran(self.statuses.get(command[0]))

    def release(self, target: Target) -> None:
        self.released += 1

    def close(self) -> None: ...
    def now(self) -> float:
        return self.time

    def wall(self) -> str:
        return ""


def worker(outside: Outside, plan: Plan | None = PLAN) -> NodeWorker:
    access = NodeAccess("program", {"n1": Target("n1", "n1")}, {"n1": True})
    backends = Backends(askers=table.askers(None))
    return NodeWorker("r1", access, outside, outside, outside, plan, backends=backends)  # type: ignore[arg-type] # one fake behind three ports


def said(text: str, verb: str) -> RemoteAnswer:
    return RemoteAnswer(0, f"{text}end {verb}\n".encode(), b"", started=True)


def ask(verb: Verb) -> Ask:
    return Ask("n1", verb, 5, "r1-1", 3)


RECEIPT = "receipt tx=r1-1 run=r1 counter=3 seq=1 state={} cause=- left=20 finished=1 kubelet=-\n"
ARMED = said(RECEIPT.format("armed"), "apply")
CONFIRMED = said(RECEIPT.format("confirmed"), "confirm")


COMMAND_LINE = base64.b64encode(f"/usr/bin/kubelet\0--config={CONFIG}\0".encode()).decode()
PROCESS = f"process {{}} {COMMAND_LINE}"


def reading(**changes: str) -> RemoteAnswer:
    """A healthy reading of the node, with some lines replaced."""
    lines = {
        "receipt": RECEIPT.format("armed").strip(),
        "active": "unit kubelet.service ActiveState active",
        "sub": "unit kubelet.service SubState running",
        "pid": "unit kubelet.service MainPID 7",
        "restarts": "unit kubelet.service NRestarts 0",
        "process": PROCESS.format(7),
        "healthz": "healthz ok",
        "lenient": "lenient 0",
        "file": f"file regular 644 0:0 {len(NEW)} {digest(NEW)} {CONFIG} -",
        "command": "command disk 0 -",
    }
    return said("".join(f"{said_so}\n" for said_so in (lines | changes).values() if said_so), "status")


def judged(*answers: RemoteAnswer) -> Answered:
    outside = Outside(list(answers))
    working = worker(outside)
    found = [working(ask(Verb.MEASURE)) for _ in answers][-1]
    assert isinstance(found, Answered)
    return found


def test_a_nodes_connection_is_kept_for_the_whole_run() -> None:
    outside = Outside([ARMED, reading(), CONFIRMED, reading()])
    working = worker(outside)
    for verb in (Verb.APPLY, Verb.MEASURE, Verb.CONFIRM, Verb.MEASURE):
        working(ask(verb))
    assert (len(outside.sent), outside.released) == (4, 0)


def test_an_apply_sends_the_bytes_of_the_plan() -> None:
    outside = Outside([ARMED])
    found = worker(outside)(ask(Verb.APPLY))
    assert found == Answered(7.0, "n1", 5, Verb.APPLY, Trigger.ARMED)
    assert base64.b64encode(NEW) in outside.sent[0].stdin
    assert b" counter=3 " in outside.sent[0].stdin


def test_an_answer_that_never_came_is_lost() -> None:
    outside = Outside([RemoteAnswer(None, b"", b"", started=True, reference="connection-lost", message="reset")])
    found = worker(outside)(ask(Verb.APPLY))
    assert isinstance(found, Answered)
    assert (found.trigger, found.reference) == (Trigger.LOST, "connection-lost")


def test_a_node_that_was_never_reached_differs_from_a_lost_one() -> None:
    outside = Outside([RemoteAnswer(None, b"", b"", started=False, reference="connection-refused", message="refused")])
    found = worker(outside)(ask(Verb.READ))
    assert isinstance(found, Answered)
    assert found.trigger is Trigger.UNREACHED


@pytest.mark.parametrize(
    ("changes", "trigger", "reference"),
    [
        ({}, Trigger.GATES_PASSED, ""),
        ({"active": "unit kubelet.service ActiveState activating"}, Trigger.GATES_FAILED, "gate-unit"),
        ({"lenient": "lenient 1"}, Trigger.GATES_FAILED, "gate-process"),
        ({"healthz": "healthz timeout"}, Trigger.GATES_FAILED, "gate-healthz"),
        ({"healthz": ""}, Trigger.GATES_UNKNOWN, "gate-healthz"),
        ({"file": f"file regular 644 0:0 {len(OLD)} {digest(OLD)} {CONFIG} -"}, Trigger.GATES_FAILED, "gate-effectiveConfig"),
        ({"command": "command disk 1 -"}, Trigger.GATES_FAILED, "gate-disk"),
        ({"command": "command disk 127 -"}, Trigger.GATES_UNKNOWN, "gate-disk"),
        ({"command": "command disk 1 -", "healthz": ""}, Trigger.GATES_FAILED, "gate-disk"),
    ],
)  # fmt: skip
def test_the_worst_gate_counts_for_the_node(changes: dict[str, str], trigger: Trigger, reference: str) -> None:
    found = judged(reading(**changes))
    assert (found.trigger, found.reference) == (trigger, reference)


def test_a_restart_between_two_readings_fails_the_process_gate() -> None:
    found = judged(reading(), reading(restarts="unit kubelet.service NRestarts 1"))
    assert (found.trigger, found.reference) == (Trigger.GATES_FAILED, "gate-process")


@pytest.mark.parametrize("verb", [Verb.APPLY, Verb.REVERT])
def test_a_restart_that_rollout_did_does_not(verb: Verb) -> None:
    """A canary's rehearsal applies, reverts and applies again."""
    outside = Outside([reading(), ARMED, reading(pid="unit kubelet.service MainPID 8", process=PROCESS.format(8))])
    working = worker(outside)
    found = [working(ask(step)) for step in (Verb.MEASURE, verb, Verb.MEASURE)][-1]
    assert isinstance(found, Answered)
    assert found.trigger is Trigger.GATES_PASSED


def test_gates_that_could_not_be_read_are_unknown() -> None:
    lost = RemoteAnswer(None, b"", b"", started=True, reference="deadline", message="no answer in 30 s")
    found = judged(lost)
    assert (found.trigger, found.reference) == (Trigger.GATES_UNKNOWN, "deadline")


def test_a_command_gate_is_quoted_for_the_nodes_shell() -> None:
    outside = Outside([reading()])
    worker(outside)(ask(Verb.MEASURE))
    assert base64.b64encode(b"test -d '/a b'") in outside.sent[0].stdin


@pytest.mark.parametrize(("status", "verdict"), [(0, Verdict.PASS), (1, Verdict.FAIL), (None, Verdict.UNKNOWN)])
def test_a_wave_gate_has_three_verdicts(status: int | None, verdict: Verdict) -> None:
    outside = Outside([], {"check-alerts": status})
    found = worker(outside)(JudgeWave(0))
    assert isinstance(found, WaveJudged)
    assert found.verdict is verdict
    assert outside.environment == {"ROLLOUT_RUN": "r1", "ROLLOUT_WAVE": "canary", "ROLLOUT_CLUSTER": "c"}


def test_without_wave_gates_a_wave_passes() -> None:
    outside = Outside([])
    found = worker(outside, replace(PLAN, gates=DEFAULT_GATES))(JudgeWave(0))
    assert isinstance(found, WaveJudged)
    assert found.verdict is Verdict.PASS


def test_what_cleanup_could_not_do_is_a_leftover() -> None:
    outside = Outside([RemoteAnswer(None, b"", b"", started=False, reference="connect-timeout", message="no answer")])
    found = worker(outside)(ask(Verb.CLEAN))
    assert isinstance(found, Answered)
    assert found.trigger is Trigger.CLEANED
    hint = "once it answers, `rollout cluster unlock` ends the claim on it"
    assert found.leftovers == (f"cleanup failed: no answer [connect-timeout]; {hint}",)


READY = Gate(ApiCheck("nodeReady"), GateScope.NODE, "nodeReady", timeout=0.01)


class Api:
    """An API server that shows one node, or is unreachable."""

    def __init__(self, ready: str) -> None:
        self.ready = ready

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:
        if not self.ready:
            raise RemoteError("not-reached", "Connection refused")
        return Sight(
            LiveNode(
                node,
                "u",
                "",
                (),
                {},
                unschedulable=False,
                taints=(),
                kubelet_version="",
                runtime="",
                os_image="",
                ready=self.ready,
            ),
            Lease("1", ""),
            (),
        )


def gated(outside: Outside, ready: str) -> NodeWorker:
    access = NodeAccess("program", {"n1": Target("n1", "n1")}, {"n1": True})
    backends = Backends(cluster=Api(ready))  # type: ignore[arg-type] # the rest of the port is not asked for
    plan = replace(PLAN, gates=(*DEFAULT_GATES, READY))
    return NodeWorker("r1", access, outside, outside, outside, plan, backends=backends)  # type: ignore[arg-type]


EMPTY_BASELINE = '{"at":0,"devices":{},"ended":[],"lease":"","pods":{},"pressures":[],"v":1}'


def test_every_answer_to_an_apply_contains_the_baseline() -> None:
    lost = RemoteAnswer(None, b"", b"", started=True, reference="connection-lost", message="reset")
    outside = Outside([ARMED, lost])
    for trigger in (Trigger.ARMED, Trigger.LOST):
        found = gated(outside, "True")(ask(Verb.APPLY))
        assert isinstance(found, Answered)
        assert (found.trigger, found.baseline) == (trigger, EMPTY_BASELINE)


@pytest.mark.parametrize(
    ("ready", "trigger", "reference"),
    [("", Trigger.UNSEEN, "baseline-unknown"), ("False", Trigger.REFUSED, "not-ready-before")],
)
def test_without_a_baseline_a_node_is_not_touched(ready: str, trigger: Trigger, reference: str) -> None:
    outside = Outside([])
    found = gated(outside, ready)(ask(Verb.APPLY))
    assert isinstance(found, Answered)
    assert (found.trigger, found.reference) == (trigger, reference)
    assert outside.sent == []


def test_a_failure_that_the_agent_measured_needs_no_request_to_the_api() -> None:
    found = gated(Outside([reading(healthz="healthz timeout")]), "")(ask(Verb.MEASURE))
    assert isinstance(found, Answered)
    assert (found.trigger, found.reference) == (Trigger.GATES_FAILED, "gate-healthz")


class Counted(NoCluster):
    """An API server that has the kubelet's counter of pulls, and nothing else."""

    def pull_counter(self, node: str, timeout: float) -> PullCounter:
        return PullCounter(5, 1)


@pytest.mark.parametrize(
    ("measured", "count_pulls", "units", "done"),
    [
        (reading(), True, ("kubelet.service",), 4),
        (reading(), True, ("containerd.service",), 0),
        (reading(), False, ("kubelet.service",), None),
        (reading(healthz="healthz timeout"), True, ("kubelet.service",), None),
    ],
)
def test_pulls_are_read_when_they_are_asked_for_and_the_node_is_healthy(
    measured: RemoteAnswer, *, count_pulls: bool, units: tuple[str, ...], done: int | None
) -> None:
    gates = tuple(gate for gate in DEFAULT_GATES if gate.kind == "healthz")
    plan = replace(PLAN, groups=(ChangeGroup("g1", "one kind", replace(CHANGE, units=units)),), gates=gates)
    working = worker(Outside([measured]), plan)
    working = replace(working, backends=Backends(cluster=Counted()))
    found = working(replace(ask(Verb.MEASURE), count_pulls=count_pulls))
    assert isinstance(found, Answered)
    assert found.pulls_done == done


def test_an_unreachable_api_server_is_unknown() -> None:
    found = gated(Outside([reading()]), "")(ask(Verb.MEASURE))
    assert isinstance(found, Answered)
    assert (found.trigger, found.reference) == (Trigger.GATES_UNKNOWN, "gate-nodeReady")
    assert "Connection refused" in found.message


ASKING = replace(PLAN, pulls=PullsInFlight())
LOST = RemoteAnswer(None, b"", b"", started=True, reference="connection-lost", message="reset")
GONE = RemoteAnswer(None, b"", b"", started=False, reference="connection-refused", message="refused")


def of_disruption(disruption: Disruption) -> Plan:
    change = replace(CHANGE, disruption=disruption)
    return replace(PLAN, groups=(ChangeGroup("g1", "one kind", change),), pulls=PullsInFlight())


def applied(plan: Plan, answer: RemoteAnswer, *, regardless: bool = False) -> tuple[Answered, list[str]]:
    """The result of an apply, and what each request to the node demanded about its pulls."""
    outside = Outside([answer])
    found = worker(outside, plan)(replace(ask(Verb.APPLY), regardless=regardless))
    assert isinstance(found, Answered)
    requests = [sent.request.words.partition(" pulls=")[2].partition(" ")[0] for sent in outside.sent if sent.request]
    return found, requests


def armed(line: str) -> RemoteAnswer:
    return said(line + RECEIPT.format("armed"), "apply")


def pulling(line: str) -> RemoteAnswer:
    """A node that refuses the order because of its pulls."""
    return said(f"token 3 r1 live\n{line}refused pulls-in-flight a restart would cancel image pulls\n", "apply")


def test_a_node_that_pulls_nothing_is_changed() -> None:
    found, words = applied(ASKING, armed("pulls -\n"))
    assert (found.trigger, found.pulls) == (Trigger.ARMED, ())
    assert words == ["refuse"]


def test_a_node_that_pulls_is_not_touched_and_its_images_are_named() -> None:
    found, _ = applied(ASKING, pulling("pulls redis:7 quay.io/a/b@sha256:" + "0" * 64 + "\n"))
    assert (found.trigger, found.verb, found.reference) == (Trigger.PULLING, Verb.APPLY, "")
    assert found.pulls == ("redis:7", "quay.io/a/b@sha256:" + "0" * 64)


def test_a_node_that_cannot_report_its_pulls_is_not_touched() -> None:
    found, _ = applied(ASKING, pulling(""))
    assert (found.trigger, found.pulls) == (Trigger.PULLING, ())


@pytest.mark.parametrize(("plan", "regardless"), [(PLAN, False), (ASKING, True)])
def test_a_node_that_refuses_because_of_pulls_that_it_was_to_override_is_refused(
    plan: Plan, *, regardless: bool
) -> None:
    """It would be asked again without end."""
    found, _ = applied(plan, pulling("pulls redis:7\n"), regardless=regardless)
    assert (found.trigger, found.reference) == (Trigger.REFUSED, "pulls-in-flight")


def test_many_images_are_not_all_named() -> None:
    found, _ = applied(ASKING, pulling("pulls " + " ".join(f"i{n}" for n in range(13)) + "\n"))
    assert found.pulls == (*(f"i{n}" for n in range(10)), "3 more images")


def test_an_overridden_node_is_changed_and_its_cancelled_pulls_are_named() -> None:
    found, words = applied(ASKING, armed("pulls redis:7\n"), regardless=True)
    assert (found.trigger, found.pulls, words) == (Trigger.ARMED, ("redis:7",), ["override"])


@pytest.mark.parametrize(("answer", "trigger"), [(LOST, Trigger.LOST), (GONE, Trigger.UNREACHED)])
def test_a_node_without_an_answer_about_its_pulls_counts_as_unreachable(answer: RemoteAnswer, trigger: Trigger) -> None:
    assert applied(ASKING, answer)[0].trigger == trigger


@pytest.mark.parametrize(
    "plan",
    [PLAN, of_disruption(Disruption.NONE), of_disruption(Disruption.RELOAD)],
    ids=["overridden at once", "none", "reload"],
)
def test_a_change_that_cancels_no_pulls_or_all_pulls_does_not_ask(plan: Plan) -> None:
    assert applied(plan, ARMED)[1] == [""]


@pytest.mark.parametrize("plan", [of_disruption(Disruption.RESTART_RUNTIME), of_disruption(Disruption.RESTART_KUBELET)])
def test_a_change_that_restarts_anything_asks(plan: Plan) -> None:
    assert applied(plan, pulling("pulls redis\n"))[1] == ["refuse"]


OF_THE_AGENT = replace(PLAN, gates=DEFAULT_GATES)
"""Without a command on the node: the apply measures all that the gates need."""


def measuring(outside: Outside, plan: Plan) -> list[Trigger]:
    """What an apply and the gates after it found."""
    working = worker(outside, plan)
    events = [working(ask(verb)) for verb in (Verb.APPLY, Verb.MEASURE)]
    return [event.trigger for event in events if isinstance(event, Answered)]


def measured(**changes: str) -> RemoteAnswer:
    """The answer to an apply that took the node 20 seconds, with a measurement."""
    return replace(ARMED, stdout=reading(**changes).stdout.replace(b"end status", b"took 20000\nend apply"))


def test_the_gates_take_the_measurement_in_the_answer_to_the_apply() -> None:
    outside = Outside([measured()])
    assert measuring(outside, OF_THE_AGENT) == [Trigger.ARMED, Trigger.GATES_PASSED]
    assert b"\npath /var/lib/kubelet/config.yaml\n" in outside.sent[0].stdin
    outside = Outside([measured(healthz="healthz timeout")])
    assert measuring(outside, OF_THE_AGENT) == [Trigger.ARMED, Trigger.GATES_FAILED]


@pytest.mark.parametrize(
    ("first", "plan", "later"),
    [
        (ARMED, OF_THE_AGENT, 0.0),  # it measured nothing, since it restarted no kubelet
        (ARMED, PLAN, 0.0),  # a command of the playbook is to be run
        (measured(), OF_THE_AGENT, 6.0),  # too long ago
    ],
    ids=["not measured", "command", "old"],
)
def test_a_node_without_a_fresh_measurement_measures_again(first: RemoteAnswer, plan: Plan, later: float) -> None:
    outside = Outside([first, reading(healthz="healthz timeout")])
    working = worker(outside, plan)
    working(ask(Verb.APPLY))
    outside.time += later
    found = working(ask(Verb.MEASURE))
    assert isinstance(found, Answered)
    assert found.trigger is Trigger.GATES_FAILED
    assert outside.answers == []


@pytest.mark.parametrize(("seconds", "counts"), [(21.0, True), (24.0, True), (26.0, False), (80.0, False)])
def test_a_measurement_is_as_old_as_its_answer_was_on_its_way(seconds: float, *, counts: bool) -> None:
    """A link that was cut delivers an answer when it is whole again."""
    outside = Outside([measured(), reading(healthz="healthz timeout")])
    outside.slow = seconds
    assert measuring(outside, OF_THE_AGENT)[1] is (Trigger.GATES_PASSED if counts else Trigger.GATES_FAILED)


def test_a_measurement_counts_once_and_only_for_its_own_transaction() -> None:
    outside = Outside([measured(), reading(healthz="healthz timeout"), measured(), reading()])
    working = worker(outside, OF_THE_AGENT)
    triggers = []
    for event in (working(ask(Verb.APPLY)), working(ask(Verb.MEASURE)), working(ask(Verb.MEASURE))):
        assert isinstance(event, Answered)
        triggers.append(event.trigger)
    assert triggers == [Trigger.ARMED, Trigger.GATES_PASSED, Trigger.GATES_FAILED]
    working(ask(Verb.APPLY))
    working(replace(ask(Verb.MEASURE), tx="r1-2"))
    assert outside.answers == []


def test_units_are_sent_a_hangup_before_any_is_restarted() -> None:
    change = replace(CHANGE, units=(), hangups=("docker.service",), disruption=Disruption.RELOAD)
    outside = Outside([ARMED])
    worker(outside, replace(PLAN, groups=(ChangeGroup("g1", "one kind", change),)))(ask(Verb.APPLY))
    assert b"\nhangup docker.service\n" in outside.sent[0].stdin
    assert b"\nunit " not in outside.sent[0].stdin


def test_a_rollback_worker_has_no_plan_to_apply() -> None:
    with pytest.raises(LookupError, match="neither applies"):
        worker(Outside([]), plan=None)(ask(Verb.APPLY))


def test_only_a_rollback_gets_a_later_transaction_of_its_run_and_only_on_a_read() -> None:
    later = "history tx=r1-2 run=r1 counter=3 seq=2 state=confirmed cause=- left=0 finished=1 kubelet=-\n"
    asked = "history tx=r1-1 run=r1 counter=3 seq=1 state=reverted cause=asked left=0 finished=1 kubelet=-\n"
    answer = f"token 4 r9 live\n{later}{asked}" + asked.replace("history", "receipt")
    for plan, verb, newer in ((None, Verb.READ, "r1-2"), (PLAN, Verb.READ, ""), (None, Verb.REVERT, "")):
        found = worker(Outside([said(answer, "status" if verb is Verb.READ else "revert")]), plan)(ask(verb))
        assert isinstance(found, Answered)
        assert (found.trigger, found.newer) == (Trigger.REVERTED_ON_REQUEST, newer), (plan is None, verb)
