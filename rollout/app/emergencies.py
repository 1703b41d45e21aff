"""An emergency rollback: reads nodes, reports, reverts and proves, and repeats this for unreachable nodes.

Every round is a run of its own with a newer token, made from what the nodes report at that moment. Only the selected
runs and the pending recoveries are carried over. Both are printed, so the command can be repeated and continued
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import inf, isfinite
from typing import Protocol

from rollout.app.isolation import estimate
from rollout.app.rollbacks import Emergency, RunsToRevert, emergency, held_by, pick
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Limits
from rollout.core.model.proof import NodeProof, Proven, as_before
from rollout.core.model.report import Report
from rollout.core.model.snapshot import Receipt, ReceiptState, highest_believed
from rollout.core.plans.receipt_history import OtherClusters, newest_receipt, on_nodes
from rollout.core.presentation.emergency_text import of_other
from rollout.core.presentation.rollback_time import NoTimeBack, TimeBack
from rollout.core.run.state import Ending, NodeState, RunState

WAITS = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between two tries of nodes with a pending recovery: longer after each try without an answer."""

ESTIMATE_SECONDS = 12.0
"""How long a rescue waits for its own estimate, which reads a few nodes; then it goes on without one."""

CUT = "stopped before its revert was seen"

_AWAY = frozenset({NodeState.UNREACHABLE, NodeState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class EmergencyOptions:
    """The operator's options.

    ``at_most``: seconds to keep retrying (``None``: until no recovery is pending; 0: never). ``control_plane``: nodes that earlier
    runs have seen to be of it, if the journal could be read. ``others``: runs of other clusters, by the same journal.
    """

    inventory: Inventory
    wanted: RunsToRevert
    limits: Limits
    force: bool
    at_most: float | None
    control_plane: frozenset[str] = frozenset()
    others: OtherClusters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmergencyReadings:
    """What nodes report about their transactions, and the seconds until all nodes that answered had answered."""

    reports: Mapping[str, Report]
    seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one run: its end (``None``: there was no run) and the proofs of its nodes.

    ``kept``: node → why the run could not start with it.
    """

    state: RunState | None
    proofs: tuple[NodeProof, ...]
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The nodes with a pending recovery, each with the reason, and the seconds until the next try."""

    owed: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class LeftTo:
    """Nodes that answer again and that this emergency leaves alone, each with the reason."""

    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """It ends with pending recoveries, or was stopped. The same command continues from anywhere."""

    picked: tuple[str, ...]
    owed: Mapping[str, str]


Told = Emergency | TimeBack | NoTimeBack | Waiting | LeftTo | Unfinished


class EmergencyIO(Protocol):
    """What an emergency does with nodes and prints; wired by the command line.

    Any of it raises ``KeyboardInterrupt`` when the operator stops it at once.
    """

    def read(self, names: Sequence[str]) -> EmergencyReadings: ...

    def predict(self, found: Emergency, heard: EmergencyReadings) -> TimeBack: ...

    def confirm(self, count: int) -> None: ...

    def carry_out(self, found: Emergency) -> Round: ...

    def prove_lost(self, runs: Sequence[str], names: Sequence[str]) -> tuple[NodeProof, ...]: ...

    # the proofs of those nodes among ``names`` without a receipt that one of ``runs`` has changed, by the journal

    def tell(self, what: Told) -> None: ...

    def prove(self, proofs: Sequence[NodeProof]) -> None: ...

    def wait(self, seconds: float) -> bool: ...  # returns ``stopped``, and early if it is true

    def stopped(self) -> bool: ...  # whether the operator has requested a stop since the first run started

    def now(self) -> float: ...

    def new_run_id(self) -> str: ...


@dataclass(slots=True)
class EmergencyRollback:
    """One call of the command. ``owed``: node → why it is not reverted yet.

    ``known``: runs found on any node that was read. ``claims``: node → the run that held it when it was last read,
    until it is ours. ``counter``: the highest of our runs. ``cut``: a run was stopped in progress.
    """

    asked: EmergencyOptions
    io: EmergencyIO
    picked: tuple[str, ...] = ()
    owed: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, NodeProof] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    claims: dict[str, str] = field(default_factory=dict)
    counter: int = 0
    ended: Ending = Ending.DONE
    left_behind: bool = False
    cut: bool = False

    def run(self, names: Sequence[str]) -> int:
        """The exit code: 0 all reverted and proven · 4 not all · 5 claimed by others · 130 stopped, to be repeated."""
        began = self.io.now()
        heard = self._read(names)
        self.picked = pick(on_nodes(heard.reports, self.asked.others), self.asked.wanted)
        found = self._found(heard.reports)
        self.io.tell(found)
        self.io.tell(self._time_back(found, heard))
        if found.order.nodes:
            self.io.confirm(len(found.order.nodes))
        self._round(found)
        if self.ended is Ending.DONE:
            self._until_done(began)
            self.io.prove(self._all_proofs())
        if self.owed or self.ended is Ending.INTERRUPTED:
            self.io.tell(Unfinished(self.picked, dict(self.owed)))
        return self._exit_code()

    def _time_back(self, found: Emergency, heard: EmergencyReadings) -> TimeBack | NoTimeBack:
        predicted = estimate(lambda: self.io.predict(found, heard), ESTIMATE_SECONDS)
        if predicted is None or not isfinite(predicted.seconds):
            return NoTimeBack(len(found.order.nodes))
        return predicted

    @property
    def has_them(self) -> bool:
        """Whether our runs held their nodes: none was refused, or stopped before it may have held them."""
        return not self.cut and self.ended in (Ending.DONE, Ending.INTERRUPTED)

    def others(self) -> frozenset[str]:
        """Runs that are not selected and hold a node, according to the last reading."""
        return frozenset(self.claims.values()) - self.ours - set(self.picked)

    def _read(self, names: Sequence[str]) -> EmergencyReadings:
        heard = self.io.read(names)
        self.known |= on_nodes(heard.reports).known_runs
        for name, report in heard.reports.items():
            if report.token is not None:
                self.claims.pop(name, None)
                self.claims |= {name: report.token.run} if report.token.live else {}
        return heard

    def _found(self, reports: Mapping[str, Report]) -> Emergency:
        asked, known = self.asked, frozenset(self.known)
        new = self.io.new_run_id()
        return emergency(
            reports,
            new,
            self.picked,
            asked.inventory,
            asked.limits,
            force=asked.force,
            known=known,
            control_plane=asked.control_plane,
            others=asked.others,
        )

    def _round(self, found: Emergency) -> None:
        self.owed = dict(found.seen.silent)
        self.ours.add(found.order.run)
        self._count(found.counter)
        try:
            done = self.io.carry_out(found)
        except KeyboardInterrupt:
            self.owed |= dict.fromkeys(found.order.nodes, CUT)
            self.ended, self.cut = Ending.INTERRUPTED, True
            return
        self.owed |= done.kept
        self.proofs |= {proof.node: proof for proof in done.proofs}
        self._look_at_lost(found.without)
        if done.state is None:
            return
        self._count(done.state.counter)
        self.owed |= still_owed(done.state)
        self.ended = done.state.ending or Ending.DONE
        leftovers = any(record.leftovers for record in done.state.nodes.values())
        self.left_behind |= leftovers or done.state.owes_config_map
        for name in found.order.nodes.keys() - self.owed.keys():
            self.claims.pop(name, None)

    def _look_at_lost(self, names: Sequence[str]) -> None:
        """Nodes that answered without a receipt may have lost it, and still have the change."""
        if names:
            self.proofs |= {proof.node: proof for proof in self.io.prove_lost(self.picked, names)}

    def _count(self, counter: int) -> None:
        """One node alone can raise a later run's counter to any number.

        That must not make claims of others look older.
        """
        self.counter = highest_believed((counter,), self.counter)

    def _until_done(self, began: float) -> None:
        """Retry nodes with a pending recovery. A node that answers is reverted at once."""
        tries = 0
        try:
            while self.owed and self.ended is Ending.DONE and (left := self._seconds_left(began)) > 0:
                seconds = min(WAITS[min(tries, len(WAITS) - 1)], left)
                self.io.tell(Waiting(dict(self.owed), seconds))
                if self.io.wait(seconds):
                    self.ended = Ending.INTERRUPTED
                    return
                tries = 0 if self._try_again() else tries + 1
        except KeyboardInterrupt:
            self.ended = Ending.INTERRUPTED

    def _try_again(self) -> bool:
        """Whether any node answered."""
        heard = self._read(tuple(self.owed))
        if self.io.stopped():
            self.ended = Ending.INTERRUPTED
            return False
        if self.asked.wanted.every:
            self._mean_older_runs(heard.reports)
        reports, left = self._spoken(heard.reports)
        if left:
            self.io.tell(LeftTo(left))
        self.proofs |= {
            name: NodeProof(name, Proven.UNKNOWN, (f"{why}; it still had the change of run {newest.run}",))
            for name, why in left.items()
            if (newest := self._held(heard.reports[name])) is not None
        }
        self._look_at_lost(tuple(name for name in left if self._newest(heard.reports[name]) is None))
        self.owed = {name: report.why for name, report in heard.reports.items() if name not in left}
        if reports:
            silent = {
                name: report for name, report in heard.reports.items() if name in self.owed and name not in reports
            }
            self._round(self._found({**reports, **silent}))
        return bool(reports or left)

    def _mean_older_runs(self, reports: Mapping[str, Report]) -> None:
        """With ``every``: also select older runs that only nodes report which were unreachable at first.

        No newer runs.
        """
        newest = (self._newest(report) for report in reports.values())
        older = dict.fromkeys(each.run for each in newest if each is not None and each.counter < self.counter)
        self.picked += tuple(run for run in older if run not in self.ours.union(self.picked, self.asked.others))

    def _newest(self, report: Report) -> Receipt | None:
        return newest_receipt(report, self.asked.others)

    def _spoken(self, reports: Mapping[str, Report]) -> tuple[Mapping[str, Report], Mapping[str, str]]:
        """Of nodes that were unreachable: those that answer and must be reverted, and those that others hold by now."""
        back: dict[str, Report] = {}
        left: dict[str, str] = {}
        for name, report in reports.items():
            if report.token is None:
                continue
            why = self._others_matter(report)
            if why:
                left[name] = why
            else:
                back[name] = report
        return back, left

    def _others_matter(self, report: Report) -> str:
        """Why a node that answers is not ours any more, or ``""``.

        A claim older than our own counts as taken over at the first reading. Its controller is dead, or every other
        node fences it.
        """
        token, receipt, others = report.token, self._newest(report), self.asked.others
        newest = receipt.run if receipt is not None else ""
        mine = self.ours.union(self.picked)
        if token is not None and token.live and token.run not in mine:
            may_be_set_free = newest in self.picked or held_by(report, self.known.union(others))
            if token.counter >= self.counter or not may_be_set_free:
                return f"run {token.run}{of_other(others.get(token.run, ''))} has claimed it"
            return ""
        if newest in self.picked or held_by(report, ()):
            return ""
        if newest:
            return f"its newest transaction is of run {newest}{of_other(others.get(newest, ''))}"
        return f"it has no transaction of {'this cluster' if report.receipts else 'rollout'}"

    def _held(self, report: Report) -> Receipt | None:
        """The selected change that is still on a node."""
        newest = self._newest(report)
        is_held = newest is not None and newest.run in self.picked and newest.state is not ReceiptState.REVERTED
        return newest if is_held else None

    def _seconds_left(self, began: float) -> float:
        most = self.asked.at_most
        return inf if most is None else began + most - self.io.now()

    def _all_proofs(self) -> tuple[NodeProof, ...]:
        """A node with a pending recovery is unknown, whatever was read from it before."""
        away = {name: NodeProof(name, Proven.UNKNOWN, (f"pending recovery: {why}",)) for name, why in self.owed.items()}
        return tuple({**self.proofs, **away}.values())

    def _exit_code(self) -> int:
        if self.ended is not Ending.DONE:
            return 130 if self.ended is Ending.INTERRUPTED else 5
        return 0 if as_before(self._all_proofs()) and not self.left_behind else 4


def still_owed(state: RunState) -> dict[str, str]:
    """Nodes that were unreachable. Nodes that refuse a revert are reported elsewhere: a retry would change nothing."""
    return {
        name: f"{record.message} [{record.reference}]" if record.message else record.reference or "did not answer"
        for name, record in state.nodes.items()
        if record.owed and record.state in _AWAY
    }
