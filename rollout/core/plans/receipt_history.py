"""Which runs the nodes know, from their receipts alone: which node holds what, and which run is the newest.

A single node with false receipts must not choose the run. A run's place in time is what most of its nodes report, so no
single node can make an old run of many nodes the newest. A run with an impossible counter is doubted. A forged run that is a
little newer than all others looks like one that has reached only its first node. So the output names the holders of each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from statistics import median_high
from types import MappingProxyType

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Plan
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState, highest_believed


@dataclass(frozen=True, slots=True)
class RunOnNodes:
    """One run, by the nodes that have their newest transaction in it: ``holding`` its change, or already reverted (``back``).

    ``under`` are nodes that have a transaction of it below one of a newer run: they belong to that run. ``doubted``: its
    counter is higher than most nodes make believable. ``cluster``: the other cluster that it belongs to; ``""``: it is ours, or not known.
    """

    run: str
    counter: int
    holding: tuple[str, ...]
    back: tuple[str, ...]
    under: tuple[str, ...]
    doubted: bool = False
    cluster: str = ""

    @property
    def newest_on(self) -> tuple[str, ...]:
        """The nodes that have their newest transaction in it."""
        return (*self.holding, *self.back)


@dataclass(frozen=True, slots=True)
class OnNodes:
    """The answers of all nodes: their runs, newest first; ``silent`` is node → why it did not answer.

    ``claims``: node → the run of another cluster that has a claim on it and has not changed it, and that cluster.
    """

    runs: tuple[RunOnNodes, ...]
    newest: Mapping[str, Receipt]
    silent: Mapping[str, str]
    claims: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def known_runs(self) -> frozenset[str]:
        return frozenset(each.run for each in self.runs)

    def known(self, run: str) -> bool:
        return run in self.known_runs

    @property
    def newest_run(self) -> RunOnNodes | None:
        """The newest run of the cluster that is newest on some node and is not doubted."""
        return next((each for each in self.runs if each.newest_on and not each.doubted and not each.cluster), None)


OtherClusters = Mapping[str, str]
"""Run → its cluster, if that is another one: two inventories list the machine that names it. A run that is missing is ours, or not known."""

OURS: OtherClusters = MappingProxyType({})
"""No run is known to be of another cluster."""


def newest_receipt(report: Report, others: OtherClusters = OURS) -> Receipt | None:
    """The newest transaction on a node, without those that were reverted and are of another cluster: they ended there."""
    ended = (each for each in report.receipts if each.run not in others or each.state is not ReceiptState.REVERTED)
    return next(ended, None)


def on_nodes(reports: Mapping[str, Report], others: OtherClusters = OURS) -> OnNodes:
    """Fold what was read. If a run was applied again, only its newest receipt counts."""
    found = {name: newest_receipt(report, others) for name, report in reports.items()}
    newest = {name: receipt for name, receipt in found.items() if receipt is not None}
    silent = {name: report.why for name, report in reports.items() if report.outcome is not Outcome.DONE}
    counters = {run: median_high(said) for run, said in _counters(reports.values()).items()}
    most = highest_token(reports)
    ordered = sorted(counters, key=lambda run: (counters[run], run), reverse=True)
    runs = tuple(
        RunOnNodes(
            run,
            counters[run],
            *_places(run, newest, reports),
            doubted=counters[run] > most,
            cluster=others.get(run, ""),
        )
        for run in ordered
    )
    tokens = {name: report.token for name, report in reports.items() if report.token is not None}
    claims = {
        name: (token.run, others[token.run])
        for name, token in tokens.items()
        if token.live and token.run in others and not (name in newest and newest[name].run == token.run)
    }
    return OnNodes(runs, newest, silent, claims)


def highest_token(reports: Mapping[str, Report]) -> int:
    """The highest believable token counter that nodes know. Each node counts once, however many counters it reports."""
    said = (
        [receipt.counter for receipt in report.receipts] + ([report.token.counter] if report.token else [])
        for report in reports.values()
    )
    return highest_believed(max(each) for each in said if each)


def _counters(reports: Iterable[Report]) -> Mapping[str, list[int]]:
    """Run → its counters, as reported by each node that knows it."""
    found: dict[str, list[int]] = {}
    for report in reports:
        said: dict[str, int] = {}
        for receipt in report.receipts:
            said[receipt.run] = max(said.get(receipt.run, 0), receipt.counter)
        for run, counter in said.items():
            found.setdefault(run, []).append(counter)
    return found


def _places(
    run: str, newest: Mapping[str, Receipt], reports: Mapping[str, Report]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    here = [name for name, receipt in newest.items() if receipt.run == run]
    back = tuple(name for name in here if newest[name].state is ReceiptState.REVERTED)
    holding = tuple(name for name in here if newest[name].state is not ReceiptState.REVERTED)
    below = (name for name, report in reports.items() if any(receipt.run == run for receipt in report.receipts[1:]))
    return holding, back, tuple(name for name in below if name not in newest or newest[name].run != run)


def newer_run(plan: Plan, report: Report, but: str = "") -> str:
    """The newest run that changed a node since the plan was made, by the node's receipts; ``""``: none.

    People approved the plan for the node as it was read. ``but``: the run of the plan itself.
    """
    newer = [each for each in report.receipts if each.counter > plan.counter and each.run != but]
    return max(newer, key=lambda receipt: receipt.counter).run if newer else ""
