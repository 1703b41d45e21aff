"""The command line: parse, hand over, show, exit. The one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress

import click

from rollout import __version__
from rollout.cli.check import check
from rollout.cli.control import abort, continue_, pause, watch
from rollout.cli.explain import explain
from rollout.cli.export import export
from rollout.cli.lab import lab
from rollout.cli.plan import plan
from rollout.cli.report import report
from rollout.cli.rollback import rollback
from rollout.cli.runs import apply, catch_up, resume, status
from rollout.cli.schema import schema
from rollout.cli.simulate import simulate
from rollout.cli.upkeep import forget, unlock, verify
from rollout.core.text.terminal import printable
from rollout.errors import RolloutError

INTERNAL = 70
INTERRUPTED = 130


@click.group()
@click.version_option(__version__)
def cli() -> None:
    """Change kubelet configuration on a fleet: exact plans, guarded nodes, staged apply, rollback."""


for _command in (
    abort,
    apply,
    catch_up,
    check,
    continue_,
    explain,
    export,
    forget,
    lab,
    pause,
    plan,
    report,
    resume,
    rollback,
    schema,
    simulate,
    status,
    unlock,
    verify,
    watch,
):
    cli.add_command(_command)


def main() -> None:
    """Run and leave with the exit code; threads of hung nodes do not hold the process up."""
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, broken or never there
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of a call."""
    try:
        code = cli.main(arguments, prog_name="rollout", standalone_mode=False)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except RolloutError as exc:
        for line in str(exc).splitlines():
            click.echo(f"error: {printable(line, 1000)}", err=True)
        return exc.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped; nothing was begun", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception:  # noqa: BLE001 - a bug of ours: said in full, with its exit code
        traceback.print_exc()
        return INTERNAL
    return code if isinstance(code, int) else 0
