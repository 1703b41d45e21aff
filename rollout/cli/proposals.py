"""Commands that a text proposes, with the options of this command line: they reach the same nodes and the same journal.

A text for people says ``rollout resume RUN``. It does not know how this command was called. ``say``, the printing of
errors and pages add what was given here, typed or by a variable, and the proposed command accepts: it is often typed in another
shell, without these variables. What ``rollout.toml`` or the default says is not repeated. Documents for programs are printed with ``click.echo``, as they are.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeGuard, TypeVar

import click

from rollout.cli.table_group import TableGroup
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.errors import RolloutError

if TYPE_CHECKING:
    from rollout.core.reading.project_file import ProjectKey

P = ParamSpec("P")
T = TypeVar("T")

REPEATED = frozenset(
    {
        "ssh_config", "accept_new", "ask_sudo_password", "sudo_password_file", "engine", "scheduler", "certificates",
        "kubeconfig", "state", "journal",
    }
)  # fmt: skip
"""Options that say how nodes are reached, and where the journal is."""

_PROPOSED = re.compile(r"(?<![\w/.-])rollout(?P<words>(?: [a-z][a-z-]*)+)(?P<rest>[^`;\n]*)")
"""A proposed command ends at a backtick, a semicolon or the end of the line."""


@dataclass(frozen=True)
class Proposals:
    """``arguments``: this command line, without the program.

    ``elsewhere``: the reader may be in another folder, as of a page.
    """

    program: click.Group
    arguments: Sequence[str]
    elsewhere: bool = False

    @cached_property
    def given(self) -> Mapping[str, str]:
        """Name of an option in ``REPEATED`` that was given → the words that give it again, quoted for a shell."""
        return {**self._of_variables(), **self._typed()}

    def _of_variables(self) -> Mapping[str, str]:
        from rollout.core.reading.project_file import PROJECT_KEYS  # noqa: PLC0415 - only for a text with a proposal

        values = {name: (key, os.environ.get(key.variable)) for name, key in PROJECT_KEYS.items() if name in REPEATED}
        return {
            name: f"{key.option} {self._written(name, value)}"
            for name, (key, value) in values.items()
            if value and not _holds_anyway(name, value, elsewhere=self.elsewhere)
        }

    def _written(self, name: str, value: object) -> str:
        from rollout.core.reading.project_file import PROJECT_KEYS  # noqa: PLC0415 - only for a command line with such an option

        key = PROJECT_KEYS.get(name)
        is_path = key is not None and key.is_path
        text = os.path.abspath(str(value)) if self.elsewhere and is_path else str(value)  # noqa: PTH100 - Path's resolves links
        return shlex.quote(printable(text, LONGEST_PATH))

    def _typed(self) -> Mapping[str, str]:
        command: click.Command = self.program
        rest, found = list(self.arguments), dict[str, str]()
        context = None
        while True:
            context = click.Context(command, parent=context, **command.context_settings)
            below = command.get_command(context, rest[0]) if _by_first_word(command) and rest else None
            if below is not None:
                command, rest = below, rest[1:]
                continue
            try:
                values, rest, _ = command.make_parser(context).parse_args(rest)
            except click.UsageError:
                return found
            for option in command.params:
                if (
                    option.name in REPEATED
                    and option.name in values
                    and not _holds_anyway(option.name, values[option.name], elsewhere=self.elsewhere)
                ):
                    is_flag = isinstance(option, click.Option) and option.is_flag
                    value = "" if is_flag else f" {self._written(option.name, values[option.name])}"
                    found[option.name] = f"{option.opts[0]}{value}"
            below = command.get_command(context, rest[0]) if isinstance(command, click.Group) and rest else None
            if below is None:
                return found
            command, rest = below, rest[1:]

    def carried(self, text: str) -> str:
        """``text`` with these options in each command that it proposes, right after the command's name."""
        return _PROPOSED.sub(self._again, text) if "rollout " in text and self.given else text

    def _again(self, proposed: re.Match[str]) -> str:
        from rollout.cli.parameter_table import PARAMETERS  # noqa: PLC0415 - only for a command line with such an option

        words = proposed["words"].split()
        depth = next((count for count in range(len(words), 0, -1) if " ".join(words[:count]) in PARAMETERS), 0)
        if not depth:  # the word "rollout" in a sentence, which may propose a command further on
            return f"rollout{self.carried(proposed[0].removeprefix('rollout'))}"
        rest = "".join(f" {word}" for word in words[depth:]) + proposed["rest"]
        mine, _, more = rest.partition(" rollout ")  # two commands in one sentence
        more = more and self.carried(f" rollout {more}")
        has = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", mine))
        again = [
            self.given[listed.name]
            for listed in PARAMETERS[" ".join(words[:depth])].parameters
            if listed.name in self.given and not has.intersection(listed.options)
        ]
        return " ".join(["rollout", *words[:depth], *again]) + mine + more


def _holds_anyway(name: str, value: object, *, elsewhere: bool) -> bool:
    """Whether ``rollout.toml`` says the same, or the default where the folder is this one, and no variable says otherwise."""
    from rollout.composition.project import project_at  # noqa: PLC0415 - only for a command line with such an option
    from rollout.core.reading.project_file import PROJECT_KEYS  # noqa: PLC0415

    key = PROJECT_KEYS.get(name)
    if key is None:
        return False
    try:
        project = project_at(Path())
    except RolloutError:  # of a file that cannot be read: this command has told it
        return False
    written = project.values.get(name)
    other = written.value if written else "" if elsewhere else project.default(name)
    return all(_same(key, each, value) for each in (other, os.environ.get(key.variable) or other))


def _same(key: ProjectKey, one: str, other: object) -> bool:
    if key.is_path and one:
        return os.path.abspath(one) == os.path.abspath(str(other))  # noqa: PTH100 - Path's resolves links
    return one == other


def _by_first_word(command: click.Command) -> TypeGuard[TableGroup]:
    return isinstance(command, TableGroup) and command.by_first_word


def proposals_here() -> Proposals | None:
    """Those of the command that runs now; ``None``: it was not called by ``rollout`` itself."""
    context = click.get_current_context(silent=True)
    return context.find_object(Proposals) if context is not None else None


def carried(text: str) -> str:
    """``Proposals.carried`` of the command that runs now."""
    here = proposals_here()
    return here.carried(text) if here is not None else text


def carried_elsewhere() -> Callable[[str], str]:
    """The same for texts that are read in another shell. Any thread may call it."""
    here = proposals_here()
    return replace(here, elsewhere=True).carried if here is not None else str


def in_any_thread(call: Callable[P, T]) -> Callable[P, T]:
    """``call`` as a part of the command that runs now: click knows the command in the thread of its start only."""
    context = click.get_current_context()

    def within(*given: P.args, **named: P.kwargs) -> T:
        with context.scope(cleanup=False):
            return call(*given, **named)

    return within


def is_for_programs() -> bool:
    """Whether standard output has documents, or Markdown: a text for people is printed beside it then."""
    context = click.get_current_context(silent=True)
    return context is not None and context.params.get("output", "text") != "text"


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text for people."""
    click.echo(carried(text), err=err or is_for_programs(), nl=nl)
