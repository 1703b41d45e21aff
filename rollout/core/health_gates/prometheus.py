"""Prometheus: the answer of an instant query as values, its verdict with evidence, and how a plan shows the query.

These never pass: no sample at all, a sample that is not a number, an answer that could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isinf, isnan

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import PrometheusQuery
from rollout.core.model.verdict import SHOWN, Judged, Verdict
from rollout.core.text.terminal import counted, printable

MOST_AGE = 120.0
"""Seconds by which samples may be older than their answer: some stores answer with data from half a minute ago."""

_REMARK = "PromQL info:"
"""The prefix of remarks on the syntax of a query; some versions put them among the warnings."""


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


def words(query: PrometheusQuery) -> Iterator[str]:
    """The query as a plan shows it."""
    yield query.query
    if query.at_most is not None:
        yield f"≤ {query.at_most:g}"
    if query.at_least is not None:
        yield f"≥ {query.at_least:g}"
    if query.worse is not None:
        yield f"not {query.tolerance * 100:g} % {query.worse.value} than nodes not changed yet"
    if query.url:
        yield f"at {query.url}"


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
