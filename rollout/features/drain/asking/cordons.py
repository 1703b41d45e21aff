"""Lifts the cordons that an earlier run left. Without an API server, the command that lifts them is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from rollout.app.call import CallPorts
from rollout.app.ports import Journal
from rollout.app.runs import leased
from rollout.core.model.fleet_changes import is_their_list
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.presentation.summary import run_summary
from rollout.core.run.events import CordonsLifted
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.machine import as_journaled, step
from rollout.core.run.state import NodeState, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import RemoteError, RolloutError, StateError
from rollout.features.drain.asking.cluster import DrainCluster
from rollout.features.drain.rules import Cordon

ASK_SECONDS = 10.0
"""Seconds for one request."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """The nodes that were uncordoned, and the nodes where that failed, each with the reason."""

    nodes: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    def without(self, names: Collection[str]) -> tuple[str, ...]:
        """The nodes of ``names`` that have no such cordon now. All of them must have been asked about."""
        still = dict(self.failed)
        return tuple(name for name in names if name not in still)


@dataclass(frozen=True, slots=True)
class NotAskedWhy:
    """Why the API server was not asked; ``reference`` ``None``: none is named."""

    reference: str | None
    message: str

    def __str__(self) -> str:
        return f"{self.message} [{self.reference}]" if self.reference else self.message


@dataclass(frozen=True, slots=True)
class CordonsDocument:
    """Cordons that were ``lifted`` (a nodeset), or not (``failed``: node → why)."""

    lifted: str
    count: int
    failed: Mapping[str, str]
    not_asked: NotAskedWhy | None


@dataclass(frozen=True, slots=True)
class LiftedCordons:
    """The result. ``why``: the API server was not asked. ``known``: nodes that are cordoned according to the journal.

    ``by_hand``: the command that lifts them. ``unrecorded``: why the journal does not have that they are lifted.
    """

    lifted: Lifted
    why: NotAskedWhy | None
    known: tuple[str, ...]
    by_hand: str
    unrecorded: str = ""

    @property
    def all_lifted(self) -> bool:
        return self.why is None and not self.lifted.failed

    @property
    def document(self) -> CordonsDocument | None:
        """``None``: there was no cordon."""
        lifted = self.lifted
        if not (lifted.nodes or lifted.failed or self.why):
            return None
        return CordonsDocument(fold(lifted.nodes), len(lifted.nodes), dict(lifted.failed), self.why)

    @property
    def lines(self) -> Iterator[str]:
        if self.lifted.nodes:
            nodes = self.lifted.nodes
            yield f"cordons lifted: {counted(len(nodes), 'node')}  {printable(fold(nodes), 300)}"
        for name, said in self.lifted.failed[:20]:
            yield f"{name} is still cordoned by rollout: {printable(said, 200)}"
        if self.why:
            which = f" ({printable(fold(self.known), 200)})" if self.known else ""
            yield f"cordons by rollout{which} were not checked: {printable(str(self.why), 200)}"
        if not self.all_lifted:
            yield f"  lift them by hand: {self.by_hand}"


def by_hand(run: str, spared: Collection[str]) -> str:
    """The command that lifts the cordons of ``run`` (``""``: of every run except ``spared``, which may be active)."""
    others = " ".join(f'(ne . "{each}")' for each in sorted(spared))
    ours = f'eq . "{run}"' if run else f"and . {others}".strip()
    return (
        "kubectl get nodes -o go-template='{{range $n := .items}}"
        '{{with $n.metadata.annotations}}{{with index . "rollout/cordoned-by"}}'
        f"{{{{if {ours}}}}}"
        '{{$n.metadata.name}}{{"\\n"}}{{end}}{{end}}{{end}}{{end}}\' | xargs -r -I{} '
        'sh -c "kubectl uncordon {} && kubectl annotate node {} rollout/cordoned-by- rollout/token-"'
    )


OpenServer = Callable[[Inventory], AbstractContextManager[DrainCluster | None]]
"""The API server of an inventory; ``None``: no kubeconfig is set."""


def lift(
    server: OpenServer,
    inventory: Inventory,
    names: Collection[str],
    run: str = "",
    known: Collection[str] = (),
    spared: Collection[str] = frozenset(),
    of: Collection[str] = (),
) -> LiftedCordons:
    """Lift the cordons of ``run`` (``""``: of every run except ``spared``). An error of the API server is in the result.

    So is an answer that has fewer than half of the nodes, of the run or of ``names``: it may be of another cluster. ``known``: nodes
    that are cordoned according to the journal. ``of``: the nodes of ``run``.
    """
    lifted, why = Lifted(), NotAskedWhy(None, "no kubeconfig is named") if known else None
    try:
        with server(inventory) as cluster:
            if cluster is not None:
                nodes = cluster.nodes()
                lifted = lift_cordons(cluster, nodes, names, run, spared)
                why = _of_another_cluster(nodes, of, known) if run else _of_another_cluster(nodes, names, names)
    except RolloutError as error:
        why = NotAskedWhy(error.reference, error.message)
    return LiftedCordons(lifted, why, tuple(known), by_hand(run, spared))


def _of_another_cluster(nodes: Sequence[LiveNode], of: Collection[str], asked: Collection[str]) -> NotAskedWhy | None:
    """Why it is not known that nodes of ``asked`` that the API server does not list have no cordon; ``None``: it is known.

    A Node that is gone from the cluster of the other nodes took its cordon with it.
    """
    listed = {node.name for node in nodes}
    if listed.issuperset(asked) or is_their_list(of, listed):
        return None
    said = f"the API server lists {counted(len(listed), 'Node')}, and {len(listed.intersection(of))} of {counted(len(of), 'node')}"
    return NotAskedWhy("most-nodes-unlisted", f"{said}: it may be that of another cluster")


def lift_those_of(
    call: CallPorts,
    server: OpenServer,
    journal: Journal,
    inventory: Inventory,
    state: RunState,
    names: Collection[str],
) -> LiftedCordons:
    """Lift the cordons of one run on these nodes. If the run has ended (``state``), record that in its journal."""
    run = state.order.run
    known = tuple(name for name, record in state.nodes.items() if record.cordoned)
    there = [name for name, record in state.nodes.items() if record.state is not NodeState.GONE]
    found = lift(server, inventory, names, run, known, of=there)
    gone = found.lifted.without([name for name in known if name in names]) if found.why is None else ()
    if gone and state.phase is Phase.ENDED:
        try:
            with leased(journal, state.order.cluster, run):
                write_down_lifted(journal, state, gone, call.clock.now(), call.who, call.reason)
        except StateError as error:  # the cordons are lifted all the same
            return replace(
                found, unrecorded=f"cordons of run {run} are lifted, but the journal does not record it: {error}"
            )
    return found


# By their mark on nodes, and what the journal has of them.


def lift_cordons(
    cluster: DrainCluster,
    nodes: Sequence[LiveNode],
    names: Collection[str],
    run: str = "",
    spared: Collection[str] = frozenset(),
) -> Lifted:
    """Lift cordons with the mark of ``run`` (``""``: of every run except ``spared``) and any token from ``nodes`` with these names."""
    ours = [
        node
        for node in nodes
        if node.name in names and node.cordoned_by and run in ("", node.cordoned_by) and node.cordoned_by not in spared
    ]
    lifted: list[str] = []
    failed: list[tuple[str, str]] = []
    for node in ours:
        try:
            whose = cluster.uncordon(node.name, node.cordoned_by, None, ASK_SECONDS)
        except RemoteError as error:
            failed.append((node.name, f"{error.message} [{error.reference}]"))
            continue
        if whose is Cordon.NONE:  # else it is one of others now
            lifted.append(node.name)
    return Lifted(tuple(lifted), tuple(failed))


def write_down_lifted(
    journal: Journal, state: RunState, names: tuple[str, ...], at: float, who: str, reason: str
) -> None:
    """Record in the journal of an ended run, under the cluster's lease, that these cordons are lifted."""
    event = as_journaled(state, CordonsLifted(at, names, who, reason))
    if names and event is not None:
        after, _ = step(state, event)
        journal.append(state.order.run, [encode_event(event)], run_summary(after))
        journal.keep_end(after)
