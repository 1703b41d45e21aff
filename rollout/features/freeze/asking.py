"""A freeze of a cluster on its nodes, which stops every controller, and the token that it takes."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_worker import NodeAccess
from rollout.app.ports import Journal, Nodes, Target
from rollout.app.reading import each
from rollout.app.runs import highest_counter
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.report import Report
from rollout.core.model.snapshot import highest_believed
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.freeze_text import highest_noted
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.deadlines import TIMES

MARK_SECONDS = TIMES["freeze"].waits
TRIES = 6
"""A verb at work holds a node's lock. The agent waits five seconds for it; an apply may take half a minute."""


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
        report = run_verb(nodes, target, verb, command, keep)
        tries = 1
        while report.reference == "locked" and tries < TRIES:
            report = run_verb(nodes, target, verb, command, keep)
            tries += 1
        return report

    return each(access, nodes, mark)
