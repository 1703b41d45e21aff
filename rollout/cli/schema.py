"""``rollout schema``: JSON Schemas for editors."""

from __future__ import annotations

import json

import click

from rollout.cli.documents import documents_schema
from rollout.cli.registry import registered
from rollout.features.table import schemas

_ALL = {**schemas(), "documents": documents_schema}


@registered("Print a JSON Schema of files or of documents.")
@click.command()
@click.argument("what", type=click.Choice(sorted(_ALL)))
def schema(what: str) -> None:
    """Print a JSON Schema: of an inventory, playbook or sequence, for editors (`rollout check` finds more), or of what `-o json` prints.

    Example: `rollout schema playbook`
    """
    click.echo(json.dumps(_ALL[what](), indent=2, ensure_ascii=False))
