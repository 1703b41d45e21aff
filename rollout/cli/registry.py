"""A command is declared once, where it stands: ``@registered`` above its function.

It says the command's line in ``rollout --help``, the documents that ``-o json`` prints, and how the command behaves when nobody
reads its output or when it is interrupted. Its name is that of click, after that of the command that it is in: ``cluster freeze``.

``rollout`` must find a command without the import of the others: importing all of them takes a second. So the place and the words
of each command are also in ``rollout/cli/command_table.py``, which ``python -m tests.command_table`` writes from the declarations.
Its help, and what a completion needs of its parameters, is in ``rollout/cli/parameter_table.py``, from the same program.
A test compares them. Nobody edits the tables. Reading the sources at each call would need no table, but every call would pay
for it, and a wheel would need its sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    import click

Kinds = tuple[type, ...]
"""Classes of documents, see ``rollout/core/text/documents.py``."""

AnyCommand = TypeVar("AnyCommand", bound="click.Command")

SECTIONS = {
    "Everyday": ("init", "doctor", "check", "plan", "apply", "status", "watch", "runs", "report", "verify"),
    "During a run": ("approve", "pause", "continue", "abort", "resume"),
    "Emergency": ("rollback", "cluster"),
    "Fleet and tools": (
        "diagnose", "explain", "exec", "ssh", "prepull", "own", "newcomers", "export", "simulate", "lab", "serve",
        "regions", "show", "uninstall",
    ),
}  # fmt: skip
"""The commands in ``rollout --help``, in the order in which people need them."""


class Listed(NamedTuple):
    """What ``rollout`` knows of a command before it is imported."""

    where: str
    """``module:attribute``, without ``rollout.`` before it."""
    line: str
    """In ``rollout --help``."""
    needs_output: bool = True
    """``False``: it changes nodes, so it goes on, and ends with its exit code, where nobody can read what it prints."""
    goes_on_when_repeated: bool = False
    """It changes nodes without a run: nobody knows how far it came when it is interrupted, and the same command does the rest."""
    changes_with: tuple[str, ...] = ()
    """With one of these options it behaves as if ``needs_output`` were false and ``goes_on_when_repeated`` true."""


class ListedParameter(NamedTuple):
    """What help and completions know of an option, or of an argument, before its command is imported."""

    name: str
    options: tuple[str, ...] = ()
    """``()``: an argument."""
    line: str = ""
    """Its help."""
    more: str = ""
    """What its help ends with: the variable, the default."""
    metavar: str | None = None
    """``None``: click's."""
    choices: tuple[str, ...] = ()
    paths: str = ""
    """``file`` or ``dir``: its value is completed with paths."""
    is_flag: bool = False
    several: bool = False
    """It may be given more than once."""
    required: bool = False
    """Of an argument."""


class ListedParameters(NamedTuple):
    """The parameters of one command, and the text of its help. ``is_complete``: it has commands within it, and needs none of them."""

    text: str
    parameters: tuple[ListedParameter, ...]
    is_complete: bool = False


class Registered(NamedTuple):
    """A command after the import of its module."""

    listed: Listed
    prints: Kinds | Callable[[], Kinds]

    def documents(self) -> Kinds:
        """Those that ``-o json`` prints."""
        return self.prints if isinstance(self.prints, tuple) else self.prints()


REGISTERED: dict[str, Registered] = {}
"""Name → command, of every module of commands that is imported."""


def registered(
    line: str,
    *,
    prints: Kinds | Callable[[], Kinds] = (),
    within: str = "",
    needs_output: bool = True,
    goes_on_when_repeated: bool = False,
    changes_with: tuple[str, ...] = (),
) -> Callable[[AnyCommand], AnyCommand]:
    """Register a command of ``rollout``; of a group, ``prints`` has the documents of all its commands.

    ``prints``: a function, if the command itself imports those documents only when it needs them. ``within``: the command that it
    is called through, as ``cluster`` of ``cluster freeze``.
    """

    def register(command: AnyCommand) -> AnyCommand:
        function = command.callback
        if command.name is None or function is None:
            raise TypeError(f"`{line}` is no command")
        where = f"{function.__module__.removeprefix('rollout.')}:{function.__name__}"
        listed = Listed(where, line, needs_output, goes_on_when_repeated, changes_with)
        name = f"{within} {command.name}".strip()
        if REGISTERED.get(name, (listed,))[0] != listed:
            raise TypeError(f"{name} is registered twice: {REGISTERED[name].listed.where}, {where}")
        REGISTERED[name] = Registered(listed, prints)
        return command

    return register
