"""Lifts the cordons that an earlier run left. Without an API server, the command that lifts them is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from rollout.app.call import CallPorts
from rollout.app.draining import Lifted, lift_cordons, write_down_lifted
from rollout.app.ports import Journal
from rollout.app.runs import leased
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.run.state import Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import RolloutError, StateError


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


def lift(
    call: CallPorts,
    inventory: Inventory,
    names: Collection[str],
    run: str = "",
    known: Collection[str] = (),
    spared: Collection[str] = frozenset(),
) -> LiftedCordons:
    """Lift the cordons of ``run`` (``""``: of every run except ``spared``). An error of the API server is in the result."""
    lifted, why = Lifted(), NotAskedWhy(None, "no kubeconfig is named") if known else None
    try:
        with call.api_server(inventory) as cluster:
            if cluster is not None:
                lifted, why = lift_cordons(cluster, names, run, spared), None
    except RolloutError as error:
        why = NotAskedWhy(error.reference, error.message)
    return LiftedCordons(lifted, why, tuple(known), by_hand(run, spared))


def lift_those_of(
    call: CallPorts, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
) -> LiftedCordons:
    """Lift the cordons of one run on these nodes. If the run has ended (``state``), record that in its journal."""
    run = state.order.run
    known = tuple(name for name, record in state.nodes.items() if record.cordoned)
    found = lift(call, inventory, names, run, known)
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
