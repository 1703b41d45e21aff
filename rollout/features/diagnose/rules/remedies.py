"""Whether a remedy works: the same rules over the time before a run and the time since its nodes were confirmed.

The restart that applies a remedy empties the pull queue too, so a queue that is gone proves nothing. A pull that ends
while another one is stalled does: a queue that takes one pull at a time cannot do that. Without such a pull, the value in
force and so many hours of pulls without the symptom count. Until then the remedy is applied and not yet proven.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.text.nodesets import fold, is_name
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind, SourceLine, without_secrets_in
from rollout.features.diagnose.rules.finding import Confidence, ProposalTarget, proof, time_text
from rollout.features.diagnose.rules.pulls import WAITED, pulls_of

HOURS = 24.0
"""Hours of pulls without the symptom that prove a remedy, on the node with the fewest."""
PULLS = 20
"""Pulls that must have ended in that time, on all nodes together."""
SETTINGS: Mapping[str, str] = {
    "serializeImagePulls": "serial-pull-queue",
    "imagePullProgressDeadline": "pull-progress-deadline",
    "registryPullQPS": "pull-qps-exceeded",
    "maxPods": "pod-rejected-at-readmission",
    "failCgroupV1": "cgroup-v1-refused",
}
"""Setting → the finding that proposes it."""


class Effect(StrEnum):
    PROVEN = "proven"
    NOT_YET = "not-yet-proven"
    STILL_THERE = "still-there"


_WORDS = {Effect.PROVEN: "proven", Effect.NOT_YET: "applied, not yet proven", Effect.STILL_THERE: "still there"}


@dataclass(frozen=True, slots=True)
class Observed:
    """What one node showed. ``hours``: the time since its confirm that was read; ``in_force``: ``None`` if not known."""

    node: str
    before: tuple[Fact, ...]
    after: tuple[Fact, ...]
    hours: float
    in_force: bool | None


@dataclass(frozen=True, slots=True)
class Remedy:
    """One setting of a run, and its effect. ``before``, ``after``: nodes with the finding; ``missing``: until it is proven."""

    setting: str
    finding: str
    effect: Effect
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str
    evidence: tuple[SourceLine, ...] = ()
    missing: tuple[str, ...] = ()


def remedies(
    settings: Collection[str], observed: Sequence[Observed], silent: Collection[str], target: ProposalTarget
) -> tuple[Remedy, ...]:
    """``settings``: those that the run changed; ``silent``: its nodes that could not be read.

    A setting that fixes no finding is left out.
    """
    before = _nodes_with(observed, target, after=False)
    after = _nodes_with(observed, target, after=True)
    return tuple(
        _judged((setting, finding), observed, silent, before.get(finding, ()), after.get(finding, ()))
        for setting, finding in SETTINGS.items()
        if setting in settings
    )


def _nodes_with(observed: Sequence[Observed], target: ProposalTarget, *, after: bool) -> Mapping[str, tuple[str, ...]]:
    """Finding → the nodes that have it for sure or likely."""
    facts = Facts(most=10**9)
    for node in observed:
        for fact in node.after if after else node.before:
            facts.add(fact)
    found: dict[str, set[str]] = defaultdict(set)
    for each in diagnosed(facts, target).findings:
        if each.confidence is not Confidence.UNKNOWN:
            found[each.id].update(each.nodes)
    return {name: tuple(sorted(nodes)) for name, nodes in found.items()}


def _judged(
    which: tuple[str, str],
    observed: Sequence[Observed],
    silent: Collection[str],
    before: tuple[str, ...],
    after: tuple[str, ...],
) -> Remedy:
    setting, finding = which
    if after:
        return Remedy(setting, finding, Effect.STILL_THERE, before, after, "the same rules find it since the confirm")
    shown = next(_side_by_side(observed), None) if finding == "serial-pull-queue" else None
    if shown is not None:
        return Remedy(setting, finding, Effect.PROVEN, before, after, shown.why, shown.evidence)
    missing = tuple(_missing(observed, silent))
    if missing:
        return Remedy(setting, finding, Effect.NOT_YET, before, after, "", missing=missing)
    hours = min(node.hours for node in observed)
    why = f"the value is in force, and {hours:.0f} h of pulls had none: {counted(_pulls(observed), 'pull')} ended"
    return Remedy(setting, finding, Effect.PROVEN, before, after, why)


def _missing(observed: Sequence[Observed], silent: Collection[str]) -> Iterator[str]:
    if silent:
        yield f"{fold(silent)} could not be read"
    other = [node.node for node in observed if node.in_force is False]
    unknown = [node.node for node in observed if node.in_force is None]
    if other:
        yield f"another value is in force on {fold(other)}"
    if unknown:
        yield f"the value in force on {fold(unknown)} is not known: /configz needs a kubeconfig that may read nodes/proxy"
    least = min((node.hours for node in observed), default=0.0)
    if least < HOURS:
        yield f"{HOURS - least:.1f} more hours without it, or a pull that ends while another one is stalled"
    pulls = _pulls(observed)
    if pulls < PULLS:
        yield f"{counted(PULLS - pulls, 'more pull')}: {pulls} ended since the confirm"


def _pulls(observed: Iterable[Observed]) -> int:
    """Pulls that ended without an error. The runtime and the kubelet both show a pull: the higher number counts."""
    ended = [fact for node in observed for fact in node.after if not fact["error"]]
    return max(sum(fact.kind is kind for fact in ended) for kind in (Kind.PULLED, Kind.RUNTIME_ENDED))


@dataclass(frozen=True, slots=True)
class _Shown:
    why: str
    evidence: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class _Span:
    """A pull of a node. ``end``: ``None`` while it runs."""

    image: str
    start: float
    end: float | None
    good: bool
    facts: tuple[Fact, ...]


def _side_by_side(observed: Iterable[Observed]) -> Iterator[_Shown]:
    """Pulls that ended well while another one, which began before them, had run for a minute and went on."""
    for node in observed:
        starts = [fact.at for fact in node.after if fact.kind is Kind.START and fact.at is not None]
        for spans in (_of_kubelet(node.after), _of_runtime(node.after, starts)):
            for span in spans:
                other = _stalled(span, span.end, spans) if span.good and span.end is not None else None
                if other is not None and span.end is not None:
                    ran = seconds_text(span.end - other.start)
                    yield _Shown(
                        f"on {node.node} the pull of {span.image} ended at {time_text(span.end)} while the pull of {other.image} "
                        f"had been running for {ran}: the queue does not hold up others",
                        proof((*other.facts, *span.facts)),
                    )


def _stalled(span: _Span, end: float, spans: Sequence[_Span]) -> _Span | None:
    return next(
        (
            each
            for each in spans
            if each.image != span.image
            and each.start <= span.start
            and end - each.start >= WAITED
            and (each.end is None or each.end > end)
        ),
        None,
    )


def _of_kubelet(found: Sequence[Fact]) -> list[_Span]:
    """Pulls by the kubelet's events, which may be lost: one that began twice, or has no end, is left out."""
    facts = Facts(most=10**9)
    for fact in found:
        facts.add(fact)
    begun = Counter((fact["pod"], fact["image"]) for fact in facts.of(Kind.QUEUED))
    return [
        _Span(pull.image, pull.start, pull.end, not pull.error, pull.facts)
        for pull in pulls_of(facts)
        if pull.ended and begun[pull.begun["pod"], pull.image] == 1
    ]


def _of_runtime(found: Iterable[Fact], starts: Sequence[float]) -> list[_Span]:
    """Pulls by the runtime's log. A pull without an end counts unless the kubelet, which asked for it, started since."""
    open_: dict[str, Fact] = {}
    spans: list[_Span] = []
    for fact in sorted(found, key=lambda each: each.at or 0.0):
        if fact.kind is Kind.RUNTIME_STARTED and fact.at is not None:
            open_[fact["image"]] = fact
        elif fact.kind is Kind.RUNTIME_ENDED and (begun := open_.pop(fact["image"], None)):
            spans.append(_Span(fact["image"], begun.at or 0.0, fact.at, not fact["error"], (begun, fact)))
    last = max(starts, default=0.0)
    hung = (_Span(image, fact.at or 0.0, None, good=False, facts=(fact,)) for image, fact in open_.items())
    return [*spans, *(span for span in hung if span.start > last)]


# For people and programs.


def remedy_lines(found: Sequence[Remedy]) -> Iterator[str]:
    for each in found:
        yield printable(f"{each.finding} ({each.setting}): {_WORDS[each.effect]}", 200)
        yield f"  before: {_with(each.before)}; since the confirm: {_with(each.after)}"
        if each.why:
            yield printable(f"  why: {each.why}", 400)
        for line in each.missing:
            yield printable(f"  missing: {line}", 400)
        for where in each.evidence:
            yield printable(f"  {where.file}:{where.line}: {without_secrets(where.text)}", 220)
    if not found:
        yield "No setting of this run is a remedy for a finding."


@dataclass(frozen=True, slots=True)
class RemedyPart:
    """One setting of a run. ``before``, ``after``: the nodeset with the finding; ``missing``: what is needed until it is proven."""

    setting: str
    finding: str
    effect: Effect
    before: str
    after: str
    why: str
    missing: tuple[str, ...]
    evidence: tuple[SourceLine, ...]


def remedy_part(found: Remedy) -> RemedyPart:
    return RemedyPart(
        setting=found.setting,
        finding=found.finding,
        effect=found.effect,
        before=_folded(found.before),
        after=_folded(found.after),
        why=found.why,
        missing=found.missing,
        evidence=without_secrets_in(found.evidence),
    )


def _with(nodes: Sequence[str]) -> str:
    return f"{counted(len(nodes), 'node')} {_folded(nodes)}".strip()


def _folded(nodes: Iterable[str]) -> str:
    return fold([name for name in nodes if is_name(name)])
