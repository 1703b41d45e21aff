"""Answers of back ends and their verdicts; long answers are cut in the evidence."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.verdict import Verdict
from rollout.gates.alertmanager.query import Alert, judge_alerts
from rollout.gates.page.query import HttpQuery, Page, judge_page
from rollout.gates.prometheus.judging import Sample, Samples, judge_samples
from rollout.gates.prometheus.query import PrometheusQuery


def samples(*values: float) -> Samples:
    return Samples(tuple(Sample(f"node=n{at}", value) for at, value in enumerate(values, 1)))


def test_samples_may_have_two_bounds() -> None:
    query = PrometheusQuery("q", at_most=2, at_least=1)
    assert judge_samples(query, samples(1, 2)) == (Verdict.PASS, "2 samples, 1 to 2; at most 2 and at least 1")
    assert judge_samples(query, samples(0.5))[0] is Verdict.FAIL


def test_only_some_of_many_samples_are_named() -> None:
    said = judge_samples(PrometheusQuery("q", at_most=0), samples(*range(1, 9)))[1]
    assert said == (
        "8 of 8 samples beyond: {node=n1} 1, {node=n2} 2, {node=n3} 3, {node=n4} 4, {node=n5} 5 and 3 more; at most 0"
    )


def test_nan_is_not_a_number_and_warnings_are_shown() -> None:
    answer = Samples((Sample("node=n1", 0), Sample("node=n2", math.nan)), ("a store is away",))
    said = "the sample {node=n2} is NaN; warning: a store is away"
    assert judge_samples(PrometheusQuery("q", at_most=1), answer) == (Verdict.UNKNOWN, said)


def test_a_division_by_zero_is_within_no_bound() -> None:
    assert judge_samples(PrometheusQuery("q", at_least=1), samples(2, math.inf)) == (
        Verdict.UNKNOWN,
        "the sample {node=n2} is +inf",
    )
    assert judge_samples(PrometheusQuery("q", at_most=1), samples(-math.inf))[0] is Verdict.UNKNOWN
    assert judge_samples(PrometheusQuery("q", at_most=1), samples(math.inf))[0] is Verdict.FAIL


@given(
    st.lists(st.floats(), max_size=5),
    st.sampled_from([PrometheusQuery("q"), PrometheusQuery("q", at_most=0), PrometheusQuery("q", at_least=0)]),
)
def test_a_pass_means_that_there_were_numbers_and_that_all_of_them_fit(
    values: list[float], query: PrometheusQuery
) -> None:
    if judge_samples(query, samples(*values))[0] is Verdict.PASS:
        assert values
        assert all(map(math.isfinite, values))
        assert query.at_most is None or max(values) <= query.at_most
        assert query.at_least is None or min(values) >= query.at_least


def test_alerts_that_fired_before_do_not_count() -> None:
    assert judge_alerts([Alert("f", {})], ["f", "g"]) == (Verdict.PASS, "firing as before: 1 alert")
    assert judge_alerts([], []) == (Verdict.PASS, "no alert fires")


def test_without_thresholds_it_is_enough_that_there_are_samples() -> None:
    assert judge_samples(PrometheusQuery("q"), samples(3)) == (Verdict.PASS, "1 sample, 3 to 3; no threshold")
    assert judge_samples(PrometheusQuery("q"), samples())[0] is Verdict.UNKNOWN


def test_a_sample_without_labels_is_its_value() -> None:
    assert (
        judge_samples(PrometheusQuery("q", at_most=0), Samples((Sample("", 1),)))[1]
        == "1 of 1 sample beyond: 1; at most 0"
    )


def test_only_some_of_many_alerts_are_named() -> None:
    firing = [Alert(f"f{at}", {"alertname": f"A{at}", "instance": "n1:9100"} if at else {}) for at in range(7)]
    verdict, said = judge_alerts(firing, [])
    assert verdict is Verdict.FAIL
    assert said == ("7 new alerts: unnamed, A1 on n1:9100, A2 on n1:9100, A3 on n1:9100, A4 on n1:9100 and 2 more")


def test_a_page_without_a_body_shows_its_status() -> None:
    assert judge_page(HttpQuery("http://a"), Page(503, "")) == (Verdict.FAIL, "answered 503, wanted 200")
    assert judge_page(HttpQuery("http://a", contains="x"), Page(200, "y"))[0] is Verdict.FAIL
    assert judge_page(HttpQuery("http://a", contains="x"), Page(200, "xy"))[0] is Verdict.PASS
