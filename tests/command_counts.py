"""How many commands and options a person can see in ``rollout --help``: ``python -m tests.command_counts`` prints it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rollout.cli.main import cli


def every_command(name: tuple[str, ...] = (), command: click.Command = cli) -> Iterator[tuple[str, click.Command]]:
    """All commands that do something, with their names such as ``lab fault``."""
    if not isinstance(command, click.Group) or (name and command.invoke_without_command):
        yield " ".join(name), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            if found is not None and not found.hidden:
                yield from every_command((*name, word), found)


def options_of(command: click.Command) -> list[str]:
    return [each.opts[-1] for each in command.params if isinstance(each, click.Option) and not each.hidden]


def counts() -> dict[str, int]:
    found = dict(every_command())
    options = {name: options_of(command) for name, command in found.items()}
    return {
        "commands in `rollout --help`": len(cli.list_commands(click.Context(cli))),
        "commands, those of groups included": len(found),
        "options, each counted in each command": sum(map(len, options.values())),
        "options of different names": len({each for names in options.values() for each in names}),
        "most options of one command": max(map(len, options.values())),
    }


if __name__ == "__main__":
    print("\n".join(f"{count:>6} {what}" for what, count in counts().items()))  # noqa: T201
