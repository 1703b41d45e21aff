"""How kinds of wave gates are asked, with one fake behind all their ports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rollout.app.asked_gate import Asker, PlainGate
from rollout.core.model.verdict import Judged
from rollout.gates.alertmanager.asking import AlertGate
from rollout.gates.command.asking import CommandGate
from rollout.gates.page.query import HttpQuery, judge_page
from rollout.gates.prometheus.asking import MetricGate


def askers(fake: Any) -> Mapping[str, Asker]:
    def judged(query: HttpQuery, timeout: float) -> Judged:
        return judge_page(query, fake.get(query.url, timeout))

    return {
        "prometheus": partial(MetricGate, fake),
        "alertmanager": partial(AlertGate, fake),
        "http": partial(PlainGate, judged),
        "command": CommandGate,
    }
