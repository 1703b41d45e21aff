"""``rollout show config``: the values that every command starts from, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import click
from click.core import ParameterSource

from rollout.cli.project import output_option, project_here, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.core.reading.project_file import PROJECT_FILE, PROJECT_KEYS, ProjectKey
from rollout.core.text import documents
from rollout.core.text.terminal import printable

_LONGEST = 300


class ConfigSource(StrEnum):
    """What set a value; the first of these that sets one wins."""

    OPTION = "option"
    VARIABLE = "variable"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """A value; ``None``: not set. ``where``: the option, the variable, or file:line:column; ``None`` for a default."""

    key: str
    value: str | None
    source: ConfigSource
    where: str | None
    option: str
    variable: str


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """What ``rollout.toml``, variables and options set. ``file`` is ``None`` without a ``rollout.toml``."""

    folder: str
    file: str | None
    settings: tuple[ConfigPart, ...]


@registered("Show what rollout.toml, variables and options set.", prints=(ConfigDocument,), within="show")
@click.command()
@project_option("cluster")
@project_option("state")
@project_option("journal", metavar="URL")
@project_option("ssh_config")
@project_option("engine")
@project_option("scheduler", metavar="ADDRESS")
@project_option("certificates")
@project_option("kubeconfig")
@output_option
@click.pass_context
def config(context: click.Context, /, output: str, **_values: object) -> None:
    """Show the project's folder and each value that rollout.toml, a variable or an option can set, with its source.

    Example: `rollout show config -o json`
    """
    project = project_here()
    document = ConfigDocument(
        folder=str(project.folder.absolute()),
        file=str(project.file) if project.file else None,
        settings=tuple(_part(context, key) for key in PROJECT_KEYS.values()),
    )
    if output == "json":
        click.echo(documents.page(document))
        return
    where = document.file or f"there is no {PROJECT_FILE} here or above; the current folder counts"
    say(printable(f"project: {document.folder} ({where})", _LONGEST * 2))
    rows = [(part.key, part.value or "not set", part.where or part.source.value) for part in document.settings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for key, value, place in rows:
        say(printable(f"{key:<{widths[0]}}  {value:<{widths[1]}}  {place}", _LONGEST * 3))


_SOURCES = {
    ParameterSource.COMMANDLINE: ConfigSource.OPTION,
    ParameterSource.ENVIRONMENT: ConfigSource.VARIABLE,
    ParameterSource.DEFAULT_MAP: ConfigSource.FILE,
}


def _part(context: click.Context, key: ProjectKey) -> ConfigPart:
    given = context.get_parameter_source(key.name)
    source = _SOURCES.get(given, ConfigSource.DEFAULT) if given else ConfigSource.DEFAULT
    value = context.params[key.name]
    return ConfigPart(key.name, str(value) if value else None, source, _where(source, key), key.option, key.variable)


def _where(source: ConfigSource, key: ProjectKey) -> str | None:
    match source:
        case ConfigSource.OPTION:
            return key.option
        case ConfigSource.VARIABLE:
            return key.variable
        case ConfigSource.FILE:
            return str(project_here().values[key.name].place)
        case ConfigSource.DEFAULT:
            return None
