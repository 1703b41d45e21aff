"""A freeze of a cluster: in the journal, which stops this controller, and on the nodes, which stops every other."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app.isolation import Keep, keep_nothing, report_of
from rollout.app.node_worker import NodeAccess
from rollout.app.ports import Journal, Nodes, Target
from rollout.app.reading import each
from rollout.app.runs import highest_counter
from rollout.core.model.freeze import FROZEN, NodeFreeze
from rollout.core.model.report import Report
from rollout.core.model.snapshot import highest_believed
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.freeze_text import FreezeNoted, frozen_lines, highest_noted, noted, noted_line
from rollout.errors import StateError
from rollout.kubelet.agent import agent_call

MARK_SECONDS = 30.0
TRIES = 6
"""A verb at work holds a node's lock. The agent waits five seconds for it; an apply may take half a minute."""


def freeze_in(journal: Journal, cluster: str) -> FreezeNoted | None:
    """The freeze in force, by the journal."""
    return noted((note.at, note.who, note.text) for note in journal.notes(cluster))


def check_not_frozen(journal: Journal, cluster: str) -> None:
    """``StateError`` ``frozen``: nothing may be applied."""
    found = freeze_in(journal, cluster)
    if found is not None:
        raise _error(cluster, noted_line(found))


def check_nodes_not_frozen(cluster: str, found: Mapping[str, NodeFreeze | None]) -> None:
    """The same by what nodes report: another controller with another journal may have frozen them."""
    lines = tuple(frozen_lines(found))
    if lines:
        raise _error(cluster, "; ".join(lines))


def _error(cluster: str, why: str) -> StateError:
    hint = f"`rollout unfreeze {cluster} --reason …` lifts it; a rollback passes it"
    return StateError(FROZEN, f"nothing was touched: {cluster} is frozen: {why}", hint=hint)


def next_token(journal: Journal, cluster: str, reports: Mapping[str, Report]) -> int:
    """Above every token of runs and freezes that the journal and the nodes know."""
    frozen = [report.frozen.counter for report in reports.values() if report.frozen is not None]
    texts = (note.text for note in journal.notes(cluster))
    known = max(highest_counter(journal, cluster), highest_noted(texts), highest_token(reports))
    return highest_believed(frozen, known) + 1


def mark_fleet(
    access: NodeAccess, nodes: Nodes, freeze: NodeFreeze, *, on: bool, keep: Keep = keep_nothing
) -> Mapping[str, Report]:
    """Freeze or unfreeze every node of ``access``. ``keep`` stores the trace of an answer that rollout fails on."""
    make, verb = (agent_call.freeze, "freeze") if on else (agent_call.unfreeze, "unfreeze")

    def mark(target: Target) -> Report:
        command = make(access.program, freeze, sudo=access.sudo[target.name], deadline=MARK_SECONDS)
        report = report_of(target.name, verb, nodes.run(target, command), 0.0, keep)
        tries = 1
        while report.reference == "locked" and tries < TRIES:
            report = report_of(target.name, verb, nodes.run(target, command), 0.0, keep)
            tries += 1
        return report

    return each(access, nodes, mark)
