"""``rollout schema``: JSON Schemas for editors."""

from __future__ import annotations

import json

import click

from rollout.core.reading.schemas import SCHEMAS


@click.command()
@click.argument("what", type=click.Choice(sorted(SCHEMAS)))
def schema(what: str) -> None:
    """Print the JSON Schema of an inventory or a playbook, for editors; `rollout check` finds more."""
    click.echo(json.dumps(SCHEMAS[what](), indent=2, ensure_ascii=False))
