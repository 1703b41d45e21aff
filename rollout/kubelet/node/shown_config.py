"""The configuration that a kubelet shows by ``/configz``, compared with what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.core.model.plan import Change
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text import json_text
from rollout.core.text.terminal import counted
from rollout.kubelet import values


def shown_as_planned(change: Change, shown: Mapping[str, Any]) -> Judged:
    """Does ``/configz`` show each field as planned?"""
    for name, text in change.effective:
        planned = json_text.parse(text)
        if not values.is_in_force(shown.get(name), planned, (name,)):
            in_force = values.canonical(values.part_shown(shown.get(name), planned))
            return Verdict.FAIL, f"configz shows {name} {in_force}, planned {text}"
    return Verdict.PASS, f"configz shows {counted(len(change.effective), 'field')} as planned"
