"""Collects what the journal and the API server know about a cluster's nodes, before a plan is made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rollout.app.following import plan_of
from rollout.app.ports import ApiSources, Journal
from rollout.core.model.inventory import Inventory
from rollout.core.plans.history import Around, KnownNodes, seen_in
from rollout.errors import RemoteError

MOST_RUNS = 10
"""How many runs back a node may have been seen last. Reading a plan of 2,000 nodes takes 0.1 s."""


def look_around(
    inventory: Inventory, journal: Journal, sources: ApiSources, kubeconfig: str = "", nodes: Collection[str] = ()
) -> Around:
    """Earlier plans from the journal; Nodes, and the pods on ``nodes``, from the API server if a kubeconfig is set.

    ``kubeconfig`` takes precedence over the inventory's. An unreachable API server is part of the answer. A wrong
    kubeconfig is an ``InputError``.
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
    """The right to list Nodes does not include the right to list pods."""
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
