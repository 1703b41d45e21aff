"""The wave gates with fake back ends: three verdicts, baselines, the control group, silences.

tests/adapters tests the same over real HTTP. Here: what each answer of a back end means for the wave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.app.backends import Backends
from rollout.app.ports import Ran
from rollout.app.wave_gates import WaveGates
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Plan, Wave
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import SilencesLifted, WaveJudged, WaveOpened
from rollout.errors import AwayError, RemoteError
from rollout.gates.agent_checks.query import AgentCheck
from rollout.gates.alertmanager.asking import Silence
from rollout.gates.alertmanager.query import Alert, AlertQuery
from rollout.gates.command.asking import MOST_OUTPUT
from rollout.gates.command.query import CommandQuery
from rollout.gates.page.query import HttpQuery, Page
from rollout.gates.prometheus.asking import MOST_KEPT
from rollout.gates.prometheus.judging import MOST_AGE, Sample, Samples
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from tests.adapters.kubernetes.node_gates import Watch, plan
from tests.gates.askers import askers

Answer = TypeVar("Answer")

AWAY = AwayError("not-reached", "Connection refused")
PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
FIRING, NEW = Alert("f1", {"alertname": "KubeletDown"}), Alert("f2", {"alertname": "PullsFail", "node": "n1"})
BELOW_TEN = PrometheusQuery("rate", at_most=10.0)
COMPARED = PrometheusQuery('rate{node=~"$nodes"}', worse=Worse.HIGHER)
CRITICAL = AlertQuery(('severity="critical"',))
SILENCING = replace(CRITICAL, silence=600.0)


def metric(query: PrometheusQuery, name: str = "rate") -> Gate:
    return Gate(query, GateScope.WAVE, name)


def alerts(query: AlertQuery = CRITICAL) -> Gate:
    return Gate(query, GateScope.WAVE, "alerts")


def page(query: HttpQuery) -> Gate:
    return Gate(query, GateScope.WAVE, "page")


COMMAND = Gate(CommandQuery(("ask-somebody", "$HOME")), GateScope.WAVE, "ask", timeout=5.0)


def samples(*values: float) -> Samples:
    return Samples(tuple(Sample(f'node="n{at}"', value, (f"n{at}",)) for at, value in enumerate(values, start=1)))


@dataclass
class Around:
    """Fake metrics, alerts, pages and local commands. A ``RemoteError`` in an answer's place is raised."""

    clock: Watch = field(default_factory=Watch)
    metrics: Callable[[str], Samples | RemoteError] = lambda _query: samples(1.0)
    alerts: tuple[Alert, ...] | RemoteError = ()
    silenced: tuple[Alert, ...] = ()
    page: Page | RemoteError = field(default_factory=lambda: Page(200, "ok"))
    ran: Ran = field(default_factory=lambda: Ran(0))
    refuses: RemoteError | None = None  # the error for requests that set a silence
    keeps: RemoteError | None = None  # … that end a silence
    hides: RemoteError | None = None  # … that list silences
    fails: int = 0  # the number of requests without an answer before the first answer
    standing_now: dict[str, Silence] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    environment: Mapping[str, str] = field(default_factory=dict)

    def _away(self) -> None:
        if self.fails:
            self.fails -= 1
            raise AWAY

    def query(self, url: str, query: str, timeout: float) -> Samples:
        self._away()
        self.asked.append(query)
        return _said(self.metrics(query))

    def firing(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        return _said(self.alerts)

    def known(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        return (*_said(self.alerts), *self.silenced)

    def silence(self, url: str, silence: Silence, timeout: float) -> str:
        _said(self.refuses)
        identity = f"s{len(self.standing_now) + 1}"
        self.standing_now[identity] = silence
        return identity

    def standing(self, url: str, comment: str, timeout: float) -> tuple[str, ...]:
        _said(self.hides)
        return tuple(name for name, silence in self.standing_now.items() if silence.comment.startswith(comment))

    def lift(self, url: str, silence: str, timeout: float) -> None:
        _said(self.keeps)
        self.standing_now.pop(silence, None)

    def get(self, url: str, timeout: float) -> Page:
        return _said(self.page)

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran:
        self.asked.append(" ".join(command))
        self.environment = environment
        return self.ran


def _said(answer: Answer | RemoteError) -> Answer:
    if isinstance(answer, RemoteError):
        raise answer
    return answer


def plan_of_kinds(gates: Sequence[Gate], kinds: Mapping[str, str]) -> Plan:
    """``n1`` and ``n2`` are the canary wave."""
    base = plan("n1", *gates)
    nodes = {name: replace(base.nodes["n1"], name=name, group=kind) for name, kind in kinds.items()}
    return replace(base, nodes=nodes, waves=(Wave("canary", ("n1", "n2"), 1.0),))


def nothing_known(gates: Sequence[Gate]) -> str:
    """A baseline in which no node had a sample."""
    return json.dumps({gate.name: {"nodes": ""} for gate in gates if isinstance(gate.asks, PrometheusQuery)})


@dataclass
class Asked:
    """Some wave gates of one run over two nodes of a wave; ``n3`` comes later."""

    around: Around
    gates: Sequence[Gate]
    kinds: Mapping[str, str] = field(default_factory=lambda: {"n1": "g1", "n2": "g1", "n3": "g1"})

    def of(self) -> WaveGates:
        around = self.around
        backends = Backends(askers=askers(around), wait=around.clock.wait)
        return WaveGates("r1", plan_of_kinds(self.gates, self.kinds), around, around.clock, backends, "me@here")

    def open(self) -> WaveOpened:
        return self.of().open(OpenWave(0, ("n1", "n2")))

    def judge(self, baseline: str | None = None, control: tuple[str, ...] = ("n3",)) -> WaveJudged:
        return self.of().judge(
            JudgeWave(0, nothing_known(self.gates) if baseline is None else baseline, ("n1", "n2"), control)
        )

    def lift(self, *silences: str) -> SilencesLifted:
        return self.of().lift(LiftSilences(silences))


def one(
    around: Around, gate: Gate, baseline: str | None = None, control: tuple[str, ...] = ("n3",)
) -> tuple[Verdict, str]:
    """Verdict and evidence of the only gate in a round."""
    judged = Asked(around, (gate,)).judge(baseline, control)
    (reading,) = judged.readings
    assert (reading.gate, reading.verdict) == (gate.name, judged.verdict)
    return reading.verdict, reading.evidence


# ---------------------------------------------------------------------------------------- UNKNOWN is never a pass


@pytest.mark.parametrize(
    ("answer", "verdict", "says"),
    [
        (samples(1.0, 2.0), PASS, "2 samples, 1 to 2; at most 10"),
        (samples(1.0, 11.0), FAIL, '1 of 2 samples beyond: {node="n2"} 11; at most 10'),
        (samples(), UNKNOWN, "the query's result is empty"),
        (samples(float("nan")), UNKNOWN, 'the sample {node="n1"} is NaN'),
        (replace(samples(1.0), age=MOST_AGE + 1), UNKNOWN, "s old"),
        (replace(samples(1.0), warnings=("a store is away",)), UNKNOWN, "may be partial: a store is away"),
        (RemoteError("http-400", "parse error"), UNKNOWN, "request failed: parse error [http-400]"),
        (AWAY, UNKNOWN, "request failed: Connection refused [not-reached]"),
    ],
)
def test_a_query_has_three_verdicts(answer: Samples | RemoteError, verdict: Verdict, says: str) -> None:
    around = Around(metrics=lambda _query: answer)
    found, evidence = one(around, metric(BELOW_TEN))
    assert (found, says in evidence) == (verdict, True), evidence
    opened = Asked(around, (metric(BELOW_TEN),)).open()
    assert (opened.verdict, opened.evidence) == (verdict, "" if verdict is PASS else f"gate 'rate': {evidence}")


NAMED = PrometheusQuery('errors{node=~"$nodes"}', at_most=10.0)
ABSENT = {
    "no sample": samples(),
    "not of each node": samples(1.0),
    "of no node": Samples((Sample("", 1.0),)),
    "not a number": samples(1.0, float("nan")),
    "old": replace(samples(1.0, 1.0), age=MOST_AGE + 1),
    "partial": replace(samples(1.0, 1.0), warnings=("a store is away",)),
}


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("worse", [None, Worse.HIGHER])
def test_one_missed_scrape_is_no_harm(absent: str, worse: Worse | None) -> None:
    """An exporter that is down for 6 s: what is absent is requested again within the gate's time."""
    around, gate = Around(metrics=lambda _query: samples(1.0, 1.0, 1.0)), metric(replace(NAMED, worse=worse))
    baseline, began = Asked(around, (gate,)).open().baseline, around.clock.now()
    around.metrics = lambda _query: samples(1.0, 1.0, 1.0) if around.clock.now() >= began + 6 else ABSENT[absent]
    assert one(around, gate, baseline)[0] is PASS
    assert Asked(around, (gate,)).open().verdict is PASS
    assert 6 <= around.clock.now() - began < gate.timeout


@pytest.mark.parametrize("absent", ABSENT)
def test_what_stays_absent_is_unknown_when_the_gates_time_is_over(absent: str) -> None:
    around, gate = Around(metrics=lambda _query: samples(1.0, 1.0)), metric(NAMED)
    baseline = Asked(around, (gate,)).open().baseline
    around.metrics, before = (lambda _query: ABSENT[absent]), around.clock.now()
    assert one(around, gate, baseline)[0] is UNKNOWN
    assert gate.timeout - 2 < around.clock.now() - before <= gate.timeout


def test_a_value_beyond_its_bound_fails_at_the_first_answer() -> None:
    around = Around(metrics=lambda _query: samples(11.0))
    assert one(around, metric(BELOW_TEN))[0] is FAIL
    assert len(around.asked) == 1


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(Page(200, "all is well"), PASS), (Page(503, "no"), FAIL), (Page(200, "empty"), FAIL), (AWAY, UNKNOWN)],
)
def test_a_page_has_three_verdicts(answer: Page | RemoteError, verdict: Verdict) -> None:
    around, gate = Around(page=answer), page(HttpQuery("http://here/", contains="well"))
    assert one(around, gate)[0] is verdict
    assert Asked(around, (gate,)).open().verdict is verdict


@pytest.mark.parametrize(
    ("ran", "verdict", "says"),
    [
        (Ran(0, "all is well"), PASS, "ended with 0"),
        (Ran(2, "a\n\nb\n"), FAIL, "ended with 2: a | b"),
        (Ran(-9, "a"), UNKNOWN, "was killed by signal 9: a"),
        (Ran(None, "a", "not there"), UNKNOWN, "not there: a"),
        (Ran(None, "", "did not end in 5 s"), UNKNOWN, "did not end in 5 s"),
    ],
)
def test_a_command_that_measured_nothing_is_unknown(ran: Ran, verdict: Verdict, says: str) -> None:
    around = Around(ran=ran)
    assert one(around, COMMAND) == (verdict, says)
    assert around.asked == ["ask-somebody $HOME"]
    assert around.environment == {"ROLLOUT_RUN": "r1", "ROLLOUT_WAVE": "canary", "ROLLOUT_CLUSTER": "c"}


def test_the_output_of_a_command_is_bounded_and_printable() -> None:
    _, evidence = one(Around(ran=Ran(1, "\x1b[2J" + "x" * 9999 + "\n\x1b[31mred\n")), COMMAND)
    assert "\x1b" not in evidence
    assert len(evidence) < MOST_OUTPUT + 50


def test_a_check_of_nodes_that_a_plan_names_for_a_wave_is_unknown() -> None:
    """A plan of another version may have one; it must not be taken for one that passed."""
    gate = Gate(AgentCheck("healthz"), GateScope.WAVE, "healthz")
    found = (UNKNOWN, "healthz is a gate of nodes, not of a wave")
    assert one(Around(), gate) == found
    assert Asked(Around(), (gate,)).open().verdict is UNKNOWN


def test_a_command_is_not_run_before_the_wave() -> None:
    around = Around(ran=Ran(1))
    assert Asked(around, (COMMAND,)).open().verdict is PASS
    assert around.asked == []


def test_the_worst_verdict_counts_and_every_gate_is_reported() -> None:
    around = Around(page=AWAY, ran=Ran(3))
    judged = Asked(around, (metric(BELOW_TEN), page(HttpQuery("http://here/")), COMMAND)).judge()
    assert [reading.verdict for reading in judged.readings] == [PASS, UNKNOWN, FAIL]
    assert (judged.verdict, judged.evidence) == (FAIL, "gate 'ask': ended with 3")


def test_only_the_gates_of_waves_are_asked() -> None:
    on_node = replace(COMMAND, scope=GateScope.NODE)
    around = Around(ran=Ran(1))
    judged = Asked(around, (on_node,)).judge()
    assert (judged.verdict, judged.readings, around.asked) == (PASS, (), [])


# --------------------------------------------------------------------------------------------- patience


def test_an_unreachable_back_end_is_retried_within_the_gates_timeout() -> None:
    around = Around(fails=3)
    assert one(around, metric(BELOW_TEN))[0] is PASS
    assert around.clock.waits == [1.0] * 3


def test_an_unreachable_back_end_costs_no_more_than_the_gates_timeout() -> None:
    around = Around(fails=10_000)
    assert one(around, metric(BELOW_TEN))[0] is UNKNOWN
    assert sum(around.clock.waits) < metric(BELOW_TEN).timeout


def test_a_final_error_is_not_retried() -> None:
    around = Around(metrics=lambda _query: RemoteError("http-400", "parse error"))
    assert one(around, metric(BELOW_TEN))[0] is UNKNOWN
    assert around.clock.waits == []


# --------------------------------------------------------------------- baselines and the control group


def groups(touched: Samples | RemoteError, control: Samples | RemoteError) -> Callable[[str], Samples | RemoteError]:
    return lambda query: control if "n3" in query else touched


@pytest.mark.parametrize(
    ("control", "verdict", "says"),
    [
        (samples(5.0), PASS, "control 5"),
        (samples(1.0), FAIL, "5 is 4 higher"),
        (samples(), UNKNOWN, "no sample of the control"),
        (
            replace(samples(5.0), warnings=("a store is away",)),
            UNKNOWN,
            "the control group's answer: it may be partial",
        ),
        (AWAY, UNKNOWN, "Connection refused"),
    ],
)
def test_touched_nodes_are_compared_with_untouched_nodes(
    control: Samples | RemoteError, verdict: Verdict, says: str
) -> None:
    around = Around(metrics=groups(samples(5.0), control))
    found, evidence = one(around, metric(COMPARED))
    assert (found, says in evidence) == (verdict, True), evidence
    assert around.asked[0] == 'rate{node=~"(?:n[12])"}', "each group is queried by name"


def test_a_value_beyond_the_threshold_needs_no_comparison() -> None:
    around = Around(metrics=groups(samples(50.0), samples(50.0)))
    assert one(around, metric(replace(COMPARED, at_most=10.0)))[0] is FAIL
    assert len(around.asked) == 1


@pytest.mark.parametrize(("before", "verdict"), [(5.0, PASS), (1.0, FAIL)])
def test_in_the_last_wave_the_wave_itself_before_its_change_is_the_control(before: float, verdict: Verdict) -> None:
    around = Around(metrics=lambda _query: samples(before))
    baseline = Asked(around, (metric(COMPARED),)).open().baseline
    around.metrics = lambda _query: samples(5.0)
    found, evidence = one(around, metric(COMPARED), baseline, control=())
    assert (found, "no control left" in evidence) == (verdict, True), evidence


@pytest.mark.parametrize("baseline", ["", "{", "[]", "{}", '{"rate": "old"}'])
def test_without_a_baseline_nothing_is_compared_and_nothing_passes(baseline: str) -> None:
    """There is none, or it cannot be read."""
    around = Around()
    assert one(around, metric(COMPARED), baseline, control=())[0] is UNKNOWN
    assert one(around, alerts(), baseline) == (UNKNOWN, "it is unknown which alerts fired before the wave")


def test_a_baseline_is_journaled_only_if_it_is_compared_and_is_bounded() -> None:
    many = samples(*(float(value) for value in range(5 * MOST_KEPT)))
    around = Around(metrics=lambda _query: many)
    opened = Asked(around, (metric(COMPARED, "compared"), metric(PrometheusQuery("rate"), "plain"))).open()
    kept = json.loads(opened.baseline)
    assert kept["plain"]["kinds"] == {}
    compared = kept["compared"]["kinds"]["g1"]
    assert len(compared) == MOST_KEPT
    assert (compared[0], compared[-1]) == (0.0, 5.0 * (MOST_KEPT - 1)), "the whole range is kept"


@pytest.mark.parametrize(
    ("firing", "verdict", "says"),
    [
        ((), PASS, "no alert fires"),
        ((FIRING,), PASS, "firing as before: 1 alert"),
        ((FIRING, NEW), FAIL, "1 new alert: PullsFail on n1"),
        (AWAY, UNKNOWN, "Connection refused"),
    ],
)
def test_only_alerts_that_did_not_fire_before_the_wave_count(
    firing: tuple[Alert, ...] | RemoteError, verdict: Verdict, says: str
) -> None:
    around = Around(alerts=(FIRING,))
    baseline = Asked(around, (alerts(),)).open().baseline
    around.alerts = firing
    found, evidence = one(around, alerts(), baseline)
    assert (found, says in evidence) == (verdict, True), evidence


def test_an_alert_that_was_silenced_before_the_wave_does_not_count() -> None:
    """Its silence may end during the run."""
    around = Around(silenced=(NEW,))
    baseline = Asked(around, (alerts(),)).open().baseline
    around.alerts, around.silenced = (NEW,), ()
    assert one(around, alerts(), baseline)[0] is PASS


# ------------------------------------------------------------------------------------------------- silences


def test_a_silence_is_set_for_the_waves_nodes_if_all_other_gates_pass() -> None:
    around = Around()
    opened = Asked(around, (alerts(SILENCING), metric(BELOW_TEN))).open()
    assert (opened.verdict, opened.silences) == (PASS, ("s1 ",))
    assert around.standing_now == {"s1": Silence("node", "(?:n[12])", 600.0, "me@here", "rollout r1, wave canary of c")}


def test_a_wave_that_may_not_start_sets_no_silence() -> None:
    around = Around(metrics=lambda _query: samples(99.0))
    opened = Asked(around, (alerts(SILENCING), metric(BELOW_TEN))).open()
    assert (opened.verdict, opened.silences, around.standing_now) == (FAIL, (), {})


def test_only_a_gate_with_a_silence_sets_one() -> None:
    around = Around()
    opened = Asked(around, (alerts(CRITICAL),)).open()
    assert (opened.verdict, opened.silences, around.standing_now) == (PASS, (), {})


def test_a_silence_that_cannot_be_set_is_unknown_and_the_others_are_journaled() -> None:
    around = Around(refuses=RemoteError("http-403", "forbidden"))
    opened = Asked(around, (alerts(SILENCING),)).open()
    said = "gate 'alerts': its silence could not be set: request failed: forbidden [http-403]"
    assert (opened.verdict, opened.evidence, opened.silences) == (UNKNOWN, said, ())


def test_names_with_too_little_in_common_are_unknown_and_set_no_silence() -> None:
    """A shortened query would match other nodes."""
    many = tuple(f"{at * 7919 % 100_003:x}-{at * 104_729 % 1_000_003:x}" for at in range(12_000))
    around = Around()
    gates = Asked(around, (alerts(SILENCING),)).of()
    opened = gates.open(OpenWave(0, many))
    assert (opened.verdict, "pattern-too-long" in opened.evidence) == (UNKNOWN, True)
    assert around.standing_now == {}


def test_silences_are_lifted_including_one_that_was_not_journaled() -> None:
    """A controller that dies after it has set a silence, but before it journals that, leaves it to the next one."""
    around = Around()
    asked = Asked(around, (alerts(SILENCING),))
    written = asked.open().silences
    asked.open()
    around.standing_now["other"] = Silence("node", "x", 1.0, "you", "rollout r10, wave canary of c")
    assert set(around.standing_now) == {"s1", "s2", "other"}
    assert asked.lift(*written).leftovers == ()
    assert set(around.standing_now) == {"other"}, "those of other runs stay"


def test_a_silence_that_cannot_be_ended_is_reported() -> None:
    around = Around()
    asked = Asked(around, (alerts(SILENCING),))
    written = asked.open().silences
    around.keeps = RemoteError("http-500", "no")
    assert asked.lift(*written).leftovers == ("silence s1 could not be ended and will expire: no",)


def test_known_silences_are_lifted_even_if_silences_cannot_be_listed() -> None:
    around = Around()
    asked = Asked(around, (alerts(SILENCING),))
    written = asked.open().silences
    around.hides = RemoteError("http-500", "no")
    said = "it is not known whether more silences of this run are left; they will expire: no"
    assert (asked.lift(*written).leftovers, around.standing_now) == ((said,), {})


# ---------------------------------------------------------------------------------- series that vanish, kinds


def of_nodes(**values: float) -> Samples:
    return Samples(tuple(Sample(f"node={node}", value, (node,)) for node, value in values.items()))


@pytest.mark.parametrize("gate", [metric(BELOW_TEN), metric(COMPARED)], ids=["threshold", "control"])
def test_a_node_with_series_that_vanish_after_its_change_is_unknown(gate: Gate) -> None:
    around = Around(metrics=lambda _query: of_nodes(n1=1.0, n2=1.0))
    baseline = Asked(around, (gate,)).open().baseline
    assert one(around, gate, baseline)[0] is PASS
    around.metrics = lambda _query: of_nodes(n2=1.0)
    verdict, said = one(around, gate, baseline)
    assert (verdict, said) == (UNKNOWN, "samples of 1 of 2 nodes: n1 has none now and had some before the wave")


def test_a_node_that_never_had_series_has_not_vanished_and_the_evidence_counts_it() -> None:
    around = Around(metrics=lambda _query: of_nodes(n1=1.0))
    gate = metric(BELOW_TEN)
    verdict, said = one(around, gate, Asked(around, (gate,)).open().baseline)
    assert (verdict, said) == (PASS, "1 of 2 nodes: 1 sample, 1 to 1; at most 10")


ADDED_UP = Samples((Sample("", 1.0),))


def test_a_query_for_nodes_that_adds_them_up_is_unknown_before_and_after_the_wave() -> None:
    """Six of seven nodes may be missing in the sum."""
    gate = metric(PrometheusQuery('sum(rate{node=~"$nodes"})', at_most=10.0))
    around = Around(metrics=lambda _query: ADDED_UP)
    opened = Asked(around, (gate,)).open()
    told = "1 sample without a node's name: it is not known how many of 2 touched nodes were counted; keep their label"
    assert (opened.verdict, told in opened.evidence, "sum by (node)" in opened.evidence) == (UNKNOWN, True, True)
    around.metrics = lambda _query: samples(1.0, 1.0)
    baseline = Asked(around, (gate,)).open().baseline
    around.metrics = lambda _query: ADDED_UP
    verdict, said = one(around, gate, baseline)
    assert (verdict, told in said) == (UNKNOWN, True)


def test_a_query_for_the_whole_cluster_needs_to_name_no_node() -> None:
    around, gate = Around(metrics=lambda _query: ADDED_UP), metric(BELOW_TEN)
    verdict, said = one(around, gate, Asked(around, (gate,)).open().baseline)
    assert (verdict, said) == (PASS, "not of single nodes: 1 sample, 1 to 1; at most 10")


def test_a_value_beyond_its_bound_fails_even_if_series_vanished() -> None:
    around, gate = Around(metrics=lambda _query: of_nodes(n1=1.0, n2=1.0)), metric(BELOW_TEN)
    baseline = Asked(around, (gate,)).open().baseline
    around.metrics = lambda _query: of_nodes(n2=99.0)
    assert one(around, gate, baseline)[0] is FAIL


@pytest.mark.parametrize("baseline", ["", "{}", '{"rate": {}}', '{"rate": [1.0]}', '{"rate": {"nodes": "n["}}'])
def test_without_a_baseline_no_query_passes(baseline: str) -> None:
    """It is unknown whether nodes stopped reporting."""
    said = (UNKNOWN, "it is unknown which nodes had samples before the wave")
    assert one(Around(), metric(BELOW_TEN), baseline) == said


KINDS = {"n1": "g1", "n2": "g2", "n3": "g1", "n4": "g2"}


def by_name(**values: float) -> Callable[[str], Samples]:
    """A back end that answers for the nodes in the query's pattern."""

    def answer(query: str) -> Samples:
        pattern = query.partition('"')[2].rpartition('"')[0]
        return of_nodes(**{node: value for node, value in values.items() if re.fullmatch(pattern, node)})

    return answer


def test_an_unhealthy_kind_is_not_hidden_by_the_others() -> None:
    """A canary is one node of each kind: over all of them a median hides the one."""
    around = Around(metrics=by_name(n1=1.0, n2=1.0, n3=1.0, n4=1.0))
    asked = Asked(around, (metric(COMPARED),), KINDS)
    baseline = asked.open().baseline
    assert asked.judge(baseline, ("n3", "n4")).verdict is PASS
    around.metrics = by_name(n1=1.0, n2=50.0, n3=1.0, n4=1.0)
    judged = asked.judge(baseline, ("n3", "n4"))
    assert judged.verdict is FAIL
    assert "1 of 2 kinds: g2: touched 50" in judged.evidence


def test_a_kind_is_compared_with_its_own_however_different_the_others_are() -> None:
    around = Around(metrics=by_name(n1=1.0, n2=50.0, n3=1.0, n4=50.0))
    asked = Asked(around, (metric(COMPARED),), KINDS)
    baseline = asked.open().baseline
    assert asked.judge(baseline, ("n3", "n4")).verdict is PASS
    assert asked.judge(baseline, ("n3",)).verdict is PASS, "g2 has no control left: itself before the wave"
    around.metrics = by_name(n1=1.0, n2=90.0, n3=1.0)
    judged = asked.judge(baseline, ("n3",))
    assert (judged.verdict, "g2: touched 90" in judged.evidence, "no control left" in judged.evidence) == (
        FAIL,
        True,
        True,
    )


def test_a_kind_without_samples_is_reported_before_the_wave() -> None:
    around = Around(metrics=by_name(n1=1.0, n3=1.0))
    opened = Asked(around, (metric(COMPARED),), KINDS).open()
    assert (opened.verdict, "no sample of g2" in opened.evidence) == (UNKNOWN, True)


@given(st.sets(st.sampled_from(["n1", "n2"])), st.sets(st.sampled_from(["n1", "n2"])), st.booleans())
def test_fewer_nodes_with_samples_than_before_never_pass(before: set[str], now: set[str], compared: bool) -> None:
    gate = metric(COMPARED if compared else BELOW_TEN)
    around = Around(
        metrics=lambda query: of_nodes(n3=1.0) if "n3" in query else of_nodes(**dict.fromkeys(sorted(before), 1.0))
    )
    opened = Asked(around, (gate,)).open()
    around.metrics = lambda query: of_nodes(n3=1.0) if "n3" in query else of_nodes(**dict.fromkeys(sorted(now), 1.0))
    passed = opened.verdict is PASS and one(around, gate, opened.baseline)[0] is PASS
    assert passed == (bool(before) and before <= now)
