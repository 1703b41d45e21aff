"""The command line: parses arguments, calls the command and exits. Only this module turns errors into exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module

import click

from rollout import __version__
from rollout.core.text.terminal import printable
from rollout.errors import RolloutError

INTERNAL = 70
INTERRUPTED = 130


COMMANDS = {
    "abort": "control:abort",
    "apply": "runs:apply",
    "check": "check:check",
    "continue": "control:continue_",
    "exec": "commands:exec_",
    "explain": "explain:explain",
    "export": "export:export",
    "forget": "upkeep:forget",
    "lab": "lab:lab",
    "pause": "control:pause",
    "plan": "plan:plan",
    "recover": "runs:recover",
    "report": "report:report",
    "resume": "runs:resume",
    "rollback": "rollback:rollback",
    "schema": "schema:schema",
    "simulate": "simulate:simulate",
    "ssh": "commands:ssh",
    "status": "status:status",
    "unlock": "upkeep:unlock",
    "verify": "upkeep:verify",
    "watch": "control:watch",
}
"""Name → module of this package and the command in it. Only the command that is called is imported."""

ALIASES = {"catch-up": "recover"}
"""Old name → the command that it still calls. ``--help`` does not list old names."""


class Commands(click.Group):
    """The commands of ``COMMANDS``, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"rollout.cli.{module}"), attribute)
        if not isinstance(found, click.Command):
            raise TypeError(COMMANDS[name])
        return found


@click.group(cls=Commands)
@click.version_option(__version__)
def cli() -> None:
    """Change kubelet configuration on a fleet: exact plans, guarded nodes, staged apply, rollback."""


def main() -> None:
    """Run and exit at once. Threads that wait for hung nodes must not keep the process alive."""
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, broken or missing
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
        click.echo("interrupted; nothing was started", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception:  # noqa: BLE001 - a bug in rollout: print the whole traceback
        traceback.print_exc()
        return INTERNAL
    return code if isinstance(code, int) else 0
