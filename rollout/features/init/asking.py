"""A new project: its nodes from a kubeconfig, an Ansible inventory, a list of names or a nodeset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rollout.app.check import check
from rollout.app.ports import NodeSources
from rollout.core.reading.ansible_inventory import read_hosts
from rollout.core.reading.found_nodes import FoundNode, FoundNodes, listed, refuse
from rollout.core.text.node_names import node_name_problems
from rollout.core.text.nodesets import NodesetError, expand
from rollout.core.text.terminal import counted, printable
from rollout.core.text.yaml_source import Item, read_yaml
from rollout.errors import Place, Problem
from rollout.features.init.rules.ansible import from_ansible, source_of, templates_of
from rollout.features.init.rules.ansible_groups import chosen
from rollout.features.init.rules.guesses import Guessed, SourceNote, from_api, not_known, some
from rollout.features.init.words.project import SSH_CONFIGS, NewProject, inventory_path, project_texts, ssh_config_path
from rollout.features.init.words.refreshed import of_draft, refreshed
from rollout.features.init.words.ssh_config import is_as_made, ssh_config_text
from rollout.kubelet.fields import known_minors


@dataclass(frozen=True, slots=True)
class Drafted:
    """The files of a project by path, and what was noted of their source."""

    texts: Mapping[str, str]
    nodes: int
    notes: tuple[SourceNote, ...]


def nodes_of_kubeconfig(sources: NodeSources, kubeconfig: str) -> Guessed:
    """Raises ``RemoteError`` if the API server does not answer in time."""
    return from_api(sources.live(kubeconfig, ""))


def nodes_of_ansible(sources: NodeSources, path: str, here: str) -> Guessed:
    """``here``: the current folder. Raises ``InputError`` if the inventory cannot be read in time."""
    hosts = read_hosts(sources.ansible(path), path)
    picked = chosen(hosts)
    if not picked.nodes:
        message = f"{hosts.where}: no host of it is a node: {'; '.join(picked.told) or 'it has no hosts'}"
        refuse([Problem("no-nodes", printable(message, 600))])
    source, guesses = source_of(hosts, picked, path, is_filled=False)
    templates = templates_of(hosts, picked, source)
    if templates:
        hosts.filled = sources.ansible_values(path, templates)
    source, guesses = source_of(hosts, picked, path)
    return from_ansible(hosts, picked, source, guesses, here)


def nodes_of_nodeset(text: str) -> Guessed:
    """The names that ``--nodes`` stands for. Raises ``InputError``."""
    try:
        names = expand(text)
    except NodesetError as error:
        refuse([Problem(flaw.reference, flaw.message, Place("--nodes", 1, 1), flaw.hint) for flaw in error.flaws])
        raise
    refuse(node_name_problems(names, place=Place("--nodes", 1, 1)))
    nodes = tuple(map(FoundNode, names))
    return Guessed(FoundNodes("--nodes", nodes), (not_known("rack and zone", "names do not show them"),))


@dataclass(frozen=True, slots=True)
class RefreshedTexts:
    """Path → the text that is there (``None``: none) and the new one, for files that change.

    ``left``: the same for files that a person has changed. They stay as they are.
    """

    texts: Mapping[str, tuple[str | None, str]]
    notes: tuple[str, ...]
    left: Mapping[str, tuple[str, str]]


def refreshed_texts(cluster: str, guessed: Guessed, inventory: str, ssh_config: str | None) -> RefreshedTexts:
    """``inventory`` and ``ssh_config``: the texts of today. Raises ``InputError``."""
    _check_source(guessed)
    path = inventory_path(cluster)
    if (root := read_yaml(inventory, path).root) is not None and "nodesFrom" in root.entries():
        message = f"{path}: its nodes come from its source in every command"
        refuse([Problem("not-refreshed", message, hint="there is nothing to refresh")])
    made = refreshed(inventory, path, guessed)
    texts: dict[str, tuple[str | None, str]] = {}
    if made.text != inventory:
        texts[path] = (inventory, made.text)
    own = ssh_config_text(guessed)
    left: dict[str, tuple[str, str]] = {}
    if own and own != ssh_config:
        if ssh_config is None or is_as_made(ssh_config):
            texts[ssh_config_path(cluster)] = (ssh_config, own)
        else:
            left[ssh_config_path(cluster)] = (ssh_config, own)
    notes = [
        f"{what} {counted(len(names), 'node')}: {some(names)}"
        for what, names in (("came:", made.came), ("went:", made.went))
        if names
    ]
    return RefreshedTexts(texts, (*notes, *made.notes), left)


def drafted(cluster: str, guessed: Guessed, api_server: str, kubeconfig: str, ssh_config: str = "") -> Drafted:
    """The files of the project. They were checked: mistakes are an ``InputError``, and nothing is to be written.

    ``ssh_config``: the file that ``rollout.toml`` names, if it is another than the one that is made of the source.
    """
    _check_source(guessed)
    notes = guessed.notes
    version = api_server or guessed.api_server
    if not version:
        version = f"v1.{known_minors()[-1]}.0"
        notes = (
            *notes,
            SourceNote(f"apiServer: {version}, the newest that rollout knows; correct it if it is another"),
        )
    own = ssh_config_text(guessed)
    named = ssh_config or (SSH_CONFIGS if own else "")
    texts = project_texts(NewProject(cluster, version, guessed, kubeconfig, named))
    checked = check(_Texts(texts), _NoSources())
    if checked.problems:
        raise of_draft(checked.problems[:20], texts)
    whole = {inventory_path(cluster): texts[inventory_path(cluster)]}
    return Drafted(
        {**whole, **({ssh_config_path(cluster): own} if own else {}), **texts}, len(guessed.found.nodes), notes
    )


def _check_source(guessed: Guessed) -> None:
    """Mistakes of the source are told of the source, not of the draft that nobody sees."""
    listed(guessed.found, Item(None, 1, 1))


class _Texts:
    """Files that are not written yet."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def read(self, path: str) -> str:
        return self._texts[path]

    def exists(self, path: str) -> bool:
        return path in self._texts

    def at(self, path: str) -> str:
        return path

    def list(self, folder: str, suffix: str) -> tuple[str, ...]:
        below = (path.removeprefix(f"{folder}/") for path in self._texts if path.startswith(f"{folder}/"))
        return tuple(sorted(name for name in below if name.endswith(suffix)))


class _NoSources:
    """A drafted inventory lists its nodes itself."""

    def ansible(self, path: str) -> str:
        raise AssertionError(path)

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise AssertionError(path, templates)

    def live(self, kubeconfig: str, context: str) -> tuple[()]:
        raise AssertionError(kubeconfig, context)
