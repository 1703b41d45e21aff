"""What the journal and the API server know about a cluster's nodes and their kubelets, before a plan is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rollout.app.following import headers_of, plan_of, replay_if_readable
from rollout.app.isolation import READING_FAILED, Keep, attempt, keep_nothing
from rollout.app.node_histories import ClusterHistory, cluster_history, files_of
from rollout.app.ports import ApiSources, PastRuns
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Change, Plan, PlannedNode
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import FleetSnapshot, ReceiptState, Snapshot, Unread
from rollout.core.model.transactions import expected_files
from rollout.core.plans.history import Around, KnownNodes, seen_in
from rollout.core.run.state import Goal, NodeState
from rollout.errors import RemoteError, StateError
from rollout.kubelet import values
from rollout.kubelet.node import unloaded
from rollout.kubelet.node.layout import KUBELET_UNITS

MOST_RUNS = 10
"""How many runs back a node may have been seen last. Reading a plan of 2,000 nodes takes 0.1 s."""


def look_around(
    inventory: Inventory, journal: PastRuns, sources: ApiSources, kubeconfig: str = "", nodes: Collection[str] = ()
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


def _seen(cluster: str, journal: PastRuns) -> KnownNodes | None:
    headers = journal.runs(cluster)[:MOST_RUNS]
    return seen_in([plan for plan in map(plan_of, headers) if plan is not None])


# What processes loaded of files that changed after their start: from ``/configz``, or from our last run there.


WIDTH = 16
"""Kubelets asked in parallel, through one API server."""

Asked = Callable[[str], Mapping[str, Value]]


def with_running(
    fleet: FleetSnapshot,
    inventory: Inventory,
    journal: PastRuns,
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
    plans = _Plans(journal, inventory.cluster)
    ask = _configz(inventory, sources, kubeconfig)
    loaded = {name: plans.loaded(node) for name, node in edited.items()}
    held = {name: plans.last_known(node) for name, node in edited.items()}

    def look(node: Snapshot) -> Snapshot | Unread:
        def failed(told: str) -> Snapshot | Unread:
            return Unread(node.node, READING_FAILED, told)

        return attempt(
            node.node, lambda: _resolved(node, loaded[node.node], _shown(node, ask), held[node.node]), failed, keep
        )

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


def _resolved(node: Snapshot, loaded: Mapping[str, bytes], shown: str, held: Held) -> Snapshot:
    """A file that contains what was loaded is not stale for its reader."""
    stale = tuple(entry for entry in node.stale if _content(node, entry.path) != loaded.get(entry.path))
    known = replace(node, stale=stale)
    running = shown or unloaded.effective(known, loaded)
    if running:
        compared = "/configz of the running kubelet" if shown else "the bytes of the run that started this kubelet"
        return replace(known, running=running, facts={**node.facts, unloaded.COMPARED_WITH: compared})
    then = unloaded.effective(known, {path: content for path, (content, _) in held.items()})
    if not then:
        return known
    of = "; ".join(f"{path}: {source}" for path, (_, source) in held.items())
    return replace(known, facts={**node.facts, unloaded.LAST_KNOWN: then, unloaded.COMPARED_WITH: of})


def _content(node: Snapshot, path: str) -> bytes | None:
    state = node.files.get(path)
    return state.content if state else None


Held = Mapping[str, tuple[bytes, str]]
"""Path → the last known bytes of a file, and the source, e.g. ``run r1 wrote them``."""


class _Plans:
    """The plans of the runs that wrote what nodes have loaded, each read once."""

    def __init__(self, journal: PastRuns, cluster: str) -> None:
        self._journal = journal
        self._cluster = cluster
        self._known: dict[str, Plan | None] = {}
        self._signalled: dict[str, list[tuple[PlannedNode, Change]]] | None = None
        self._history: ClusterHistory | None = None

    def loaded(self, node: Snapshot) -> Mapping[str, bytes]:
        """Path → the bytes that the running process loaded, for files that a run of this journal wrote."""
        files: dict[str, bytes] = dict(self._by_signal(node))
        for key, tx in node.facts.items():
            if key.startswith(unloaded.LOADED):
                run = next((receipt.run for receipt in node.receipts if receipt.tx == tx), "")
                files |= self._written(run, node.node)
        return files

    def last_known(self, node: Snapshot) -> Held:
        """Of the kubelet's files that changed since its start: what runs left there, else what the newest plan has read there."""
        paths = [entry.path for entry in node.stale if entry.unit in KUBELET_UNITS]
        left = self._left_by_runs(node) if paths else {}
        runs = [header.run for header in headers_of(self._journal, self._cluster)[:MOST_RUNS]] if paths else []
        read = {
            file.path: (file.before, f"the plan of run {run} read them")
            for run in reversed(runs)
            if (plan := self._plan_for(run, node)) is not None
            for file in self._change(plan, node).files
            if file.before is not None
        }
        return {path: found for path in paths if (found := left.get(path) or read.get(path))}

    def _left_by_runs(self, node: Snapshot) -> Held:
        if self._history is None:
            self._history = cluster_history(self._journal, self._cluster)
        known = self._history.nodes.get(node.node, ())[-MOST_RUNS:]
        plans = {each.tx: plan for each in known if (plan := self._plan_for(each.tx, node)) is not None}
        filled = [replace(each, files=files_of(plans[each.tx])[node.node]) for each in known if each.tx in plans]
        found: dict[str, tuple[bytes, str]] = {}
        for expected in expected_files(filled):
            file = next(each for each in self._change(plans[expected.tx], node).files if each.path == expected.path)
            content = {file.digest_before: file.before, file.digest_after: file.after}.get(expected.digest)
            if content is not None:
                verb = "restored" if expected.state is ReceiptState.REVERTED else "wrote"
                by = f"the rollback of run {expected.tx}" if verb == "restored" else f"run {expected.tx}"
                found[expected.path] = (content, f"{by} {verb} them")
        return found

    def _plan_for(self, run: str, node: Snapshot) -> Plan | None:
        """``None``: it has no plan for this machine."""
        plan = self._plan(run)
        known = plan.nodes.get(node.node) if plan is not None else None
        return plan if known is not None and known.machine_id == node.machine_id else None

    def _change(self, plan: Plan, node: Snapshot) -> Change:
        return next(group.change for group in plan.groups if group.name == plan.nodes[node.node].group)

    def _by_signal(self, node: Snapshot) -> Iterator[tuple[str, bytes]]:
        """Files that a process loaded by SIGHUP. The node's own record of it is gone after a ``forget``.

        The newest run that wrote a file counts, as long as the process that it signalled still runs.
        """
        paths = {(entry.unit, entry.path) for entry in node.stale if entry.unit not in KUBELET_UNITS}
        told: set[str] = set()
        for planned, change in self._signals().get(node.node, ()) if paths else ():
            for file in change.files:
                ours = planned.machine_id == node.machine_id and file.path not in told
                if ours and any((unit, file.path) in paths for unit in change.hangups):
                    yield file.path, file.after
                told.add(file.path)

    def _signals(self) -> Mapping[str, list[tuple[PlannedNode, Change]]]:
        """Node → the changes that runs confirmed on it and nothing has reverted since, the newest first."""
        if self._signalled is not None:
            return self._signalled
        found: dict[str, list[tuple[PlannedNode, Change]]] = {}
        reverted: set[str] = set()
        for header in self._journal.runs(self._cluster)[:MOST_RUNS]:
            state, plan = replay_if_readable(self._journal, header.run), plan_of(header)
            if state is None:
                break  # it may have reverted any older change
            for name, record in state.nodes.items():
                if record.state in (NodeState.PENDING, NodeState.SKIPPED, NodeState.REFUSED):
                    continue
                if plan is None or record.state is not NodeState.CONFIRMED or state.order.goal is not Goal.APPLY:
                    reverted.add(name)
                elif name not in reverted and name in plan.nodes:
                    change = next(group.change for group in plan.groups if group.name == plan.nodes[name].group)
                    found.setdefault(name, []).append((plan.nodes[name], change))
        self._signalled = found
        return found

    def _written(self, run: str, node: str) -> Mapping[str, bytes]:
        plan = self._plan(run)
        if plan is None or node not in plan.nodes:
            return {}
        change = next(group.change for group in plan.groups if group.name == plan.nodes[node].group)
        return {file.path: file.after for file in change.files}

    def _plan(self, run: str) -> Plan | None:
        if run not in self._known:
            try:
                self._known[run] = plan_of(self._journal.header(run)) if run else None
            except StateError:
                self._known[run] = None
        return self._known[run]
