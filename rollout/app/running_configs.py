"""What processes loaded of files that changed after their start: from ``/configz``, or from our last run there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rollout.app.following import plan_of
from rollout.app.hearing import FAILED
from rollout.app.isolation import Keep, attempt, keep_nothing
from rollout.app.ports import ApiSources, Journal
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.errors import RemoteError, StateError
from rollout.kubelet import values
from rollout.kubelet.node import unloaded

WIDTH = 16
"""Kubelets asked in parallel, through one API server."""

Asked = Callable[[str], Mapping[str, Value]]


def with_running(
    fleet: FleetSnapshot,
    inventory: Inventory,
    journal: Journal,
    sources: ApiSources,
    kubeconfig: str = "",
    keep: Keep = keep_nothing,
) -> FleetSnapshot:
    """The same fleet. If files changed after the start of the process that reads them, with what that process has
    loaded.

    ``keep`` stores the trace of what rollout fails on in one node. That node becomes unread.
    """
    edited = {name: node for name, node in fleet.nodes.items() if isinstance(node, Snapshot) and node.stale}
    if not edited:
        return fleet
    plans = _Plans(journal)
    ask = _configz(inventory, sources, kubeconfig)
    loaded = {name: plans.loaded(node) for name, node in edited.items()}

    def look(node: Snapshot) -> Snapshot | Unread:
        def failed(told: str) -> Snapshot | Unread:
            return Unread(node.node, FAILED, told)

        return attempt(node.node, lambda: _resolved(node, loaded[node.node], _shown(node, ask)), failed, keep)

    with ThreadPoolExecutor(WIDTH, thread_name_prefix="configz") as pool:
        known = dict(zip(edited, pool.map(look, edited.values()), strict=True))
    return replace(fleet, nodes={**fleet.nodes, **known})


def _configz(inventory: Inventory, sources: ApiSources, kubeconfig: str) -> Asked | None:
    endpoints = inventory.endpoints
    if not kubeconfig and not endpoints.kubeconfig:
        return None
    which = (kubeconfig, "") if kubeconfig else (endpoints.kubeconfig, endpoints.context)
    return lambda node: sources.configz(*which, node)


def _shown(node: Snapshot, ask: Asked | None) -> str:
    """Canonical JSON of what its kubelet shows; ``""``: it cannot be read, or there is nothing to read."""
    if ask is None or not unloaded.is_asked_for(node):
        return ""
    try:
        return values.canonical(dict(ask(node.node)))
    except RemoteError:
        return ""


def _resolved(node: Snapshot, loaded: Mapping[str, bytes], shown: str) -> Snapshot:
    """A file that contains what was loaded is not stale for its reader."""
    stale = tuple(entry for entry in node.stale if _content(node, entry.path) != loaded.get(entry.path))
    known = replace(node, stale=stale)
    return replace(known, running=shown or unloaded.effective(known, loaded))


def _content(node: Snapshot, path: str) -> bytes | None:
    state = node.files.get(path)
    return state.content if state else None


class _Plans:
    """The plans of the runs that wrote what nodes have loaded, each read once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, Plan | None] = {}

    def loaded(self, node: Snapshot) -> Mapping[str, bytes]:
        """Path → the bytes that the running process loaded, for files that a run of this journal wrote."""
        found: dict[str, bytes] = {}
        for key, tx in node.facts.items():
            if key.startswith(unloaded.LOADED):
                run = next((receipt.run for receipt in node.receipts if receipt.tx == tx), "")
                found |= self._written(run, node.node)
        return found

    def _written(self, run: str, node: str) -> Mapping[str, bytes]:
        plan = self._plan(run)
        if plan is None or node not in plan.nodes:
            return {}
        change = next(group.change for group in plan.groups if group.name == plan.nodes[node].group)
        return {file.path: plan.blobs[file.after] for file in change.files if file.after in plan.blobs}

    def _plan(self, run: str) -> Plan | None:
        if run not in self._known:
            try:
                self._known[run] = plan_of(self._journal.header(run)) if run else None
            except StateError:
                self._known[run] = None
        return self._known[run]
