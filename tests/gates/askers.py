"""How kinds of wave gates are asked, with one fake behind all their ports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rollout.app.asked_gate import Asker
from rollout.gates.alertmanager.asking import AlertGate
from rollout.gates.command.asking import CommandGate
from rollout.gates.page.asking import PageGate
from rollout.gates.prometheus.asking import MetricGate


def askers(fake: Any) -> Mapping[str, Asker]:
    return {
        "prometheus": partial(MetricGate, fake),
        "alertmanager": partial(AlertGate, fake),
        "http": partial(PageGate, fake),
        "command": CommandGate,
    }
