"""Finds every mistake in every inventory, playbook and template. Reads files and lists of nodes, but no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rollout.app import trials
from rollout.app.load import (
    INVENTORY_FOLDER,
    PLAYBOOK_FOLDER,
    SUFFIX,
    ask_for_cluster,
    load_policy,
    load_templates,
    names_in,
)
from rollout.app.ports import Files, NodeSources
from rollout.core.model.inventory import Inventory, Level
from rollout.core.model.playbook import Policy
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.reading import rendering
from rollout.core.reading.playbook_file import TEMPLATE_FOLDER, wave_commands
from rollout.core.text import suggest
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem, RemoteError, RolloutError
from rollout.kubelet import homes

Loaded = TypeVar("Loaded")

_ANY = dict.fromkeys({*rendering.KUBELET_CONFIG, *rendering.FLAGS_ENV, *rendering.DROP_IN})
"""The variables of any template. A playbook that names a template checks it against the exact variables it will get."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The mistakes, in order of file and place, and the files without mistakes."""

    problems: tuple[Problem, ...]
    inventories: tuple[Inventory, ...]
    playbooks: tuple[Policy, ...]
    templates: tuple[str, ...]
    not_asked: tuple[str, ...] = ()  # inventories with nodes of an API server that was not read, and why


def check(
    files: Files,
    sources: NodeSources,
    why_not_run: Callable[[str], str] = lambda _program: "",
    fleet: FleetSnapshot | None = None,
) -> CheckResult:
    """Never raises for a mistake in a file. An API server that cannot be read is no mistake.

    ``why_not_run`` returns why a wave gate's program cannot run here, ``""`` if it can. ``fleet``: nodes of one cluster
    as they were read. The nodes of other clusters are tried as models of what they can be.
    """
    problems: list[Problem] = []
    templates = _try(partial(load_templates, files), problems) or {}
    for name, text in templates.items():
        problems += rendering.undefined_variables(text, f"{TEMPLATE_FOLDER}/{name}", _ANY)
    not_asked: list[str] = []
    clusters = names_in(files, INVENTORY_FOLDER)
    inventories = _load(partial(_cluster, sources=sources, not_asked=not_asked), files, clusters, problems)
    playbooks = _load(load_policy, files, names_in(files, PLAYBOOK_FOLDER), problems)
    for policy in playbooks:
        problems += homes.check(policy.settings)
        problems += homes.check_accepted(policy.accepted, policy.name)
        problems += homes.own_values_for_many(Level(policy.name, None, policy.settings))
    known = names_in(files, PLAYBOOK_FOLDER)
    for name in known:
        _try(partial(_check_programs, files, f"{PLAYBOOK_FOLDER}/{name}{SUFFIX}", why_not_run, problems), [])
    problems += (_unknown_playbook(each, known) for each in inventories if each.playbook not in ("", *known))
    for level in (level for inventory in inventories for level in inventory.levels):
        problems += homes.check(level.settings)
        problems += homes.own_values_for_many(level)
    problems += trials.mistakes(inventories, playbooks, fleet)
    problems += _nothing_there(files)
    ordered = tuple(sorted(set(problems), key=_in_order))
    return CheckResult(ordered, inventories, playbooks, tuple(templates), tuple(not_asked))


def _cluster(files: Files, name: str, *, sources: NodeSources, not_asked: list[str]) -> Inventory | None:
    try:
        return ask_for_cluster(files, sources, name)
    except RemoteError as error:
        not_asked.append(f"{name}: its nodes were not read: {error.message} [{error.reference}]")
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
