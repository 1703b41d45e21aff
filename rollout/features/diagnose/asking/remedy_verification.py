"""``diagnose --verify RUN``: what the nodes of a run showed before it, and since they were confirmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rollout.app.cluster_context import WIDTH
from rollout.app.following import Follower, plan_of
from rollout.app.ports import PastRuns
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.run.state import NodeState
from rollout.core.text import json_text
from rollout.core.text.nodesets import fold
from rollout.errors import RemoteError, UsageError
from rollout.features.diagnose.asking.from_cluster import FromApi
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.node_journals import NodeJournal
from rollout.features.diagnose.rules.not_in_force import not_in_force
from rollout.features.diagnose.rules.remedies import SETTINGS, Observed, Remedy, ShownRemedy, remedies
from rollout.kubelet import values
from rollout.kubelet.intents import DEADLINE

_DEADLINES = ("image-pull-progress-deadline", "pull_progress_timeout")
"""What the reason of a changed deadline contains, on every runtime."""
CONFIGZ_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class RunToVerify:
    """A run that has confirmed nodes. ``confirmed``: node → when. ``fields``: node → field → canonical JSON."""

    run: str
    cluster: str
    began: float
    confirmed: Mapping[str, float]
    settings: frozenset[str]
    fields: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Readings:
    """All that was read. ``in_force``: node → whether the run's values are in force, for the nodes that answered."""

    before: tuple[NodeJournal, ...]
    after: tuple[NodeJournal, ...]
    api: FromApi
    in_force: Mapping[str, bool | None]
    now: float


@dataclass(frozen=True, slots=True)
class Verified:
    """The effect of each remedy of a run. ``silent``: its nodes that could not be read."""

    run: RunToVerify
    remedies: tuple[Remedy, ...]
    silent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifiedDocument:
    """``nodes``: the nodeset that the run confirmed; ``not_read``: those of them that could not be read."""

    run: str
    nodes: str
    not_read: str
    remedies: tuple[ShownRemedy, ...]


def verified_document(found: Verified) -> VerifiedDocument:
    return VerifiedDocument(found.run.run, fold(list(found.run.confirmed)), fold(list(found.silent)), found.remedies)


def run_to_verify(journal: PastRuns, run: str) -> RunToVerify:
    header = journal.header(run)
    plan = plan_of(header)
    if plan is None:
        raise UsageError("no-plan", f"run {run} has no plan that this version can read: nothing to verify")
    follower = Follower(journal, run)
    follower.catch_up()
    state = follower.state
    confirmed = {name: each.since for name, each in state.nodes.items() if each.state is NodeState.CONFIRMED}
    if not confirmed:
        raise UsageError("nothing-confirmed", f"run {run} has confirmed no node", hint=f"rollout status {run}")
    changes = {
        name: next(group.change for group in plan.groups if group.name == plan.nodes[name].group)
        for name in confirmed
        if name in plan.nodes
    }
    fields = {name: dict(change.effective) for name, change in changes.items()}
    settings = {field for each in fields.values() for field in each}
    if any(
        word in reason
        for change in changes.values()
        for file in change.files
        for reason in file.reasons
        for word in _DEADLINES
    ):
        settings.add(DEADLINE)
    return RunToVerify(run, header.cluster, header.at, confirmed, frozenset(settings), fields)


def in_force(
    run: RunToVerify, fleet: FleetSnapshot, configz: Callable[[str, float], Mapping[str, Any]] | None
) -> dict[str, bool | None]:
    """By ``/configz`` for fields; and no file of the node may have a value that is not in force."""
    read = {name: node for name, node in fleet.nodes.items() if isinstance(node, Snapshot)}
    late = {name for finding in not_in_force(read.values(), ProposalTarget())[0] for name in finding.nodes}

    def one(name: str) -> bool | None:
        wanted = {field: text for field, text in run.fields.get(name, {}).items() if field in SETTINGS}
        if name in late or not wanted:
            return name not in late
        if configz is None:
            return None
        try:
            shown = configz(name, CONFIGZ_SECONDS)
        except RemoteError:
            return None
        return all(_shown(shown, field, text) == text for field, text in wanted.items())

    with ThreadPoolExecutor(WIDTH, thread_name_prefix="configz") as pool:
        return dict(zip(read, pool.map(one, read), strict=True))


def verify_run(run: RunToVerify, found: Readings) -> Verified:
    before = {each.node: each for each in found.before if not each.why}
    after = {each.node: each for each in found.after if not each.why}
    observed = [_observed(run, name, before.get(name), after[name], found) for name in run.confirmed if name in after]
    silent = tuple(name for name in run.confirmed if name not in after)
    return Verified(run, remedies(run.settings, observed, silent, ProposalTarget(run.cluster, now=found.now)), silent)


def _observed(run: RunToVerify, name: str, before: NodeJournal | None, after: NodeJournal, found: Readings) -> Observed:
    """Events are of both times. What happened during the run is left out: its restart empties the queue."""
    since = run.confirmed[name]
    events = [fact for fact in found.api.facts if fact.node == name and fact.at is not None]
    earlier = (fact for fact in chain(before.facts if before else (), events) if (fact.at or 0.0) < run.began)
    later = (fact for fact in chain(after.facts, events) if (fact.at or 0.0) >= since)
    hours = (found.now - max(since, after.begins or since)) / 3600
    return Observed(name, tuple(earlier), tuple(later), hours, found.in_force.get(name))


def _shown(configz: Mapping[str, Any], field: str, wanted: str) -> str:
    return values.canonical(values.part_shown(configz.get(field), json_text.parse(wanted)))
