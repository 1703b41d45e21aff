"""A finding: what is the matter, since when and on which nodes, the lines that prove it, and what fixes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from rollout.core.text.durations import DurationError, parse
from rollout.core.text.nodesets import fold, is_name
from rollout.core.text.terminal import printable, seconds_text
from rollout.features.diagnose.rules.facts import LONGEST_TEXT, Fact, SourceLine

MOST_LINES = 8
"""Lines of evidence that a finding shows."""


class Confidence(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """``proposal``: the command that fixes it (``""``: no setting does), ``risk``: of that command. ``fetch_next``: what
    to read to know more. ``timeline``: of a pod's end, a line for each step.
    """

    id: str
    confidence: Confidence
    nodes: tuple[str, ...]
    since: str
    cause: str
    evidence: tuple[SourceLine, ...]
    proposal: str = ""
    risk: str = ""
    fetch_next: str = ""
    timeline: tuple[str, ...] = ()

    @property
    def nodeset(self) -> str:
        return fold([name for name in self.nodes if is_name(name)])


@dataclass(frozen=True, slots=True)
class ProposalTarget:
    """How proposals are written: the cluster's name (``""``: not known) and the kubelets' minor (``None``: not known).

    ``now``: the time of the reading, on the clock of the events; ``None`` for files, which end with their last line.
    """

    cluster: str = ""
    minor: int | None = None
    now: float | None = None

    def plan(self, nodes: Iterable[str], *settings: str) -> str:
        """``rollout plan --cluster rno --limit tess-node-0001 --set serializeImagePulls=false``."""
        names = fold(sorted({name for name in nodes if is_name(name)}))
        limit = f" --limit '{names}'" if names else ""
        return f"rollout plan --cluster {self.cluster or 'CLUSTER'}{limit}" + "".join(
            f" --set {each}" for each in settings
        )


def proof(facts: Iterable[Fact]) -> tuple[SourceLine, ...]:
    """The lines of these facts, each once, in the order of their files; at most ``MOST_LINES``, the first and the last."""
    lines = list({(fact.where.file, fact.where.line): fact.where for fact in facts}.values())
    lines.sort(key=lambda where: (where.file, where.line))
    half = MOST_LINES // 2
    shown = lines if len(lines) <= MOST_LINES else lines[:half] + lines[-half:]
    return tuple(replace(where, text=printable(where.text, LONGEST_TEXT)) for where in shown)


def since(facts: Sequence[Fact]) -> str:
    """The time of the earliest fact, or its age if its table has ages only; ``""`` without a time."""
    times = [fact.at for fact in facts if fact.at is not None]
    return time_text(min(times)) if times else ""


def time_text(at: float) -> str:
    """Seconds since 1970, or the negative age of a table, for people."""
    if at <= 0:
        return f"{seconds_text(-at)} before the events were printed"
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}Z"


def clock_text(at: float) -> str:
    """The time of day with tenths of a second, or the age."""
    return f"-{seconds_text(-at)}" if at <= 0 else f"{datetime.fromtimestamp(at, UTC):%H:%M:%S.%f}"[:-5]


def nodes_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(sorted({fact.node for fact in facts if fact.node}))


def go_seconds(text: str) -> float | None:
    """A duration as Go prints it; ``None`` if it is none."""
    try:
        return parse(text)
    except DurationError:
        return None


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for all nodes that have the same one with the same cause; those with a proposal first, the unknown ones last."""
    by: dict[tuple[str, str, str], Finding] = {}
    for each in findings:
        key = each.id, each.cause, each.confidence
        if key in by:
            first = by[key]
            nodes = tuple(sorted({*first.nodes, *each.nodes}))
            lines = (first.evidence + each.evidence)[:MOST_LINES]
            by[key] = replace(
                first, nodes=nodes, evidence=lines, since=min(filter(None, (first.since, each.since)), default="")
            )
        else:
            by[key] = each
    order = list(Confidence)
    unknown = Confidence.UNKNOWN
    return tuple(
        sorted(
            by.values(),
            key=lambda each: (
                each.confidence is unknown,
                not each.proposal,
                order.index(each.confidence),
                each.id,
                each.since,
            ),
        )
    )
