"""What a rollback does about cordons that the run before it left: lifted where the API server can be asked, else told how."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

import click

from rollout.adapters.clock import SystemClock
from rollout.app.cordons import Lifted, lift_cordons, write_down_lifted
from rollout.app.ports import Journal
from rollout.app.runs import leased
from rollout.composition.back_ends import cluster_of
from rollout.composition.wiring import Session, operator
from rollout.core.model.inventory import Inventory
from rollout.core.run.state import Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import RolloutError, StateError


def by_hand(run: str, spared: Collection[str]) -> str:
    """The command that lifts the cordons of ``run`` (``""``: of any run but the ``spared``, which may be at work)."""
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
    """Of ``run`` (``""``: of any run but the ``spared``). ``known``: nodes that the journal says are cordoned. ``None``: nobody was asked."""
    lifted, why = Lifted(), "no kubeconfig is named" if known else ""
    try:
        with cluster_of(inventory, session.kubeconfig) as cluster:
            if cluster is not None:
                lifted, why = lift_cordons(cluster, names, run, spared), ""
    except RolloutError as error:
        why = f"{error.message} [{error.reference}]"
    if session.output == "json":
        if lifted.nodes or lifted.failed or why:
            failed = dict(lifted.failed)
            document = {"event": "Cordons", "lifted": fold(lifted.nodes), "failed": failed, "notAsked": why}
            click.echo(json.dumps({"version": 1, **document}, sort_keys=True))
    else:
        for line in _lines(lifted, why, known, by_hand(run, spared)):
            click.echo(line)
    return None if why else lifted


def lift_those_of(
    session: Session, journal: Journal, inventory: Inventory, state: RunState, names: Collection[str]
) -> Lifted | None:
    """Of one run, on these nodes; of a run that has ended it is written down, as ``state`` is its journal's."""
    run = state.order.run
    known = tuple(name for name, record in state.nodes.items() if record.cordoned)
    lifted = lift_and_tell(session, inventory, names, run, known)
    gone = lifted.without([name for name in known if name in names]) if lifted is not None else ()
    if gone and state.phase is Phase.ENDED:
        try:
            with leased(journal, state.order.cluster, run):
                write_down_lifted(journal, state, gone, SystemClock().now(), operator(), session.reason)
        except StateError as error:  # the nodes are free all the same
            click.echo(f"that cordons of run {run} are lifted was not written down: {error}", err=True)
    return lifted


def _lines(lifted: Lifted, why: str, known: Collection[str], command: str) -> Iterator[str]:
    if lifted.nodes:
        yield f"cordons lifted: {counted(len(lifted.nodes), 'node')}  {printable(fold(lifted.nodes), 300)}"
    for name, said in lifted.failed[:20]:
        yield f"{name} is still cordoned by rollout: {printable(said, 200)}"
    if why:
        which = f" ({printable(fold(known), 200)})" if known else ""
        yield f"whether nodes are still cordoned by rollout{which} was not asked: {printable(why, 200)}"
    if why or lifted.failed:
        yield f"  by hand: {command}"
