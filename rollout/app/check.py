"""Finds every mistake in every inventory, playbook and template. Reads files and lists of nodes, but no node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from rollout.app.known_defects import own_defects
from rollout.app.load import (
    INVENTORY_FOLDER,
    PLAYBOOK_FOLDER,
    SUFFIX,
    ask_for_cluster,
    names_in,
)
from rollout.app.load_playbook import load_policy, own_templates
from rollout.app.ports import Files, NodeSources, StartTimes
from rollout.app.shared_machines import SharedMachines
from rollout.core.model.conditions import Condition
from rollout.core.model.inventory import Inventory, Level, Node, Role, role_of
from rollout.core.model.playbook import Policy, Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.plans.roles import seen_role
from rollout.core.reading import rendering
from rollout.core.reading.playbook_file import TEMPLATE_FOLDER, wave_commands
from rollout.core.reading.precedence import settings_of
from rollout.core.text import suggest
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, Place, Problem, RemoteError, RolloutError
from rollout.kubelet import homes
from rollout.kubelet.changes.changes import LeftAlone, ProposalCache
from rollout.kubelet.changes.templated_config import uses_node
from rollout.kubelet.defects.words import REFERENCE as KNOWN_DEFECT
from rollout.kubelet.effects.rules import HARMFUL
from rollout.kubelet.kinds import NodeKind, kinds, kinds_told, model_node, unsupported_api_server
from rollout.kubelet.node.layout import UNIT, VARIABLE

Loaded = TypeVar("Loaded")

_ANY = dict.fromkeys({*rendering.KUBELET_CONFIG, *rendering.FLAGS_ENV, *rendering.DROP_IN})
"""The variables of any template. A playbook that names a template checks it against the exact variables it will get."""


@dataclass(frozen=True, slots=True)
class NodesNotAsked:
    """An inventory with nodes of an API server that was not read, and why."""

    cluster: str
    reference: str
    message: str

    def __str__(self) -> str:
        return f"{self.cluster}: its nodes were not read: {self.message} [{self.reference}]"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The mistakes, in order of file and place, and the files without mistakes."""

    problems: tuple[Problem, ...]
    inventories: tuple[Inventory, ...]
    playbooks: tuple[Policy, ...]
    templates: tuple[str, ...]
    not_asked: tuple[NodesNotAsked, ...] = ()
    shared: tuple[SharedMachines, ...] = ()  # a warning: the files are right, each by itself


def check(
    files: Files,
    sources: NodeSources,
    why_not_run: Callable[[str], str] = lambda _program: "",
    fleet: FleetSnapshot | None = None,
    times: StartTimes | None = None,
) -> CheckResult:
    """Never raises for a mistake in a file. An API server that cannot be read is no mistake.

    ``why_not_run`` returns why a wave gate's program cannot run here, ``""`` if it can. ``fleet``: nodes of one cluster
    as they were read. The nodes of other clusters are tried as models of what they can be. ``times``: what evaluates conditions here.
    """
    problems: list[Problem] = []
    templates = _try(partial(own_templates, files), problems) or {}
    for name, text in templates.items():
        problems += rendering.undefined_variables(text, f"{TEMPLATE_FOLDER}/{name}", _ANY)
    not_asked: list[NodesNotAsked] = []
    clusters = names_in(files, INVENTORY_FOLDER)
    inventories = _load(partial(_cluster, sources=sources, not_asked=not_asked), files, clusters, problems)
    playbooks = _load(load_policy, files, names_in(files, PLAYBOOK_FOLDER), problems)
    for policy in playbooks:
        problems += homes.check(policy.settings)
        problems += homes.check_accepted(policy.accepted, policy.name)
        problems += homes.own_values_for_many(Level(policy.name, None, policy.settings))
    _try(partial(own_defects, files), problems)
    known = names_in(files, PLAYBOOK_FOLDER)
    for name in known:
        _try(partial(_check_programs, files, f"{PLAYBOOK_FOLDER}/{name}{SUFFIX}", why_not_run, problems), [])
    problems += (_unknown_playbook(each, known) for each in inventories if each.playbook not in ("", *known))
    for level in (level for inventory in inventories for level in inventory.levels):
        problems += homes.check(level.settings)
        problems += homes.own_values_for_many(level)
    problems += _unsupported(inventories)
    written = (*(each.conditions for each in inventories), *(each.conditions for each in playbooks))
    for condition in chain.from_iterable(written):
        if times is not None:
            _try(partial(times.check, (condition,)), problems)
        problems += _missing_files(files, condition)
    problems += mistakes(inventories, playbooks, fleet)
    problems += _nothing_there(files)
    ordered = tuple(sorted(set(problems), key=_in_order))
    return CheckResult(ordered, inventories, playbooks, tuple(templates), tuple(not_asked))


def _cluster(files: Files, name: str, *, sources: NodeSources, not_asked: list[NodesNotAsked]) -> Inventory | None:
    try:
        return ask_for_cluster(files, sources, name)
    except RemoteError as error:
        not_asked.append(NodesNotAsked(name, error.reference, error.message))
        return None


def _load(
    load: Callable[[Files, str], Loaded | None], files: Files, names: Iterable[str], problems: list[Problem]
) -> tuple[Loaded, ...]:
    loaded = (_try(partial(load, files, name), problems) for name in names)
    return tuple(value for value in loaded if value is not None)


def _try(load: Callable[[], Loaded], problems: list[Problem]) -> Loaded | None:
    try:
        return load()
    except InputError as error:
        problems.extend(error.problems)
    except RolloutError as error:
        problems.append(Problem(error.reference, error.message, hint=error.hint))
    return None


def _check_programs(files: Files, path: str, why_not_run: Callable[[str], str], problems: list[Problem]) -> None:
    for program, place in wave_commands(files.read(path), path):
        why = why_not_run(program)
        if why:
            message = f"the command of a wave gate, `{printable(program, 80)}`, cannot be run on this machine: {why}"
            problems.append(Problem("gate-command-missing", message, place))


def _unsupported(inventories: Iterable[Inventory]) -> Iterator[Problem]:
    for inventory in inventories:
        if why := unsupported_api_server(inventory.api_server):
            message = f"{INVENTORY_FOLDER}/{inventory.cluster}{SUFFIX}: `apiServer`: {why}"
            yield Problem("api-server-unsupported", message, hint="`kubectl version` prints the server's version")


def _missing_files(files: Files, condition: Condition) -> Iterator[Problem]:
    for name in condition.files:
        if not files.exists(name):
            yield Problem(
                "file-missing", f"`{condition.key}` needs {printable(name, 200)}: no such file", condition.place
            )


def _unknown_playbook(inventory: Inventory, known: Iterable[str]) -> Problem:
    message = f"the inventory names the playbook `{inventory.playbook}`, but {PLAYBOOK_FOLDER} has no such file"
    return Problem(
        "playbook-missing", message, inventory.playbook_place, suggest.did_you_mean(inventory.playbook, known)
    )


def _nothing_there(files: Files) -> list[Problem]:
    """An empty folder would have no mistakes, but it is more likely the wrong directory."""
    if any(names_in(files, folder) for folder in (INVENTORY_FOLDER, PLAYBOOK_FOLDER)):
        return []
    message = f"there is no {INVENTORY_FOLDER}/*.yaml and no {PLAYBOOK_FOLDER}/*.yaml here"
    return [Problem("nothing-to-check", message, hint="run it where these folders are")]


def _in_order(problem: Problem) -> tuple[Place, str]:
    return problem.place or Place("", 0, 0), problem.message


# Tries every playbook, with the planner itself, on each kind of node that its clusters can have.
#
# If the planner refuses a node because of a template or a setting, that is a mistake in a file. It is reported
# once, with the kinds of nodes that it concerns.


_SETTINGS_FAULT = frozenset({"kubelet-would-not-start", "setting-without-effect", KNOWN_DEFECT, HARMFUL})
"""Refusals that a setting causes. The other refusals depend on what is on a node."""

_WITHOUT_HOME = "setting-unsupported"
"""``plan`` shows a setting that has no home on some nodes. If it has no home on any node, it is a mistake."""

_PROBE = Setting("--v", 3, source="a flag that every kubelet has")
"""Makes the templates of flags run even if the settings contain no flags."""

_OF_MODELS = "judged by nodes as kubeadm leaves them; with --snapshot FILE by your nodes' own files"


@dataclass(frozen=True, slots=True)
class _Subject:
    """A node with its settings, either as a model of a kind that it can be (``kind``), or as it was read."""

    node: Node
    settings: Mapping[str, Setting]
    snapshot: Snapshot
    kind: NodeKind | None = None


@dataclass(slots=True)
class _Trial:
    """A playbook on one cluster: everything that was tried, and for each mistake what was refused because of it.

    ``is_named``: some inventory names the playbook, so it is certainly for this cluster.
    """

    cluster: str
    playbook: str
    is_named: bool
    tried: list[_Subject] = field(default_factory=list)
    refused: dict[Problem, list[_Subject]] = field(default_factory=dict)


def mistakes(
    inventories: Iterable[Inventory], playbooks: Iterable[Policy], fleet: FleetSnapshot | None = None
) -> tuple[Problem, ...]:
    """The mistakes in playbooks and templates for the nodes of these clusters. ``fleet``: one cluster as it was read.

    A playbook is tried on every cluster with an inventory that names it. A playbook that no inventory names may be
    for any cluster, so of its settings only those are reported that are refused everywhere.
    """
    clusters = tuple(inventories)
    named = {inventory.playbook for inventory in clusters}
    trials = [
        _tried(inventory, policy, fleet, is_named=policy.name in named)
        for policy in playbooks
        for inventory in clusters
        if inventory.playbook == policy.name or policy.name not in named
    ]
    contradictions = (problem for settings in _distinct(trials).values() for problem in homes.check(settings))
    return tuple(dict.fromkeys([*contradictions, *_folded(trials)]))


def _tried(inventory: Inventory, policy: Policy, fleet: FleetSnapshot | None, *, is_named: bool) -> _Trial:
    trial, proposals = _Trial(inventory.cluster, policy.name, is_named), ProposalCache(policy)
    trial.tried += _subjects(inventory, policy, fleet)
    told = {at for at, settings in _distinct([trial]).items() if homes.check(settings)}
    for subject in trial.tried:
        for problem in _refused(subject, policy, proposals) if id(subject.settings) not in told else ():
            trial.refused.setdefault(problem, []).append(subject)
    return trial


def _distinct(trials: Iterable[_Trial]) -> Mapping[int, Mapping[str, Setting]]:
    """Each distinct mapping of settings, by its identity."""
    return {id(each.settings): each.settings for trial in trials for each in trial.tried}


# What is tried.


def _subjects(inventory: Inventory, policy: Policy, fleet: FleetSnapshot | None) -> Iterator[_Subject]:
    settings = _settings(inventory, policy)
    every = inventory.nodes.values()
    changed = [node for node in every if policy.control_plane or role_of(node.labels) is not Role.CONTROL_PLANE]
    if fleet is not None and fleet.cluster == inventory.cluster:
        read = ((node, fleet.nodes.get(node.name)) for node in changed)
        for node, each in read:
            is_left = not policy.control_plane and seen_role(node, each, None).role is Role.CONTROL_PLANE
            if isinstance(each, Snapshot) and not is_left:
                yield _Subject(node, settings[node.name], each)
        return
    known = kinds(inventory.api_server, changed)
    seen: dict[tuple[NodeKind, int, str], None] = {}
    for node in changed:
        mine = settings[node.name]
        look = _look(policy.templates, mine, node)
        for kind in known.of(node):
            if (kind, id(mine), look) not in seen:
                seen[kind, id(mine), look] = None
                yield _Subject(node, mine, model_node(kind), kind)


def _settings(inventory: Inventory, policy: Policy) -> Mapping[str, Mapping[str, Setting]]:
    """The settings of every node. Nodes with the same settings share one mapping."""
    probed: dict[int, Mapping[str, Setting]] = {}
    settings = settings_of(inventory, policy, {})
    for mine in settings.values():
        if id(mine) not in probed:
            has_flags = any(name.startswith("--") for name in mine)
            probed[id(mine)] = mine if has_flags else {**mine, _PROBE.name: _PROBE}
    return {name: probed[id(mine)] for name, mine in settings.items()}


def _look(templates: Templates, settings: Mapping[str, Setting], node: Node) -> str:
    """What the templates render for this node, without its names. Nodes with the same result are tried once."""
    fields: dict[str, Value] = {name: each.value for name, each in settings.items() if not name.startswith("--")}
    flags: dict[str, Value] = {"variable": VARIABLE, "arguments": ["--v=3"]}
    command: dict[str, Value] = {"exec_start": "/usr/bin/kubelet", "unit": UNIT}
    every = (
        (templates.kubelet_config, {"fields": fields}),
        (templates.flags_env, flags),
        (templates.drop_in, command),
    )
    made = [_rendered(text, {**variables, "node": node}) for text, variables in every if uses_node(text)]
    return "\n".join(made).replace(node.name, "NODE").replace(node.rack, "RACK").replace(node.zone, "ZONE")


def _rendered(text: str, variables: Mapping[str, object]) -> str:
    try:
        return rendering.render(text, "", variables)
    except InputError as error:
        return str(error)


# What is refused.


def _refused(subject: _Subject, policy: Policy, proposals: ProposalCache) -> tuple[Problem, ...]:
    made = proposals.made_for(subject.snapshot, subject.settings, subject.node)
    if not isinstance(made, LeftAlone):
        return ()
    if made.place is not None:
        return (Problem(made.reference, made.reason, made.place),)
    if made.reference not in {*_SETTINGS_FAULT, _WITHOUT_HOME}:
        return ()
    hint = _OF_MODELS if subject.kind and made.reference in _SETTINGS_FAULT else ""
    return (Problem(made.reference, made.reason, _place(made, subject, policy), hint),)


def _place(made: LeftAlone, subject: _Subject, policy: Policy) -> Place:
    """The place of the setting that it is about, in a playbook or inventory, or else in a template."""
    about = made.about or tuple(name for name in subject.settings if re.search(rf"{re.escape(name)}\b", made.reason))
    said = [place for name in about if (setting := subject.settings.get(name)) and (place := setting.place)]
    if said:
        return said[0]
    templates = policy.templates
    for line, text in enumerate(templates.kubelet_config.split("\n"), 1):
        if any(re.search(rf"\b{re.escape(name)}\b", text) for name in about):
            return Place(templates.kubelet_config_name, line, 1)
    return Place(f"{PLAYBOOK_FOLDER}/{policy.name}{SUFFIX}", 1, 1)


# Folding.


def _folded(trials: Sequence[_Trial]) -> Iterator[Problem]:
    """One problem for each place."""
    places: dict[tuple[str, Place | None], list[Problem]] = {}
    for trial in trials:
        for problem in trial.refused:
            places.setdefault((problem.reference, problem.place), []).append(problem)
    for (reference, place), same in places.items():
        refused = [
            (trial, [subject for problem in dict.fromkeys(same) for subject in trial.refused.get(problem, ())])
            for trial in trials
        ]
        told = [(trial, some) for trial, some in refused if some and _counts(reference, trial, refused)]
        if told:
            where = "; ".join(dict.fromkeys(_where(trial, some) for trial, some in told))
            yield Problem(reference, f"{same[-1].message}; this concerns {where}", place, same[-1].hint)


def _counts(reference: str, trial: _Trial, found: Iterable[tuple[_Trial, list[_Subject]]]) -> bool:
    """Whether a refusal on some nodes of this trial is a mistake. A refusal caused by a template always is."""
    if reference not in {*_SETTINGS_FAULT, _WITHOUT_HOME} or (trial.is_named and reference in _SETTINGS_FAULT):
        return True
    asked = [
        (each, some)
        for each, some in found
        if each is trial or (not trial.is_named and each.playbook == trial.playbook)
    ]
    return all(len(some) == len(each.tried) for each, some in asked)


def _where(trial: _Trial, subjects: Sequence[_Subject]) -> str:
    some = [each.kind for each in subjects if each.kind is not None]
    if not some:
        names = [each.node.name for each in subjects]
        return f"{counted(len(names), 'node')} of {trial.cluster}: {printable(fold(names), 200)}"
    every = [each.kind for each in trial.tried if each.kind is not None]
    apart = any(each.kind in some and each not in subjects for each in trial.tried)
    example = f", such as {subjects[0].node.name}" if apart else ""
    return f"{kinds_told(some, every)} of {trial.cluster}{example}"
