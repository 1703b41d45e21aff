"""``rollout plan``: read the nodes, change nothing, write down exactly what would happen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from rollout.adapters.clock import SystemClock
from rollout.adapters.private_files import write_privately
from rollout.app.cluster_context import look_around
from rollout.app.following import last_way_back
from rollout.app.load import INVENTORY_FOLDER, PLAYBOOK_FOLDER, load_policy, names_in
from rollout.app.plan import build_plan, check_preflight
from rollout.app.ports import Files
from rollout.app.reading import snapshot_fleet
from rollout.app.running_configs import with_running
from rollout.cli.gate_backends import ask_backends, check_backends, needs_to_plan
from rollout.cli.options import limit_option, session_options
from rollout.cli.plan_file import read_bounded
from rollout.cli.wiring import Session
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Policy
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.plan_json import plan_json
from rollout.core.plans.plan_text import plan_text
from rollout.core.plans.planning import Preflight
from rollout.core.reading.precedence import parse_override, settings_of
from rollout.core.text.nodesets import fold, select
from rollout.errors import InputError, Problem, UsageError
from rollout.kubelet import versions
from rollout.kubelet.fields import known_minors

HAS_CHANGES = 10
"""Exit code of ``plan --exit-code`` when there is something to do."""
NOT_PLANNED = 4
"""Exit code when there is nothing to do only because nodes were unreachable or refused."""


@click.command()
@click.option("--cluster", required=True, help="Whose nodes.")
@click.option("--playbook", default="", help="Which playbook, if not the inventory's.")
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="One more setting, over all others.")
@limit_option
@click.option("--snapshot", type=click.Path(path_type=Path), default=None, help="Plan from this file; no node is read.")
@click.option("--save-snapshot", type=click.Path(path_type=Path), default=None, help="Keep what was read of the nodes.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Instead of CLUSTER-….plan.json here.")
@click.option(
    "--assume-kubelet", default="", metavar="1.N", help="What kubelets newer than rollout knows are taken for."
)
@click.option("--exit-code", is_flag=True, help="Exit with 10 when there is something to do.")
@session_options
def plan(
    session: Session,
    cluster: str,
    playbook: str,
    overrides: tuple[str, ...],
    limit: str,
    snapshot: Path | None,
    save_snapshot: Path | None,
    out: Path | None,
    assume_kubelet: str,
    exit_code: bool,  # noqa: FBT001 - click's flag
) -> int:
    """Read the nodes, change nothing, write CLUSTER-….plan.json."""
    assumed = _assumed(assume_kubelet)
    files = session.files()
    inventory = session.inventory(cluster)
    policy = load_policy(files, playbook or the_playbook(files, inventory))
    # From a file no machine is asked: then whether one may ask the back ends is seen when applying.
    needs = needs_to_plan(inventory, policy, session.kubeconfig)
    (check_backends if snapshot else ask_backends)(inventory, needs, session.kubeconfig)
    selection = select(limit, inventory) if limit else tuple(inventory.nodes)
    fleet = saved_fleet(snapshot) if snapshot else read_fleet(session, inventory, selection)
    if save_snapshot:
        _write(save_snapshot, snapshot_codec.encode(fleet))
    made = make_plan(session, inventory, policy, fleet, selection, limit, overrides, assumed)
    path = out or Path(plan_codec.file_name(made))
    _write(path, plan_codec.encode(made))
    _show(session, made, path)
    return _exit_code(made, HAS_CHANGES if exit_code else 0)


def _exit_code(made: Plan, with_changes: int) -> int:
    """A plan that changes nothing because its nodes could not be read or planned is not a plan that is carried out already."""
    if made.nodes:
        return with_changes
    return NOT_PLANNED if made.left_out else 0


def the_playbook(files: Files, inventory: Inventory) -> str:
    """The inventory's, or the only one there is."""
    if inventory.playbook:
        return inventory.playbook
    names = names_in(files, PLAYBOOK_FOLDER)
    if len(names) != 1:
        raise UsageError(
            "which-playbook",
            f"say which playbook with --playbook: {', '.join(names) or 'there is none'}",
            hint=f"or, for always, `playbook:` in {INVENTORY_FOLDER}/{inventory.cluster}.yaml",
        )
    return names[0]


def read_fleet(session: Session, inventory: Inventory, selection: Sequence[str]) -> FleetSnapshot:
    """One round trip a node."""
    nodes = session.nodes()
    try:
        fleet = snapshot_fleet(inventory, session.way(inventory, selection), nodes, SystemClock(), session.traces.keep)
    finally:
        nodes.close()
    sources, keep = session.sources(), session.traces.keep
    return with_running(fleet, inventory, session.past(), sources, session.kubeconfig, keep)


def make_plan(
    session: Session,
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    selection: tuple[str, ...],
    limit: str,
    overrides: Sequence[str],
    assumed: int | None = None,
) -> Plan:
    """``assumed``: the minor that kubelets newer than rollout knows are taken for."""
    said = {setting.name: setting for setting in map(parse_override, overrides)}
    known = last_way_back(session.past(), inventory.cluster)
    around = look_around(inventory, session.past(), session.sources(), session.kubeconfig, selection)
    settings = settings_of(inventory, policy, said)
    return build_plan(inventory, policy, fleet, settings, selection, limit, known, around, assumed, session.traces.keep)


def _assumed(text: str) -> int | None:
    """The minor of ``--assume-kubelet 1.37``."""
    if not text:
        return None
    known, found = known_minors(), versions.parse(text)
    if found is None or found.minor not in known:
        span = f"1.{known.start} to 1.{known.stop - 1}"
        raise UsageError(
            "assume-kubelet", f"--assume-kubelet takes a version that rollout knows ({span}), not {text!r}"
        )
    return found.minor


def preflight_text(preflight: Preflight) -> str:
    sick = f"{len(preflight.sick)} of {preflight.selected} nodes are sick or cannot be read"
    return f"{sick}, the playbook's preflight limit is {preflight.most}: {fold(preflight.sick)}"


def saved_fleet(path: Path) -> FleetSnapshot:
    """What ``--save-snapshot`` kept."""
    try:
        return snapshot_codec.decode(read_bounded(path), str(path))
    except OSError as exc:
        raise InputError((Problem("file-missing", f"{path}: {exc.strerror}"),)) from exc


def _write(path: Path, content: bytes) -> None:
    """0600: plans and snapshots hold file contents of nodes."""
    write_privately(path, content)


def _show(session: Session, made: Plan, path: Path) -> None:
    preflight = check_preflight(made)
    if session.output == "json":
        click.echo(json.dumps(plan_json(made, str(path)), indent=2, sort_keys=True, ensure_ascii=False))
        return
    click.echo(plan_text(made))
    if preflight.refused:
        click.echo(f"preflight: {preflight_text(preflight)}; apply would refuse this plan")
    click.echo(f"written: {path}")
    click.echo(f"digest: {plan_codec.digest(made)}")
    if made.nodes and not preflight.refused:
        said = (("--ssh-config", session.ssh_config), ("--kubeconfig", session.kubeconfig))
        how = "".join(f" {option} {shlex.quote(str(value))}" for option, value in said if value)
        click.echo(f"apply it: rollout apply {shlex.quote(str(path))}{how}")
