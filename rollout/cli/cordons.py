"""Lifts the cordons that an earlier run left. Without an API server, the command that lifts them is printed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import click

from rollout.adapters.clock import SystemClock
from rollout.app.draining import Lifted, lift_cordons, write_down_lifted
from rollout.app.ports import Journal
from rollout.app.runs import leased
from rollout.cli.proposals import say
from rollout.composition.back_ends import cluster_of
from rollout.composition.operators import operator
from rollout.composition.wiring import Session
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.run.state import Phase, RunState
from rollout.core.text import documents
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


def lift_and_tell(
    session: Session,
    inventory: Inventory,
    names: Collection[str],
    run: str = "",
    known: Collection[str] = (),
    spared: Collection[str] = frozenset(),
) -> Lifted | None:
    """Lift the cordons of ``run`` (``""``: of every run except ``spared``). ``None``: the API server was not asked.

    ``known``: nodes that are cordoned according to the journal.
    """
    lifted, why = Lifted(), NotAskedWhy(None, "no kubeconfig is named") if known else None
    try:
        with cluster_of(inventory, session.kubeconfig) as cluster:
            if cluster is not None:
                lifted, why = lift_cordons(cluster, names, run, spared), None
    except RolloutError as error:
        why = NotAskedWhy(error.reference, error.message)
    if session.output == "json":
        if lifted.nodes or lifted.failed or why:
            found = CordonsDocument(fold(lifted.nodes), len(lifted.nodes), dict(lifted.failed), why)
            click.echo(documents.line(found))
    else:
        for line in _lines(lifted, why, known, by_hand(run, spared)):
            say(line)
    return None if why else lifted


def lift_those_of(
    session: Session, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
) -> Lifted | None:
    """Lift the cordons of one run on these nodes. If the run has ended (``state``), record that in its journal."""
    run = state.order.run
    known = tuple(name for name, record in state.nodes.items() if record.cordoned)
    lifted = lift_and_tell(session, inventory, names, run, known)
    gone = lifted.without([name for name in known if name in names]) if lifted is not None else ()
    if gone and state.phase is Phase.ENDED:
        try:
            with leased(journal, state.order.cluster, run):
                write_down_lifted(journal, state, gone, SystemClock().now(), operator(), session.reason)
        except StateError as error:  # the cordons are lifted all the same
            say(f"cordons of run {run} are lifted, but the journal does not record it: {error}", err=True)
    return lifted


def _lines(lifted: Lifted, why: NotAskedWhy | None, known: Collection[str], command: str) -> Iterator[str]:
    if lifted.nodes:
        yield f"cordons lifted: {counted(len(lifted.nodes), 'node')}  {printable(fold(lifted.nodes), 300)}"
    for name, said in lifted.failed[:20]:
        yield f"{name} is still cordoned by rollout: {printable(said, 200)}"
    if why:
        which = f" ({printable(fold(known), 200)})" if known else ""
        yield f"cordons by rollout{which} were not checked: {printable(str(why), 200)}"
    if why or lifted.failed:
        yield f"  lift them by hand: {command}"
