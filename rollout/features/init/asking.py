"""A new project: its nodes from a kubeconfig, an Ansible inventory, a list of names or a nodeset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.app.check import check
from rollout.app.ports import NodeSources
from rollout.core.reading.found_nodes import FoundNode, FoundNodes
from rollout.core.text.nodesets import NodesetError, expand
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem
from rollout.features.init import rules
from rollout.features.init.rules import Guessed
from rollout.features.init.words import NewProject, project_texts
from rollout.kubelet.fields import known_minors


@dataclass(frozen=True, slots=True)
class Drafted:
    """The files of a project by path, and the guesses in them."""

    texts: Mapping[str, str]
    nodes: int
    notes: tuple[str, ...]


def nodes_of_kubeconfig(sources: NodeSources, kubeconfig: str) -> Guessed:
    """Raises ``RemoteError`` if the API server does not answer in time."""
    return rules.from_api(sources.live(kubeconfig, ""))


def nodes_of_ansible(sources: NodeSources, path: str) -> Guessed:
    """Raises ``InputError`` if the inventory cannot be read in time."""
    return rules.from_ansible(sources.ansible(path), path)


def nodes_of_names(text: str, file: str) -> Guessed:
    """One name or nodeset a line; ``#`` begins a comment. Raises ``InputError`` with the place of each mistake."""
    names: dict[str, None] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        try:
            names |= dict.fromkeys(expand(word) if word else ())
        except NodesetError as error:
            problems += [
                Problem(flaw.reference, flaw.message, Place(file, number, 1), flaw.hint) for flaw in error.flaws
            ]
    if not names and not problems:
        problems.append(Problem("no-nodes", f"{printable(file)}: there are no names in it"))
    if problems:
        raise InputError(tuple(problems[:20]))
    nodes = tuple(FoundNode(name) for name in names)
    return Guessed(FoundNodes(file, nodes), ("rack and zone: not known, names do not show them",))


def drafted(cluster: str, guessed: Guessed, api_server: str, kubeconfig: str, ssh_config: str = "") -> Drafted:
    """The files of the project. They were checked: mistakes are an ``InputError``, and nothing is to be written."""
    notes = guessed.notes
    version = api_server or guessed.api_server
    if not version:
        version = f"v1.{known_minors()[-1]}.0"
        notes = (*notes, f"apiServer: {version}, the newest that rollout knows; correct it if it is another")
    texts = project_texts(NewProject(cluster, version, guessed.found, kubeconfig, ssh_config))
    checked = check(_Texts(texts), _NoSources())
    if checked.problems:
        raise InputError(checked.problems[:20])
    return Drafted(texts, len(guessed.found.nodes), notes)


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

    def live(self, kubeconfig: str, context: str) -> tuple[()]:
        raise AssertionError(kubeconfig, context)
