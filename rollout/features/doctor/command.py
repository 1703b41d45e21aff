"""``rollout doctor``: whether this machine can log in to the nodes, whether they could be changed, and what fixes it."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import click

from rollout.adapters.agent_program import agent_program
from rollout.adapters.clock import SystemClock
from rollout.app.load_playbook import load_policy
from rollout.app.node_access import access_to
from rollout.cli.options import SessionNeeds, limit_option, session_options
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.back_ends import back_ends_to_try
from rollout.composition.wiring import Session
from rollout.core.model.inventory import NO_RACK, Inventory
from rollout.core.text import documents
from rollout.core.text.nodesets import limited
from rollout.errors import RolloutError
from rollout.features.doctor.asking import Visit, examine_back_ends, examine_nodes, sample
from rollout.features.doctor.rules.round_trips import zone_trips
from rollout.features.doctor.words import DoctorDocument, doctor_lines, folded_checks, is_well

TROUBLE = 4
"""Exit code when a check failed or is unknown."""
USUAL_GUARD = 120.0
"""Seconds of a playbook's guard that does not set it."""


@registered("Check how nodes are reached, and what to fix; changes nothing.", prints=(DoctorDocument,))
@click.command()
@cluster_option
@limit_option
@click.option("--all", "every", is_flag=True, help="Read every node instead of three of each kind.")
@partial(session_options, needs=SessionNeeds.STATE | SessionNeeds.WAY | SessionNeeds.SUDO | SessionNeeds.API)
def doctor(session: Session, cluster: str, limit: str, every: bool) -> int:  # noqa: FBT001 - click's flag
    """Check the way in to some nodes of each kind, whether they could be changed, and the back ends of gates.

    Changes nothing on nodes. Each failed check has its reason and the command or the line that fixes it. Exits with 0
    if every check passes, with 4 if one does not.

    Example: `rollout doctor --cluster rno --limit @rack12`
    """
    inventory = session.inventory_or_remembered(cluster)
    selection = limited(limit, inventory)
    chosen = selection if every else sample(inventory, selection)
    with closing(session.ssh_nodes()) as nodes:
        access = access_to(inventory, agent_program(), chosen)
        found = examine_nodes(Visit(access, nodes, SystemClock(), _guard(session, inventory), session.traces.keep))
    with back_ends_to_try(inventory, session.kubeconfig) as back_ends:
        drawn_from = limit if len(chosen) < len(selection) else None
        parts = folded_checks(cluster, (*found.results, *examine_back_ends(*back_ends)), found.ways, drawn_from)
    zones = {name: inventory.nodes[name].zone for name in found.trips}
    trips = zone_trips({name: "" if zone == NO_RACK else zone for name, zone in zones.items()}, found.trips)
    made = DoctorDocument(cluster, is_well(parts), len(selection), chosen, parts, trips)
    if session.output == "json":
        click.echo(documents.page(made))
    else:
        say("\n".join(doctor_lines(made)))
    return 0 if made.ok else TROUBLE


def _guard(session: Session, inventory: Inventory) -> float:
    """A playbook with mistakes is for `rollout check`."""
    try:
        return load_policy(session.files(), inventory.playbook).guard if inventory.playbook else USUAL_GUARD
    except RolloutError:
        return USUAL_GUARD
