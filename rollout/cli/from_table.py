"""Commands from the table of parameters, for their help and for completions: they parse as the real ones do, and do nothing else.

To import the real ones takes up to 0.5 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from rollout.cli.command_table import COMMANDS
from rollout.cli.parameter_table import PARAMETERS
from rollout.cli.registry import ListedParameter
from rollout.cli.table_group import FirstWordGroup, StandIns, TableGroup
from rollout.errors import RolloutError

TABLE_GROUPS = frozenset(name.rpartition(" ")[0] for name in COMMANDS)
"""Those with commands that the table of commands lists."""


class ListedOption(click.Option):
    """``listed``: its help says the default, the variable and whether it is required, which this option does not know."""

    def __init__(self, listed: ListedParameter) -> None:
        super().__init__(
            [listed.name, *listed.options],
            help=listed.line,
            is_flag=listed.is_flag or None,  # with False, click takes a flag as an option without a value
            multiple=listed.several,
            type=_type(listed),
            metavar=listed.metavar,
        )
        self._more = listed.more

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]}  {self._more}" if self._more else record[1])


class FromTable(StandIns):
    """``completed``: called with each command and each of its parameters."""

    def __init__(self, completed: Callable[[click.Command, click.Parameter], None] | None = None) -> None:
        self._completed = completed

    def command(self, name: str) -> click.Command:
        text, parameters, is_complete = PARAMETERS[name]
        within = {inner.rpartition(" ")[2]: inner for inner in PARAMETERS if inner.rpartition(" ")[0] == name}
        command: click.Command
        if name in TABLE_GROUPS:
            takes_words = any(not parameter.options for parameter in parameters)
            command = (FirstWordGroup if takes_words else TableGroup)(
                name, within=name, invoke_without_command=is_complete
            )
        elif within:
            inside = {word: self.command(inner) for word, inner in within.items()}
            command = click.Group(name, inside, invoke_without_command=is_complete)
        else:
            command = click.Command(name)
        command.help = text
        command.params = [_parameter(listed) for listed in parameters]
        if self._completed is not None:
            for parameter in command.params:
                self._completed(command, parameter)
        return command


def is_help_shown(program: click.Group, arguments: Sequence[str]) -> bool:
    """Show the help that these words ask for. ``False``: they ask for none, or they are wrong, which the real command says."""
    with suppress(click.UsageError, RolloutError):
        code: object = program.main(list(arguments), prog_name="rollout", standalone_mode=False, obj=FromTable())
        return code == 0
    return False


def _parameter(listed: ListedParameter) -> click.Parameter:
    if listed.options:
        return ListedOption(listed)
    return click.Argument(
        [listed.name],
        nargs=-1 if listed.several else 1,
        required=listed.required,
        type=_type(listed),
        metavar=listed.metavar,
    )


def _type(listed: ListedParameter) -> click.ParamType[Any] | None:
    if listed.choices:
        return click.Choice(listed.choices)
    return click.Path(file_okay=listed.paths == "file") if listed.paths else None
