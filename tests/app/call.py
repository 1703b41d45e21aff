"""One call of rollout without a command line: fakes of the ports behind every use case, and of the operator.

The journal is a real one in a folder. The nodes answer in the agent's protocol and at once. A test sets what is otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.no_journal import NoJournal
from rollout.app.apply import apply_plan
from rollout.app.backends import Backends
from rollout.app.isolation import keep_nothing
from rollout.app.node_access import NodeAccess
from rollout.app.ports import ApiSources, Holder, Interruption, Journal, Nodes, PastRuns, Ran, Target, Worker
from rollout.app.runs import Tools
from rollout.composition.kinds import completed
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan
from rollout.core.model.pods import PlacedPod
from rollout.core.model.report import RemoteAnswer, Report
from rollout.core.plans.fleet_comparison import Jumps
from rollout.core.plans.required_back_ends import Needs
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event
from rollout.core.run.state import RunState, Verb
from rollout.errors import RolloutError, StateError, UsageError
from rollout.features.change_windows.asking import WindowTimes
from rollout.features.drain.asking.cluster import DrainCluster
from rollout.features.drain.asking.cordons import LiftedCordons, lift, lift_those_of
from tests.app.agents import CONFIG, SILENT
from tests.app.site import NAMES, SMALL, KilledError, fleet
from tests.app.stacked_agents import StackedAgents, StackedNode
from tests.app.test_load import FakeFiles
from tests.app.test_node_worker import OLD

CLUSTER = SMALL.cluster
TOO_LATE = 10_000.0
"""Seconds: hours after the beginning."""
VERBS = ("status", "verify", "snapshot", "apply", "confirm", "revert", "cleanup", "forget")


def listing(*names: str) -> Inventory:
    """The inventory that ``SMALL`` was planned for, if its nodes are in it."""
    return replace(fleet(), nodes={name: Node(name, name, "r", "z") for name in names})


def old_nodes() -> StackedAgents:
    """Nodes as they were when ``SMALL`` was planned."""
    return StackedAgents({name: StackedNode({CONFIG: OLD}) for name in NAMES})


@dataclass
class FakeOperator:
    """``declines``: does not confirm. ``meanwhile``: what happens while the operator decides."""

    declines: bool = False
    meanwhile: Callable[[], object] = lambda: None
    must_read: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)

    def tell(self, lines: Iterable[str]) -> None:
        self.must_read += lines

    def show(self, lines: Iterable[str]) -> None:
        self.shown += lines

    def confirm(self, cluster: str, what: str) -> None:
        assert cluster == CLUSTER
        self.meanwhile()
        if self.declines:
            raise UsageError("not-confirmed", "nothing was done")
        self.confirmed.append(what)


@dataclass
class OneByOne:
    """Engine, clock and zones: one command after the other, and every look for answers takes a second.

    ``dies_at``: the controller is killed after this node did this verb. ``then``: what happens after a node did a verb.
    """

    at: float = 1000.0
    dies_at: tuple[str, Verb] | None = None
    then: dict[tuple[str, Verb], Callable[[], object]] = field(default_factory=dict)
    stopped: bool = False
    answers: list[Event] = field(default_factory=list)

    def submit(self, worker: Worker, command: Command) -> None:
        self.answers.append(worker(command))
        asked = (command.node, command.verb) if isinstance(command, Ask) else None
        if asked is not None and asked == self.dies_at:
            self.answers = []
            raise KilledError
        if asked in self.then:
            self.then[asked]()

    def stop(self) -> None:
        """The operator types Ctrl-C."""
        self.stopped = True

    def collect(self, timeout: float) -> tuple[Event, ...]:
        self.at += 1.0
        assert self.at < TOO_LATE, "the run waits for something that never comes"
        answers, self.answers = tuple(self.answers), []
        return answers

    def close(self) -> None: ...

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return "2026-11-20T16:00:00Z"

    def wall_seconds(self) -> float:
        return self.at

    def zone(self, _name: str) -> tzinfo:
        return UTC

    def run(self, *_words: object) -> Ran:
        raise AssertionError("nothing is run on the controller")

    # Interruption
    def install(self) -> None: ...

    def asked(self) -> bool:
        return self.stopped


class HeldJournal(SqlJournal):
    """``held``: the holder of the lease that it names, if it is another controller."""

    held: Holder | None = None

    def holder(self, cluster: str) -> Holder | None:
        return self.held or super().holder(cluster)


def elsewhere(run: str, *, alive: bool) -> Holder:
    """A controller on another machine."""
    return Holder(run, "far", silent=7.0 if alive else 900.0, alive=alive, here=False)


@dataclass
class FakeCall:
    """The ports of one call. ``opened``: connections to nodes that are open.

    ``back_ends_fail``: why the back ends cannot be used. ``api``: the API server. ``broken``: why there is no journal.
    """

    folder: Path
    agents: StackedAgents = field(default_factory=old_nodes)
    engine: OneByOne = field(default_factory=OneByOne)
    listed: Inventory = field(default_factory=lambda: listing(*NAMES))
    texts: dict[str, str] = field(default_factory=dict)
    reason: str = "slow pulls"
    who: str = "me@here"
    kubeconfig: str = ""
    back_ends_fail: RolloutError | None = None
    approvals: tuple[Approval, ...] = ()
    approvals_fail: RolloutError | None = None
    waiting: tuple[WaitingPlan, ...] = ()
    api: DrainCluster | None = None
    broken: StateError | None = None
    opened: int = 0
    runs: int = 0
    needed: list[Needs] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._journal = HeldJournal(self.folder)

    @property
    def keep(self) -> Callable[..., str]:
        return keep_nothing

    @property
    def clock(self) -> OneByOne:
        return self.engine

    @property
    def start_times(self) -> WindowTimes:
        return WindowTimes(self.engine)

    def completed(self, plan: Plan) -> Plan:
        return completed(plan)

    def files(self) -> FakeFiles:
        return FakeFiles(self.texts)

    def sources(self) -> ApiSources:
        return _NoApiServer()

    def inventory(self, cluster: str) -> Inventory:
        assert cluster == CLUSTER
        return self.listed

    inventory_or_remembered = inventory

    def jumps(self, _inventory: Inventory, _names: Iterable[str]) -> Jumps:
        return {}

    def nodes(self) -> Nodes:
        self.opened += 1
        return _Connections(self)

    def access(self, _inventory: Inventory, names: Sequence[str]) -> NodeAccess:
        return NodeAccess("program", {name: Target(name, name) for name in names}, dict.fromkeys(names, False))

    def patient(self) -> FakeCall:
        return self

    in_emergency = patient

    @property
    def place(self) -> Path:
        return self.folder

    def waiting_plans(self, journal: PastRuns) -> tuple[WaitingPlan, ...]:
        assert journal is self._journal
        return self.waiting

    def approvals_of(self, _plan: Plan, _inventory: Inventory, _plan_file: Path | None) -> tuple[Approval, ...]:
        self._check_approvals()
        return self.approvals

    def past(self) -> Journal:
        if self.broken is not None:
            raise self.broken
        return self._journal

    journal = past_runs = past

    def journal_if_any(self) -> Journal:
        return self.without_journal(self.broken) if self.broken is not None else self._journal

    def without_journal(self, _why: StateError) -> Journal:
        return NoJournal()

    def check_unused(self, _plan: Plan, _reports: Mapping[str, Report]) -> None:
        self._check_approvals()

    def check_still_approved(self, _state: RunState, _inventory: Inventory) -> None:
        self._check_approvals()

    def _check_approvals(self) -> None:
        if self.approvals_fail is not None:
            raise self.approvals_fail

    def check_back_ends(self, _inventory: Inventory, needs: Needs) -> None:
        self.needed.append(needs)
        if self.back_ends_fail is not None:
            raise self.back_ends_fail

    @contextmanager
    def back_ends(self, inventory: Inventory, needs: Needs) -> Iterator[Backends]:
        self.check_back_ends(inventory, needs)
        yield Backends()

    @contextmanager
    def _api_server(self, _inventory: Inventory) -> Iterator[DrainCluster | None]:
        yield self.api

    def lift_cordons(
        self, inventory: Inventory, names: Collection[str], spared: Collection[str] = frozenset()
    ) -> LiftedCordons:
        return lift(self._api_server, inventory, names, spared=spared)

    def lift_cordons_of(
        self, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
    ) -> LiftedCordons:
        return lift_those_of(self, self._api_server, journal, inventory, state, names)

    @contextmanager
    def tools(
        self,
        journal: Journal,
        width: int,
        backends: Backends | None = None,
        interrupts: Interruption | None = None,
        nodes: Nodes | None = None,
        cluster: str = "",
    ) -> Iterator[Tools]:
        assert width
        assert cluster in ("", CLUSTER)
        yield Tools(
            journal, self.engine, nodes or self.nodes(), self.engine, self.engine, (), (interrupts or self.engine).asked,
            self.who, self.reason, self.new_run_id, backends or Backends(), start_times=self.start_times,
        )  # fmt: skip

    def interruption(self) -> Interruption:
        return self.engine

    def new_run_id(self) -> str:
        self.runs += 1
        return f"r{self.runs}"

    # What tests set and look at.

    def silence(self, *names: str) -> None:
        """These nodes answer nothing any more."""
        self.agents.says |= {(name, verb): SILENT for name in names for verb in VERBS}

    def held(self, holder: Holder | None) -> None:
        self._journal.held = holder

    def applied(self, plan: Plan = SMALL) -> FakeCall:
        """After a run that has applied this plan."""
        with closing(self.nodes()) as nodes:
            apply_plan(self, FakeOperator(), nodes, plan, self.listed, (), fresh=True)
        self.agents.asked = []
        return self

    def killed(self, node: str, verb: Verb) -> FakeCall:
        """After a run that has applied ``SMALL`` until its controller was killed."""
        self.engine.dies_at = (node, verb)
        with pytest.raises(KilledError):
            self.applied()
        self.engine.dies_at, self.agents.asked = None, []
        return self

    def content(self) -> set[bytes | None]:
        """The different contents of the kubelet's configuration on all nodes."""
        return {node.at(CONFIG) for node in self.agents.nodes.values()}

    def claims(self) -> set[tuple[int, str, str]]:
        return {node.claim for node in self.agents.nodes.values()}

    def notes(self) -> list[str]:
        return [note.text for note in self._journal.notes(CLUSTER)]


@dataclass
class _Connections:
    """To the nodes of a call, until they are closed."""

    call: FakeCall

    def run(self, target: Target, command: object) -> RemoteAnswer:
        return self.call.agents.run(target, command)  # type: ignore[arg-type] # as the port has it

    def release(self, target: Target) -> None: ...

    def close(self) -> None:
        self.call.opened -= 1


class _NoApiServer:
    """The inventory has the nodes itself, and names no kubeconfig."""

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise AssertionError(path)

    def ansible(self, path: str) -> str:
        raise AssertionError(path)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        raise AssertionError((kubeconfig, context))

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        raise AssertionError((kubeconfig, context, nodes))

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        raise AssertionError((kubeconfig, context, node))
