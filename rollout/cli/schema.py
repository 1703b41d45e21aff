"""``rollout show schema``: JSON Schemas for editors."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import Any

import click

from rollout.cli.command_table import COMMANDS
from rollout.cli.errors import ErrorDocument
from rollout.cli.registry import REGISTERED, Kinds, registered
from rollout.core.text import documents
from rollout.features.table import schemas


@cache
def all_documents() -> Kinds:
    """That of an error, and those of each command. It imports every command, which takes a second."""
    for listed in COMMANDS.values():
        import_module(f"rollout.{listed.where.partition(':')[0]}")
    return tuple(dict.fromkeys((ErrorDocument, *(kind for name in COMMANDS for kind in REGISTERED[name].documents()))))


def documents_schema() -> dict[str, Any]:
    return documents.schema(all_documents())


_ALL = {**schemas(), "documents": documents_schema}


@registered("Print a JSON Schema of files or of documents.", within="show")
@click.command()
@click.argument("what", type=click.Choice(sorted(_ALL)))
def schema(what: str) -> None:
    """Print a JSON Schema: of an inventory, playbook or sequence, for editors (`rollout check` finds more), or of what `-o json` prints.

    Example: `rollout show schema playbook`
    """
    click.echo(json.dumps(_ALL[what](), indent=2, ensure_ascii=False))
