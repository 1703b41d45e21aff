"""The node gates of one node, called like in a run: a baseline, then one reading after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.app.backends import Backends
from rollout.app.node_gates import NodeGates
from rollout.app.ports import Cluster
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Change, ChangeGroup, Plan, PlannedNode, Wave
from rollout.core.model.playbook import DEFAULT_BUDGETS, Disruption, Limits, RevertScope
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Measurement
from rollout.core.run.commands import Ask
from rollout.core.run.events import Trigger
from rollout.core.run.state import Verb
from rollout.gates.api_checks.query import ApiCheck, ApiKind

CHANGE = Change(
    (),
    ("kubelet.service",),
    reload=False,
    disruption=Disruption.RESTART_KUBELET,
    arguments=(),
    config_path="",
    healthz_port=0,
    settle=20.0,
)
DONE = Report("n", "status", outcome=Outcome.DONE, measurement=Measurement())
PASSED, FAILED, UNKNOWN = Trigger.GATES_PASSED, Trigger.GATES_FAILED, Trigger.GATES_UNKNOWN


def plan(node: str, *gates: Gate) -> Plan:
    """One node, one wave, and these gates."""
    return Plan(
        cluster="c", playbook="p", inventory_digest="", playbook_digest="", taken="", counter=0, limit="",
        groups=(ChangeGroup("g1", "one kind", CHANGE),), nodes={node: PlannedNode(node, node, "r", "z", "g1", 0, "0" * 32)},
        left=(), waves=(Wave("canary", (node,), 1.0),), racks={"r": 1}, limits=Limits(), budgets=DEFAULT_BUDGETS,
        gates=gates, on_failure=RevertScope.NODE, passes=3, guard=30.0, keep=3,
    )  # fmt: skip


@dataclass(slots=True)
class Watch:
    """A clock that moves only on request and on waits."""

    at: float = 100.0
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return ""

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds


class Asked:
    """One gate of one node."""

    def __init__(self, kind: ApiKind, node: str, cluster: Cluster, timeout: float = 10.0) -> None:
        self.node, self.clock = node, Watch()
        gate = Gate(ApiCheck(kind), GateScope.NODE, kind, timeout=timeout)
        self.gates = NodeGates(plan(node, gate), self.clock, Backends(cluster=cluster, wait=self.clock.wait))
        self.baseline = ""

    def before(self) -> Asked:
        """Take the node's baseline."""
        self.baseline = self.gates.baseline(self.node)
        return self

    def now(self, tx: str = "r1-1") -> tuple[Trigger, str]:
        """The gate's verdict and its evidence."""
        ask = Ask(self.node, Verb.MEASURE, 1, tx, 1, self.baseline)
        trigger, _, evidence = self.gates.judged(ask, DONE, CHANGE)
        return trigger, evidence
