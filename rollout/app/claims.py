"""The claims of runs on nodes, outside of runs: who has one, and how it is ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_access import NodeAccess
from rollout.app.node_worker import CLEAN_SECONDS, READ_SECONDS
from rollout.app.ports import Nodes, Target
from rollout.app.reading import each
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim


@dataclass(frozen=True, slots=True)
class Freed:
    """The result for one node that another run had claimed. ``still``: why the claim remains."""

    node: str
    run: str
    still: str = ""


def set_free(
    access: NodeAccess,
    nodes: Nodes,
    held: Mapping[str, str],
    known: Collection[str],
    new: str,
    counter: int,
    keep: Keep = keep_nothing,
) -> tuple[Freed, ...]:
    """End the claims of other runs (``held``: node → run) on nodes, and clean these up. An armed change is left to its guard.

    The claim of a run that is ``known`` to our journal is ended in the run's own name. The run can then be resumed with
    its next token. All other claims are taken over as run ``new``.
    """

    def free(target: Target) -> Freed:
        sudo, holder = access.sudo[target.name], held[target.name]
        run = holder if holder in known else new
        claim = agent_call.status(
            access.program, claim=Claim(counter, run, force=True), sudo=sudo, deadline=READ_SECONDS
        )
        report = run_verb(nodes, target, "status", claim, keep)
        if report.outcome is Outcome.DONE:
            clean = agent_call.cleanup(access.program, run=run, counter=counter, sudo=sudo, deadline=CLEAN_SECONDS)
            report = run_verb(nodes, target, "cleanup", clean, keep)
        if report.outcome is not Outcome.DONE:
            return Freed(target.name, holder, f"{report.message} [{report.reference}]")
        return Freed(target.name, holder, "; ".join(report.leftovers))

    return tuple(each(access, nodes, free).values())


def released(freed: Sequence[Freed]) -> tuple[str, Mapping[str, str]]:
    """The nodeset without a claim now; node → why its claim remains."""
    still = {entry.node: printable(entry.still, 300) for entry in freed if entry.still}
    return fold(entry.node for entry in freed if not entry.still), still


def held_by(reports: Mapping[str, Report], run: str) -> Mapping[str, str]:
    """Node → ``run``, where ``run`` has a live claim and no guard is armed."""
    moving = under_way(reports)
    return {name: holder for name, holder in holders(reports).items() if holder == run and name not in moving}


def holders(reports: Mapping[str, Report]) -> Mapping[str, str]:
    """Node → the run that has a live claim on it."""
    return {name: report.token.run for name, report in reports.items() if report.token and report.token.live}


def littered(reports: Mapping[str, Report]) -> Mapping[str, str]:
    """Node → the run of its newest claim, where something is left behind and no guard needs it."""
    moving = under_way(reports)
    return {
        name: report.token.run
        for name, report in reports.items()
        if report.token and report.leftovers and name not in moving
    }


def under_way(reports: Mapping[str, Report]) -> tuple[str, ...]:
    """Nodes with a transaction that is armed or being reverted."""
    moving = (ReceiptState.ARMED, ReceiptState.REVERTING)
    return tuple(name for name, report in reports.items() if any(r.state in moving for r in report.receipts))
