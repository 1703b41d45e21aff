"""Owning what a run brought, and comparing every live node with it. Nothing here changes a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rollout.app.call import CallPorts
from rollout.app.chosen_run import chosen_run
from rollout.app.cluster_context import look_around
from rollout.app.following import headers_of, replay
from rollout.app.load_playbook import load_policy
from rollout.app.node_histories import ClusterHistory, cluster_history, newest_in_force
from rollout.app.owned import owned_in
from rollout.app.planning import Planned, ToPlan, Wanted, as_planned, make_plan, read_fleet, to_plan
from rollout.app.ports import Note, PastRuns, RunHeader
from rollout.app.verify import VerifiedCluster
from rollout.core.model.conditions import of_kind
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.owned import ComparedNode, OwnedStanding
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.model.transactions import in_force
from rollout.core.plans import plan_codec
from rollout.core.plans.history import Around
from rollout.core.presentation.owned_text import OwnedNodes, compared_note, ended_note, owned_note
from rollout.core.run.state import Ending, Goal, Phase
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.wanted_settings import wanted_by_node
from rollout.errors import StateError, UsageError
from rollout.features.own.rules import (
    CountingRun,
    NewcomerRule,
    NewcomersThen,
    OwnedOnNode,
    compared_nodes,
    newcomers_then,
    owned_nodes,
    why_not_yet,
)
from rollout.features.own.words import owned_runs, wanted_text


def own_run(call: CallPorts, run: str) -> str:
    """Own what a run brought (``""``: the newest); its cluster. ``StateError``: it cannot be owned."""
    journal = call.journal()
    name = chosen_run(call, journal, run)
    header, state = journal.header(name), replay(journal, name)
    if state.order.goal is not Goal.APPLY:
        raise StateError("not-an-apply", f"run {name} is a rollback: it brought no settings")
    if state.phase is not Phase.ENDED or state.ending is not Ending.DONE:
        said = state.ending.value if state.ending else state.phase.value
        hint = f"finish it with `rollout resume {name}`"
        raise StateError("not-done", f"run {name} has not ended as done: {said}", hint=hint)
    if name not in _runs_in_force(cluster_history(journal, header.cluster)):
        raise StateError("rolled-back", f"run {name} was rolled back: no node has its change any more")
    wanted = plan_codec.wanted_in(header.plan)
    if not wanted:
        hint = "plan and apply once more, or own a later run"
        raise StateError("settings-not-recorded", f"the plan of run {name} does not record its settings", hint=hint)
    journal.note(header.cluster, Note(call.clock.now(), call.who, owned_note(name, wanted_text(wanted))))
    return header.cluster


def end_ownership(call: CallPorts, run: str) -> str:
    """The cluster. ``UsageError``: the run has no owned settings."""
    journal = call.journal()
    name = chosen_run(call, journal, run)
    cluster = journal.header(name).cluster
    noted = owned_in(journal, cluster)
    if noted is None or name not in noted.runs:
        raise UsageError("not-owned", f"no setting of run {name} is owned", hint="`rollout own --list` shows which are")
    journal.note(cluster, Note(call.clock.now(), call.who, ended_note(name, call.reason)))
    return cluster


def _runs_in_force(history: ClusterHistory) -> frozenset[str]:
    return frozenset(each.tx for transactions in history.nodes.values() for each in in_force(transactions))


def counting_runs(journal: PastRuns, cluster: str) -> tuple[CountingRun, ...]:
    """The owned runs of a cluster and the later ones that changed one of their settings, the oldest first.

    An owned run without any node that has its change was rolled back: it does not count any more.
    """
    noted = owned_in(journal, cluster)
    if noted is None:
        return ()
    history = cluster_history(journal, cluster)
    standing = _runs_in_force(history)
    headers = [header for header in reversed(headers_of(journal, cluster)) if header.run in standing]
    first = next((at for at, header in enumerate(headers) if header.run in noted.runs), len(headers))
    owned: frozenset[str] = frozenset()
    found: tuple[CountingRun, ...] = ()
    for listed in headers[first:]:
        run = _counting(journal, journal.header(listed.run), history, is_owned=listed.run in noted.runs)
        names = frozenset(each.name for each in run.wanted)
        owned |= names if run.is_owned else frozenset()
        found += (run,) if run.is_owned or names & owned else ()
    return found


def _counting(journal: PastRuns, header: RunHeader, history: ClusterHistory, *, is_owned: bool) -> CountingRun:
    playbook, limit = plan_codec.selection_in(header.plan)
    wanted = plan_codec.wanted_in(header.plan)
    if is_owned:
        return CountingRun(header.run, playbook, limit, wanted)
    having = frozenset(
        name for name, known in history.nodes.items() if any(each.tx == header.run for each in in_force(known))
    )
    had = frozenset(name for name, known in history.nodes.items() if any(each.tx == header.run for each in known))
    summary = journal.summary(header.run)
    is_done = summary is not None and summary.ending == Ending.DONE
    return CountingRun(
        header.run, playbook, limit, wanted, is_owned=False, within=None if is_done else having, reverted=had - having
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The nodes of one playbook: what they must have, and the plan that would bring it."""

    asked: ToPlan
    wanted: Wanted
    fleet: FleetSnapshot
    plan: Plan


@dataclass(frozen=True, slots=True)
class OwnedComparison:
    """Every live node of a cluster against its owned settings. ``is_whole``: no limit was given. ``live``: Node of the API server by name."""

    found: OwnedNodes
    is_whole: bool
    live: Mapping[str, LiveNode]
    parts: tuple[_Part, ...]


def compare_owned(call: CallPorts, cluster: str, limit: str, verified: VerifiedCluster) -> OwnedComparison | None:
    """``None``: no setting is owned. ``verified``: the same nodes against their receipts."""
    journal = call.past()
    runs = counting_runs(journal, cluster)
    if not runs:
        return None
    inventory = call.inventory_or_remembered(cluster)
    owned = owned_nodes(runs, inventory)
    chosen = tuple(name for name in limited(limit, inventory) if name in owned)
    around = look_around(inventory, journal, call.sources(), call.kubeconfig)
    live = {node.name: node for node in around.live or ()}
    parts = tuple(_parts(call, inventory, {name: owned[name] for name in chosen}, around))
    changed = newest_in_force(cluster_history(journal, cluster).nodes)
    joined = {name: node.created for name, node in live.items()}
    found = [
        *(node for part in parts for node in compared_nodes(part.plan, verified.checks, changed, joined)),
        *(_gone(runs, inventory, changed) if not limit else ()),
        *(_unlisted(runs, inventory, live) if not limit else ()),
    ]
    ages_unknown = "" if around.live is not None else around.not_asked or "no kubeconfig is named"
    nodes = OwnedNodes(cluster, owned_runs(runs), tuple(found), ages_unknown, inventory.remembered)
    return OwnedComparison(nodes, not limit, live, parts)


def _parts(call: CallPorts, inventory: Inventory, owned: Mapping[str, OwnedOnNode], around: Around) -> Iterator[_Part]:
    for playbook in dict.fromkeys(each.playbook for each in owned.values()):
        names = tuple(name for name, each in owned.items() if each.playbook == playbook)
        settings = {name: owned[name].settings for name in names}
        wanted = Wanted(settings, wanted_by_node(settings, names))
        asked = ToPlan(inventory, load_policy(call.files(), playbook), names, "")
        fleet = read_fleet(call, inventory, names, wanted.named(names))
        yield _Part(asked, wanted, fleet, make_plan(call, asked, fleet, wanted, around, config_map=False))


def _gone(runs: Sequence[CountingRun], inventory: Inventory, changed: Mapping[str, str]) -> Iterator[ComparedNode]:
    known = {run.run for run in runs}
    for name, run in changed.items():
        if name not in inventory.nodes and run in known:
            why = f"run {run} changed it; it is not in the inventory now"
            yield ComparedNode(name, OwnedStanding.GONE, evidence=why)


def _unlisted(
    runs: Sequence[CountingRun], inventory: Inventory, live: Mapping[str, LiveNode]
) -> Iterator[ComparedNode]:
    """Live Nodes that the inventory does not have. Which settings they must have is known only if all nodes must have them."""
    if not any(run.is_owned and not run.limit for run in runs) or inventory.nodes.keys().isdisjoint(live):
        return
    why = "the API server has this Node, and the inventory does not: no address of it is known"
    for name, node in live.items():
        if name not in inventory.nodes:
            yield ComparedNode(
                name, OwnedStanding.NOT_READABLE, reference="not-in-inventory", evidence=why, joined=node.created
            )


def note_comparison(call: CallPorts, comparison: OwnedComparison) -> bool:
    """Keep a comparison of the whole cluster in the journal. Whether other nodes lack a setting than at the last one."""
    if not comparison.is_whole:
        return False
    found, journal = comparison.found, call.journal()
    noted = owned_in(journal, found.cluster)
    before = noted.compared.without if noted is not None and noted.compared is not None else ""
    without = fold(found.lacking)
    text = compared_note(len(found.as_wanted), without, fold(found.unread))
    journal.note(found.cluster, Note(call.clock.now(), call.who, text))
    return bool(without) and without != before


@dataclass(frozen=True, slots=True)
class PlannedNewcomers:
    """``planned`` ``None``: no node may be planned now. ``waiting``: node → why it is not planned yet.

    ``then``: what the playbook lets a timer do.
    """

    planned: Planned | None
    waiting: Mapping[str, str]
    then: NewcomersThen = NewcomersThen.REPORT


def plan_newcomers(call: CallPorts, comparison: OwnedComparison, playbook: str, limit: str) -> PlannedNewcomers:
    """A plan for the nodes that lack an owned setting and that no run has changed, by the playbook of that setting.

    ``playbook`` ``""``: the only one. ``UsageError`` ``which-playbook``: newcomers of several playbooks. Nodes that are not Ready for
    as long as the playbook demands are not planned; without an API server that is not known, and all are.
    """
    found = comparison.found
    chosen = limited(limit, call.inventory(found.cluster))
    newcomers = frozenset(found.newcomers).intersection(chosen)
    parts = [part for part in comparison.parts if newcomers.intersection(part.asked.selection)]
    names = [part.asked.policy.name for part in parts]
    parts = [part for part in parts if playbook in ("", part.asked.policy.name)]
    if len(parts) > 1:
        message = f"nodes to plan have several playbooks: {', '.join(names)}"
        raise UsageError("which-playbook", message, hint="choose one with --playbook")
    if not parts:
        return PlannedNewcomers(None, {})
    part = parts[0]
    name = part.asked.policy.name
    conditions = (*part.asked.policy.conditions, *part.asked.inventory.conditions)
    then, ready_for = newcomers_then(of_kind(conditions, NewcomerRule))
    now = call.clock.now()
    known = () if found.ages_unknown else sorted(newcomers)
    waiting = {node: why for node in known if (why := why_not_yet(comparison.live.get(node), ready_for, now))}
    selection = tuple(node for node in part.asked.selection if node in newcomers and node not in waiting)
    if not selection:
        return PlannedNewcomers(None, waiting, then)
    asked = to_plan(call, found.cluster, name, fold(selection), contacts=True)
    wanted = Wanted(part.wanted.settings, wanted_by_node(part.wanted.settings, selection))
    plan = make_plan(call, replace(asked, selection=selection), part.fleet, wanted, config_map=False)
    return PlannedNewcomers(as_planned(call, plan, part.fleet), waiting, then)


def same_change(one: Plan, other: Plan) -> bool:
    """Whether two plans change the same in the same way, read at other times."""
    return replace(one, taken="", counter=0) == replace(other, taken="", counter=0)
