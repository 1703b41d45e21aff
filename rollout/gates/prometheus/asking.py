"""The gate that asks Prometheus: samples within bounds, no node without samples, no kind worse than its control group.

The baseline is taken before the wave. It contains the nodes that had samples, and each kind's samples. A kind is a
change group. Nodes of two kinds measure differently, and a canary is one node of each kind. A median over all of them
would hide a kind that became unhealthy. Each kind is queried by its nodes' names. The answer to a query for
``$nodes`` is UNKNOWN if its samples name none of them: it may add up fewer nodes than were requested.

A missed scrape is not harm: a kubelet's own target misses one at every restart. An answer that is UNKNOWN is requested
again, every second within the gate's ``timeout``. A FAIL counts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from rollout.app.asked_gate import AskedGate, WaveRun, pattern_of
from rollout.app.patience import EVERY
from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import SEVERITY, SHOWN, Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.core.text.nodesets import NodesetError, expand, fold
from rollout.core.text.terminal import counted
from rollout.errors import AwayError
from rollout.gates.prometheus.comparison import SampleGroup, compare
from rollout.gates.prometheus.judging import Samples, answering, doubt, judge_samples, seen, unnamed, vanished
from rollout.gates.prometheus.query import NODES, PrometheusQuery, Worse

Found = TypeVar("Found", tuple[Verdict, str, Any], Judged)

MOST_KEPT = 500
"""Most samples of one kind's baseline that are journaled. Of more, an even selection in order of size."""


class Metrics(Protocol):
    """Instant queries. ``RemoteError`` without an answer; ``AwayError`` if a retry a second later may succeed."""

    def query(self, url: str, query: str, timeout: float) -> Samples: ...


@dataclass(frozen=True, slots=True)
class MetricGate(AskedGate):
    """One gate of a wave. ``timeout`` is seconds until an answer must be known, retries included."""

    metrics: Metrics
    query: PrometheusQuery
    timeout: float
    run: WaveRun

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:
        """Before the wave: whether it may start, and the baseline to compare with."""
        return self._known(lambda gate: gate.before_once(command))

    def now(self, command: JudgeWave, before: Any) -> Judged:
        """In a round of the soak; ``before`` is the baseline."""
        past = _Past.read(before)
        if past is None:
            return Verdict.UNKNOWN, "it is unknown which nodes had samples before the wave"
        return self._known(lambda gate: gate.now_once(command, past))

    def _known(self, ask: Callable[[MetricGate], Found]) -> Found:
        """The first answer that is not UNKNOWN, or the last one in time."""
        now, wait = self.run.clock.now, self.run.wait
        until = now() + self.timeout
        while True:
            left = until - now()
            try:
                found = ask(replace(self, timeout=max(left, 0.001)))
                if found[0] is not Verdict.UNKNOWN or until - now() <= EVERY:
                    return found
            except AwayError:
                if until - now() <= EVERY:
                    raise
            wait(EVERY)

    def before_once(self, command: OpenWave) -> tuple[Verdict, str, Any]:
        query, nodes = self.query, command.nodes
        answer = self._query(nodes)
        verdict, evidence = judge_samples(query, answer)
        if verdict is not Verdict.PASS:
            return verdict, evidence, {}
        present = answering(answer, nodes)
        if NODES in query.query and not present:
            return Verdict.UNKNOWN, unnamed(answer, nodes), {}
        kinds = self._kinds_of(nodes, answer) if query.worse else {}
        lacking = [self._label(kind) for kind, of_kind in kinds.items() if not of_kind.samples]
        if lacking:
            return Verdict.UNKNOWN, f"no sample of {', '.join(lacking)}: each kind of node is compared with its own", {}
        kept = {kind: _kept(of_kind.values()) for kind, of_kind in kinds.items()}
        return verdict, evidence, {"nodes": fold(present), "kinds": kept}

    def now_once(self, command: JudgeWave, past: _Past) -> Judged:
        query = self.query
        answer = self._query(command.touched)
        verdict, evidence = judge_samples(query, answer)
        if verdict is not Verdict.PASS:
            return verdict, evidence
        now = answering(answer, command.touched)
        if NODES in query.query and not now:
            return Verdict.UNKNOWN, unnamed(answer, command.touched)
        if gone := vanished(now, past.nodes, command.touched):
            return Verdict.UNKNOWN, gone
        if query.worse is not None:
            verdict, evidence = self._compared(query.worse, command, answer, past)
        return verdict, f"{seen(now, command.touched)}{evidence}"

    def _compared(self, worse: Worse, command: JudgeWave, answer: Samples, past: _Past) -> Judged:
        """Compare each kind with its control group: nodes not touched yet, or else the same nodes before the wave."""
        controls = self._by_kind(command.control)
        said: dict[str, Judged] = {}
        for kind, found in self._kinds_of(command.touched, answer).items():
            touched = SampleGroup("touched", found.values())
            if kind in controls:
                control = SampleGroup("control", self._whole(controls[kind], "the control group's").values())
            else:
                control = SampleGroup("the same before the wave (no control left)", past.of(kind))
            said[kind] = compare(touched, control, worse, self.query.tolerance)
        return self._worst_kinds(said)

    def _worst_kinds(self, said: Mapping[str, Judged]) -> Judged:
        verdict = max((verdict for verdict, _ in said.values()), key=SEVERITY.__getitem__, default=Verdict.UNKNOWN)
        those = [(kind, evidence) for kind, (found, evidence) in said.items() if found is verdict]
        if len(said) == 1:
            return verdict, those[0][1]
        named = "; ".join(f"{self._label(kind)}: {evidence}" for kind, evidence in those[:SHOWN])
        return verdict, f"{len(those)} of {counted(len(said), 'kind')}: {named}"

    def _whole(self, nodes: Sequence[str], whose: str) -> Samples:
        """An answer without doubt; otherwise ``AwayError``."""
        answer = self._query(nodes)
        if doubted := doubt(answer):
            raise AwayError("doubtful", f"{whose} answer: {doubted}")
        return answer

    def _kinds_of(self, nodes: Sequence[str], whole: Samples) -> Mapping[str, Samples]:
        """One answer for each kind of the nodes. With only one kind, ``whole`` is that answer."""
        kinds = self._by_kind(nodes)
        if len(kinds) == 1:
            return dict.fromkeys(kinds, whole)
        return {kind: self._whole(names, f"{self._label(kind)}: the") for kind, names in kinds.items()}

    def _by_kind(self, nodes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        kinds: dict[str, list[str]] = {}
        for name in nodes:
            kinds.setdefault(self.run.plan.nodes[name].group, []).append(name)
        return kinds

    def _label(self, kind: str) -> str:
        return next((group.label for group in self.run.plan.groups if group.name == kind), kind)

    def _query(self, nodes: Sequence[str]) -> Samples:
        text = self.query.query
        asked = text.replace(NODES, pattern_of(nodes)) if NODES in text else text
        return self.run.answer(partial(self.metrics.query, self.query.url, asked), self.timeout)


@dataclass(frozen=True, slots=True)
class _Past:
    """A journaled baseline: the nodes that had samples, and the samples of each kind."""

    nodes: frozenset[str]
    kinds: Mapping[str, Any]

    @staticmethod
    def read(written: Any) -> _Past | None:
        """``None``: there is none, or it cannot be read."""
        if not isinstance(written, dict) or not isinstance(written.get("kinds", {}), dict):
            return None
        nodes = written.get("nodes")
        if not isinstance(nodes, str):
            return None
        try:
            return _Past(frozenset(expand(nodes) if nodes else ()), written.get("kinds", {}))
        except NodesetError:
            return None

    def of(self, kind: str) -> list[float]:
        values = self.kinds.get(kind)
        return [float(value) for value in values] if isinstance(values, list) else []


def _kept(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    every = -(-len(ordered) // MOST_KEPT) or 1
    return [float(f"{value:.6g}") for value in ordered[::every]]
