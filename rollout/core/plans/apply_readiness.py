"""Right before a plan is applied: how its nodes compare with it, and all that it does, in a few lines."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Change, Plan
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import FileState, ReceiptState
from rollout.core.plans import plan_codec
from rollout.core.plans.receipt_history import highest_token
from rollout.core.text.terminal import counted, printable


class Now(StrEnum):
    """How one node compares with a plan. ``open``: the run decides, because the node can be applied or another run works there."""

    OPEN = "open"
    AS_PLANNED = "as-planned"
    DRIFTED = "drifted"
    UNREAD = "unread"


class PlanDecision(StrEnum):
    """What to do with a plan."""

    BEGIN = "begin"
    ALREADY_APPLIED = "already-applied"
    PLAN_AGAIN = "plan-again"


@dataclass(frozen=True, slots=True)
class Standings:
    """Node → how it compares; nodes that were not read are missing. ``frozen``: the freezes that nodes report."""

    nodes: Mapping[str, Now]
    frozen: Mapping[str, NodeFreeze] = field(default_factory=dict)

    @property
    def one_is_open(self) -> bool:
        return Now.OPEN in self.nodes.values()

    def named(self, now: Now) -> tuple[str, ...]:
        return tuple(name for name, found in self.nodes.items() if found is now)

    def answer(self) -> PlanDecision:
        """For all nodes of a plan. If no node answered, the run reports why; the run also handles single drifted nodes."""
        standings = set(self.nodes.values())
        if Now.OPEN in standings or standings <= {Now.UNREAD}:
            return PlanDecision.BEGIN
        return PlanDecision.ALREADY_APPLIED if standings == {Now.AS_PLANNED} else PlanDecision.PLAN_AGAIN


def stand(plan: Plan, reports: Mapping[str, Report], runs: Collection[str] = ()) -> Standings:
    """Judge the nodes' answers to ``status``, with their change's paths measured. ``runs``: runs that applied this same plan."""
    changes = {group.name: group.change for group in plan.groups}
    standings = {name: _stands(changes[plan.nodes[name].group], report, runs) for name, report in reports.items()}
    return Standings(standings, {name: report.frozen for name, report in reports.items() if report.frozen is not None})


def stand_as_wanted(plan: Plan, reports: Mapping[str, Report]) -> Standings:
    """Judge the nodes' answers to ``status`` for a plan that changes no node, because each had its settings when it was read.

    A run that has claimed a node since then may have changed it: the nodes' files show nothing, because the plan has none.
    """
    most = max(plan.counter, highest_token(reports))
    standings = {name: _stands_as_read(plan.counter, most, report) for name, report in reports.items()}
    return Standings(standings, {name: report.frozen for name, report in reports.items() if report.frozen is not None})


def _stands_as_read(counter: int, most: int, report: Report) -> Now:
    """``most``: the highest token that can be believed."""
    if report.outcome is not Outcome.DONE:
        return Now.UNREAD
    tokens = [*([report.token.counter] if report.token else []), *(each.counter for each in report.receipts)]
    return Now.DRIFTED if any(counter < each <= most for each in tokens) else Now.OPEN


def only_restarts(change: Change) -> bool:
    """Whether no file gets other bytes, so that the files cannot show whether it was applied."""
    return all(file.before == file.after for file in change.files)


def _stands(change: Change, report: Report, runs: Collection[str]) -> Now:
    if report.outcome is not Outcome.DONE or report.measurement is None:
        return Now.UNREAD
    if (report.token and report.token.live) or any(receipt.state in _MOVING for receipt in report.receipts):
        return Now.OPEN
    states = [(file, report.measurement.files.get(file.path)) for file in change.files]
    if any(state is None or (state.kind == "regular" and not state.digest) for _, state in states):
        return Now.UNREAD
    if all(_digest(state) == file.digest_before for file, state in states):
        return Now.AS_PLANNED if only_restarts(change) and _is_confirmed(report, runs) else Now.OPEN
    return Now.AS_PLANNED if all(_digest(state) == file.digest_after for file, state in states) else Now.DRIFTED


def _is_confirmed(report: Report, runs: Collection[str]) -> bool:
    return any(receipt.run in runs and receipt.state is ReceiptState.CONFIRMED for receipt in report.receipts)


def _digest(state: FileState | None) -> str:
    """As a plan writes it: empty for an absent file. Other kinds of file have no digest that a plan could contain."""
    if state is None or state.kind not in ("regular", "absent"):
        return "none"
    return state.digest


_MOVING = frozenset({ReceiptState.ARMED, ReceiptState.REVERTING})


# All that a plan does, short enough to read before confirming it. Whatever else its file contains, this happens.


_WHERE = {GateScope.NODE: "on each node", GateScope.WAVE: "here, for each wave"}


def does_lines(plan: Plan) -> tuple[str, ...]:
    """The plan's digest, each file with how many nodes it is written on, what is restarted, and the gates' commands."""
    changes = {group.name: group.change for group in plan.groups}
    changed = [changes[node.group] for node in plan.nodes.values()]
    last = [f"  writes {printable(plan.config_map.title, 400)}  after the last wave"] if plan.config_map else []
    return (f"plan {plan_codec.digest(plan)}", *_does(changed), *last, *_commands(plan))


def _does(changed: Sequence[Change]) -> Iterator[str]:
    """One line per file or unit; most nodes first."""
    found = Counter(
        said
        for change in changed
        for said in (
            *(f"writes {file.path}" for file in change.files),
            *(f"restarts {unit}" for unit in change.units),
            *(f"sends SIGHUP to {unit}" for unit in change.hangups),
        )
    )
    order = ("writes", "restarts", "sends")
    for said in sorted(found, key=lambda said: (order.index(said.split()[0]), -found[said], said)):
        yield f"  {printable(said, 400)}  on {counted(found[said], 'node')}"


def _commands(plan: Plan) -> Iterator[str]:
    for gate in plan.gates:
        if gate.asks.program:
            yield f"  runs {_WHERE[gate.scope]}: {printable(shlex.join(gate.asks.program), 2000)}"
