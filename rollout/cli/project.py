"""Options that ``rollout.toml`` and a variable can set: made from ``PROJECT_KEYS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rollout.composition.project import Project, project_at
from rollout.core.reading.project_file import PROJECT_KEYS, ProjectKey
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.errors import UsageError

_IN_META = "rollout.cli.project"


def project_here() -> Project:
    """The project of the current folder, read once in a call."""
    context = click.get_current_context(silent=True)
    if context is None:
        return project_at(Path())
    if _IN_META not in context.meta:
        context.meta[_IN_META] = project_at(Path())
    project: Project = context.meta[_IN_META]
    return project


class ProjectOption(click.Option):
    """The option wins, then the variable, then ``rollout.toml``, then the default."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            if self.name != "cluster":
                raise
            raise no_cluster() from None

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        name = str(self.name)
        if source is not ParameterSource.DEFAULT or ctx.resilient_parsing:
            return value, source
        project = project_here()
        if name in project.values:
            return project.values[name].value, ParameterSource.DEFAULT_MAP
        default = project.default(name)
        return (default, source) if default else (value, source)


def project_option(name: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option of a key. ``more``: what click's option takes and the key does not set."""
    key = PROJECT_KEYS[name]
    shown = {"show_default": True} if key.default and key.is_path else {}
    settings = {
        "type": _type(key),
        "default": _default(key),
        "envvar": key.variable,
        "show_envvar": True,
        "help": key.meaning,
        **shown,
        **more,
    }
    if settings.get("required"):
        del settings["default"]
    return click.option(key.option, name, cls=ProjectOption, **settings)


def _type(key: ProjectKey) -> Any:
    if key.choices:
        return click.Choice(list(key.choices))
    if key.name == "kubeconfig":  # ``""`` is none, and messages repeat what was written
        return click.Path()
    return click.Path(path_type=Path) if key.is_path else None


def _default(key: ProjectKey) -> object:
    if not key.is_path or key.name == "kubeconfig":
        return key.default
    return Path(key.default) if key.default else None


def no_cluster() -> UsageError:
    """The command is about one cluster, and none was named: those of this folder, or that it is no project's."""
    project = project_here()
    known = [printable(name, 60) for name in project.clusters()]
    if known:
        several = f" or one of {', '.join(known[1:9])}" if known[1:] else ""
        hint = f"`--cluster {known[0]}`{several}; `cluster` in rollout.toml is that of commands that name none"
    else:
        where = "this folder" if project.file is None else printable(str(project.folder), LONGEST_PATH)
        hint = f"{where} has no inventory: run it in the folder of a project, or make one with `rollout init`"
    return UsageError("no-cluster", "no cluster was named", hint=hint)


def is_typed(option: str) -> bool:
    """Whether the option is on this command line. What variables and ``rollout.toml`` set is only for commands that need it."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


output_option = project_option("output")
cluster_option = project_option("cluster", required=True)
