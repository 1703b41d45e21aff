"""The results of real kubelets, stored beside the tests: one case on each line, so one change is one line of a diff.

The cases are stored with their verdicts and replayed from here: the next version of hypothesis may generate others
from the same strategies.
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
"""The first two lines: the values in force without a file, and with an empty one. Verdicts store the differences."""

Recorded = tuple[tuple[Case, Verdict], ...]


def recorded() -> Recorded:
    """All cases, in the order in which they were tried."""
    lines = [json.loads(line) for line in FILE.read_text().splitlines()]
    usual = {line[USUAL]: line["effective"] for line in lines[:2]}
    return tuple((case_of(line), _verdict_of(line, usual["config" in line])) for line in lines[2:])


def record(tried: Iterable[tuple[Case, Verdict]], usual: dict[bool, Effective]) -> None:
    """Writes the file again. ``usual``: the values in force with a file (``True``) and without."""
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
    """Decoding errors repeat the file; errors of validation are kept whole, because they are compared."""
    return said if said.startswith(("invalid configuration: ", "[")) else said[:400]


def _verdict_of(line: dict[str, Any], usual: Effective) -> Verdict:
    effective: dict[str, Any] | None = None
    if line["starts"] and "effective" not in line:
        effective = {
            key: value for key, value in {**usual, **line.get("changed", {})}.items() if key not in line.get("gone", ())
        }
    return Verdict(line["starts"], line.get("said", ""), line.get("unknown"), tuple(line.get("twice", ())), effective)
