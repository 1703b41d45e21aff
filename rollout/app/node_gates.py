"""The node gates: judges what the agent measured and what the API server reports. The worst verdict counts.

The API gates compare with a baseline taken right before the node's change. It is part of the answer to the apply and is
journaled, so that a later controller still has it. Without a baseline these gates are UNKNOWN, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial

from rollout.app.backends import Backends
from rollout.app.patience import EVERY, patiently
from rollout.app.ports import Clock
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.live import Lease, Sight
from rollout.core.model.measured_query import MeasuredQuery
from rollout.core.model.plan import Change, Plan
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Measurement
from rollout.core.model.verdict import SEVERITY, Judged, Reading, Verdict
from rollout.core.run.commands import Ask
from rollout.core.run.events import Trigger
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError
from rollout.kubelet.node.served import shown_as_planned
from rollout.kubelet.node_baseline import (
    STATUS_EVERY,
    Baseline,
    BaselineError,
    SeenQuery,
    Since,
    baseline_of,
    is_renewal,
    pods_started,
    read_baseline,
    short,
)

# The configuration that a node's kubelet shows through the API server, if that can be read.
#
# The effective-config gate uses the node's files and the kubelet's command line. With a kubeconfig that may read
# ``nodes/proxy``, ``/configz`` must also show what was planned. If it cannot be read, the gate decides without it,
# and its evidence reports that. Not every operator may get nodes/proxy: it allows running commands in every pod of
# the node.


_FOR_GOOD = frozenset({"unauthorized", "forbidden", "no-endpoint"})
"""Answers that do not change during a run."""

MOST_FAILURES = 3
"""Failed tries before the API server is no longer asked: this gate works without it, and each try takes time."""


@dataclass(slots=True)
class ShownConfig:
    """``/configz`` in one run. Called on many threads. After a refusal it does not ask again."""

    backends: Backends
    refused: str = ""
    failures: int = 0

    def judged(self, node: str, change: Change, timeout: float, found: Judged) -> Judged:
        """``found``: the verdict without ``/configz``. What ``/configz`` shows is judged in addition."""
        verdict, evidence = found
        if verdict is not Verdict.PASS or not change.effective:
            return found
        if self.refused:
            return verdict, f"{evidence}; configz was not read: {self.refused}"
        try:
            shown = self.backends.cluster.configz(node, timeout)
        except RemoteError as error:
            self._note(error)
            return verdict, f"{evidence}; configz was not read: {error.message}"
        verdict, said = shown_as_planned(change, shown)
        return verdict, f"{evidence}; {said}"

    def _note(self, error: RemoteError) -> None:
        of_the_node = error.reference.startswith("http-5")
        self.failures += not of_the_node
        for_good = error.reference in _FOR_GOOD and not isinstance(error, AwayError)
        if for_good or self.failures >= MOST_FAILURES:
            self.refused = error.message


AGAIN_READY = 2 * STATUS_EVERY
"""Seconds to wait until a node that we restarted is Ready again."""

BASELINE_UNKNOWN = "baseline-unknown"
"""The reference of a baseline that could not be taken, perhaps only for now."""

Judgement = tuple[Trigger, str, str]
"""What an answer means for the node, with its reference and message."""


class UntouchableError(Exception):
    """The node must not be touched: it has no baseline, or one that cannot pass the gates."""

    def __init__(self, reference: str, message: str) -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message


@dataclass(frozen=True, slots=True)
class _Watched:
    """A node's transaction since the first reading after its restart."""

    tx: str
    at: float
    lease: Lease | None
    renewed: bool = False
    ready_since: str = ""  # of the newest reading after the time that a restart needs; "": none yet
    deleted: frozenset[str] = (
        frozenset()
    )  # the pods that were seen while they were deleted, by the beginning of their uid


@dataclass(slots=True)
class NodeGates:
    """The node gates of one run. Called on many threads, on one at a time for a node."""

    plan: Plan
    clock: Clock
    backends: Backends
    before: dict[str, Measurement] = field(default_factory=dict)
    watched: dict[str, _Watched] = field(default_factory=dict)
    restarted: set[str] = field(default_factory=set)
    newest_at: dict[str, int] = field(default_factory=dict)  # node → version of the newest pod list that was judged
    started: dict[str, int] = field(default_factory=dict)  # node → pods started since its change, by its last reading
    shown: ShownConfig = field(init=False)

    def __post_init__(self) -> None:
        self.shown = ShownConfig(self.backends)

    def forget(self, node: str) -> None:
        """A restart that rollout did must not count against the node."""
        self.before.pop(node, None)
        self.watched.pop(node, None)
        self.restarted.add(node)

    def baseline(self, node: str) -> str:
        """What the API server reports about a node before its change; ``""`` if no gate needs it."""
        gates = self._api_gates()
        if not gates:
            return ""
        wants_ready = any(query.wants_ready for _, query in gates)
        try:
            sight = self._look(node)
            if wants_ready and sight.node.ready != "True" and node in self.restarted:
                sight = self._look_until_ready(node)
        except RemoteError as error:
            raise UntouchableError(BASELINE_UNKNOWN, f"its baseline could not be taken: {error}") from None
        if wants_ready and sight.node.ready != "True":
            detail = f": {sight.node.ready_message}" if sight.node.ready_message else ""
            raise UntouchableError("not-ready-before", f"its Node is not Ready before the change{detail}")
        return baseline_of(sight)

    def judged(self, ask: Ask, report: Report, change: Change) -> Judgement:
        """The node gates over one reading: the worst verdict counts, with its evidence. ``started`` has its pod starts, if known."""
        self.started.pop(ask.node, None)
        if report.outcome is not Outcome.DONE or report.measurement is None:
            return Trigger.GATES_UNKNOWN, report.reference, report.message
        readings = list(self._measured(ask.node, report.measurement, change))
        if all(reading.verdict is not Verdict.FAIL for reading in readings):
            readings += self.seen(ask, change)
        worst = max(readings, key=lambda reading: SEVERITY[reading.verdict], default=None)
        if worst is None or worst.verdict is Verdict.PASS:
            return Trigger.GATES_PASSED, "", ""
        return _TRIGGERS[worst.verdict], f"gate-{worst.gate}", worst.evidence

    def _measured(self, node: str, measurement: Measurement, change: Change) -> Iterator[Reading]:
        previous = self.before.get(node)
        self.before[node] = measurement
        for gate in self.plan.gates:
            query = gate.asks
            if gate.scope is not GateScope.NODE or query.asks_api:
                continue
            if not isinstance(query, MeasuredQuery):
                yield Reading(gate.name, Verdict.UNKNOWN, f"{gate.kind} is not measured on a node")
                continue
            reading = query.judge(gate.name, change, measurement, previous)
            if query.reads_configz:
                reading = self.shown.judged(node, change, gate.timeout, reading)
            yield Reading(gate.name, *reading)

    # Through the API server.

    def _api_gates(self) -> Sequence[tuple[Gate, SeenQuery]]:
        return [(gate, query) for gate in self.plan.gates if isinstance(query := gate.asks, SeenQuery)]

    def _look(self, node: str, newer_than: int | None = None) -> Sight:
        timeout = max(gate.timeout for gate, _ in self._api_gates())
        look = partial(self.backends.cluster.look, node, newer_than=newer_than)
        return patiently(look, timeout, self.clock.now, self.backends.wait)

    def _look_until_ready(self, node: str) -> Sight:
        """After a restart of our own, such as a rehearsal's, a Node may be NotReady for one status update."""
        until = self.clock.now() + AGAIN_READY
        while (sight := self._look(node)).node.ready != "True" and self.clock.now() < until:
            self.backends.wait(EVERY)
        return sight

    def seen(self, ask: Ask, change: Change) -> list[Reading]:
        """The gates that ask the API server; none if the plan has none."""
        gates = self._api_gates()
        if not gates:
            return []
        baseline, newest = _known_baseline(ask.baseline), self.newest_at.get(ask.node, 0)
        newest = max(newest, baseline.at) if baseline is not None else newest
        try:
            sight = self._look(ask.node, newest)
        except RemoteError as error:
            why = f"the request to the API server failed: {error}"
            return [Reading(gate.name, Verdict.UNKNOWN, why) for gate, _ in gates]
        if baseline is None:
            why = "there is no baseline from before the change to compare with"
            return [Reading(gate.name, Verdict.UNKNOWN, why) for gate, _ in gates]
        if sight.pods_at and sight.pods_at < newest:
            why = "the API server returned older pods than before: its cache is behind"
            return [Reading(gate.name, Verdict.UNKNOWN, why) for gate, _ in gates]
        self.newest_at[ask.node] = sight.pods_at
        self.started[ask.node] = pods_started(sight, baseline)
        since = self._since(ask, sight, change)
        return [Reading(gate.name, *query.judge(sight, baseline, since)) for gate, query in gates]

    def _since(self, ask: Ask, sight: Sight, change: Change) -> Since:
        """How long this transaction is watched, and whether the lease was renewed in that time."""
        now = self.clock.now()
        known = self.watched.get(ask.node)
        if known is None or known.tx != ask.tx:
            known = _Watched(ask.tx, now, sight.lease)
        if sight.lease is not None and known.lease is not None and is_renewal(known.lease, sight.lease):
            known = replace(known, renewed=True)
        if known.lease is None:
            known = replace(known, lease=sight.lease)
        known = replace(known, deleted=known.deleted | {short(pod.uid) for pod in sight.pods if pod.deleting})
        since = Since(known.lease, known.renewed, now - known.at, change.settle, deleted=known.deleted)
        if sight.node.ready == "True" and since.seconds > since.window:
            since = replace(since, flapped=_flapped(known.ready_since, sight.node.ready_since))
            known = replace(known, ready_since=sight.node.ready_since)
        self.watched[ask.node] = known
        return since


def _known_baseline(written: str) -> Baseline | None:
    try:
        return read_baseline(written)
    except BaselineError:
        return None


def _flapped(then: str, now: str) -> str:
    """Both are the times since which a Node that is Ready is so: another one shows that it was not Ready in between."""
    if not then or then == now:
        return ""
    return f"it flaps: Ready since {printable(now, 40)}, at the last reading since {printable(then, 40)}"


_TRIGGERS = {Verdict.FAIL: Trigger.GATES_FAILED, Verdict.UNKNOWN: Trigger.GATES_UNKNOWN}
