"""``rollout regions``: certificates for a scheduler and workers in a lab, and the workers that are connected."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from rollout.cli.options import SessionNeeds, session_options
from rollout.cli.project import project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.errors import UsageError
from rollout.features.regions.client.certificates import make_certificates
from rollout.features.regions.client.workers import ServedZone, served_zones


@dataclass(frozen=True, slots=True)
class ConnectedWorker:
    """``trouble`` ``""``: it can be used."""

    name: str
    region: str
    address: str
    trouble: str


@dataclass(frozen=True, slots=True)
class RegionWorkersDocument:
    """The workers of regions that a scheduler has now. ``zones``: those of ``--cluster``, none without it."""

    scheduler: str
    workers: tuple[ConnectedWorker, ...]
    zones: tuple[ServedZone, ...]


@registered("Reach nodes through workers in regions: certificates, workers.", prints=(RegionWorkersDocument,))
@click.group()
def regions() -> None:
    """Reach nodes through the workers of regions, on Dask."""


@regions.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    default=("localhost", "127.0.0.1"),
    show_default=True,
    help="Name or address that the certificates are valid for.",
)
def certs(folder: Path, hosts: tuple[str, ...]) -> None:
    """Make a certificate authority for a lab, and certificates for scheduler, workers and controller.

    They are valid for 30 days. The key of the authority is not kept. In production, use your own authority.

    Example: `rollout regions certs lab-certs`
    """
    for made in make_certificates(folder, hosts):
        say(f"written: {printable(str(made), LONGEST_PATH)}")


@regions.command()
@project_option("cluster", help="Also list the zones of this cluster, each with its workers.")
@partial(session_options, needs=SessionNeeds.STATE | SessionNeeds.WORKERS | SessionNeeds.API)
def workers(session: Session, cluster: str) -> int:
    """List the workers of regions, and why one is not used.

    Exits with 4 if a worker cannot be used, or if a zone of the cluster has none.

    Example: `rollout regions workers --cluster rno`
    """
    if session.engine is None:
        raise UsageError(
            "no-scheduler", "there are no workers without --engine dask", hint="add --engine dask --scheduler ADDRESS"
        )
    wanted = session.inventory_or_remembered(cluster).nodes.values() if cluster else ()
    connected = session.region_workers()
    zones = served_zones(connected, sorted({node.zone for node in wanted}))
    found = tuple(
        ConnectedWorker(each.name, each.region, each.address, each.trouble)
        for each in sorted(connected, key=lambda worker: worker.name)
    )
    if session.output == "json":
        click.echo(documents.page(RegionWorkersDocument(session.engine.scheduler, found, zones)))
    else:
        for each in found:
            say(f"{each.name}  region {each.region}  {each.address}  {each.trouble or 'ready'}")
        say(f"{len(found)} connected to {session.engine.scheduler}")
        for zone in zones:
            served = f"region {zone.region}: {printable(', '.join(zone.workers), 400)}"
            notice = f" ({zone.notice})" if zone.notice else ""
            say(f"zone {zone.zone}  {zone.trouble or served}{notice}")
    troubles = [each.trouble for each in found] + [each.trouble for each in zones]
    return 4 if any(troubles) else 0
