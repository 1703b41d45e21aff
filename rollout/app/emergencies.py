"""An emergency from the first look to the proof: read, say, take back, prove; and again for those who did not answer.

Every round is a run of its own with a newer token, made of what the nodes say at that moment. Nothing is carried over but
which runs are meant and who is still owed, and both are printed: whoever repeats the command elsewhere goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rollout.app.rollbacks import Emergency, Wanted, emergency, pick
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Limits
from rollout.core.model.proof import NodeProof, Proven
from rollout.core.model.report import Report
from rollout.core.plans.on_nodes import on_nodes
from rollout.core.run.state import Ending, NodeState, RunState
from rollout.core.telling.time_back import TimeBack

WAITS = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between two looks at who is owed: longer each time nobody of them came back."""

_AWAY = frozenset({NodeState.UNREACHABLE, NodeState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the operator said. ``at_most``: seconds to keep trying for (``None``: until none is owed; 0: not at all)."""

    inventory: Inventory
    wanted: Wanted
    limits: Limits
    force: bool
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What nodes said of their transactions, and in how many seconds all of those spoke who did."""

    reports: Mapping[str, Report]
    seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one run: its end (``None``: there was none), the proofs of its nodes, and who it could not begin with."""

    state: RunState | None
    proofs: tuple[NodeProof, ...]
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who is still owed, each with why, and in how many seconds they are asked again."""

    owed: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class LeftTo:
    """Nodes that came back and are no longer this emergency's matter, each with why."""

    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """It ends with nodes still owed, or was stopped; the same command goes on from anywhere."""

    picked: tuple[str, ...]
    owed: Mapping[str, str]


Told = Emergency | TimeBack | Waiting | LeftTo | Unfinished


class Hands(Protocol):
    """What an emergency does with nodes and says to people; wired by the command line."""

    def read(self, names: Sequence[str]) -> Heard: ...

    def predict(self, found: Emergency, heard: Heard) -> TimeBack: ...

    def confirm(self, count: int) -> None: ...

    def carry_out(self, found: Emergency) -> Round: ...

    def tell(self, what: Told) -> None: ...

    def prove(self, proofs: Sequence[NodeProof]) -> None: ...

    def wait(self, seconds: float) -> bool: ...  # true: the operator asked to stop

    def now(self) -> float: ...

    def new_run_id(self) -> str: ...


@dataclass(slots=True)
class EmergencyRollback:
    """One call of the command. ``owed``: node → why it could not be taken back yet."""

    asked: Asked
    hands: Hands
    owed: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, NodeProof] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    ended: Ending = Ending.DONE
    left_behind: bool = False

    def run(self, names: Sequence[str]) -> int:
        """The exit code: 0 all back and proven · 4 not all · 5 claimed by others · 130 stopped, to be repeated."""
        began = self.hands.now()
        heard = self.hands.read(names)
        picked = pick(on_nodes(heard.reports), self.asked.wanted)
        found = self._found(heard.reports, picked)
        self.hands.tell(found)
        self.hands.tell(self.hands.predict(found, heard))
        if found.order.nodes:
            self.hands.confirm(len(found.order.nodes))
        self._round(found)
        if self.ended is Ending.DONE:
            self._until_done(picked, began)
            self.hands.prove(self._all_proofs())
        if self.owed or self.ended is Ending.INTERRUPTED:
            self.hands.tell(Unfinished(picked, dict(self.owed)))
        return self._exit_code()

    def _found(self, reports: Mapping[str, Report], picked: tuple[str, ...]) -> Emergency:
        asked = self.asked
        return emergency(reports, self.hands.new_run_id(), picked, asked.inventory, asked.limits, force=asked.force)

    def _round(self, found: Emergency) -> None:
        self.owed = dict(found.seen.silent)
        self.ours.add(found.order.run)
        done = self.hands.carry_out(found)
        self.owed |= done.kept
        self.proofs |= {proof.node: proof for proof in done.proofs}
        if done.state is None:
            return
        self.owed |= still_owed(done.state)
        self.ended = done.state.ending or Ending.DONE
        self.left_behind |= any(record.leftovers for record in done.state.nodes.values())

    def _until_done(self, picked: tuple[str, ...], began: float) -> None:
        """Ask those who are owed again and again; who comes back is taken back at once."""
        tries = 0
        while self.owed and self.ended is Ending.DONE and not self._is_over(began):
            seconds = WAITS[min(tries, len(WAITS) - 1)]
            self.hands.tell(Waiting(dict(self.owed), seconds))
            if self.hands.wait(seconds):
                self.ended = Ending.INTERRUPTED
                return
            tries = 0 if self._try_again(picked) else tries + 1

    def _try_again(self, picked: tuple[str, ...]) -> bool:
        """Whether anybody came back."""
        heard = self.hands.read(tuple(self.owed))
        reports, left = spoken(heard.reports, frozenset(picked), self.ours)
        if left:
            self.hands.tell(LeftTo(left))
        self.owed = {name: _why(report) for name, report in heard.reports.items() if name not in left}
        if reports:
            silent = {
                name: report for name, report in heard.reports.items() if name in self.owed and name not in reports
            }
            self._round(self._found({**reports, **silent}, picked))
        return bool(reports or left)

    def _is_over(self, began: float) -> bool:
        return self.asked.at_most is not None and self.hands.now() - began >= self.asked.at_most

    def _all_proofs(self) -> tuple[NodeProof, ...]:
        """Who is owed is unknown, whatever was read of it before."""
        away = {name: NodeProof(name, Proven.UNKNOWN, (f"owed: {why}",)) for name, why in self.owed.items()}
        return tuple({**self.proofs, **away}.values())

    def _exit_code(self) -> int:
        if self.ended is not Ending.DONE:
            return 130 if self.ended is Ending.INTERRUPTED else 5
        proven = all(proof.proven is Proven.PROVEN for proof in self._all_proofs())
        return 0 if proven and not self.left_behind else 4


def still_owed(state: RunState) -> dict[str, str]:
    """Who could not be reached. Nodes that refuse to go back are told; asking them again would change nothing."""
    return {
        name: f"{record.message} [{record.reference}]" if record.message else record.reference or "did not answer"
        for name, record in state.nodes.items()
        if record.owed and record.state in _AWAY
    }


def spoken(
    reports: Mapping[str, Report], picked: frozenset[str], ours: set[str]
) -> tuple[Mapping[str, Report], Mapping[str, str]]:
    """Of nodes that were away: those that answer and are to be taken back, and those that are others' matter by now."""
    back: dict[str, Report] = {}
    left: dict[str, str] = {}
    for name, report in reports.items():
        if report.token is None:
            continue
        newest = report.receipts[0].run if report.receipts else ""
        if report.token.live and report.token.run not in picked | ours:
            left[name] = f"run {report.token.run} has it now"
        elif newest in picked or report.token.live:
            back[name] = report
        else:
            left[name] = f"its newest transaction is of run {newest}" if newest else "it holds no transaction of ours"
    return back, left


def _why(report: Report) -> str:
    return f"{report.message} [{report.reference}]" if report.message else report.reference
