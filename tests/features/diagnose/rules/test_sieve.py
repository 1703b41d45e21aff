"""The sieve keeps every line that is a fact, the newest of each kind, and no more than its memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.features.diagnose.rules import sieve as sieves
from rollout.features.diagnose.rules.facts import MOST_FACTS, MOST_IN_ALL, Fact, Facts, Kind, SourceLine
from rollout.features.diagnose.rules.log_lines import LogReader
from rollout.features.diagnose.rules.messages import KEY, WANTED
from rollout.features.diagnose.rules.sieve import Sieve
from tests.features.diagnose.rules import test_each_finding, test_healthy, test_reading
from tests.features.diagnose.rules.logs import RECORDED, diagnosis, journal, klog

LATEST = datetime(2026, 12, 31, tzinfo=UTC)
REMOVED = '"SyncLoop REMOVE" source="api" pods=["shop/web-{}"]'
LINES = (
    *(RECORDED / "incident-2.kubelet.log").read_text().splitlines(),
    *(line for line, _, _ in test_reading.FORMS.values()),
    *(line for shows, alike in test_each_finding.LOGS.values() for line in (shows + alike).splitlines()[:40]),
    *(klog(1, message) for message in (*test_healthy.START, *test_healthy.START_1_20)),
    *(journal(klog(1, message), 1) for message in test_healthy.START),
)


def kept(*lines: str | bytes) -> list[tuple[int, bytes]]:
    sieve = Sieve("a.log", LATEST)
    for number, line in enumerate(lines, 1):
        sieve.take(number, line.encode() if isinstance(line, str) else line)
    return [(number, content) for number, _, content in sieve.kept()]


@given(st.sampled_from(LINES), st.sampled_from(LINES), st.integers(0, 300), st.booleans())
def test_no_line_that_is_a_fact_is_dropped(line: str, other: str, cut: int, behind: bool) -> None:
    """Whole, or behind the rest of a cut one. An error of no known message is one beside the end of a process only."""
    text = other[:cut] + line if behind else line
    facts = [each for each in LogReader("a.log").line(1, 0.0, text.encode()) if each.kind is not Kind.ERROR]
    assert not facts or kept(text)


def test_a_beginning_is_long_enough_to_be_looked_up() -> None:
    assert min(map(len, WANTED)) >= KEY


def test_lines_that_show_nothing_are_not_kept() -> None:
    ready = (
        'SyncLoop (PLEG): "web-1_shop(0)", event: &pleg.PodLifecycleEvent{ID:"0f", Type:"ContainerStarted", Data:"0f"}'
    )
    assert kept(klog(0, "nothing of note"), klog(0, ready), journal("Connection closed", 1, "sshd[1]")) == []


def test_the_newest_lines_of_each_kind_are_kept() -> None:
    old = klog(0, '"SyncLoop DELETE" source="api" pods=["shop/old"]')
    many = [klog(at / 10, REMOVED.format(at)) for at in range(MOST_FACTS + 5)]
    found = kept(old, *many)
    assert [number for number, _ in found[:2]] == [1, 7], "the only one of its kind; then all but the five oldest"
    assert len(found) == MOST_FACTS + 1
    assert diagnosis("\n".join([old, *many])).notes == (
        f"5 older facts were not used: only the newest {MOST_FACTS} of a kind are",
    )


def test_long_lines_take_the_place_of_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieves, "MOST_BYTES", 100_000)
    found = kept(*(klog(at, REMOVED.format(at) + " " * 9_000) for at in range(50)))
    assert [number for number, _ in found] == list(range(41, 51))


def test_facts_of_all_kinds_have_a_limit() -> None:
    facts, kinds = Facts(), list(Kind)[: MOST_IN_ALL // MOST_FACTS + 1]
    for kind in kinds:
        for number in range(MOST_FACTS):
            facts.add(Fact(kind, float(number), "", "a", SourceLine("a", number, str(number)), {}))
    assert sum(1 for _ in facts) == MOST_IN_ALL
    assert facts.left_out == MOST_FACTS
    assert len(facts.of(kinds[-1])) >= MOST_FACTS * 9 // 10
