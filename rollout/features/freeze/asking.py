"""A freeze of a cluster on its nodes, which stops every controller, and the token that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from rollout.app.call import CallPorts, Operator
from rollout.app.control import ALREADY_PAUSED, ask
from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_access import NodeAccess
from rollout.app.ports import Journal, Nodes, Note, Target
from rollout.app.reading import each, read_receipts
from rollout.app.runs import highest_counter
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import highest_believed
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.drift_text import not_done
from rollout.core.presentation.freeze_text import (
    frozen_note,
    highest_noted,
    marked_note,
    missed_note,
    unfreezing_note,
    unfrozen_note,
)
from rollout.core.run.events import RequestWord
from rollout.core.text.nodesets import fold
from rollout.errors import StateError, UsageError
from rollout.features.freeze.words import FreezeDocument
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.deadlines import TIMES

MARK_SECONDS = TIMES["freeze"].waits
TRIES = 6
"""A verb at work holds a node's lock. The agent waits five seconds for it; an apply may take half a minute."""


@dataclass(frozen=True, slots=True)
class Marked:
    """``not_paused``: why the run of this journal is not seen paused; ``""``: it is, or no controller is at work."""

    document: FreezeDocument
    not_paused: str = ""


def freeze_cluster(call: CallPorts, cluster: str, wait: Callable[[float], None]) -> Marked:
    """Freeze the nodes of a cluster, and pause its run. ``wait`` sleeps. ``UsageError`` ``no-reason``."""
    return _mark_cluster(call, cluster, wait)


def unfreeze_cluster(call: CallPorts, operator: Operator, cluster: str) -> Marked:
    """Lift the freeze of a cluster, whichever controller ordered it. ``UsageError`` ``no-reason``."""
    operator.confirm(cluster, f"the nodes of {cluster} may be changed again")
    return _mark_cluster(call, cluster, None)


def _mark_cluster(call: CallPorts, cluster: str, wait: Callable[[float], None] | None) -> Marked:
    """``wait``: for the run that a freeze pauses; ``None``: the freeze is lifted."""
    on = wait is not None
    if not call.reason.strip():
        raise UsageError(
            "no-reason",
            f"`rollout cluster {'freeze' if on else 'unfreeze'}` needs --reason",
            hint="every controller that is refused shows it",
        )
    inventory = call.inventory_or_remembered(cluster)
    journal = call.journal()
    access = call.access(inventory, tuple(inventory.nodes))
    with closing(call.nodes()) as nodes:
        reports = read_receipts(access, nodes, keep=call.keep)
        token = next_token(journal, cluster, reports)
        freeze = NodeFreeze(token, call.new_run_id(), call.who, call.reason)
        _note(call, journal, cluster, frozen_note(freeze) if on else unfreezing_note(freeze))
        paused, not_paused = _pause(journal, cluster, freeze, wait) if wait is not None else ("", "")
        answers = mark_fleet(access, nodes, freeze, on=on, keep=call.keep)
    failed = not_done(answers)
    done = fold(name for name, report in answers.items() if report.outcome is Outcome.DONE)
    if not on:
        _note(call, journal, cluster, unfrozen_note(freeze))
    if failed:
        _note(call, journal, cluster, missed_note(freeze, (node.node for node in failed), on=on))
    if on and done:  # the last one: all that took it and all that did not are known then
        _note(call, journal, cluster, marked_note(freeze, done))
    return Marked(FreezeDocument(cluster, on, freeze.name, token, done, paused, failed), not_paused)


def _note(call: CallPorts, journal: Journal, cluster: str, text: str) -> None:
    journal.note(cluster, Note(call.clock.now(), call.who, text))


def _pause(journal: Journal, cluster: str, freeze: NodeFreeze, wait: Callable[[float], None]) -> tuple[str, str]:
    """The run of this journal that was seen paused, or why it was not. The nodes refuse a run that goes on."""
    holder = journal.holder(cluster)
    if holder is None or not holder.alive:
        return "", ""
    try:
        asked = ask(journal, holder.run, RequestWord.PAUSE, freeze.who, f"frozen: {freeze.reason}", "", wait)
    except StateError as error:
        if error.reference == ALREADY_PAUSED:
            return holder.run, ""
        return "", f"run {holder.run} is not paused: {error}"
    if not asked.heard:
        return "", f"run {holder.run} is not known to be paused: its controller has not handled the request yet"
    if asked.undone:
        return "", f"run {holder.run} is not paused: a later request, or its halt, has changed that"
    return holder.run, ""


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
