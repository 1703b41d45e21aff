"""Groups with commands from the table: only the command that is called is imported. Help and completions import none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from rollout.cli.command_table import COMMANDS
from rollout.cli.old_names import renamed
from rollout.cli.registry import SECTIONS, Listed
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_ROLLOUT_COMPLETE"
"""Set by a shell's script that asks for completions."""
ROOT = ""


def called(words: Sequence[str]) -> str:
    """The name in the table of the command that these words call; ``""``: none."""
    return next((name for name in (" ".join(words[:2]), *words[:1]) if name in COMMANDS), "")


class StandIns(ABC):
    """The object of a context with stand-ins for the commands of the table: they are not imported."""

    @abstractmethod
    def command(self, name: str) -> click.Command: ...


class TableGroup(click.Group):
    """The commands within another, see the module."""

    by_first_word = False

    def __init__(self, *args: Any, within: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self._within = within

    def _listed(self) -> Mapping[str, Listed]:
        """By the last word of each name, in the order of ``SECTIONS``."""
        if self._within == ROOT:
            return {name: COMMANDS[name] for names in SECTIONS.values() for name in names}
        first = f"{self._within} "
        return {name.removeprefix(first): listed for name, listed in COMMANDS.items() if name.startswith(first)}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self._listed())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        listed = self._listed()
        width = max(map(len, listed))
        for title, names in SECTIONS.items() if self._within == ROOT else [("Commands", tuple(listed))]:
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), listed[name].line) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell's script asks

        names = [
            CompletionItem(name, help=listed.line)
            for name, listed in self._listed().items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = f"{self._within} {cmd_name}".strip()
        listed = COMMANDS.get(name) if " " not in cmd_name else None
        if listed is None:
            return None
        stand_ins = ctx.find_object(StandIns)  # type: ignore[type-abstract]
        if stand_ins is not None:
            return stand_ins.command(name)
        import_module("rollout.composition.kinds").install()
        module, _, attribute = listed.where.partition(":")
        command = getattr(import_module(f"rollout.{module}"), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(listed.where)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self._within == ROOT:
            args = renamed(args)  # of a line that is completed; of one that is called, they are renamed already
        word, listed = args[0], self._listed()
        if word not in listed and not word.startswith("-") and not ctx.resilient_parsing:
            hint, path = did_you_mean(word, listed), f"rollout {self._within}".strip()
            message = f"there is no command `{printable(f'{self._within} {word}'.strip(), 60)}`" + (
                f"; {hint}" if hint else ""
            )
            raise UsageError("no-such-command", message, hint=f"`{path} --help` lists the commands")
        return super().resolve_command(ctx, args)


class FirstWordGroup(TableGroup):
    """A command with arguments of its own, and others within it: the first word decides. A file of that name is ``./NAME``."""

    by_first_word = True
    allow_interspersed_args = True

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        inner = self.get_command(click.Context(self, parent=parent), args[0]) if args else None
        if inner is not None:
            return inner.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        context = super().make_context(info_name, args, parent, **extra)
        if not context.resilient_parsing:
            self._check_order(context)
        return context

    def _check_order(self, context: click.Context) -> None:
        """A command's name after an option would be read as a file."""
        values = (context.params.get(each.name or "") for each in self.params if isinstance(each, click.Argument))
        words = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in values)
        late = next((word for word in words if word in self._listed()), None)
        if late is not None:
            first = f"`{context.command_path} {late}`"
            message = f"{first} is a command: its name stands before all options and files"
            raise UsageError("command-not-first", message, hint=f"a file of this name is `./{late}`")

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return click.Command.collect_usage_pieces(self, ctx)
