"""What a kubelet reports again and again because it cannot go on; what occurs once it repairs itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rollout.core.text.terminal import counted, seconds_text
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, nodes_of, proof, since
from rollout.features.diagnose.rules.pulls import full_name
from rollout.features.diagnose.rules.troubles import REPEATED

LASTS = 120.0
"""Seconds from the first to the last report, from which it counts: the kubelet tries again every few seconds up to two minutes."""
OFTEN = 3
"""Reports from which it counts where a table of events has no times."""


def repeated_findings(facts: Facts) -> Iterator[Finding]:
    """One for each node, trouble, and container or volume."""
    together: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.TROUBLE):
        together[fact.node, fact.clock, fact["id"], fact["of"]].append(fact)
    by_id = {trouble.id: trouble for trouble in REPEATED}
    for (node, clock, id_, of), lines in together.items():
        trouble = by_id[id_]
        most = max(line.times for line in lines)
        lasted = _at(lines[-1]) - _at(lines[0])
        if not trouble.once and lasted < LASTS and most < OFTEN:
            continue
        pods = sorted({line["pod"] for line in lines if line["pod"]})
        about = f" Of pod {', '.join(pods[:3])}." if pods else ""
        how_long = f" Reported {counted(max(most, len(lines)), 'time')}" + (
            f" over {seconds_text(lasted)}." if lasted else "."
        )
        cause = trouble.cause.format(of=of) + about + how_long
        opened = _open_pull(facts, node, clock, _at(lines[0])) if trouble.once else None
        if opened:
            cause += f" The pull of {opened['image']} was under way then."
        shown = proof([*([opened] if opened else []), *lines])
        yield Finding(id_, Confidence.CERTAIN, nodes_of(lines), since(lines), cause, shown, fetch_next=trouble.fetch)


def _at(fact: Fact) -> float:
    return fact.at or 0.0


def _open_pull(facts: Facts, node: str, clock: str, at: float) -> Fact | None:
    """The oldest pull that the runtime had received before that time and not ended."""
    open_: dict[str, Fact] = {}
    for fact in facts.of(Kind.RUNTIME_STARTED, Kind.RUNTIME_ENDED):
        if (fact.node, fact.clock) == (node, clock) and fact.at is not None and fact.at <= at:
            if fact.kind is Kind.RUNTIME_STARTED:
                open_.setdefault(full_name(fact["image"]), fact)
            else:
                open_.pop(full_name(fact["image"]), None)
    return next(iter(open_.values()), None)
