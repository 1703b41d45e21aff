"""A gate's verdict. It has exactly three values: "could not ask" is never counted as pass or fail."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.frozen import dataclass


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


Judged = tuple[Verdict, str]
"""A verdict with its evidence: one line, for people."""

SHOWN = 5
"""How many alerts or samples are named in one line of evidence."""

SEVERITY = {Verdict.PASS: 0, Verdict.UNKNOWN: 1, Verdict.FAIL: 2}
"""The worst of several verdicts counts: the one with the highest number."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One result of one gate, with its evidence (one line, for people)."""

    gate: str
    verdict: Verdict
    evidence: str
