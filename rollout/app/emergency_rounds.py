"""The rounds of an emergency rollback: reads nodes, does a run, proves its nodes and waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from rollout.app.call import CallPorts, CordonsResult, Operator
from rollout.app.config_map_restores import ReadRuns, RestoreOfRuns, to_restore_of
from rollout.app.emergencies import EmergencyOptions, EmergencyReadings, EmergencyRollback, Round, Told
from rollout.app.following import other_clusters
from rollout.app.isolation import estimate
from rollout.app.ports import Interruption, Journal, Nodes
from rollout.app.proofs import held_without_receipt, prove
from rollout.app.reading import read_receipts, restart_pauses
from rollout.app.revert import (
    known_control_plane,
    known_revert_times,
    left_behind,
    other_fleet_lines,
    passed_lines,
    to_be_proven,
)
from rollout.app.rollbacks import Emergency, RunsToRevert
from rollout.app.runs import Tools, start_revert
from rollout.app.start_times import PASSES
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Limits
from rollout.core.model.proof import NOTHING_PROMISED, NodeProof
from rollout.core.plans.receipt_history import OURS, OtherClusters
from rollout.core.presentation.freeze_text import frozen_lines
from rollout.core.presentation.rollback_time import NodeTime, TimeBack, node_time, time_back
from rollout.core.run.events import Event
from rollout.core.run.state import Ending, Order, RunState
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, SecondInterruptError, StateError

READERS = 256
"""Nodes read in parallel: a thousand nodes that hang must not delay the others for minutes."""

JOURNAL_SECONDS = 3.0
"""How long an emergency waits for the journal: which nodes were seen to be of the control plane, and which runs are of other clusters."""

MOST_SAMPLED = 16
LOOK = 0.2
"""Seconds between two checks for Ctrl-C."""

_UNWRITTEN = frozenset({"journal-unusable", "journal-away"})


class EmergencyOperator(Operator, Protocol):
    """The person that reverts in an emergency, and reads what comes of it at once."""

    def told(self, what: Told, cluster: str) -> None: ...

    def proofs(self, proofs: Sequence[NodeProof]) -> None: ...


@dataclass(frozen=True, slots=True)
class EmergencyResult:
    """``stopped``: by the operator, at once. ``cordons``: ``None`` if the runs did not hold their nodes."""

    exit_code: int
    cordons: CordonsResult | None = None
    stopped: bool = False


def revert_nodes(
    call: CallPorts,
    operator: EmergencyOperator,
    cluster: str,
    limit: str,
    wanted: RunsToRevert,
    limits: Limits,
    *,
    force: bool,
    at_most: float | None,
) -> EmergencyResult:
    """Revert the nodes of ``limit`` (``""``: all) by what they report. ``at_most`` as in ``EmergencyOptions``.

    Once we hold them, cordons are lifted, except those of runs that still hold nodes.
    """
    inventory = call.inventory_or_remembered(cluster)
    names = limited(limit, inventory)
    operator.tell(passed_lines(call, inventory, None))
    known = estimate(lambda: _by_journal(call, inventory), JOURNAL_SECONDS) or _KnownByJournal()
    operator.tell(known.other_fleet)
    call = call.in_emergency()
    rounds = EmergencyRounds(call, operator, inventory, call.interruption())
    options = EmergencyOptions(inventory, wanted, limits, force, at_most, known.control_plane, known.others)
    work = EmergencyRollback(options, rounds)
    try:
        code = work.run(names)
        cordons = call.lift_cordons(inventory, names, work.others()) if work.has_them else None
        return EmergencyResult(code, cordons)
    except KeyboardInterrupt:
        if not rounds.rounds:
            raise
        return EmergencyResult(130, stopped=True)
    finally:
        rounds.close()


@dataclass(frozen=True, slots=True)
class _KnownByJournal:
    """Nothing, if the journal does not answer in time.

    ``control_plane``: the nodes that runs have seen to be of it. ``others``: the runs of other clusters of the project.
    ``other_fleet``: a warning, if the list of nodes may be another cluster's.
    """

    control_plane: frozenset[str] = frozenset()
    others: OtherClusters = field(default_factory=lambda: OURS)
    other_fleet: tuple[str, ...] = ()


def _by_journal(call: CallPorts, inventory: Inventory) -> _KnownByJournal:
    """A run of a cluster without an inventory is not of another one: the cluster may have had that name when the run was."""
    from rollout.app.load import INVENTORY_FOLDER, names_in  # noqa: PLC0415 - what reads inventories takes 0.1 s to import

    cluster = inventory.cluster
    known = _KnownByJournal(known_control_plane(call, cluster), other_fleet=other_fleet_lines(call, inventory))
    with suppress(StateError, InputError):
        listed = names_in(call.files(), INVENTORY_FOLDER)
        others = other_clusters(call.past(), cluster).items()
        return replace(known, others={run: other for run, other in others if other in listed})
    return known


@dataclass(slots=True)
class EmergencyRounds:
    """One emergency. ``rounds`` counts the runs that it started; ``journal`` is opened with the first.

    ``_told``: runs of which a round has shown, or told, whether they wrote a ConfigMap. ``_read``: what was read of them.
    ``_restore``: what restores it, by the newest round that could read the journal.

    ``interrupts`` count from the first run on: before that, Ctrl-C ends the command like any other.
    """

    call: CallPorts
    operator: EmergencyOperator
    inventory: Inventory
    interrupts: Interruption
    rounds: int = 0
    journal: Journal | None = None
    _nodes: Nodes | None = None
    _told: set[str] = field(default_factory=set)
    _read: ReadRuns = field(default_factory=ReadRuns)
    _restore: ConfigMapChange | None = None

    def read(self, names: Sequence[str]) -> EmergencyReadings:
        began = time.monotonic()
        ended = [began]

        def heard(_name: str) -> None:
            ended[0] = time.monotonic()

        access = self.call.access(self.inventory, names)
        reports = read_receipts(access, self._connections, READERS, heard, self.call.keep, roles=True)
        if not self.rounds:  # told once, before the confirmation
            for line in frozen_lines({name: report.frozen for name, report in reports.items()}):
                self.operator.tell((f"{line}; {PASSES}",))
        return EmergencyReadings(reports, ended[0] - began)

    def predict(self, found: Emergency, heard: EmergencyReadings) -> TimeBack:
        each = self._node_time(found.order)
        answered = max(1, len(heard.reports) - len(found.seen.silent))
        return time_back(found.order, each, heard.seconds * len(found.order.nodes) / answered)

    def _node_time(self, order: Order) -> NodeTime:
        """From the reverts that one of the cluster's last few runs measured.

        Else from RestartSec on at most ``MOST_SAMPLED`` nodes of the order. Else a fixed estimate.
        """
        known = known_revert_times(self.call, order.cluster)
        if known is not None or not order.nodes:
            return node_time(known)
        names = tuple(order.nodes)
        sample = names[:: -(-len(names) // MOST_SAMPLED)]
        return node_time(None, restart_pauses(self.call.access(self.inventory, sample), self._connections))

    @property
    def _connections(self) -> Nodes:
        """From the first reading to the last proof."""
        self._nodes = self._nodes or self.call.nodes()
        return self._nodes

    def close(self) -> None:
        if self._nodes is not None:
            self._nodes.close()

    def confirm(self, count: int) -> None:
        cluster = self.inventory.cluster
        self.operator.confirm(cluster, f"{counted(count, 'node')} of {cluster} will be reverted")

    def carry_out(self, found: Emergency) -> Round:
        """Do one run, and prove its nodes and the nodes that were already reverted."""
        self.rounds += 1
        if self.rounds == 1:
            self.interrupts.install()
        if self.journal is None:
            self.journal = self.call.journal_if_any()
        found = replace(found, order=replace(found.order, config_map=self._config_map(found, self.journal)))
        try:
            return self._with_or_without(found, self.journal)
        except SecondInterruptError:
            raise KeyboardInterrupt from None  # reported with the pending recoveries

    def _config_map(self, found: Emergency, journal: Journal) -> ConfigMapChange | None:
        """What restores the ConfigMap of the runs, by the journal alone. It stays pending: an emergency asks no API server.

        Each round has it: of several, only the newest can be recovered. A journal that does not answer in a later round takes nothing away.
        """
        cluster, runs = self.inventory.cluster, found.picked
        back = estimate(lambda: to_restore_of(journal, cluster, runs, self._read), JOURNAL_SECONDS)
        back = back or RestoreOfRuns(None, runs)
        unknown = [run for run in back.unknown if run not in self._told]
        self._told.update(runs)
        if unknown:
            self.operator.tell((_not_known(unknown),))
        self._restore = change = back.change or (self._restore if back.unknown else None)
        if change is not None and not found.order.nodes:
            names = " or ".join(f"`rollout rollback {printable(run, 60)}`" for run in runs)
            self.operator.tell((f"{printable(change.title, 400)} is still to be restored: {names}",))
        return change

    def _with_or_without(self, found: Emergency, journal: Journal) -> Round:
        """A journal that can be opened but not written counts as missing."""
        begun = _Begun()
        try:
            return self._carried_out(found, journal, begun)
        except StateError as error:
            if error.reference not in _UNWRITTEN or begun.is_so:
                raise
            self.journal = self.call.without_journal(error)
        return self._carried_out(found, self.journal, begun)

    def _carried_out(self, found: Emergency, journal: Journal, begun: _Begun) -> Round:
        width, nodes = found.order.limits.in_flight, self._connections
        with self.call.tools(journal, width, interrupts=self.interrupts, nodes=nodes) as tools:
            try:
                state = self._run(found, replace(tools, observers=(*tools.observers, begun)))
            except StateError as error:
                if error.reference != "locked" or self.rounds == 1:
                    raise
                return Round(None, (), dict.fromkeys(found.order.nodes, f"{error.message} [{error.reference}]"))
            if state is not None and state.ending is not Ending.DONE:
                return Round(state, ())
            taken = to_be_proven(state) if state else {}
            access = self.call.access(self.inventory, (*taken, *found.already))
            asked = {**taken, **found.already}
            return Round(state, prove(access, tools.nodes, asked, left_behind(state), tools.keep, _only_claimed(found)))

    def _run(self, found: Emergency, tools: Tools) -> RunState | None:
        if not found.order.nodes:
            return None
        access = self.call.access(self.inventory, tuple(found.order.nodes))
        return start_revert(found.order, found.counter, access, tools)

    def prove_lost(self, runs: Sequence[str], names: Sequence[str]) -> tuple[NodeProof, ...]:
        """What the nodes do not have is known by the journal alone. Their bytes are read again, and compared with those that the plan replaced."""
        journal = self.journal
        held = (
            None if journal is None else estimate(lambda: held_without_receipt(journal, runs, names), JOURNAL_SECONDS)
        )
        unread = runs if held is None else held.unread
        if unread:
            self.operator.tell((_not_known_of(unread, names),))
        if held is None or not held.transactions:
            return ()
        access = self.call.access(self.inventory, tuple(held.transactions))
        return prove(access, self._connections, held.transactions, {}, self.call.keep, held.promised)

    def tell(self, what: Told) -> None:
        self.operator.told(what, self.inventory.cluster)

    def prove(self, proofs: Sequence[NodeProof]) -> None:
        self.operator.proofs(proofs)

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
        return self.call.new_run_id()


def _only_claimed(found: Emergency) -> Mapping[str, Mapping[str, str]]:
    """Nodes where a run's claim was seen and no transaction of it: it has changed no file there."""
    newest = found.seen.newest
    return {
        name: NOTHING_PROMISED
        for name, tx in found.order.transactions.items()
        if name not in newest or newest[name].tx != tx
    }


def _not_known(runs: Sequence[str]) -> str:
    names = printable(", ".join(runs), 200)
    return (
        f"whether {names} wrote kubeadm's ConfigMap is not known: the journal does not show it, or was not read in time. "
        "If so, nodes that join get its settings; `rollout rollback RUN`, where its journal is, restores it"
    )


def _not_known_of(runs: Sequence[str], names: Sequence[str]) -> str:
    nodes = f"{counted(len(names), 'node')} without a transaction of the cluster, {printable(fold(names), 300)}"
    return f"whether {printable(', '.join(runs), 200)} changed {nodes}, is not known: the journal does not show it, or was not read in time"


@dataclass(slots=True)
class _Begun:
    """Observes whether a run has journaled anything. Until then it may start again without the journal."""

    is_so: bool = False

    def on_event(self, _event: Event, _before: RunState, _after: RunState) -> None:
        self.is_so = True

    def on_end(self, _state: RunState) -> None:
        """``is_so`` is set by then."""
