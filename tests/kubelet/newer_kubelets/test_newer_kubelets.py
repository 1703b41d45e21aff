"""Every recorded result of kubelets 1.28 to 1.36 compared with ours: verdict, ignored fields, and values in force."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rollout.kubelet import versions
from rollout.kubelet.configuration.startup import outcome
from tests.kubelet.newer_kubelets.cases import Newer, of_minor
from tests.kubelet.newer_kubelets.compared import differences

RECORDED = sorted((Path(__file__).parent / "recorded").glob("1.*.jsonl"), key=lambda path: int(path.stem[2:]))


KNOWN = {
    **{
        (minor, "newer: enableSystemLogQuery: true"): "the fork of this kubelet has the gate NodeLogQuery on"
        for minor in ("1.28", "1.30", "1.32", "1.35")
    },
    ("1.28", "gate: RetroactiveDefaultStorageClass false"): "the fork does not lock it",
    (
        "1.32",
        "gate flag: AllAlpha",
    ): "a gate that the flag AllAlpha turns on is not on yet when this minor fills in defaults",
    **{
        (minor, "newer: logging: {options: {json: {splitStream: true}}}"): (
            "built without JSON logs, this kubelet has no flag --log-json-split-stream that overwrites the file"
        )
        for minor in ("1.28", "1.30", "1.32", "1.35", "1.36")
    },
}
"""Known differences with their reasons. Everything else must agree."""


@cache
def lines(path: Path) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in path.read_text().splitlines())


def of_record(path: Path) -> tuple[dict[str, Newer], tuple[dict[str, Any], ...]]:
    return {case.name: case for case in of_minor(int(path.stem[2:]))}, lines(path)[1:]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_case_is_recorded_in_its_present_form(path: Path) -> None:
    cases, told = of_record(path)
    recorded = {entry["case"]: entry["digest"] for entry in told}
    changed = [name for name, case in cases.items() if recorded.get(name) != case.digest]
    assert changed == [], "the case has changed: record it again"
    assert len(cases) > 500


@pytest.mark.no_cover  # thousands of cases; the written tests count
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_rollout_agrees_with_the_recorded_kubelets(path: Path) -> None:
    cases, told = of_record(path)
    head = lines(path)[0]
    version = versions.known(head["version"])
    found = {}
    for entry in told:
        said = tuple(differences(entry, head, outcome(version, cases[entry["case"]].sources)))
        if said and (path.stem, entry["case"]) not in KNOWN:
            found[entry["case"]] = said
    assert found == {}
