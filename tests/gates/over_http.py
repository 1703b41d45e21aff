"""The wave gates of one run, called like in a run, over the real adapters and real HTTP.

Time between two tries is virtual, so a back end that always fails costs no time; a hanging one costs the gate's timeout.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace

from rollout.adapters.endpoints import HttpBackEnds
from rollout.adapters.local import LocalCommands
from rollout.app.backends import Backends
from rollout.app.wave_gates import WaveGates
from rollout.core.model.gates import Gate
from rollout.core.model.inventory import Endpoints
from rollout.core.model.plan import Wave
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import SilencesLifted, WaveJudged, WaveOpened
from rollout.gates import table
from tests.adapters.kubernetes.node_gates import Watch, plan


class Asked:
    """Some wave gates of one run. ``home`` is the inventory's Prometheus and Alertmanager in one."""

    def __init__(self, stack: ExitStack, home: str, *gates: Gate, token_file: str = "", tenant: str = "") -> None:
        clock = Watch()
        endpoints = Endpoints(prometheus=home, alerts=home, token_file=token_file, tenant=tenant)
        backends = Backends(askers=table.askers(HttpBackEnds(endpoints, stack)), wait=clock.wait)
        run_plan = plan("n1", *gates)
        nodes = dict.fromkeys(("n1", "n2", "n3", "n9", "c1", "c2"), run_plan.nodes["n1"])
        run_plan = replace(run_plan, nodes=nodes, waves=(Wave("canary", ("n1", "n2"), 1.0),))
        self.nothing_known = json.dumps({gate.name: {"nodes": ""} for gate in gates})
        self.gates = WaveGates("r1", run_plan, LocalCommands(), clock, backends, "me@here")

    def open(self, *nodes: str) -> WaveOpened:
        return self.gates.open(OpenWave(0, nodes or ("n1", "n2")))

    def judge(
        self, touched: tuple[str, ...] = ("n1", "n2"), control: tuple[str, ...] = ("n3",), baseline: str | None = None
    ) -> WaveJudged:
        known = self.nothing_known if baseline is None else baseline
        return self.gates.judge(JudgeWave(0, known, touched, control))

    def lift(self, *silences: str) -> SilencesLifted:
        return self.gates.lift(LiftSilences(silences))


def one(judged: WaveJudged | WaveOpened) -> tuple[Verdict, str]:
    """Verdict and evidence of the only gate."""
    if isinstance(judged, WaveOpened):
        return judged.verdict, judged.evidence
    assert len(judged.readings) == 1
    assert judged.readings[0].verdict is judged.verdict
    return judged.verdict, judged.readings[0].evidence
