"""``rollout lab``: a test fleet on this machine's loopback, with the node names of an inventory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from rollout import known_faults
from rollout.cli.options import limit_option
from rollout.cli.project import output_option, project_here, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import cluster_in
from rollout.core.text import documents
from rollout.core.text.nodesets import Names, NodesetError, evaluate, fold, limited
from rollout.errors import UsageError
from rollout.lab import api, control, faults, launch
from rollout.lab.of_cluster import LAB_FOLDER, SSH_CONFIG, serves, specification

API = "api"
"""Names the API server in place of a nodeset."""

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: project_here().folder / LAB_FOLDER,
    help=f"Folder of the lab (default: {LAB_FOLDER}).",
)


@dataclass(frozen=True, slots=True)
class LabStatusDocument:
    """A lab: ``states`` of the kubelets and kinds of ``faults`` with their nodes, as nodesets. ``api``: ``ok``, or its fault."""

    cluster: str
    port: int
    api: str
    states: Mapping[str, str]
    faults: Mapping[str, str]
    connections: int
    commands: int


@dataclass(frozen=True, slots=True)
class LabFaultPart:
    """A fault on ``nodes`` (a nodeset), from ``after_seconds`` on; ``lasting_seconds`` ``None``: until it is cleared."""

    kind: str
    at: str
    after_seconds: float
    lasting_seconds: float | None
    nodes: str


@dataclass(frozen=True, slots=True)
class LabFaultsDocument:
    """The faults that are set. ``api``: ``ok``, or the API server's fault."""

    api: str
    faults: tuple[LabFaultPart, ...]


@registered("Run a test fleet on loopback, with the real agent and SSH.", prints=(LabStatusDocument, LabFaultsDocument))
@click.group()
def lab() -> None:
    """Run a test fleet: one process, on loopback only, with the real agent and real SSH."""


@lab.command()
@project_option("cluster", required=True, help="Serve the nodes of this cluster.")
@limit_option
@click.option(
    "--nodes", "count", type=click.IntRange(1), default=None, help="Serve only this many nodes, the first ones."
)
@click.option(
    "--restart-sec",
    type=click.FloatRange(0.1, 600),
    default=10.0,
    show_default=True,
    help="RestartSec of each kubelet's unit.",
)
@_directory
def up(cluster: str, limit: str, count: int | None, restart_sec: float, directory: Path) -> None:
    """Start the lab in the background and wait until it serves.

    Example: `rollout lab up --cluster rno --limit @rack01`
    """
    inventory = cluster_in(project_here().folder, cluster)
    names = list(limited(limit, inventory)[:count])
    served = specification(inventory, names, restart_sec)
    launch.up(served, directory)
    config = directory / SSH_CONFIG
    say(serves(served))
    only = "" if len(names) == len(inventory.nodes) else f" --limit '{limit if not count else fold(names)}'"
    say(f"  rollout plan --cluster {cluster} --ssh-config {config}{only}")
    say(f"  ssh -F {config} {names[0]} systemctl is-active kubelet")
    say(f"  kubectl --kubeconfig {directory / api.KUBECONFIG} get --raw /api/v1/nodes/{names[0]}")
    where = "" if directory == project_here().folder / LAB_FOLDER else f" --dir {directory}"
    say(f"  rollout lab status{where}; rollout lab down{where}")


@lab.command()
@_directory
def down(directory: Path) -> None:
    """Stop the lab and remove its directory.

    Example: `rollout lab down`
    """
    launch.down(directory)
    say("The lab has ended.")


@lab.command()
@output_option
@_directory
def status(output: str, directory: Path) -> None:
    """Show the state of the kubelets, and the faults that are set.

    Example: `rollout lab status`
    """
    found = control.ask(directory, {"op": "status"})
    if output == "json":
        click.echo(documents.page(_status_document(found)))
        return
    say(f"cluster {found['cluster']}, {found['connections']} connections, {found['commands']} commands")
    if found["api"] != "ok":
        say(f"  fault {found['api']}: {API}")
    for title in ("states", "faults"):
        for word, names in cast("dict[str, list[str]]", found[title]).items():
            say(f"  {'fault ' if title == 'faults' else ''}{word} {len(names):,}: {fold(names)}")


@lab.command()
@click.argument("nodeset")
@click.argument(
    "kind", required=False, metavar="[KIND]", type=click.Choice((*faults.KINDS, *api.KINDS, *known_faults.SYNONYMS))
)
@click.option("--after", type=float, default=None, help="Seconds of the fault, as its line above defines them.")
@click.option(
    "--for", "lasting", type=click.FloatRange(0), default=None, help="Seconds until the fault ends by itself."
)
@click.option(
    "--at",
    type=click.Choice(faults.MOMENTS),
    default=faults.NOW,
    help="Begin at this moment of the node's next transaction.",
)
@click.option("--add", is_flag=True, help="Keep faults of other parts of these nodes instead of replacing them.")
@click.option("--clear", is_flag=True, help="Remove the faults of these nodes.")
@_directory
def fault(
    nodeset: str,
    kind: str | None,
    after: float | None,
    lasting: float | None,
    at: str,
    add: bool,  # noqa: FBT001 (click)
    clear: bool,  # noqa: FBT001
    directory: Path,
) -> None:
    """Break nodes, or repair them. NODESET api is the API server. KIND is one of:

    \b
    refuse              connections are refused
    hang-before-banner  connections are accepted and nothing is sent
    drop-mid-apply      the connection is cut --after seconds into an apply, which continues
    host-key-change     the node shows another host key
    garbage-output      commands print garbage
    endless-output      the output of commands never ends
    never-healthy       the kubelet exits with any configuration except the current one
    sick-in-soak        the same, but only --after seconds after a confirm
    deaf-in-soak        the same, but /healthz stops answering and the kubelet stays up
    flapping-kubelet    the kubelet exits --after seconds after each start, with any configuration
    health-port-taken   a process of another user answers on the kubelet's health port
    reboot              a power cut; the node is back after --after seconds
    dies-and-returns    the same; it is back after --for seconds (5), and may happen --at a moment
    slow-disk           each sync and rename takes --for seconds (1)
    full-disk           no write gets another block
    read-only           nothing on the disk can be changed
    clock-step          the wall clock is --after seconds (a day; may be negative) off
    not-ready           the API shows the node as not ready
    devices-lost        with another configuration the plugin of its GPUs does not register
    pod-rejected        with another configuration a pod is not admitted again (OutOfpods)
    container-restarted with another configuration a container is created again
    pull-failing        with another configuration a container's image cannot be pulled
    pulling             an image is being pulled, until the runtime or the kubelet restarts
    cordoned            the API shows the node as unschedulable
    pdb-blocks          evictions from the node are refused: a budget allows none
    two-pdbs            the same: two budgets match its pod, and no API server evicts such a pod
    slow-termination    an evicted pod ends as late as its kubelet allows, with a grace period of --after seconds (3)
    finalizer           an evicted pod ends, but a finalizer keeps it
    api-down            (of api) connections are refused
    api-slow            (of api) each answer takes --after seconds (5)
    api-forbidden       (of api) the user has no rights

    Example: `rollout lab fault tess-node-0007 refuse`
    """
    kind = kind and known_faults.named(kind)
    if clear == (kind is not None):
        raise UsageError("lab-fault", "give a kind of fault, or --clear")
    if after is not None and after < 0 and kind != faults.CLOCK:
        raise UsageError("lab-fault", "--after must be 0 or more: only clock-step takes negative seconds")
    if (nodeset == API) != (kind in api.KINDS if kind else nodeset == API):
        raise UsageError("lab-fault", f"{', '.join(api.KINDS)} are faults of {API}, and all others of nodes")
    if nodeset == API:
        control.ask(directory, {"op": "api", "kind": kind, "after": after})
        say(f"{'cleared' if clear else kind}: {API}")
        return
    served = launch.specification(directory)
    sets = {name: frozenset(members) for name, members in served.sets.items()}
    try:
        names = sorted(evaluate(nodeset, Names([node.name for node in served.nodes], sets)))
    except NodesetError as error:
        raise UsageError(error.flaws[0].reference, str(error), hint=error.flaws[0].hint) from None
    if not names:
        raise UsageError("empty-limit", "no such node in the lab")
    order = {"kind": kind, "after": after, "lasting": lasting, "at": at, "add": add}
    control.ask(directory, {"op": "clear" if clear else "fault", "nodes": names, **order})
    say(f"{'cleared' if clear else kind}: {fold(names)}")


@lab.command("faults")
@output_option
@_directory
def list_faults(output: str, directory: Path) -> None:
    """List every fault that is set.

    Example: `rollout lab faults -o json`
    """
    found = control.ask(directory, {"op": "status"})
    orders = cast("list[dict[str, Any]]", found["orders"])
    if output == "json":
        click.echo(documents.page(LabFaultsDocument(str(found["api"]), tuple(map(_fault_part, orders)))))
        return
    if found["api"] != "ok":
        say(f"{API} {found['api']}")
    for order in orders:
        lasting = "" if order["lasting"] is None else f" --for {order['lasting']:g}"
        at = "" if order["at"] == faults.NOW else f" --at {order['at']}"
        say(f"{fold(order['nodes'])} {order['kind']} --after {order['after']:g}{lasting}{at}")
    if not orders and found["api"] == "ok":
        say("no fault is set")


def _status_document(found: Mapping[str, Any]) -> LabStatusDocument:
    return LabStatusDocument(
        cluster=found["cluster"],
        port=found["port"],
        api=found["api"],
        states={state: fold(names) for state, names in found["states"].items()},
        faults={kind: fold(names) for kind, names in found["faults"].items()},
        connections=found["connections"],
        commands=found["commands"],
    )


def _fault_part(order: Mapping[str, Any]) -> LabFaultPart:
    return LabFaultPart(order["kind"], order["at"], order["after"], order["lasting"], fold(order["nodes"]))
