"""The tables of commands and of their parameters, from their declarations: ``python -m tests.command_table`` writes them."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import cleandoc

import click

import rollout.cli
import rollout.features
from rollout.cli.registry import REGISTERED, SECTIONS, Listed, ListedParameter
from tests.places import ROOT

PARAMETERS_FILE = ROOT / "rollout/cli/parameter_table.py"
PARAMETERS_HEAD = '"""The help of each command, and what completions need of its parameters: `python -m tests.command_table` writes this file."""'
FILE = ROOT / "rollout/cli/command_table.py"
HEAD = '"""Every command of ``rollout``: `python -m tests.command_table` writes this file, see ``rollout/cli/registry.py``."""'


def declared() -> Mapping[str, Listed]:
    """Name → what is listed, of each command in a module of ``rollout.cli`` or of a feature."""
    own = (module.name for module in pkgutil.iter_modules(rollout.cli.__path__, "rollout.cli."))
    features = (module.name for module in pkgutil.walk_packages(rollout.features.__path__, "rollout.features."))
    commands = (name for name in features if "command" in name.split("."))
    for name in (*own, *commands):
        if name not in ("rollout.cli.__main__", "rollout.cli.main"):
            import_module(name)
    at_the_top = {name for name in REGISTERED if " " not in name}
    in_help = [name for names in SECTIONS.values() for name in names]
    assert sorted(in_help) == sorted(at_the_top), "SECTIONS of rollout/cli/registry.py lists each command once"
    return {name: REGISTERED[name].listed for name in sorted(REGISTERED)}


def text(commands: Mapping[str, Listed]) -> str:
    rows = "".join(f"    {_quoted(name)}: {_row(listed)},\n" for name, listed in commands.items())
    return f"{HEAD}\n\nfrom rollout.cli.registry import Listed\n\n# fmt: off\nCOMMANDS = {{\n{rows}}}\n"


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """This command and those in it that the table of commands does not have: ``lab`` and ``lab up``."""
    yield name, command
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            yield from commands(f"{name} {word}", inner)


def with_parameters() -> Mapping[str, click.Command]:
    """Every command that a line can call."""
    found = {name: _command(listed) for name, listed in declared().items()}
    return {inner: command for name, first in found.items() for inner, command in commands(name, first)}


def _command(listed: Listed) -> click.Command:
    module, _, attribute = listed.where.partition(":")
    found = getattr(import_module(f"rollout.{module}"), attribute)
    assert isinstance(found, click.Command)
    return found


def parameters_text(found: Mapping[str, click.Command]) -> str:
    rows = "".join(
        f"    {_quoted(name)}: ListedParameters({_quoted(cleandoc(command.help or ''))}, (\n"
        + "".join(f"        {_parameter_row(parameter, click.Context(command))},\n" for parameter in command.params)
        + f"    ){', is_complete=True' if getattr(command, 'invoke_without_command', False) else ''}),\n"
        for name, command in found.items()
    )
    names = "ListedParameter, ListedParameters"
    return f"{PARAMETERS_HEAD}\n\nfrom rollout.cli.registry import {names}\n\n# fmt: off\nPARAMETERS = {{\n{rows}}}\n"


def _parameter_row(parameter: click.Parameter, context: click.Context) -> str:
    kind = parameter.type
    option = parameter if isinstance(parameter, click.Option) else None
    line = (option.help or "") if option else ""
    record = option.get_help_record(context) if option else None
    choices = tuple(kind.choices) if isinstance(kind, click.Choice) else ()
    shows_a_value = option is not None and not option.is_flag and not choices
    return _row(
        ListedParameter(
            str(parameter.name),
            options=(*parameter.opts, *parameter.secondary_opts) if option else (),
            line=line,
            more=record[1].removeprefix(line).strip() if record else "",
            metavar=parameter.make_metavar(context) if shows_a_value else parameter.metavar,
            choices=choices,
            paths="" if not isinstance(kind, click.Path) else "file" if kind.file_okay else "dir",
            is_flag=option is not None and option.is_flag,
            several=parameter.multiple or parameter.nargs == -1,
            required=option is None and parameter.required,
        )
    )


def _row(listed: Listed | ListedParameter) -> str:
    """What has no usual value, and what is not as usual."""
    usual = listed._field_defaults
    words = [
        _quoted(value) if key not in usual else f"{key}={_quoted(value)}"
        for key, value in listed._asdict().items()
        if key not in usual or value != usual[key]
    ]
    return f"{type(listed).__name__}({', '.join(words)})"


def _quoted(value: object) -> str:
    if isinstance(value, tuple):
        return f"({''.join(f'{_quoted(each)},' for each in value)})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


if __name__ == "__main__":
    FILE.write_text(text(declared()))
    PARAMETERS_FILE.write_text(parameters_text(with_parameters()))
