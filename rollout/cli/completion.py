"""``rollout show completion``: what a shell needs to complete commands, options, clusters, runs, nodesets and settings.

A completion reads files only: no node, no API server, no database server. What cannot be read completes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import shell_completion
from click.shell_completion import BashComplete, CompletionItem

from rollout.cli.from_table import FromTable
from rollout.cli.registry import registered
from rollout.cli.table_group import COMPLETE, FirstWordGroup
from rollout.composition.project import Project, project_at
from rollout.errors import RolloutError

if TYPE_CHECKING:
    from rollout.composition.wiring import Session

SHELLS = ("bash", "zsh", "fish")
MOST = 200
"""Suggestions of one completion: more help nobody."""


class WholeLine(BashComplete):
    """Bash splits words at ``@`` and ``=``, which are part of nodesets and settings; so the line is split here."""

    source_template = files("rollout.cli").joinpath("completion.bash").read_text(encoding="utf-8")

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = shell_completion.split_arg_string(line)[1:]
        if not words or line[-1:].isspace():
            return words, ""
        return words[:-1], words[-1]


@registered("Print the completion script for bash, zsh or fish.", within="show")
@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      bash: source <(rollout show completion bash)         in ~/.bashrc
      zsh:  source <(rollout show completion zsh)          in ~/.zshrc, after compinit
      fish: rollout show completion fish > ~/.config/fish/completions/rollout.fish
    """
    _register()
    root = click.get_current_context().find_root()
    shell_completion.shell_complete(root.command, {}, "rollout", COMPLETE, f"{shell}_source")


def answer(program: click.Command, instruction: str) -> int:
    """The exit code of a call by a shell's script; it prints the suggestions."""
    _register()
    return shell_completion.shell_complete(program, {"obj": FromTable(_completed)}, "rollout", COMPLETE, instruction)


def _register() -> None:
    shell_completion.add_completion_class(WholeLine)


# What the parameters of all commands are completed with, by their names.

Complete = Callable[[click.Context, str], Iterable[str]]


def _completed(command: click.Command, parameter: click.Parameter) -> None:
    if isinstance(command, FirstWordGroup) and isinstance(parameter, click.Argument):
        parameter.shell_complete = partial(_names_and_files, command)  # type: ignore[method-assign]
    known = BY_NAME.get(str(parameter.name))
    if known is not None:
        parameter.shell_complete = partial(_items, known)  # type: ignore[method-assign]


def _names_and_files(group: FirstWordGroup, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
    """The first word may be a command; each may be a file."""
    names = group.shell_complete(ctx, incomplete) if not ctx.params.get("files") else []
    return [*names, CompletionItem(incomplete, type="file")]


def _items(known: Complete, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
    import_module("rollout.composition.kinds").install()  # inventories and plans are read with them
    items: list[CompletionItem[Any]] = []
    try:
        for text in known(ctx, incomplete):
            if text.startswith(incomplete) and len(items) < MOST:
                items.append(CompletionItem(text))
    except (RolloutError, OSError, ValueError):
        return []
    return items


def _files(folder: str) -> Iterator[str]:
    from rollout.app.load import names_in

    yield from names_in(_session(project_at(Path())).files(), folder)


def _clusters(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    yield from _files("inventories")


def _playbooks(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    yield from _files("playbooks")


def _runs(ctx: click.Context, _incomplete: str) -> Iterator[str]:
    project = project_at(Path())
    if ctx.params.get("journal") or _set("journal"):
        return  # a database server
    yield from (header.run for header in _session(project).past_runs().listed())


def _session(project: Project) -> Session:
    from rollout.composition.wiring import Session

    state = Path(_set("state") or project.default("state"))
    return Session(state, None, accept_new=False, output="text", folder=project.folder)


def _set(key: str) -> str:
    from rollout.core.reading.project_file import PROJECT_KEYS

    project = project_at(Path())
    written = project.values.get(key)
    return os.environ.get(PROJECT_KEYS[key].variable) or (written.value if written else "")


_LAST_TERM = re.compile(r"(.*[,&!])?([^,&!]*)", re.DOTALL)


def _nodesets(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The last term of an expression: ``@rack12&@g`` becomes ``@rack12&@gpu``."""
    project = project_at(Path())
    cluster = str(ctx.params.get("cluster") or _set("cluster") or "")
    if not cluster:
        clusters = tuple(_files("inventories"))
        cluster = clusters[0] if len(clusters) == 1 else ""
    if not cluster:
        return
    inventory = _session(project).only_remembered(cluster)
    term = _LAST_TERM.fullmatch(incomplete)
    before = (term[1] or "") if term else ""
    yield from (f"{before}@{name}" for name in sorted(inventory.nodesets))
    yield from (f"{before}{name}" for name in inventory.nodes)


def _settings(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    from rollout.kubelet.explained.explanation import every_name

    yield from sorted(set(every_name()))


def _assignments(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from (f"{name}=" for name in _settings(ctx, incomplete))


BY_NAME: dict[str, Complete] = {
    "cluster": _clusters,
    "limit": _nodesets,
    "node": _nodesets,
    "node_name": _nodesets,
    "nodeset": _nodesets,
    "overrides": _assignments,
    "playbook": _playbooks,
    "run": _runs,
    "runs": _runs,
    "setting": _settings,
}
