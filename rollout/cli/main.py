"""The command line: parses arguments, calls the command and exits. Only this module turns errors into exit codes."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

import click

from rollout import __version__
from rollout.cli.command_table import COMMANDS
from rollout.cli.old_names import renamed, told
from rollout.cli.proposals import Proposals
from rollout.cli.table_group import COMPLETE, ROOT, TableGroup, called
from rollout.core.text.terminal import printable
from rollout.errors import RolloutError, StateError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HELP = frozenset({"-h", "--help"})
INTERNAL = 70
INTERRUPTED = 130

FEWER_COLLECTIONS = (400_000, 50, 50)
"""Thresholds of the garbage collector: a command makes many values that stay and few cycles, and the usual 700 cost a tenth to a fifth of its CPU.
To import everything that a run needs makes 150,000.
"""


def _changes_nodes(arguments: list[str]) -> tuple[bool, bool]:
    """Whether it goes on without anybody who reads its output; whether the same command does the rest of it after an interrupt."""
    name = called(arguments)
    if not name:
        return False, False
    listed = COMMANDS[name]
    changes = any(option in arguments for option in listed.changes_with)
    return changes or not listed.needs_output, changes or listed.goes_on_when_repeated


@click.group(cls=TableGroup, within=ROOT, context_settings={"help_option_names": sorted(HELP, key=len)})
@click.version_option(__version__)
def cli() -> None:
    """Change kubelet configuration on a fleet: exact plans, guarded nodes, staged apply, rollback."""


# Output that cannot be written: its reader is gone, its disk is full, or the stream is closed.


class OptionalOutput(io.BufferedIOBase):
    """Bytes for a stream, while it takes them. What it does not take is dropped: the journal has everything."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def name(self) -> str:
        return self._stream.name

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: ReadableBuffer, /) -> int:
        with suppress(OSError, ValueError):
            self._stream.buffer.write(data)
            self._stream.flush()
        return memoryview(data).nbytes


@contextmanager
def optional_output(*, wanted: bool) -> Iterator[None]:
    """Inside, nothing fails because standard output or standard error cannot be written."""
    before = sys.stdout, sys.stderr
    if wanted:
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(OptionalOutput(each), each.encoding, each.errors, write_through=True) for each in before
        )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_streams() -> None:
    """A closed descriptor would be given to the next file: what is printed must not be written there.

    An encoding without a character, such as Latin-1 without →, must not end a command.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor: this one
            setattr(sys, name, open(descriptor, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run and exit at once. Threads that wait for hung nodes must not keep the process alive."""
    _open_streams()
    gc.set_threshold(*FEWER_COLLECTIONS)
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, broken or missing
            stream.flush()
    os._exit(code)


def _called(arguments: list[str], proposals: Proposals) -> object:
    if sys.platform == "win32":
        hint = "on Windows, install and run it in WSL: https://learn.microsoft.com/windows/wsl"
        raise UsageError("no-windows", "rollout runs on Linux and macOS", hint=hint)
    for word in arguments:
        if word != word.encode("utf-8", "replace").decode("utf-8"):
            message = f"an argument has bytes that are not UTF-8: {printable(word)!r}"
            raise UsageError("command-not-text", message, hint="type it again; the terminal's encoding has to be UTF-8")
    if COMPLETE in os.environ:
        return import_module("rollout.cli.completion").answer(cli, os.environ[COMPLETE])
    if not HELP.isdisjoint(arguments) and import_module("rollout.cli.from_table").is_help_shown(cli, arguments):
        return 0
    return cli.main(arguments, prog_name="rollout", standalone_mode=False, obj=proposals)


def run(arguments: list[str]) -> int:
    """The exit code of a call."""
    if note := told(arguments):
        with optional_output(wanted=True):
            click.echo(note, err=True)
    arguments = renamed(arguments)
    with optional_output(wanted=_changes_nodes(arguments)[0]):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    proposals = Proposals(cli, arguments)
    try:
        code = _called(arguments, proposals)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        import_module("rollout.cli.errors").show_usage_error(exc, proposals)
        return exc.exit_code
    except RolloutError as exc:
        import_module("rollout.cli.errors").show_error(exc, proposals)
        return exc.exit_code
    except (KeyboardInterrupt, click.Abort) as exc:
        asked = not isinstance(exc.__cause__, KeyboardInterrupt)  # click's question was not answered
        halfway = not asked and _changes_nodes(arguments)[1]
        what = "a part may be done already; the same command does the rest" if halfway else "nothing was started"
        click.echo(f"interrupted; {what}", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as exc:  # noqa: BLE001 - a bug in rollout: print the whole traceback
        of_the_system = _of_the_system(exc)
        if of_the_system is not None:
            import_module("rollout.cli.errors").show_error(of_the_system, proposals)
            return of_the_system.exit_code
        traceback.print_exc()
        return INTERNAL
    return code if isinstance(code, int) else 0


def _of_the_system(error: Exception) -> RolloutError | None:
    """What this machine refused, with its reason; ``None``: it is a bug in rollout."""
    if not isinstance(error, OSError):
        return None
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"the output, or a file, could not be written: {error.strerror}"
        return StateError("disk-full", message, hint="free some space and run the same command again")
    if error.filename is None or error.strerror is None:
        return None
    return StateError("file-unusable", f"{error.filename}: {error.strerror}", hint="check this path")
