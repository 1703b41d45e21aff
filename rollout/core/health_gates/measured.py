"""The answers of back ends as values, and the resulting verdict of a gate: PASS, FAIL or UNKNOWN, with evidence.

These never pass: no sample at all, a sample that is not a number, an answer that could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf, isnan

from rollout.core.model.playbook import HttpQuery, PrometheusQuery
from rollout.core.model.verdict import Verdict
from rollout.core.text.terminal import counted, printable

Judged = tuple[Verdict, str]

MOST_AGE = 120.0
"""Seconds by which samples may be older than their answer: some stores answer with data from half a minute ago."""

_REMARK = "PromQL info:"
"""The prefix of remarks on the syntax of a query; some versions put them among the warnings."""

SHOWN = 5
"""How many alerts or samples are named in one line of evidence."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of an instant query. ``labels`` is text for people, without the metric's name; ``words`` are the label values."""

    labels: str
    value: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Samples:
    """An instant query's answer. ``warnings`` are the back end's own texts: a part of the answer may be missing.

    ``age`` is how many seconds older than the answer the newest sample is, by the back end's own clock (0: not known).
    """

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()
    age: float = 0.0

    def values(self) -> tuple[float, ...]:
        return tuple(sample.value for sample in self.samples)


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert; its fingerprint is the same as long as its labels are."""

    fingerprint: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """An HTTP answer; ``text`` is the beginning of its body."""

    status: int
    text: str


def doubt(answer: Samples) -> str:
    """Why an answer with good samples must not be trusted (it is old, or a part is missing); ``""``: it may be."""
    if answer.age > MOST_AGE:
        return f"its samples are {answer.age:.0f} s old (at most {MOST_AGE:g} s)"
    partial = [warning for warning in answer.warnings if not warning.startswith(_REMARK)]
    return f"it may be partial: {printable(partial[0], 120)}" if partial else ""


def judge_samples(query: PrometheusQuery, answer: Samples) -> Judged:
    """Whether every sample is within the thresholds; without thresholds, whether there is something to compare."""
    warned = "".join(f"; warning: {printable(warning, 120)}" for warning in answer.warnings[:2])
    if not answer.samples:
        return Verdict.UNKNOWN, f"the query's result is empty{warned}"
    odd = next((sample for sample in answer.samples if isnan(sample.value)), None)
    if odd is not None:
        return Verdict.UNKNOWN, f"the sample {{{odd.labels}}} is NaN{warned}"
    beyond = [sample for sample in answer.samples if not _within(query, sample.value)]
    if beyond:
        return Verdict.FAIL, f"{_listed(beyond, len(answer.samples))}; {_bounds(query)}{warned}"
    endless = next((sample for sample in answer.samples if isinf(sample.value)), None)
    if endless is not None:  # a division by zero: not a measurement, even if it is within the thresholds
        return Verdict.UNKNOWN, f"the sample {{{endless.labels}}} is {endless.value:+g}{warned}"
    values = answer.values()
    doubted = doubt(answer)
    if doubted:
        return Verdict.UNKNOWN, doubted
    return (
        Verdict.PASS,
        f"{counted(len(values), 'sample')}, {min(values):g} to {max(values):g}; {_bounds(query)}{warned}",
    )


def judge_alerts(firing: Sequence[Alert], known: Iterable[str]) -> Judged:
    """Whether no alert fires that did not before; ``known`` are the fingerprints of those that did."""
    before = frozenset(known)
    new = [alert for alert in firing if alert.fingerprint not in before]
    old = len(firing) - len(new)
    fired = f"firing as before: {counted(old, 'alert')}" if old else "no alert fires"
    if not new:
        return Verdict.PASS, fired
    names = ", ".join(_alert(alert) for alert in new[:SHOWN])
    more = f" and {len(new) - SHOWN} more" if len(new) > SHOWN else ""
    return Verdict.FAIL, f"{counted(len(new), 'new alert')}: {names}{more}"


def judge_page(wanted: HttpQuery, page: Page) -> Judged:
    """Whether the page has the wanted status and content."""
    if page.status != wanted.status:
        return Verdict.FAIL, f"answered {page.status}, wanted {wanted.status}: {printable(page.text, 120)}".rstrip(": ")
    if wanted.contains and wanted.contains not in page.text:
        return (
            Verdict.FAIL,
            f"answered {page.status} without `{printable(wanted.contains, 60)}`: {printable(page.text, 120)}",
        )
    return Verdict.PASS, f"answered {page.status}"


def _within(query: PrometheusQuery, value: float) -> bool:
    high = query.at_most is None or value <= query.at_most
    return high and (query.at_least is None or value >= query.at_least)


def _bounds(query: PrometheusQuery) -> str:
    said = [f"at most {query.at_most:g}"] if query.at_most is not None else []
    said += [f"at least {query.at_least:g}"] if query.at_least is not None else []
    return " and ".join(said) or "no threshold"


def _listed(samples: Sequence[Sample], total: int) -> str:
    named = ", ".join(_named(sample) for sample in samples[:SHOWN])
    more = f" and {len(samples) - SHOWN} more" if len(samples) > SHOWN else ""
    return f"{len(samples)} of {counted(total, 'sample')} beyond: {named}{more}"


def _named(sample: Sample) -> str:
    return f"{{{sample.labels}}} {sample.value:g}" if sample.labels else f"{sample.value:g}"


def _alert(alert: Alert) -> str:
    name = alert.labels.get("alertname", "unnamed")
    where = next((f" on {alert.labels[key]}" for key in ("node", "instance") if key in alert.labels), "")
    return printable(f"{name}{where}", 100)
