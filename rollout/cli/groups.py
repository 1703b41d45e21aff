"""Groups of commands that stand in several modules."""

from __future__ import annotations

import click

from rollout.cli.registry import registered
from rollout.cli.table_group import TableGroup


@registered("Freeze a cluster, lift its freeze, or release it from a run.")
@click.group(cls=TableGroup, within="cluster")
def cluster() -> None:
    """Freeze a cluster for every controller, lift its freeze, or release it from a run without a controller."""


@registered("Show settings, schemas, metrics, or the completion script.")
@click.group(cls=TableGroup, within="show")
def show() -> None:
    """Show what rollout.toml and variables set, JSON Schemas, metrics for Prometheus, or the completion script of a shell."""
