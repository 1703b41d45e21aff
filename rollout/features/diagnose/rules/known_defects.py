"""Known defects of the exact versions on a node, beside the findings that show like them: the table of ``rollout.kubelet.defects``.

A row names the finding and the words that are its sign. A finding is never surer for it: a version that has a defect is no
proof that the defect was at work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rollout.features.diagnose.rules.facts import Facts, Kind
from rollout.features.diagnose.rules.finding import Finding
from rollout.kubelet.defects.matching import KUBELET, number_of
from rollout.kubelet.defects.rows import Defect, known

Versions = Mapping[tuple[str, str], tuple[str, ...]]
"""Node and component → the versions that were printed, the newest last. Node ``""``: of lines that name none."""


def with_defects(findings: Iterable[Finding], facts: Facts) -> Iterator[Finding]:
    """Each finding, with the known defects of its nodes that show like it."""
    rows: dict[str, list[tuple[Defect, str]]] = defaultdict(list)
    for row in known():
        for id_, words in row.signs:
            rows[id_].append((row, words))
    versions = versions_of(facts)
    for finding in findings:
        shown = [row for row, words in rows.get(finding.id, ()) if _shows(finding, words)]
        yield _with(finding, shown, versions) if shown else finding


def _shows(finding: Finding, words: str) -> bool:
    texts = (finding.cause, *(line.text for line in finding.evidence))
    return all(any(each in text for text in texts) for each in words.split(" & "))


def versions_of(facts: Facts) -> Versions:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fact in facts.of(Kind.START, Kind.RUNTIME, Kind.VERSION):
        component = KUBELET if fact.kind is Kind.START else fact["by"]
        if fact["version"] and fact["version"] not in found[fact.node, component.casefold()]:
            found[fact.node, component.casefold()].append(fact["version"])
    return {key: tuple(printed) for key, printed in found.items()}


def _with(finding: Finding, rows: Iterable[Defect], versions: Versions) -> Finding:
    cause, fetch = finding.cause, finding.fetch_next
    for row in rows:
        printed = [
            version
            for node in (*finding.nodes, "")
            for version in versions.get((node, row.component.casefold()), ())
            if number_of(version.removeprefix("v")) is not None
        ]
        have = [version for version in printed if row.has(number_of(version.removeprefix("v")) or ())]
        if have:
            cause += (
                f" {row.component} {have[-1].removeprefix('v')} has a known defect that shows like this, {_told(row)}."
            )
        elif not printed:
            ask = f"the version of {row.component}: {row.span} has a known defect that shows like this, {_told(row)}"
            fetch = f"{fetch}; {ask}" if fetch else ask
    return replace(finding, cause=cause, fetch_next=fetch)


def _told(row: Defect) -> str:
    remedy = f". Remedy: {row.remedy}" if row.remedy else ""
    return f"{row.id} ({row.span}): {row.effect}{remedy} ({row.source}; `rollout explain {row.id}`)"
