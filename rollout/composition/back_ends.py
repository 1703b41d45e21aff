"""Chooses the adapters for the gates and drains of one call, by the inventory's ``endpoints`` and ``--kubeconfig``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rollout.app.backends import Backends
from rollout.app.ports import Cluster
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.plans.required_back_ends import Needs, PodNeeds, needs_cluster, needs_http, unnamed
from rollout.errors import InputError, RemoteError, UsageError
from rollout.gates import table

if TYPE_CHECKING:
    from rollout.core.model.ways_in import Probe
    from rollout.features.drain.client import DrainingCluster

# ruff: noqa: PLC0415 - the HTTP adapters take 0.1 s to import, and most calls do not need them


def check_backends(inventory: Inventory, needs: Needs, kubeconfig: str) -> None:
    """``InputError`` if a needed back end is not set, or a file is missing or invalid. Contacts no back end."""
    endpoints = _endpoints(inventory, kubeconfig)
    problems = unnamed(needs, endpoints, inventory.cluster)
    if problems:
        raise InputError(problems)
    with ExitStack() as stack:
        _backends(endpoints, needs, _cluster(endpoints, stack) if _looks(endpoints, needs) else None, stack)


@contextmanager
def gate_backends(inventory: Inventory, needs: Needs, kubeconfig: str) -> Iterator[Backends]:
    """The back ends of a run, closed at the end. ``UsageError`` if rights at the API server are missing."""
    check_backends(inventory, needs, kubeconfig)
    endpoints = _endpoints(inventory, kubeconfig)
    with ExitStack() as stack:
        cluster = _cluster(endpoints, stack) if _looks(endpoints, needs) else None
        backends = _backends(endpoints, needs, cluster, stack)
        if cluster is not None and needs.pods is PodNeeds.DRAINED:
            _check_rights(cluster.missing_to_drain, endpoints.kubeconfig, "draining needs")
        if needs_cluster(needs.gates):
            _check_rights(backends.cluster.missing_rights, endpoints.kubeconfig, "gates need")
        if needs.pulls:
            _check_rights(backends.cluster.missing_to_count_pulls, endpoints.kubeconfig, "counting pulls needs")
        yield backends


@contextmanager
def cluster_of(inventory: Inventory, kubeconfig: str) -> Iterator[DrainingCluster | None]:
    """The API server; ``None``: none is set."""
    endpoints = _endpoints(inventory, kubeconfig)
    with ExitStack() as stack:
        yield _cluster(endpoints, stack) if endpoints.kubeconfig else None


@contextmanager
def back_ends_to_try(
    inventory: Inventory, kubeconfig: str
) -> Iterator[tuple[str, Callable[[], Cluster], tuple[Probe, ...]]]:
    """The kubeconfig, what reads it, and how each back end of gates is tried. ``--kubeconfig`` takes precedence over the inventory's."""
    from rollout.adapters.endpoints import HttpBackEnds

    endpoints = _endpoints(inventory, kubeconfig)
    with ExitStack() as stack:
        yield endpoints.kubeconfig, lambda: _cluster(endpoints, stack), table.probes(HttpBackEnds(endpoints, stack))


def _endpoints(inventory: Inventory, kubeconfig: str) -> Endpoints:
    return replace(inventory.endpoints, kubeconfig=kubeconfig, context="") if kubeconfig else inventory.endpoints


def _backends(endpoints: Endpoints, needs: Needs, cluster: DrainingCluster | None, stack: ExitStack) -> Backends:
    if not needs_http(needs.gates) and cluster is None:
        return Backends(askers=table.askers(None))
    from rollout.adapters.endpoints import HttpBackEnds
    from rollout.features.drain.asking.rounds import drains_over

    askers = table.askers(HttpBackEnds(endpoints, stack), None if cluster is None else cluster.nodes)
    return Backends(askers=askers) if cluster is None else Backends(cluster, askers, drains_over(cluster))


def _looks(endpoints: Endpoints, needs: Needs) -> bool:
    """Whether the API server is needed: for pods or pulls, for API gates, or for the effective-config gate with a kubeconfig."""
    shows = any(gate.asks.reads_configz for gate in needs.gates)
    counts = needs.pods is not PodNeeds.NOT_ASKED or needs.pulls
    return counts or needs_cluster(needs.gates) or (shows and bool(endpoints.kubeconfig))


def _cluster(endpoints: Endpoints, stack: ExitStack) -> DrainingCluster:
    from rollout.adapters.kubernetes.client import ApiClient
    from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
    from rollout.features.drain.client import DrainingCluster

    cluster = DrainingCluster(ApiClient(load_kubeconfig(endpoints.kubeconfig, endpoints.context)))
    stack.callback(cluster.close)
    return cluster


def _check_rights(ask: Callable[[], tuple[str, ...]], kubeconfig: str, what: str) -> None:
    """Runs before any node is touched, so that missing rights do not show up node by node."""
    try:
        missing = ask()
    except RemoteError as error:
        message = f"nothing was touched: the request to the API server of {kubeconfig} failed: {error.message}"
        raise UsageError(f"api-{error.reference}", message, hint=error.hint) from None
    if missing:
        message = f"nothing was touched: {kubeconfig} lacks the right to {', '.join(missing)}"
        raise UsageError("kubeconfig-rights", message, hint=f"docs/gates.md has a ClusterRole with what {what}")
