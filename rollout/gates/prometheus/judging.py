"""The answer of an instant query as values, and its verdict with evidence.

These never pass: no sample at all, a sample that is not a number, an answer that could not be read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from math import isinf, isnan

from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import SHOWN, Judged, Verdict
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.gates.prometheus.query import PrometheusQuery

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
    named = ", ".join(
        f"{{{sample.labels}}} {sample.value:g}" if sample.labels else f"{sample.value:g}" for sample in samples[:SHOWN]
    )
    more = f" and {len(samples) - SHOWN} more" if len(samples) > SHOWN else ""
    return f"{len(samples)} of {counted(total, 'sample')} beyond: {named}{more}"


# Which nodes an instant query's answer covers, so that nodes are noticed when their series vanish.
#
# A sample belongs to a node when one of its labels has the node's name: alone, with a port (``n1:9100``), or as the
# beginning of a longer name (``n1.example.net``). A query that sums over nodes has no such label: its nodes cannot be
# counted.


def answering(answer: Samples, names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` that have a sample."""
    wanted = frozenset(names)
    found = (_node_in(value, wanted) for sample in answer.samples for value in sample.words)
    return frozenset(name for name in found if name)


def vanished(now: Set[str], before: Set[str], touched: Collection[str]) -> str:
    """The message for touched nodes that had samples before the wave and have none now; ``""``: there are none."""
    gone = sorted((before & frozenset(touched)) - now)
    if not gone:
        return ""
    named = printable(fold(gone[:SHOWN]), 200)
    more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
    have = "has" if len(gone) == 1 else "have"
    return f"samples of {share(now, touched)}: {named}{more} {have} none now and had some before the wave"


def unnamed(answer: Samples, touched: Collection[str]) -> str:
    """The message for an answer to a query for nodes that names none of them."""
    number, of = counted(len(answer.samples), "sample"), counted(len(touched), "touched node")
    return f"{number} without a node's name: it is not known how many of {of} were counted; keep their label, as in `sum by (node) (…)`"


def seen(now: Collection[str], touched: Collection[str]) -> str:
    """How many of the touched nodes an answer covers, as a prefix of its evidence; ``""``: all of them.

    A query without ``$nodes`` may cover the whole cluster.
    """
    if not now:
        return "not of single nodes: "
    return f"{share(now, touched)}: " if len(now) < len(touched) else ""


def share(now: Collection[str], touched: Collection[str]) -> str:
    """``1 of 7 nodes``."""
    return f"{len(now)} of {counted(len(touched), 'node')}"


def _node_in(word: str, names: Set[str]) -> str:
    """The longest of ``names`` that a label's value begins with, up to a port or a dot."""
    if word in names:
        return word
    host = word.partition(":")[0]
    while host and host not in names:
        host = host.rpartition(".")[0]
    return host
