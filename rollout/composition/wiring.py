"""The composition root: connects adapters to ports. Only this module knows all adapters.

Adapters are imported where they are used: a command that only looks at a run does not import what reaches nodes.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from rollout.adapters.journal_file import has_journal
from rollout.adapters.no_journal import NoJournal
from rollout.adapters.private_files import check_private, private_state, remove_empty_journal
from rollout.composition.kinds import completed, start_times
from rollout.composition.operators import notice_sender, operator, own_logins
from rollout.core.text.message_folding import for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import Problem, RolloutError, SecondInterruptError, StateError, UsageError
from rollout.features.regions.client.dask_engine import DaskEngine

if TYPE_CHECKING:
    from rollout.adapters.clock import SystemClock, SystemZones
    from rollout.adapters.files import FolderFiles
    from rollout.adapters.journal import PostgresUrl, SqlJournal
    from rollout.adapters.local import LocalCommands
    from rollout.adapters.private_files import Traces
    from rollout.adapters.ssh import Resolver, SshNodes
    from rollout.app.backends import Backends
    from rollout.app.call import CordonsResult
    from rollout.app.isolation import Keep
    from rollout.app.node_access import NodeAccess
    from rollout.app.ports import (
        ApiSources,
        Interruption,
        Journal,
        Nodes,
        Observer,
        PastRuns,
        StartTimes,
        Target,
    )
    from rollout.app.runs import Tools
    from rollout.core.model.approvals import Approval
    from rollout.core.model.inventory import Inventory
    from rollout.core.model.plan import Plan
    from rollout.core.model.regions import RegionStanding
    from rollout.core.model.report import Report
    from rollout.core.plans.fleet_comparison import Jumps
    from rollout.core.plans.required_back_ends import Needs
    from rollout.core.presentation.waiting_plans import WaitingPlan
    from rollout.core.run.state import RunState
    from rollout.features.notices.asking import NoticeSender
    from rollout.features.regions.client.workers import RegionWorker, Scheduler
    from rollout.kubelet.agent.sudo import Secret

COMMAND_OUTPUT = 64 * 1024
"""Bytes that are kept of each output stream of an operator's command on one node."""

SHELL_SECONDS = 60.0
"""Until an interactive shell has begun; it has no deadline then."""

_MOST_SAID = 20
SPARE = 32
"""Threads beyond the in-flight limit, so that confirms never wait behind applies."""


@dataclass(frozen=True)
class Session:
    """The options of one call about reaching nodes and keeping state."""

    state: Path
    ssh_config: Path | None
    accept_new: bool
    output: str
    reason: str = ""
    sudo_password: Secret | None = None
    kubeconfig: str = ""  # overrides the inventory's, if that names one
    shared: PostgresUrl | None = None  # the journal, instead of a file in ``state``
    folder: Path = Path()  # the project: inventories, playbooks, templates
    engine: DaskEngine | None = None  # ``None``: this process reaches the nodes
    label: str = ""  # the cluster, in a command that starts several runs together: it begins their lines
    interrupts: Interruption | None = None  # of such a command; ``None``: each run has its own
    carried: Callable[[str], str] = field(
        default=str, compare=False
    )  # repeats this call's options in proposed commands
    opened: list[SqlJournal] = field(default_factory=list, compare=False)  # the journal, once it is open
    opening: RLock = field(default_factory=RLock, compare=False)  # several threads may be the first to need it

    @cached_property
    def resolver(self) -> Resolver:
        """``ssh_config`` as given, read once."""
        from rollout.adapters.ssh import Resolver

        return Resolver.reading(self.ssh_config, accept_new=self.accept_new)

    @cached_property
    def traces(self) -> Traces:
        """Keeps the traces of errors inside rollout that a node's content or answer caused."""
        from rollout.adapters.private_files import Traces

        return Traces(self.state)

    @property
    def keep(self) -> Keep:
        return self.traces.keep

    @property
    def who(self) -> str:
        """The operator and the machine, for the journal."""
        return operator()

    @property
    def logins(self) -> frozenset[str]:
        return own_logins()

    @cached_property
    def clock(self) -> SystemClock:
        from rollout.adapters.clock import SystemClock

        return SystemClock()

    @cached_property
    def zones(self) -> SystemZones:
        from rollout.adapters.clock import SystemZones

        return SystemZones()

    @property
    def start_times(self) -> StartTimes:
        return start_times(self.zones)

    def completed(self, plan: Plan) -> Plan:
        return completed(plan)

    @property
    def local(self) -> LocalCommands:
        from rollout.adapters.local import LocalCommands

        return LocalCommands(self.folder)

    def approvals_of(self, plan: Plan, inventory: Inventory, plan_file: Path | None) -> tuple[Approval, ...]:
        from rollout.composition.approving import approvals_of

        return approvals_of(self, plan, inventory, plan_file)

    def check_unused(self, plan: Plan, reports: Mapping[str, Report]) -> None:
        from rollout.features.approvals.asking import check_not_used

        check_not_used(plan, self.past(), reports)

    def check_still_approved(self, state: RunState, inventory: Inventory) -> None:
        from rollout.composition.approving import check_still_approved

        check_still_approved(self, state, inventory)

    def waiting_plans(self, journal: PastRuns) -> tuple[WaitingPlan, ...]:
        from rollout.features.approvals.client.waiting import waiting_plans

        return waiting_plans(Path(), self.files(), journal, own_logins())

    def check_back_ends(self, inventory: Inventory, needs: Needs) -> None:
        from rollout.composition.back_ends import check_backends

        check_backends(inventory, needs, self.kubeconfig)

    def back_ends(self, inventory: Inventory, needs: Needs) -> AbstractContextManager[Backends]:
        from rollout.composition.back_ends import gate_backends

        return gate_backends(inventory, needs, self.kubeconfig)

    def lift_cordons(
        self, inventory: Inventory, names: Collection[str], spared: Collection[str] = frozenset()
    ) -> CordonsResult:
        from rollout.composition.back_ends import cluster_of
        from rollout.features.drain.asking.cordons import lift

        return lift(partial(cluster_of, kubeconfig=self.kubeconfig), inventory, names, spared=spared)

    def lift_cordons_of(
        self, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
    ) -> CordonsResult:
        from rollout.composition.back_ends import cluster_of
        from rollout.features.drain.asking.cordons import lift_those_of

        server = partial(cluster_of, kubeconfig=self.kubeconfig)
        return lift_those_of(self, server, journal, inventory, state, names)

    def interruption(self) -> Interruption:
        from rollout.adapters.interrupts import Interrupts

        return Interrupts()

    def new_run_id(self) -> str:
        return new_run_id()

    def files(self) -> FolderFiles:
        from rollout.adapters.files import FolderFiles

        return FolderFiles(self.folder)

    def inventory(self, cluster: str) -> Inventory:
        """The inventory of a cluster, with the nodes of its source if it names one."""
        from rollout.app.load import load_cluster

        return load_cluster(self.files(), self.sources(), cluster, self.kubeconfig)

    def inventory_or_remembered(self, cluster: str) -> Inventory:
        """The same for commands that must work without the API server: if it fails, the nodes of its last answer."""
        from rollout.adapters.node_sources import RealSources, RecallingSources
        from rollout.app.load import load_cluster

        sources = RecallingSources(self.sources(), self.state, RealSources(self.kubeconfig).meant, _say)
        inventory = load_cluster(self.files(), sources, cluster, self.kubeconfig)
        return replace(inventory, remembered=sources.taken, listed_by=sources.api)

    def only_remembered(self, cluster: str) -> Inventory:
        """With the nodes of its source's last answer: asks no source."""
        from rollout.adapters.node_sources import OnlyRemembered, RealSources
        from rollout.app.load import load_cluster

        return load_cluster(self.files(), OnlyRemembered(self.state, RealSources(self.kubeconfig).meant), cluster)

    def jumps(self, inventory: Inventory, names: Iterable[str]) -> Jumps:
        """Node → the bastions on the way to it from here. Workers of regions have ways of their own, which are not known."""
        if self.engine is not None:
            return {}
        from rollout.app.node_access import access_to

        chosen = tuple(name for name in names if name in inventory.nodes)
        found = self.resolver.jumps(access_to(inventory, "", chosen).targets.values())
        return {name: tuple(map(str, hops)) for name, hops in found.items()}

    def sources(self) -> ApiSources:
        from rollout.adapters.node_sources import RealSources, RememberingSources

        real = RealSources(self.kubeconfig)
        return RememberingSources(real, self.state, real.meant)

    def nodes(self) -> Nodes:
        """How nodes are reached: over SSH from here, or through the workers of their regions."""
        if self.engine is None:
            return self.ssh_nodes()
        from rollout.features.regions.client.nodes import RegionNodes

        return RegionNodes(self._scheduler, self.ssh_nodes(), _say)

    @cached_property
    def _scheduler(self) -> Scheduler:
        """One connection for a call. It ends with the process."""
        if self.engine is None:
            raise LookupError("no engine")
        return self.engine.connected()

    def patient(self) -> Session:
        """The same, but it waits for an engine that is away as long as a run does that is under way."""
        if self.engine is None:
            return self
        from rollout.core.run.transitions import ENGINE_PATIENCE

        return replace(self, engine=replace(self.engine, patience=ENGINE_PATIENCE))

    def for_cluster(self, cluster: str, reason: str, interrupts: Interruption) -> Session:
        """The same for one run of a command that starts several together."""
        return replace(self, label=cluster, reason=reason, interrupts=interrupts)

    def check_workers(self, inventory: Inventory, names: Collection[str]) -> None:
        """``UsageError``: the zone of a node has no worker. Without an engine no zone needs one."""
        if self.engine is not None:
            self.access(inventory, tuple(names))

    def in_emergency(self) -> Session:
        """The same, but it never waits for an engine that is away. Then this machine's SSH is used where it may be."""
        if self.engine is None:
            return self
        lenient = replace(self, engine=replace(self.engine, strict=False))
        try:
            lenient.nodes().close()
        except UsageError as error:
            way = "over this machine's SSH, for regions in `controllerSsh` of the inventory"
            _say(
                self.carried(f"no engine ({error}); continuing {way}; `--engine embedded` reaches every node from here")
            )
            return replace(lenient, engine=replace(self.engine, strict=False, is_away=True))
        return lenient

    def ssh_nodes(self) -> SshNodes:
        from rollout.adapters.ssh import SshLimits, SshNodes, within_files

        limits = within_files(SshLimits())
        return SshNodes(self.resolver, sudo_password=self.sudo_password, notice=_say, limits=limits)

    def command_nodes(self) -> SshNodes:
        """For an operator's commands: through fabric, with little output kept of each node."""
        from rollout.adapters.ssh import SshLimits, SshNodes
        from rollout.adapters.ssh.over_fabric import FabricSession

        return SshNodes(
            self.resolver, sudo_password=self.sudo_password, notice=_say, sessions=FabricSession,
            limits=SshLimits(stdout=COMMAND_OUTPUT, stderr=COMMAND_OUTPUT),
        )  # fmt: skip

    def journal_nodes(self) -> SshNodes:
        """For the journals of nodes: the same way as an operator's commands, with the output of a reading kept."""
        from rollout.adapters.ssh import SshLimits, SshNodes
        from rollout.adapters.ssh.over_fabric import FabricSession

        return SshNodes(
            self.resolver, sudo_password=self.sudo_password, notice=_say, sessions=FabricSession, limits=SshLimits()
        )

    def interactive_shell(self, target: Target) -> int:
        """The exit status of a login shell on a node, with this process's terminal. Raises ``RemoteError``."""
        from rollout.adapters.ssh.over_fabric import interact

        nodes = self.ssh_nodes()
        # not shutil's: LINES and COLUMNS may be those of another terminal
        size = os.get_terminal_size(sys.stdin.fileno())
        try:
            with nodes.shell(target, SHELL_SECONDS, os.environ.get("TERM", "dumb"), (size.columns, size.lines)) as line:
                return interact(line)
        finally:
            nodes.close()

    @property
    def place(self) -> Path | PostgresUrl:
        """Where the journal is."""
        return self.shared or self.state

    def journal(self) -> SqlJournal:
        """One for the whole command, also after it was closed: a database gives each command few connections."""
        with self.opening:
            if not self.opened:
                self.opened.append(self._journal())
            return self.opened[0]

    def _journal(self, doubt: Callable[[str], None] | None = None) -> SqlJournal:
        from rollout.adapters.journal import SqlJournal

        is_new = self.shared is None and not has_journal(self.state)
        try:
            if self.shared is None:
                private_state(self.state)
            return SqlJournal(self.place, self.state, doubt)
        except (OSError, StateError) as exc:
            if is_new:
                remove_empty_journal(self.state)
            if isinstance(exc, OSError):
                raise StateError("journal-unusable", f"{self.place}: {exc.strerror}") from exc
            raise

    def past(self) -> Journal:
        """The journal, or one without runs as long as there is none: creates no journal. Any thread may call it."""
        with self.opening:
            return self.journal() if self.opened or self._is_there() else NoJournal()

    def _is_there(self) -> bool:
        if self.shared is None and not has_journal(self.state):
            return False
        from rollout.adapters.journal import is_there

        return is_there(self.place)

    def past_runs(self) -> PastRuns:
        """``past`` for a command that writes nothing: a file of this version is read without SQLAlchemy.

        A server may fail over to a replica without the last events. What is left is shown then, with a warning.
        """
        if self.shared is None and has_journal(self.state):
            from rollout.adapters.journal.sqlite_file import reader_of

            check_private(self.state)
            if (reader := reader_of(self.state)) is not None:
                return reader
        if self.shared is not None and self._is_there():
            return self._journal(lambda said: _say(self.carried(f"warning: {said}")))
        return self.past()

    def journal_if_any(self) -> Journal:
        """For an emergency: without a usable journal the nodes' receipts are enough."""
        try:
            return self.journal()
        except StateError as exc:
            return self.without_journal(exc)

    def without_journal(self, why: StateError) -> Journal:
        """Warns once, at once."""
        _say(f"no journal ({why}); continuing with what the nodes report")
        return NoJournal()

    def access(self, inventory: Inventory, names: Sequence[str]) -> NodeAccess:
        """Prints what ``ssh_config`` requests and rollout does not support.

        Each such node later gets it as an error.
        """
        from rollout.adapters.agent_program import agent_program
        from rollout.app.node_access import access_to

        access = access_to(inventory, agent_program(), tuple(names))
        if self.engine is not None:
            if self.engine.strict:
                for notice in self.engine.check_workers(self._scheduler, access):
                    _say_once(self.carried(notice))
            return access
        problems = refused_routes(self.resolver, access.targets.values())
        for problem in problems[:_MOST_SAID]:
            _say(self.carried(str(problem)))
        if len(problems) > _MOST_SAID:
            _say(self.carried(f"… and {len(problems) - _MOST_SAID} more; `rollout check` lists them all"))
        return access

    def _regions_of(self, nodes: Nodes) -> Callable[[], Sequence[RegionStanding]]:
        if self.engine is None:
            return tuple
        from rollout.features.regions.client.nodes import RegionNodes

        return nodes.regions if isinstance(nodes, RegionNodes) else tuple

    def region_workers(self) -> tuple[RegionWorker, ...]:
        """The workers that are connected now."""
        from rollout.features.regions.client.workers import RegionWorkers

        return RegionWorkers(self._scheduler).connected()

    @contextmanager
    def observers(self, journal: Journal) -> Iterator[tuple[Observer, ...]]:
        """The observers of a run. The live display restores the terminal however the run ends."""
        from rollout.adapters.progress import JsonProgress, PlainProgress, shows_live
        from rollout.app.following import at_the_end

        known = partial(at_the_end, journal)
        if self.output == "json":
            yield (JsonProgress(sys.stdout),)
        elif self.label:
            yield (PlainProgress(sys.stdout, f"{self.label}: ", self.carried, known),)
        elif shows_live(sys.stdout):
            from rollout.adapters.live import LiveProgress  # what draws takes 0.03 s to import

            with closing(LiveProgress(sys.stdout, self.carried, known)) as display:
                yield (display,)
        else:
            yield (PlainProgress(sys.stdout, carried=self.carried, known=known),)

    @contextmanager
    def notices(self, journal: Journal) -> Iterator[tuple[NoticeSender, ...]]:
        """The sender of notices, if there are addresses. A mistake in them is printed, and stops no run."""
        try:
            sender = notice_sender(journal, self.carried)
        except RolloutError as error:
            _say(self.carried(f"no notices are sent: {error}"))
            sender = None
        if sender is None:
            yield ()
            return
        why = "the controller stopped"
        try:
            yield (sender,)
            why = ""
        except RolloutError as error:
            why = error.message
            raise
        finally:
            sender.close(why)

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
        """Everything a run needs, closed at the end. ``backends``: what its gates ask (``None``: it has no such gates).
        ``interrupts`` and ``nodes``: those of a command that starts several runs (``None``: it starts one). ``cluster``: its
        inventory is read again if a node does not answer before its change (``""``: it is not).
        """
        from rollout.adapters.engine import ThreadEngine
        from rollout.app.backends import Backends
        from rollout.app.roll_call import RollCall, lists_all
        from rollout.app.runs import Tools

        interrupts = interrupts or self.interrupts
        if interrupts is None:
            interrupts = self.interruption()
            interrupts.install()
        connections = nodes or self.nodes()
        engine = ThreadEngine(width + SPARE)
        try:
            with self.notices(journal) as notices, self.observers(journal) as shown:
                yield Tools(
                    journal=journal,
                    engine=engine,
                    nodes=connections,
                    local=self.local,
                    clock=self.clock,
                    observers=(*shown, *notices),
                    interrupted=interrupts.asked,
                    who=operator(),
                    reason=self.reason,
                    new_run_id=new_run_id,
                    backends=backends or Backends(),
                    notice=lambda words: _say(self.carried(words)),
                    start_times=self.start_times,
                    regions=self._regions_of(connections),
                    keep=self.traces.keep,
                    lists=RollCall(lambda: self.inventory(cluster).nodes, self.clock) if cluster else lists_all,
                )
        except KeyboardInterrupt:
            raise SecondInterruptError from None
        finally:
            engine.close()
            if nodes is None:
                connections.close()


def cluster_in(folder: Path, cluster: str) -> Inventory:
    """The inventory of a cluster, from the files of a project's folder."""
    from rollout.adapters.files import FolderFiles
    from rollout.adapters.node_sources import RealSources
    from rollout.app.load import load_cluster

    return load_cluster(FolderFiles(folder), RealSources(), cluster)


def shared_journal(url: str) -> PostgresUrl | None:
    """The journal that ``--journal`` names; ``None``: a file here."""
    if not url:
        return None
    from rollout.adapters.journal import PostgresUrl

    return PostgresUrl.reading(url)


def refused_routes(resolver: Resolver, targets: Iterable[Target]) -> tuple[Problem, ...]:
    """Routes to nodes that are not supported, each with all its nodes."""
    found = resolver.refused(targets)
    return tuple(
        Problem(reference, f"{printable(fold(names))}: {for_all(message, names)}")
        for (reference, message), names in found.items()
    )


def _say(words: str) -> None:
    print(printable(words, 500), file=sys.stderr)  # noqa: T201 - printed at once, for people


@cache
def _say_once(words: str) -> None:
    """For what several steps of one command find."""
    _say(words)


def new_run_id() -> str:
    """Sorts by time. Two in one second are the same once in 16 million."""
    return f"r{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
