"""The input and output of an emergency rollback: reads nodes, does a run, prints and waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TextIO, assert_never

from rollout.adapters.interrupts import Interrupts
from rollout.app.change_windows import PASSES
from rollout.app.emergencies import EmergencyReadings, LeftTo, Round, Told, Unfinished, Waiting
from rollout.app.following import last_revert_times
from rollout.app.ports import Journal, Nodes
from rollout.app.proofs import prove
from rollout.app.reading import read_receipts, restart_pauses
from rollout.app.rollbacks import Emergency
from rollout.app.runs import Tools, start_revert
from rollout.composition.wiring import SecondInterruptError, Session, new_run_id, without_journal
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import RevertTimes
from rollout.core.model.proof import NodeProof
from rollout.core.presentation import emergency_text as text
from rollout.core.presentation.emergency_text import proof_documents, proof_lines
from rollout.core.presentation.freeze_text import frozen_lines
from rollout.core.presentation.rollback_time import NodeTime, NoTimeBack, TimeBack, node_time, time_back
from rollout.core.run.events import Event
from rollout.core.run.state import Ending, NodeState, Order, RunState
from rollout.core.text import documents
from rollout.core.text.terminal import counted
from rollout.errors import StateError

READERS = 256
"""Nodes read in parallel: a thousand nodes that hang must not delay the others for minutes."""

MOST_SAMPLED = 16
LOOK = 0.2
"""Seconds between two checks for Ctrl-C."""

_UNWRITTEN = frozenset({"journal-unusable", "journal-away"})


@dataclass(slots=True)
class EmergencyTerminal:
    """Wires one emergency. ``rounds`` counts the runs that it started; ``journal`` is opened with the first.

    ``ask`` takes the cluster and what will be done; it raises ``UsageError`` if the operator does not confirm.

    ``interrupts`` count from the first run on: before that, Ctrl-C ends the command like any other.
    """

    session: Session
    inventory: Inventory
    ask: Callable[[str, str], None]
    rounds: int = 0
    journal: Journal | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)
    _nodes: Nodes | None = None

    def read(self, names: Sequence[str]) -> EmergencyReadings:
        began = time.monotonic()
        ended = [began]

        def heard(_name: str) -> None:
            ended[0] = time.monotonic()

        access = self.session.access(self.inventory, names)
        reports = read_receipts(access, self._connections, READERS, heard, self.session.traces.keep)
        if not self.rounds:  # told once, before the confirmation
            for line in frozen_lines({name: report.frozen for name, report in reports.items()}):
                _print(
                    self.session.carried(f"{line}; {PASSES}"),
                    sys.stdout if self.session.output == "text" else sys.stderr,
                )
        return EmergencyReadings(reports, ended[0] - began)

    def predict(self, found: Emergency, heard: EmergencyReadings) -> TimeBack:
        each = self._node_time(found.order)
        answered = max(1, len(heard.reports) - len(found.seen.silent))
        return time_back(found.order, each, heard.seconds * len(found.order.nodes) / answered)

    def _node_time(self, order: Order) -> NodeTime:
        """From the reverts that one of the cluster's last few runs measured.

        Else from RestartSec on at most ``MOST_SAMPLED`` nodes of the order. Else a fixed estimate.
        """
        known = known_revert_times(self.session, order.cluster)
        if known is not None or not order.nodes:
            return node_time(known)
        names = tuple(order.nodes)
        sample = names[:: -(-len(names) // MOST_SAMPLED)]
        return node_time(None, restart_pauses(self.session.access(self.inventory, sample), self._connections))

    @property
    def _connections(self) -> Nodes:
        """From the first reading to the last proof."""
        self._nodes = self._nodes or self.session.nodes()
        return self._nodes

    def close(self) -> None:
        if self._nodes is not None:
            self._nodes.close()

    def confirm(self, count: int) -> None:
        cluster = self.inventory.cluster
        self.ask(cluster, f"{counted(count, 'node')} of {cluster} will be reverted")

    def carry_out(self, found: Emergency) -> Round:
        """Do one run, and prove its nodes and the nodes that were already reverted."""
        self.rounds += 1
        if self.rounds == 1:
            self.interrupts.install()
        if self.journal is None:
            self.journal = self.session.journal_if_any()
        try:
            return self._with_or_without(found, self.journal)
        except SecondInterruptError:
            raise KeyboardInterrupt from None  # reported with the pending recoveries

    def _with_or_without(self, found: Emergency, journal: Journal) -> Round:
        """A journal that can be opened but not written counts as missing."""
        begun = _Begun()
        try:
            return self._carried_out(found, journal, begun)
        except StateError as error:
            if error.reference not in _UNWRITTEN or begun.is_so:
                raise
            self.journal = without_journal(error)
        return self._carried_out(found, self.journal, begun)

    def _carried_out(self, found: Emergency, journal: Journal, begun: _Begun) -> Round:
        width, nodes = found.order.limits.in_flight, self._connections
        with self.session.tools(journal, width, interrupts=self.interrupts, nodes=nodes) as tools:
            try:
                state = self._run(found, replace(tools, observers=(*tools.observers, begun)))
            except StateError as error:
                if error.reference != "locked" or self.rounds == 1:
                    raise
                return Round(None, (), dict.fromkeys(found.order.nodes, f"{error.message} [{error.reference}]"))
            if state is not None and state.ending is not Ending.DONE:
                return Round(state, ())
            taken = to_be_proven(state) if state else {}
            access = self.session.access(self.inventory, (*taken, *found.already))
            return Round(state, prove(access, tools.nodes, {**taken, **found.already}, left_behind(state), tools.keep))

    def _run(self, found: Emergency, tools: Tools) -> RunState | None:
        if not found.order.nodes:
            return None
        access = self.session.access(self.inventory, tuple(found.order.nodes))
        return start_revert(found.order, found.counter, access, tools)

    def tell(self, what: Told) -> None:
        if self.session.output == "json":
            _print(documents.line(self._document(what)))
        else:
            for line in self._lines(what):
                _print(self.session.carried(line))

    def _lines(self, what: Told) -> Iterable[str]:
        cluster = self.inventory.cluster
        match what:
            case Emergency():
                return text.seen_lines(what.seen, what.picked, what.already, cluster)
            case TimeBack() | NoTimeBack():
                return text.predicted_lines(what)
            case Waiting():
                return text.waiting_lines(what.owed, what.seconds)
            case LeftTo():
                return text.left_lines(what.nodes)
            case Unfinished():
                return text.unfinished_lines(cluster, what.picked, what.owed)
        assert_never(what)

    @staticmethod
    def _document(what: Told) -> object:
        match what:
            case Emergency():
                return text.seen_document(what.seen, what.picked, what.already)
            case TimeBack() | NoTimeBack():
                return text.predicted_document(what)
            case Waiting():
                return text.waiting_document(what.owed, what.seconds)
            case LeftTo():
                return text.left_document(what.nodes)
            case Unfinished():
                return text.unfinished_document(what.picked, what.owed)
        assert_never(what)

    def prove(self, proofs: Sequence[NodeProof]) -> None:
        tell_proofs(self.session, proofs)

    def wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.stopped():
            time.sleep(min(LOOK, left))
        return self.stopped()

    def stopped(self) -> bool:
        return self.interrupts.asked()

    def now(self) -> float:
        return time.monotonic()

    def new_run_id(self) -> str:
        return new_run_id()


@dataclass(slots=True)
class _Begun:
    """Observes whether a run has journaled anything. Until then it may start again without the journal."""

    is_so: bool = False

    def on_event(self, _event: Event, _before: RunState, _after: RunState) -> None:
        self.is_so = True

    def on_end(self, _state: RunState) -> None:
        """``is_so`` is set by then."""


def to_be_proven(state: RunState) -> Mapping[str, str]:
    """Node → transaction, of nodes that were reached. The others have a pending recovery and an unknown state."""
    away = (NodeState.UNREACHABLE, NodeState.UNKNOWN)
    return {name: state.transaction(name) for name, record in state.nodes.items() if record.state not in away}


def left_behind(state: RunState | None) -> Mapping[str, tuple[str, ...]]:
    return {name: record.leftovers for name, record in state.nodes.items()} if state else {}


def tell_proofs(session: Session, proofs: Sequence[NodeProof]) -> None:
    """Print one proof per node, at the end."""
    if session.output == "json":
        for document in proof_documents(proofs):
            _print(documents.line(document))
    elif proofs:
        for line in proof_lines(proofs):
            _print(session.carried(line))


def known_revert_times(session: Session, cluster: str) -> RevertTimes | None:
    """``None`` if the journal cannot be read: an emergency does not wait for it."""
    try:
        return last_revert_times(session.past(), cluster)
    except StateError:
        return None


def _print(line: str, to: TextIO | None = None) -> None:
    """Ignores a closed output: an emergency continues without a reader."""
    with suppress(OSError, ValueError):
        output = to or sys.stdout
        output.write(f"{line}\n")
        output.flush()
