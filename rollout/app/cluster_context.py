"""What is known of a cluster's nodes besides what they say themselves, gathered before a plan is made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rollout.app.following import plan_of
from rollout.app.ports import ApiSources, Journal
from rollout.core.model.inventory import Inventory
from rollout.core.plans.history import Around, KnownNodes, seen_in
from rollout.errors import RemoteError

MOST_RUNS = 10
"""How many runs back a node may have been seen last: a plan of 2,000 nodes takes a tenth of a second to read."""


def look_around(
    inventory: Inventory, journal: Journal, sources: ApiSources, kubeconfig: str = "", nodes: Collection[str] = ()
) -> Around:
    """Earlier plans from the journal; Nodes, and the pods on ``nodes``, from the API server where a kubeconfig is said
    (``kubeconfig`` before the inventory's). That it cannot be asked is in the answer; a wrong kubeconfig is an ``InputError``.
    """
    seen = _seen(inventory.cluster, journal)
    endpoints = inventory.endpoints
    if not kubeconfig and not endpoints.kubeconfig:
        return Around(seen)
    which = (kubeconfig, "") if kubeconfig else (endpoints.kubeconfig, endpoints.context)
    try:
        live = sources.live(*which)
    except RemoteError as error:
        said = _said(error)
        return Around(seen, not_asked=said, pods_not_asked=said)
    return _with_pods(Around(seen, live, pods_not_asked=""), sources, which, nodes)


def _with_pods(around: Around, sources: ApiSources, which: tuple[str, str], nodes: Collection[str]) -> Around:
    """Who may list Nodes may still not list pods."""
    there = {node.name for node in around.live or ()}.intersection(nodes)
    try:
        return replace(around, pods=sources.pods(*which, there))
    except RemoteError as error:
        return replace(around, pods_not_asked=_said(error))


def _said(error: RemoteError) -> str:
    return f"{error.message} [{error.reference}]"


def _seen(cluster: str, journal: Journal) -> KnownNodes | None:
    headers = journal.runs(cluster)[:MOST_RUNS]
    return seen_in([plan for plan in map(plan_of, headers) if plan is not None])
