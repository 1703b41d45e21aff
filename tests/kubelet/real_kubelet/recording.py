"""What real kubelets said, kept beside the tests: a case a line, so that a change of one is a change of a line.

The cases are kept with their verdicts, and are replayed from here: what hypothesis makes of the strategies may be others with
its next version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.kubelet.real_kubelet.cases import Case, case_of
from tests.kubelet.real_kubelet.verdict import Effective, Verdict

FILE = Path(__file__).with_name("recorded.jsonl")
USUAL = "(usual)"
"""The first two lines: what is in force without a file, and with one that says nothing. Verdicts keep what differs from these."""

Recorded = tuple[tuple[Case, Verdict], ...]


def recorded() -> Recorded:
    """All of them, in the order in which they were tried."""
    lines = [json.loads(line) for line in FILE.read_text().splitlines()]
    usual = {line[USUAL]: line["effective"] for line in lines[:2]}
    return tuple((case_of(line), _verdict_of(line, usual["config" in line])) for line in lines[2:])


def record(tried: Iterable[tuple[Case, Verdict]], usual: dict[bool, Effective]) -> None:
    """Writes the file anew. ``usual``: what is in force with a file (``True``) and without."""
    lines = [{USUAL: has_file, "effective": dict(usual[has_file])} for has_file in (False, True)]
    lines += [{**case.written(), **_written(verdict, usual[case.config is not None])} for case, verdict in tried]
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _written(verdict: Verdict, usual: Effective) -> dict[str, Any]:
    if not verdict.starts:
        return {"starts": False, "said": _short(verdict.said)}
    unknown = {} if verdict.unknown is None else {"unknown": verdict.unknown}
    twice = {"twice": verdict.twice} if verdict.twice else {}
    kept = {"starts": True, **unknown, **twice}
    if verdict.effective is None:
        return {**kept, "effective": None}
    changed = {key: value for key, value in verdict.effective.items() if key not in usual or usual[key] != value}
    gone = [key for key in usual if key not in verdict.effective]
    return {**kept, **({"changed": changed} if changed else {}), **({"gone": gone} if gone else {})}


def _short(said: str) -> str:
    """Decoding errors repeat the file; what validation says is kept whole, for it is compared."""
    return said if said.startswith(("invalid configuration: ", "[")) else said[:400]


def _verdict_of(line: dict[str, Any], usual: Effective) -> Verdict:
    effective: dict[str, Any] | None = None
    if line["starts"] and "effective" not in line:
        effective = {
            key: value for key, value in {**usual, **line.get("changed", {})}.items() if key not in line.get("gone", ())
        }
    return Verdict(line["starts"], line.get("said", ""), line.get("unknown"), tuple(line.get("twice", ())), effective)
