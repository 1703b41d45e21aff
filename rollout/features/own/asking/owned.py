"""Owning what a run brought, and comparing every live node with it. Nothing here changes a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rollout.app.call import CallPorts
from rollout.app.chosen_run import chosen_run
from rollout.app.cluster_context import look_around
from rollout.app.following import headers_of, replay
from rollout.app.freezes import check_nodes_not_frozen
from rollout.app.load_playbook import load_policy
from rollout.app.node_access import only
from rollout.app.node_histories import ClusterHistory, cluster_history, newest_in_force, nodes_by_run
from rollout.app.owned import noted_in, owned_in, standing
from rollout.app.planning import Planned, ToPlan, Wanted, as_planned, checked_to_plan, make_plan, with_ways
from rollout.app.ports import Files, Note, PastRuns, RunHeader
from rollout.app.reading import fleet_as_read
from rollout.app.verify import VerifiedCluster, verify_nodes
from rollout.core.model.conditions import of_kind
from rollout.core.model.fleet_changes import is_their_list
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.owned import ComparedNode, OwnedStanding
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Policy
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import plan_codec
from rollout.core.plans.history import NO_KUBECONFIG
from rollout.core.plans.roles import shown_by_its_node
from rollout.core.presentation.freeze_text import frozen_in
from rollout.core.presentation.owned_text import (
    OwnedNodes,
    OwnedNoted,
    compared_note,
    ended_note,
    kept_nodes,
    owned_note,
)
from rollout.core.run.state import Ending, Goal, NodeState, Phase
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.terminal import counted
from rollout.core.text.wanted_settings import wanted_by_node
from rollout.errors import InputError, StateError, UsageError
from rollout.features.own.rules import (
    CountingRun,
    NewcomerRule,
    NewcomersThen,
    OwnedOnNode,
    compared_nodes,
    newcomers_then,
    owned_nodes,
    why_not_yet,
    without_replaced,
)
from rollout.features.own.words import owned_runs, wanted_text
from rollout.kubelet.effects.needs import files_named

NOTED_EVERY = 3600.0
"""Seconds until a comparison that found the same as the last one is kept in the journal again: a timer compares 96 times a day."""


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
    if not any(node.state is NodeState.CONFIRMED for node in state.nodes.values()):
        hint = "own a run that has changed nodes: `rollout runs` lists them"
        raise StateError("changed-no-node", f"run {name} changed no node", hint=hint)
    if standing(OwnedNoted((name,), None), cluster_history(journal, header.cluster)) is None:
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
    noted = noted_in(journal, cluster)
    if noted is None or name not in noted.runs:
        raise UsageError("not-owned", f"no setting of run {name} is owned", hint="`rollout own --list` shows which are")
    journal.note(cluster, Note(call.clock.now(), call.who, ended_note(name, call.reason)))
    return cluster


def end_rolled_back(call: CallPorts, cluster: str) -> tuple[str, ...]:
    """Ends the ownership of runs that were rolled back since: the notes that the journal has of it from now on."""
    noted, owned = noted_in(call.past(), cluster), owned_in(call.past(), cluster)
    ended = tuple(run for run in noted.runs if owned is None or run not in owned.runs) if noted else ()
    notes = tuple(ended_note(run, "it was rolled back") for run in ended)
    for text in notes:
        call.journal().note(cluster, Note(call.clock.now(), call.who, text))
    return notes


def counting_runs(journal: PastRuns, cluster: str) -> tuple[CountingRun, ...]:
    """The owned runs of a cluster and the later ones that changed one of their settings, the oldest first.

    An owned run without any node that has its change was rolled back: it does not count any more.
    """
    noted = noted_in(journal, cluster)
    if noted is None:
        return ()
    history = cluster_history(journal, cluster)
    owned = standing(noted, history)
    if owned is None:
        return ()
    having, had = nodes_by_run(history.nodes, ""), _ever_changed(history)
    headers = [each for each in reversed(headers_of(journal, cluster)) if each.run in having or each.run in owned.runs]
    first = next((at for at, header in enumerate(headers) if header.run in owned.runs), len(headers))
    names: frozenset[str] = frozenset()
    found: tuple[CountingRun, ...] = ()
    for listed in headers[first:]:
        header, is_owned = journal.header(listed.run), listed.run in owned.runs
        there = frozenset(having.get(listed.run, ()))
        run = _counting(journal, header, there, had.get(listed.run, frozenset()), is_owned=is_owned)
        own = frozenset(each.name for each in run.wanted)
        names |= own if is_owned else frozenset()
        found += (run,) if is_owned or own & names else ()
    return found


def _ever_changed(history: ClusterHistory) -> Mapping[str, frozenset[str]]:
    """Run → the nodes that it has changed, also those where it was reverted since."""
    nodes: dict[str, set[str]] = {}
    for name, known in history.nodes.items():
        for each in known:
            nodes.setdefault(each.tx, set()).add(name)
    return {run: frozenset(names) for run, names in nodes.items()}


def _counting(
    journal: PastRuns, header: RunHeader, having: frozenset[str], had: frozenset[str], *, is_owned: bool
) -> CountingRun:
    playbook, limit = plan_codec.selection_in(header.plan)
    wanted = plan_codec.wanted_in(header.plan)
    if is_owned:
        return CountingRun(header.run, playbook, limit, wanted)
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
    plan: Plan


@dataclass(frozen=True, slots=True)
class _WithoutPlaybook:
    """Nodes with owned settings of a playbook that cannot be read: nothing can be planned for them, so they are not compared."""

    names: tuple[str, ...]
    error: UsageError | InputError

    def nodes(self, joined: Mapping[str, str]) -> Iterator[ComparedNode]:
        hint = f"; {self.error.hint}" if self.error.hint else ""
        for name in self.names:
            yield ComparedNode(
                name,
                OwnedStanding.NOT_COMPARED,
                reference=self.error.reference,
                evidence=f"{self.error.message}{hint}",
                joined=joined.get(name, ""),
            )


@dataclass(frozen=True, slots=True)
class OwnedComparison:
    """Every live node of a cluster against its owned settings. ``is_whole``: no limit was given. ``live``: Node of the API server by name."""

    found: OwnedNodes
    is_whole: bool
    live: Mapping[str, LiveNode]
    inventory: Inventory
    fleet: FleetSnapshot
    parts: tuple[_Part, ...]
    without_playbook: tuple[_WithoutPlaybook, ...]


def compare_owned(call: CallPorts, cluster: str, limit: str) -> tuple[VerifiedCluster, OwnedComparison | None]:
    """The nodes of ``limit`` (``""``: all) against their receipts, and against what the cluster owns (``None``: nothing)."""
    journal = call.past_runs()
    runs = counting_runs(journal, cluster)
    inventory = call.inventory_or_remembered(cluster)
    chosen, owned = limited(limit, inventory), owned_nodes(runs, inventory)
    found_parts = tuple(_asked(call.files(), inventory, {name: owned[name] for name in chosen if name in owned}))
    asked = tuple(each for each in found_parts if not isinstance(each, _WithoutPlaybook))
    without_playbook = tuple(each for each in found_parts if isinstance(each, _WithoutPlaybook))
    named = {name: files_named(owned[name].settings) for part, _ in asked for name in part.selection}
    access, taken = call.access(inventory, chosen), call.clock.wall()
    verified = verify_nodes(call, cluster, access, named)
    if not runs:
        return verified, None
    fleet = fleet_as_read(inventory, only(access, verified.snapshots), taken, verified.snapshots)
    fleet = with_ways(call, inventory, fleet)
    around = look_around(inventory, journal, call.sources(), call.kubeconfig)
    parts = tuple(
        _Part(part, wanted, make_plan(call, part, fleet, wanted, around, config_map=False)) for part, wanted in asked
    )
    live = {node.name: node for node in around.live or ()}
    changed = newest_in_force(cluster_history(journal, cluster).nodes)
    joined = {name: node.created for name, node in live.items()}
    found = [node for part in parts for node in compared_nodes(part.plan, verified.checks, changed, joined)]
    found += [node for each in without_playbook for node in each.nodes(joined)]
    if not limit:
        unlisted = {node.name: node for node in _unlisted(runs, inventory, live, parts)}
        found += [
            *(node for node in _gone(runs, inventory, changed, live) if node.name not in unlisted),
            *unlisted.values(),
        ]
    ages_unknown = "" if around.live is not None else around.not_asked or NO_KUBECONFIG
    names_server = around.live is not None or bool(around.not_asked)
    not_listed = "" if limit or not _every_node_must(runs) else ages_unknown or _of_another_cluster(inventory, live)
    nodes = OwnedNodes(
        cluster,
        owned_runs(runs, inventory),
        tuple(found),
        ages_unknown,
        inventory.remembered,
        not_listed,
        misses_nodes=names_server and bool(not_listed),
    )
    verified = replace(verified, checks=without_replaced(verified.checks, found))
    return verified, OwnedComparison(nodes, not limit, live, inventory, fleet, parts, without_playbook)


def _asked(
    files: Files, inventory: Inventory, owned: Mapping[str, OwnedOnNode]
) -> Iterator[tuple[ToPlan, Wanted] | _WithoutPlaybook]:
    """What is to be planned for each playbook. Playbooks with settings on the same nodes are one part there."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, each in owned.items():
        alike.setdefault(tuple(each.playbooks), []).append(name)
    for playbooks, names in alike.items():
        settings = {name: owned[name].settings for name in names}
        wanted = Wanted(settings, wanted_by_node(settings, names))
        try:
            policies = [_policy(files, playbook, owned[names[0]].playbooks[playbook]) for playbook in playbooks]
        except (UsageError, InputError) as error:
            yield _WithoutPlaybook(tuple(names), error)
            continue
        conditions = tuple(condition for policy in policies for condition in policy.conditions)
        yield ToPlan(inventory, replace(policies[0], conditions=conditions), tuple(names), ""), wanted


def _policy(files: Files, playbook: str, run: str) -> Policy:
    try:
        return load_policy(files, playbook)
    except UsageError as error:
        message = f"{error.message}, and settings of run {run} are owned by it"
        hint = f"restore it, or `rollout own --end {run}` and own a run of another playbook"
        raise UsageError(error.reference, message, hint=hint) from None


def _gone(
    runs: Sequence[CountingRun], inventory: Inventory, changed: Mapping[str, str], live: Collection[str]
) -> Iterator[ComparedNode]:
    known = {run.run for run in runs}
    for name, run in changed.items():
        if name not in inventory.nodes and run in known:
            where = "it is not in the inventory"
            if name in inventory.left_out:
                where = "the selector or group of the inventory leaves it out"
            elif name in live:
                where = f"the API server has its Node, and {where}"
            yield ComparedNode(name, OwnedStanding.GONE, evidence=f"run {run} changed it; {where} now")


def _unlisted(
    runs: Sequence[CountingRun], inventory: Inventory, live: Mapping[str, LiveNode], parts: Sequence[_Part]
) -> Iterator[ComparedNode]:
    """Live Nodes that the inventory and its source do not have. Which settings they must have is known only if all nodes must have them."""
    if not _every_node_must(runs) or _of_another_cluster(inventory, live):
        return
    why = "the API server has this Node, and the inventory does not: no address of it is known"
    spares_control_plane = not any(part.asked.policy.control_plane for part in parts)
    for name, node in live.items():
        if name in inventory.nodes or name in inventory.left_out or (spares_control_plane and shown_by_its_node(node)):
            continue
        yield ComparedNode(
            name, OwnedStanding.NOT_READABLE, reference="not-in-inventory", evidence=why, joined=node.created
        )


def _every_node_must(runs: Sequence[CountingRun]) -> bool:
    """Whether a setting is owned that each node must have, also one that the inventory does not list."""
    return any(run.is_owned and not run.limit for run in runs)


def _of_another_cluster(inventory: Inventory, live: Collection[str]) -> str:
    if is_their_list(inventory.nodes, live):
        return ""
    there = len(inventory.nodes.keys() & live)
    return (
        f"the API server lists {counted(len(live), 'Node')}, and {there:,} of {counted(len(inventory.nodes), 'node')} of the inventory: "
        "it may be that of another cluster"
    )


def note_comparison(call: CallPorts, comparison: OwnedComparison) -> bool:
    """Keep a comparison of the whole cluster in the journal. Whether other nodes lack a setting than at the last one."""
    if not comparison.is_whole:
        return False
    found, journal = comparison.found, call.journal()
    noted, now = owned_in(journal, found.cluster), call.clock.now()
    last = noted.compared if noted is not None else None
    without, unread = kept_nodes(found.lacking), kept_nodes(found.unread)
    unlisted = found.unlisted if found.misses_nodes else ""
    same = last is not None and (last.as_wanted, last.without, last.not_compared, bool(last.unlisted)) == (
        len(found.as_wanted),
        without,
        unread,
        bool(unlisted),
    )
    if last is None or not same or now - last.at >= NOTED_EVERY:
        journal.note(found.cluster, Note(now, call.who, compared_note(len(found.as_wanted), without, unread, unlisted)))
    return bool(without) and without != (last.without if last is not None else "")


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
    if found.listed:
        call.inventory(found.cluster)  # nothing is planned from an old list of nodes: this says why there is no other
    parts = comparison.parts
    chosen = frozenset(limited(limit, comparison.inventory))
    newcomers = chosen.intersection(found.newcomers)
    parts = tuple(part for part in parts if newcomers.intersection(part.asked.selection))
    names = tuple(part.asked.policy.name for part in parts)
    parts = tuple(part for part in parts if playbook in ("", part.asked.policy.name))
    if len(parts) > 1:
        message = f"nodes to plan have several playbooks: {', '.join(dict.fromkeys(names))}"
        raise UsageError("which-playbook", message, hint="choose one with --playbook, or nodes with --limit")
    if not parts:
        errors = (each.error for each in comparison.without_playbook if not chosen.isdisjoint(each.names))
        if (error := next(errors, None)) is not None:
            raise error
        return PlannedNewcomers(None, {})
    (part,) = parts
    then, ready_for = newcomers_then(
        of_kind((*part.asked.policy.conditions, *part.asked.inventory.conditions), NewcomerRule)
    )
    now = call.clock.now()
    known = () if found.ages_unknown else sorted(newcomers.intersection(part.asked.selection))
    waiting = {node: why for node in known if (why := why_not_yet(comparison.live.get(node), ready_for, now))}
    selection = tuple(node for node in part.asked.selection if node in newcomers and node not in waiting)
    if not selection:
        return PlannedNewcomers(None, waiting, then)
    asked = replace(part.asked, selection=selection, limit=fold(selection))
    wanted = Wanted(part.wanted.settings, wanted_by_node(part.wanted.settings, selection))
    plan = make_plan(call, checked_to_plan(call, asked, contacts=True), comparison.fleet, wanted, config_map=False)
    return PlannedNewcomers(as_planned(call, plan, comparison.fleet), waiting, then)


def check_none_frozen(comparison: OwnedComparison) -> None:
    """``StateError`` ``frozen``: another controller has frozen the nodes that were there then. Those that joined since have no mark of it."""
    check_nodes_not_frozen(comparison.found.cluster, frozen_in(comparison.fleet))


def same_change(one: Plan, other: Plan) -> bool:
    """Whether two plans change the same in the same way, whatever else was seen when they were made."""
    return _does(one) == _does(other)


def _does(plan: Plan) -> Plan:
    """Without what is only observed: other nodes that joined, pods that came and went, times that were measured."""
    return replace(
        plan,
        taken="",
        counter=0,
        inventory_digest="",
        racks={},
        zones={},
        remarks=(),
        consequences=(),
        loads=(),
        way_back=None,
    )
