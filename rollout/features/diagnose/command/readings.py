"""The diagnosis of a cluster: opens what reads its nodes and its API server, and closes it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from rollout.adapters.node_sources import cluster_state
from rollout.app.planning import read_fleet
from rollout.composition.wiring import Session
from rollout.core.model.inventory import Inventory
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.features.diagnose.asking.from_cluster import (
    FromApi,
    Symptoms,
    read_api,
    read_journals,
)
from rollout.features.diagnose.asking.remedy_verification import Readings, Verified, in_force, run_to_verify, verify_run
from rollout.features.diagnose.rules.node_journals import NodeJournal, log_files


def symptoms(session: Session, inventory: Inventory, selection: Sequence[str], seconds: float, pod: str) -> Symptoms:
    """Everything that is read of these nodes. With ``pod``: of the nodes that the API server names for it, if it does."""
    api = api_facts(session, inventory, selection, pod)
    known = api.nodes_of(pod) if pod else frozenset()
    names = [name for name in selection if name in known] or list(selection)
    fleet = read_fleet(session, inventory, names)
    answered = _answered(fleet)
    journals = journals_of(session, inventory, answered, seconds) if answered else ()
    return Symptoms(fleet, journals, api, datetime.now(UTC).timestamp())


def api_facts(session: Session, inventory: Inventory, selection: Collection[str], pod: str) -> FromApi:
    with cluster_state(inventory, session.kubeconfig) as state:
        return read_api(state, selection, pod)


def journals_of(
    session: Session, inventory: Inventory, answered: Mapping[str, Snapshot], seconds: float, until: float = 0.0
) -> tuple[NodeJournal, ...]:
    nodes, logs = session.journal_nodes(), {name: log_files(node) for name, node in answered.items()}
    try:
        return read_journals(
            session.access(inventory, list(answered)), nodes, seconds, session.traces.keep, until, logs
        )
    finally:
        nodes.close()


def _answered(fleet: FleetSnapshot) -> dict[str, Snapshot]:
    return {name: node for name, node in fleet.nodes.items() if isinstance(node, Snapshot)}


def verified(session: Session, run: str, seconds: float) -> Verified:
    """Whether a run's settings fixed what they are for. ``seconds``: how long before the run its nodes are looked at."""
    wanted = run_to_verify(session.past_runs(), run)
    inventory, names = session.inventory_or_remembered(wanted.cluster), tuple(wanted.confirmed)
    now = datetime.now(UTC).timestamp()
    fleet = read_fleet(session, inventory, names)
    answered = _answered(fleet)
    began, ended = now - wanted.began, now - min(wanted.confirmed.values())
    before = journals_of(session, inventory, answered, began + seconds, began) if answered else ()
    after = journals_of(session, inventory, answered, ended) if answered else ()
    with cluster_state(inventory, session.kubeconfig) as state:
        api = read_api(state, names, "")
        shown = in_force(wanted, fleet, state.configz if state else None)
    return verify_run(wanted, Readings(before, after, api, shown, now))
