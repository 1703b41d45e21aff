"""What a use case works with in one call of rollout: its ports, and the operator that it tells and asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a use case imports what it calls
    from pathlib import Path

    from rollout.app.backends import Backends
    from rollout.app.isolation import Keep
    from rollout.app.node_access import NodeAccess
    from rollout.app.ports import ApiSources, Clock, Files, Interruption, Journal, Nodes, PastRuns, StartTimes
    from rollout.app.runs import Tools
    from rollout.core.model.approvals import Approval
    from rollout.core.model.inventory import Inventory
    from rollout.core.model.plan import Plan
    from rollout.core.model.report import Report
    from rollout.core.plans.fleet_comparison import Jumps
    from rollout.core.plans.required_back_ends import Needs
    from rollout.core.presentation.waiting_plans import WaitingPlan
    from rollout.core.run.state import RunState
    from rollout.errors import StateError


class Operator(Protocol):
    """The person that runs the command."""

    def tell(self, lines: Iterable[str]) -> None:
        """What the person must read. If documents are printed, on standard error."""
        ...

    def show(self, lines: Iterable[str]) -> None:
        """What is printed for people only: a program finds it in the documents."""
        ...

    def confirm(self, cluster: str, what: str) -> None:
        """``UsageError`` ``not-confirmed``, and nothing is done."""
        ...


class CordonsResult(Protocol):
    """What became of the cordons that runs had left. ``unrecorded``: why the journal does not have that they are lifted."""

    @property
    def all_lifted(self) -> bool: ...

    @property
    def document(self) -> object | None:
        """``None``: there was no cordon."""
        ...

    @property
    def lines(self) -> Iterable[str]: ...

    @property
    def unrecorded(self) -> str: ...


class CallPorts(Protocol):
    """The ports of one call. Each is made when it is needed: to import what reaches nodes takes 0.3 s."""

    @property
    def reason(self) -> str:
        """Of the operator, for the journal."""
        ...

    @property
    def who(self) -> str:
        """The operator and the machine, for the journal."""
        ...

    @property
    def kubeconfig(self) -> str:
        """Overrides the inventory's; ``""``: none is given."""
        ...

    @property
    def place(self) -> object:
        """Where the journal is, as text for people."""
        ...

    @property
    def keep(self) -> Keep: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def start_times(self) -> StartTimes: ...

    def completed(self, plan: Plan) -> Plan:
        """A plan that was just made, with what its conditions add to it."""
        ...

    def patient(self) -> CallPorts:
        """The same for a run that has begun: it waits for workers of regions that are away."""
        ...

    def in_emergency(self) -> CallPorts:
        """The same, without waiting for workers of regions that are away: nodes are reached from here where they may be."""
        ...

    def approvals_of(self, plan: Plan, inventory: Inventory, plan_file: Path | None) -> tuple[Approval, ...]:
        """Those beside the plan's file (``None``: it has none). ``InputError``: it may not be applied."""
        ...

    def check_unused(self, plan: Plan, reports: Mapping[str, Report]) -> None:
        """``InputError``: a run has used the approvals of this plan. ``reports``: what its nodes say now."""
        ...

    def check_still_approved(self, state: RunState, inventory: Inventory) -> None:
        """``InputError``: by today's rules and signers the run may not continue."""
        ...

    def waiting_plans(self, journal: PastRuns) -> tuple[WaitingPlan, ...]:
        """The plans of the current folder that wait for approvals, or to be applied with them."""
        ...

    def files(self) -> Files: ...

    def sources(self) -> ApiSources: ...

    def inventory(self, cluster: str) -> Inventory: ...

    def inventory_or_remembered(self, cluster: str) -> Inventory:
        """The same. If the source of its nodes does not answer: with the nodes of its last answer."""
        ...

    def jumps(self, inventory: Inventory, names: Iterable[str]) -> Jumps:
        """Node → the bastions on the way to it, as far as they are known here."""
        ...

    def nodes(self) -> Nodes: ...

    def access(self, inventory: Inventory, names: Sequence[str]) -> NodeAccess: ...

    def past_runs(self) -> PastRuns:
        """The journal for a call that writes nothing: creates none."""
        ...

    def past(self) -> Journal:
        """The journal, or one without runs: creates none."""
        ...

    def journal(self) -> Journal:
        """The journal, which is created if there is none."""
        ...

    def journal_if_any(self) -> Journal:
        """For an emergency, which continues without a usable one: then ``without_journal``."""
        ...

    def without_journal(self, why: StateError) -> Journal:
        """A journal that keeps nothing. Tells the operator."""
        ...

    def check_back_ends(self, inventory: Inventory, needs: Needs) -> None:
        """``InputError`` if a needed back end is not set, or a file is missing or invalid. Contacts no back end."""
        ...

    def back_ends(self, inventory: Inventory, needs: Needs) -> AbstractContextManager[Backends]:
        """Those of a run, closed at the end. ``UsageError`` if rights at the API server are missing."""
        ...

    def lift_cordons(
        self, inventory: Inventory, names: Collection[str], spared: Collection[str] = frozenset()
    ) -> CordonsResult:
        """Lift the cordons of every run except ``spared`` from these nodes. An error of the API server is in the result."""
        ...

    def lift_cordons_of(
        self, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
    ) -> CordonsResult:
        """The same of one run. If it has ended, that is recorded in its journal."""
        ...

    def tools(
        self,
        journal: Journal,
        width: int,
        backends: Backends | None = None,
        interrupts: Interruption | None = None,
        nodes: Nodes | None = None,
        cluster: str = "",
    ) -> AbstractContextManager[Tools]:
        """What a run needs, closed at the end. ``width``: nodes in flight. ``nodes``: open connections (``None``: new ones).
        ``interrupts``: of a command that starts several runs (``None``: those of this run).

        ``cluster``: its inventory is read again if a node does not answer before its change (``""``: it is not).
        """
        ...

    def interruption(self) -> Interruption: ...

    def new_run_id(self) -> str: ...
