"""``rollout check``: every mistake in the files, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rollout.adapters.files import FolderFiles
from rollout.adapters.node_sources import RealSources
from rollout.app.check import Checked
from rollout.app.check import check as check_files
from rollout.core.terminal import counted, printable
from rollout.errors import InputError, Problem

_LONGEST_LINE = 500


@click.command()
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print the result.")
@click.pass_context
def check(context: click.Context, output: str) -> None:
    """Check inventories, playbooks and templates; no node is read."""
    checked = check_files(FolderFiles(Path()), RealSources())
    if output == "json":
        click.echo(json.dumps(_document(checked), indent=2))
    else:
        _print(checked)
    if checked.problems:
        context.exit(InputError.exit_code)


def _print(checked: Checked) -> None:
    for note in checked.not_asked:
        click.echo(printable(note, _LONGEST_LINE), err=True)
    for problem in checked.problems:
        click.echo(printable(str(problem), _LONGEST_LINE), err=True)
    if checked.problems:
        click.echo(counted(len(checked.problems), "mistake"), err=True)
        return
    parts = [
        *(f"{inventory.cluster} ({counted(len(inventory.nodes), 'node')})" for inventory in checked.inventories),
        counted(len(checked.playbooks), "playbook"),
        counted(len(checked.templates), "template"),
    ]
    click.echo(f"ok: {', '.join(parts)}")


def _document(checked: Checked) -> dict[str, object]:
    return {
        "version": 1,
        "ok": not checked.problems,
        "problems": [_problem(problem) for problem in checked.problems],
        "inventories": [
            {"cluster": inventory.cluster, "nodes": len(inventory.nodes)} for inventory in checked.inventories
        ],
        "playbooks": [playbook.name for playbook in checked.playbooks],
        "templates": list(checked.templates),
        "notAsked": list(checked.not_asked),
    }


def _problem(problem: Problem) -> dict[str, object]:
    place = problem.place
    return {
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "reference": problem.reference,
        "message": problem.message,
        "hint": problem.hint,
    }
