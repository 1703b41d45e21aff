"""Fleets that change between a plan, its run, the resume and the rollback, drawn: nodes leave, join, are replaced, moved or renumbered.

The law: bytes reach the plan's nodes only, nothing is charged to a node that left, limits are shares of the smaller size of a
rack, and every difference is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.ports import Target, Worker
from rollout.app.rollbacks import rollback_order
from rollout.app.runs import Tools, changes_since, check_plan, resumable, resume, start_apply, start_revert
from rollout.core.model.fleet_changes import GONE, IS_GONE, REPLACED, FleetChanges
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.plan import Plan, PlannedNode, Wave
from rollout.core.model.playbook import ALL_CAUSES, Budget, Cause, Limits, Scope, Share
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.plans.fleet_comparison import change_lines
from rollout.core.presentation.summary import exit_code
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.laws import broken_laws
from rollout.core.run.state import Ending, NodeState, Rehearsal, RunState, Verb
from rollout.core.text.nodesets import expand
from rollout.errors import InputError, Problem, UsageError
from tests.app.agents import SILENT, Agents, access_to, answer
from tests.app.site import SMALL, KilledError, Site
from tests.sampling import examples

G1 = SMALL.groups[0]
G2 = replace(G1, name="g2", label="another kind")
NEVER_CHARGED = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=1)),)
PER_RACK = Share(percent=40.0)
MOVES = ("address", "port", "user", "rack", "zone")


def machine(number: int) -> str:
    return f"{number:032x}"


class Machines(Agents):
    """Each answers with its own machine-id: it refuses a change that was planned for another one."""

    def __init__(self, ids: dict[str, str]) -> None:
        super().__init__()
        self.ids = ids

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        assert command.request is not None
        verb, *words = command.request.words.split()
        said = dict(word.split("=", 1) for word in words)
        if verb == "apply" and said["machine"] != self.ids[target.name]:
            self.asked.append((target.name, {"verb": "refused-apply"}))
            return answer(verb, "refused machine-id-changed another machine than the plan's")
        return super().run(target, command)

    def replaced(self, name: str, new: str) -> None:
        self.ids[name] = new
        self.agents.pop(name, None)


@dataclass
class Watched:
    """Checks the laws of the machine, and the limits by the sizes of racks that were last seen, after every event."""

    present: Mapping[str, int]

    def on_event(self, _event: Event, before: RunState, after: RunState) -> None:
        assert not broken_laws(after)
        released = {
            after.order.nodes[name].rack
            for name, record in after.nodes.items()
            if record.state is NodeState.APPLYING and before.nodes[name].state is not NodeState.APPLYING
        }
        moving = Counter(
            after.order.nodes[name].rack for name, record in after.nodes.items() if record.state in IN_MOTION
        )
        for rack in released:
            assert moving[rack] <= PER_RACK.of(min(self.present[rack], after.order.racks[rack]))

    def on_end(self, _state: RunState) -> None: ...


@dataclass
class Cluster:
    """A plan and the fleet around it, which changes."""

    dice: Random
    site: Site
    plan: Plan
    now: dict[str, Node]
    machines: Machines
    fresh: int = 1000
    known: dict[str, str] = field(default_factory=dict)  # name → machine-id, as the API server lists it

    def inventory(self) -> Inventory:
        return Inventory("c", "v1.34.2", dict(self.now), {}, (), "d", machines=dict(self.known))

    def present(self) -> Counter[str]:
        return Counter(node.rack for node in self.now.values())

    def changes(self, *kinds: str) -> list[tuple[str, str]]:
        """(kind, node) of up to four events."""
        done = []
        for _ in range(self.dice.randrange(5)):
            kind = self.dice.choice(kinds)
            name = self.dice.choice(sorted(self.now))
            if kind == "join" or len(self.now) > 2:
                done.append((kind, self._change(kind, name)))
        return done

    def _change(self, kind: str, name: str) -> str:
        node = self.now[name]
        self.fresh += 1
        if kind == "leave":
            del self.now[name], self.known[name]
        elif kind == "join":
            name = f"j{self.fresh}"
            self._joins(replace(node, name=name, address=name))
        elif kind == "rename":
            del self.now[name], self.known[name]
            self._joins(replace(node, name=f"j{self.fresh}", address=f"j{self.fresh}"))
        elif kind == "replace":
            self.known[name] = machine(self.fresh)
            self.machines.replaced(name, machine(self.fresh))
        else:
            other = {"port": 2200, "user": "other"}.get(kind, f"{kind}{self.fresh}")
            self.now[name] = replace(node, **{kind: other})  # type: ignore[arg-type]
        return name

    def _joins(self, node: Node) -> None:
        self.now[node.name] = node
        self.known[node.name] = machine(self.fresh)
        self.machines.ids[node.name] = machine(self.fresh)

    def tools(self) -> Tools:
        return replace(self.site.tools(), observers=(Watched(self.present()),), lists=self.left)

    def left(self, name: str, _run_nodes: Collection[str]) -> str:
        return "" if name in self.now else IS_GONE

    def changed(self) -> set[str]:
        """Nodes that wrote bytes."""
        return {name for name, words in self.machines.asked if words["verb"] == "apply"}


def drawn(dice: Random, folder: Path) -> Cluster:
    racks = [f"r{at}" for at in range(1, dice.randrange(2, 4))]
    names = [f"n{at}" for at in range(1, dice.randrange(4, 13))]
    nodes = {name: Node(name, name, dice.choice(racks), "z") for name in names}
    selected = dice.sample(names, dice.randrange(3, len(names) + 1))
    group_of = {name: dice.choice(("g1", "g1", "g2")) for name in selected}
    canary = tuple(
        next(name for name in selected if group_of[name] == group) for group in sorted(set(group_of.values()))
    )
    rest = [name for name in selected if name not in canary]
    half = dice.randrange(len(rest) + 1)
    every = (Wave("canary", canary, 1.0), Wave("half", tuple(rest[:half]), 1.0), Wave("rest", tuple(rest[half:]), 1.0))
    waves = tuple(wave for wave in every if wave.nodes)
    wave_of = {name: at for at, wave in enumerate(waves) for name in wave.nodes}
    ids = {name: machine(at) for at, name in enumerate(names, 1)}
    plan = replace(
        SMALL,
        groups=(G1, G2),
        nodes={
            name: PlannedNode(
                name, name, nodes[name].rack, "z", group_of[name], wave_of[name], ids[name], jumps=(), settings=""
            )
            for name in selected
        },
        waves=waves,
        racks=Counter(node.rack for node in nodes.values()),
        zones={"z": len(names)},
        budgets=NEVER_CHARGED,
        limits=Limits(per_rack=PER_RACK),
        limit=",".join(selected) if dice.random() < 0.3 else "",
    )
    machines = Machines(dict(ids))
    return Cluster(dice, Site(SqlJournal(folder), machines), plan, dict(nodes), machines, known=dict(ids))


def jumps(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    return dict.fromkeys(cluster.now, ())


def compared(cluster: Cluster, events: list[tuple[str, str]]) -> FleetChanges | None:
    """The plan against the fleet of now, and what it must say. ``None``: it is refused."""
    plan = cluster.plan
    gone = {name for name in plan.nodes if name not in cluster.now}
    replaced = {name for name in plan.nodes.keys() - gone if cluster.known[name] != plan.nodes[name].machine_id}
    moved = {(kind, name) for kind, name in events if kind in MOVES and name in plan.nodes.keys() - gone - replaced}
    problems: tuple[Problem, ...] = ()
    try:
        changes = check_plan(plan, cluster.inventory(), "p.json", jumps(cluster))
    except InputError as error:
        problems = error.problems
    if problems:
        assert {each.reference for each in problems} == {"plan-for-another-inventory"}
        assert moved or len(gone | replaced) == len(plan.nodes)
        for kind, name in moved:
            assert [one for one in problems if f"its {kind} is" in one.message and name in names_in(one.message)]
        return None
    assert not moved
    assert {name: leaver.reference for name, leaver in changes.left.items()} == {
        **dict.fromkeys(gone, GONE),
        **dict.fromkeys(replaced, REPLACED),
    }
    if not plan.limit:
        assert set(changes.joined) == cluster.now.keys() - plan.nodes.keys()
    told = "\n".join(change_lines(changes))
    for name in (*changes.left, *changes.joined):
        assert name in names_in(told), told
    return changes


def names_in(text: str) -> set[str]:
    found: set[str] = set()
    for word in text.replace(":", " ").split():
        if word[:1] in "nj" and any(letter.isdigit() for letter in word):
            found |= set(expand(word))
    return found


def one_day(seed: int, folder: Path) -> Counter[str]:
    """A plan, scale events, an apply that is killed, scale events, its resume, scale events, its rollback."""
    dice = Random(seed)  # noqa: S311 - reproducible
    cluster = drawn(dice, folder)
    events = cluster.changes("leave", "leave", "join", "replace", "rename", *MOVES[: dice.choice((0, 0, 5))])
    told = Counter(kind for kind, _ in events)
    changes = compared(cluster, events)
    if changes is None:
        assert not cluster.machines.asked
        return told + Counter({"refused": 1})
    at_start = set(changes.left)
    there = [name for name in cluster.plan.nodes if name not in at_start]
    access = access_to(*there)
    verb = dice.choice((Verb.READ, Verb.APPLY, Verb.MEASURE, Verb.CONFIRM, None))
    cluster.site.dies_at = None if verb is None else (dice.choice(there), verb)
    try:
        end = start_apply(cluster.plan, access, cluster.tools(), changes=changes)
    except KilledError:
        cluster.site.answers, cluster.site.dies_at = [], None
        end = resumed(cluster, at_start, told)
    sound(cluster, end, at_start, told)
    roll_back(cluster, end, told)
    return told


def resumed(cluster: Cluster, at_start: set[str], told: Counter[str]) -> RunState:
    told += Counter(kind for kind, _ in cluster.changes("leave", "join", "replace", "rename"))
    state = resumable(cluster.site.journal, "r1")
    expected = {
        name
        for name in state.order.nodes
        if name not in cluster.now or cluster.known[name] != cluster.plan.nodes[name].machine_id
    }
    is_most, asked = len(expected) * 2 > len(state.order.nodes), (state, cluster.site.journal, cluster.inventory())
    if is_most:
        with pytest.raises(UsageError, match="whether the others left is not known"):
            changes_since(*asked, jumps(cluster))
    changes = changes_since(*asked, jumps(cluster), most_left=is_most)
    assert changes.left.keys() == expected
    told["resumed"] += 1
    there = access_to(*(name for name in state.order.nodes if name not in changes.left))
    return resume(state, there, cluster.tools(), changes=changes)


def sound(cluster: Cluster, end: RunState, at_start: set[str], told: Counter[str]) -> None:
    plan, changed = cluster.plan, cluster.changed()
    known = replay(cluster.site.journal, "r1")
    assert known == replace(end, now=known.now), "law 10"
    assert changed <= plan.nodes.keys() - at_start, "bytes for another node"
    assert not [name for name, words in cluster.machines.asked if words["verb"] == "refused-apply"]
    states = Counter(record.state for record in end.nodes.values())
    told.update(f"ended {state}" for state in states)
    for name, record in end.nodes.items():
        left = name not in cluster.now or cluster.known[name] != plan.nodes[name].machine_id
        if record.cause is not None:
            assert left, "a node that stayed is charged"
            assert record.state is NodeState.UNREACHABLE, "what vanished in flight"
            assert record.touched, "the journal shows no apply that was sent to it"
        elif left:
            assert record.state is NodeState.GONE
    if not any(record.cause for record in end.nodes.values()):
        shown = end.halt is not None and end.halt.reference == "nothing-shown"
        assert end.ending is Ending.DONE or shown, end.halt
        if shown:
            assert end.halt is not None
            unshown = {plan.nodes[name].group for name in names_in(end.halt.message)}
            confirmed = {plan.nodes[name].group for name, words in cluster.machines.asked if words["verb"] == "confirm"}
            assert not unshown & confirmed, end.halt
        if end.ending is Ending.DONE:
            assert states.keys() <= {NodeState.CONFIRMED, NodeState.GONE}
            assert exit_code(end) == 0
            told["done"] += 1
        else:
            told["nothing shown"] += 1
    else:
        told["charged in flight"] += 1
    left_out = {name for left in end.order.left_out for name in expand(left.nodes)}
    assert left_out == at_start


def roll_back(cluster: Cluster, end: RunState, told: Counter[str]) -> None:
    told += Counter(kind for kind, _ in cluster.changes("leave", "join", "rename"))
    order = rollback_order(end, "r2", None, cluster.inventory(), Limits(per_rack=PER_RACK), force=False)
    reported = {name for left in order.left_out for name in expand(left.nodes)}
    may_have = {name for name, record in end.nodes.items() if record.state is not NodeState.PENDING}
    assert may_have <= order.nodes.keys() | reported, "a node that may have the change is neither reverted nor named"
    assert order.nodes.keys() <= cluster.now.keys()
    if order.nodes:
        done = start_revert(order, end.counter + 1, access_to(*order.nodes), cluster.site.tools())
        for name, record in done.nodes.items():
            assert record.state in (NodeState.REVERTED, NodeState.SKIPPED)
            agent = cluster.machines.agents.get(name)
            assert agent is None or agent.state in ("", "reverted")
        assert (exit_code(done) == 4) == bool(reported)
        told["rolled back"] += 1


def test_drawn_fleets_that_change_keep_the_law(tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    for seed in range(examples(40)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            told += one_day(seed, folder)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    wanted = ("leave", "join", "replace", "rename", "refused", "resumed", "done", "rolled back", "ended gone")
    assert examples(40) < 40 or all(told[each] for each in wanted), told


# ------------------------------------------------------------------------------------------ single cases


THREE = replace(SMALL, budgets=NEVER_CHARGED)
ACCESS = access_to("n1", "n2", "n3")


def at(tmp_path: Path, **says: RemoteAnswer) -> Site:
    site = Site(SqlJournal(tmp_path))
    site.nodes.says = {(node, verb): said for name, said in says.items() for node, verb in [tuple(name.split("_"))]}
    return site


def test_a_node_that_leaves_before_its_change_is_charged_to_nothing(tmp_path: Path) -> None:
    site = at(tmp_path, n3_apply=SILENT)
    end = start_apply(THREE, ACCESS, replace(site.tools(), lists=lambda name, _: IS_GONE if name == "n3" else ""))
    assert (end.ending, end.nodes["n3"].state, end.nodes["n3"].reference) == (Ending.DONE, NodeState.GONE, GONE)
    assert exit_code(end) == 0
    assert end.fewer.racks == {"r": 2}


def test_a_wave_of_which_every_node_left_has_shown_nothing(tmp_path: Path) -> None:
    site = at(tmp_path, n1_apply=SILENT, n2_apply=SILENT, n3_apply=SILENT)
    end = start_apply(THREE, ACCESS, replace(site.tools(), lists=lambda *_: IS_GONE))
    assert end.halt is not None
    assert end.halt.message.endswith(
        "1 node left unchanged (no longer in the fleet), and no other node of the same kind was changed"
    )


def test_a_node_that_does_not_answer_and_is_still_listed_is_charged(tmp_path: Path) -> None:
    end = start_apply(THREE, ACCESS, at(tmp_path, n3_apply=SILENT).tools())
    assert (end.ending, end.nodes["n3"].state) == (Ending.HALTED, NodeState.UNREACHABLE)


def test_a_node_that_vanishes_in_flight_is_charged_although_it_is_no_longer_listed(tmp_path: Path) -> None:
    """Nobody can tell a smaller fleet from a node that the change has ended."""
    site = at(tmp_path)
    state = site.killed("n1", Verb.APPLY)
    inventory = Inventory("c", "v1.34.2", {name: Node(name, name, "r", "z") for name in ("n2", "n3")}, {}, (), "d")
    changes = changes_since(state, site.journal, inventory, {})
    end = resume(state, access_to("n2", "n3"), site.tools(), changes=changes)
    assert (end.nodes["n1"].state, end.nodes["n1"].cause) == (NodeState.UNREACHABLE, Cause.UNREACHABLE)
    assert end.nodes["n1"].owed


def test_a_confirmed_node_that_left_is_gone_and_is_read_when_it_is_back(tmp_path: Path) -> None:
    site = at(tmp_path)
    state = site.killed("n3", Verb.CONFIRM)
    there = {name: Node(name, name, "r", "z") for name in ("n2", "n3")}
    away = Inventory("c", "v1.34.2", there, {}, (), "d")
    site.dies_at = ("n2", Verb.READ)
    with pytest.raises(KilledError):
        resume(state, access_to("n2", "n3"), site.tools(), changes=changes_since(state, site.journal, away, {}))
    site.answers, site.dies_at = [], None
    again = replay(site.journal, "r1")
    assert (again.nodes["n1"].state, again.nodes["n1"].cause) == (NodeState.GONE, None)
    assert again.fewer.racks == {"r": 2}
    back = replace(away, nodes={**there, "n1": Node("n1", "n1", "r", "z")})
    end = resume(again, ACCESS, site.tools(), changes=changes_since(again, site.journal, back, {}))
    assert (end.ending, {record.state for record in end.nodes.values()}) == (Ending.DONE, {NodeState.CONFIRMED})


class DiesInTheSoak(Site):
    """The controller is killed when the canary, n1, is measured after its confirm."""

    soaks = True

    def submit(self, worker: Worker, command: Command) -> None:
        super().submit(worker, command)
        confirmed = self.nodes.agents["n1"].state == "confirmed" if "n1" in self.nodes.agents else False
        if self.soaks and confirmed and isinstance(command, Ask) and command.verb is Verb.MEASURE:
            raise KilledError


def gone_in_the_soak(tmp_path: Path, plan: Plan) -> RunState:
    """The controller dies in the soak of the canary, n1, which then leaves; the end of the resumed run."""
    site = DiesInTheSoak(SqlJournal(tmp_path))
    with pytest.raises(KilledError):
        start_apply(plan, ACCESS, site.tools())
    site.answers, site.soaks = [], False
    state = replay(site.journal, "r1")
    assert state.nodes["n1"].state is NodeState.CONFIRMED
    there = {name: Node(name, name, "r", "z") for name in ("n2", "n3")}
    away = Inventory("c", "v1.34.2", there, {}, (), "d")
    changes = changes_since(state, site.journal, away, {})
    return resume(state, access_to("n2", "n3"), site.tools(), changes=changes)


def test_a_node_that_was_confirmed_before_it_left_has_shown_its_kind(tmp_path: Path) -> None:
    end = gone_in_the_soak(tmp_path, THREE)
    assert (end.ending, end.halt, end.nodes["n1"].state) == (Ending.DONE, None, NodeState.GONE)
    assert {end.nodes[name].state for name in ("n2", "n3")} == {NodeState.CONFIRMED}
    assert exit_code(end) == 0


def test_a_node_that_was_rehearsed_and_confirmed_before_it_left_has_shown_its_kind(tmp_path: Path) -> None:
    end = gone_in_the_soak(tmp_path, replace(THREE, rehearsal=True))
    assert (end.ending, end.halt, end.nodes["n1"].state) == (Ending.DONE, None, NodeState.GONE)


def test_a_node_that_left_before_its_rehearsal_has_not_shown_its_kind(tmp_path: Path) -> None:
    """n1 is confirmed and waits for its rehearsal while n2, of another kind, is changed. n3 is of the kind of n1."""
    nodes = {
        name: replace(node, group="g2" if name == "n2" else "g1", wave=int(name == "n3"))
        for name, node in THREE.nodes.items()
    }
    waves = (Wave("canary", ("n1", "n2"), 1.0), Wave("rest", ("n3",), 1.0))
    plan = replace(
        THREE, groups=(G1, G2), nodes=nodes, waves=waves, rehearsal=True, limits=replace(THREE.limits, in_flight=1)
    )
    site = at(tmp_path)
    site.dies_at = ("n2", Verb.APPLY)
    with pytest.raises(KilledError):
        start_apply(plan, ACCESS, site.tools())
    site.answers, site.dies_at = [], None
    state = replay(site.journal, "r1")
    assert (state.nodes["n1"].state, state.nodes["n1"].rehearsal) == (NodeState.CONFIRMED, Rehearsal.NONE)
    there = {name: Node(name, name, "r", "z") for name in ("n2", "n3")}
    changes = changes_since(state, site.journal, Inventory("c", "v1.34.2", there, {}, (), "d"), {})
    end = resume(state, access_to("n2", "n3"), site.tools(), changes=changes)
    assert end.halt is not None
    assert end.halt.message.endswith(
        "n1: 1 node not rehearsed (no longer in the fleet), and no other node of the same kind was changed"
    )
    assert end.nodes["n3"].state is NodeState.PENDING


def test_a_node_that_refuses_because_it_is_another_machine_is_charged_to_nothing(tmp_path: Path) -> None:
    site = at(tmp_path, n3_apply=answer("apply", "refused machine-id-changed another machine"))
    end = start_apply(THREE, ACCESS, site.tools())
    assert (end.ending, end.nodes["n3"].state, end.nodes["n3"].cause) == (Ending.DONE, NodeState.GONE, None)
    assert end.nodes["n3"].reference == "machine-id-changed"
    assert site.nodes.agents["n3"].claim.endswith(" ended"), "that machine has answered, and keeps no claim of ours"


def test_a_list_with_fewer_than_half_of_the_runs_machines_does_not_show_that_they_left(tmp_path: Path) -> None:
    """It is of another cluster, or another selector chose it. The run would be done, with nodes that nothing has measured."""
    site = at(tmp_path)
    state = site.killed("n2", Verb.APPLY)
    left = {name: Node(name, name, "r", "z") for name in ("n1", "other-1", "other-2")}
    for nodes in (left, {name: left[name] for name in ("other-1", "other-2")}):
        with pytest.raises(UsageError) as caught:
            changes_since(state, site.journal, Inventory("c", "v1.34.2", nodes, {}, (), "d"), {})
        assert caught.value.reference == "most-nodes-unlisted"
    elsewhere = Inventory("c", "v1.34.2", left, {}, (), "d")
    changes = changes_since(state, site.journal, elsewhere, {}, most_left=True)
    assert list(changes.left) == ["n2", "n3"], "the operator knows that they left"
    known = {name: Node(name, name, "r", "z") for name in ("n1", "n2", "n3")}
    others = Inventory("c", "v1.34.2", known, {}, (), "d", machines=dict.fromkeys(known, "another"))
    with pytest.raises(UsageError, match="lists 3 nodes, and 0 of the 3 machines of run r1"):
        changes_since(state, site.journal, others, {})


def test_nodes_that_were_gone_before_are_not_counted_again(tmp_path: Path) -> None:
    site = at(tmp_path)
    state = site.killed("n3", Verb.APPLY)
    there = {name: Node(name, name, "r", "z") for name in ("n2", "n3")}
    away = Inventory("c", "v1.34.2", there, {}, (), "d")
    site.dies_at = ("n2", Verb.READ)
    with pytest.raises(KilledError):
        resume(state, access_to("n2", "n3"), site.tools(), changes=changes_since(state, site.journal, away, {}))
    again = replay(site.journal, "r1")
    assert again.nodes["n1"].state is NodeState.GONE
    assert changes_since(again, site.journal, replace(away, nodes={"n2": there["n2"]}), {}).left.keys() == {"n1", "n3"}


def test_a_kept_list_without_a_node_does_not_show_that_the_node_left(tmp_path: Path) -> None:
    site = at(tmp_path)
    state = site.killed("n2", Verb.APPLY)
    old = Inventory(
        "c", "v1.34.2", {"n1": Node("n1", "n1", "r", "z")}, {}, (), "d", remembered="2026-11-01 10:00:00 UTC"
    )
    with pytest.raises(UsageError) as caught:
        changes_since(state, site.journal, old, {})
    assert caught.value.reference == "not-in-inventory"
    assert "the node list of 2026-11-01 10:00:00 UTC does not have n[2-3]" in str(caught.value)
