"""Chooses the adapters for the gates and drains of one call, by the inventory's ``endpoints`` and ``--kubeconfig``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from rollout.app.backends import Backends, NoConfigMaps
from rollout.app.ports import Cluster, ConfigMap, ConfigMaps
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
        if needs.config_map is not None:
            missing = partial(backends.config_maps.missing_to_write, *needs.config_map)
            _check_rights(missing, endpoints.kubeconfig, "writing kubeadm's ConfigMap needs")
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
    config_maps = _ConfigMapsWhenAsked(endpoints, stack) if endpoints.kubeconfig else NoConfigMaps()
    if not needs_http(needs.gates) and cluster is None:
        return Backends(askers=table.askers(None), config_maps=config_maps)
    from rollout.adapters.endpoints import HttpBackEnds
    from rollout.features.drain.asking.rounds import drains_over

    askers = table.askers(HttpBackEnds(endpoints, stack), None if cluster is None else cluster.nodes)
    if cluster is None:
        return Backends(askers=askers, config_maps=config_maps)
    return Backends(cluster, askers, drains_over(cluster), config_maps)


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


class _ConfigMapsWhenAsked:
    """The kubeconfig is read with the first request: a rollback begins without it, and reports what is wrong with it."""

    def __init__(self, endpoints: Endpoints, stack: ExitStack) -> None:
        self._endpoints, self._stack = endpoints, stack
        self._lock = Lock()
        self._made: ConfigMaps | None = None

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:
        return self._there.read(namespace, name, timeout)

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        self._there.write(found, key, text, timeout)

    def touch(self, found: ConfigMap, timeout: float) -> None:
        self._there.touch(found, timeout)

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:
        return self._there.missing_to_write(namespace, name)

    @property
    def _there(self) -> ConfigMaps:
        from rollout.adapters.kubernetes.client import ApiClient
        from rollout.adapters.kubernetes.config_maps import ApiConfigMaps
        from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig

        with self._lock:
            if self._made is None:
                try:
                    client = ApiClient(load_kubeconfig(self._endpoints.kubeconfig, self._endpoints.context))
                except InputError as error:
                    raise RemoteError("no-endpoint", error.message) from error
                self._stack.callback(client.close)
                self._made = ApiConfigMaps(client)
            return self._made


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
