"""``rollout init``: a new project in the current folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from rollout.adapters.files import FolderFiles
from rollout.adapters.node_sources import RealSources
from rollout.app.load_playbook import shipped_templates
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import cluster_in
from rollout.core.reading.project_file import PROJECT_FILE
from rollout.core.text.nodesets import is_name
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.init.asking import drafted, nodes_of_ansible, nodes_of_kubeconfig, nodes_of_names
from rollout.features.init.client import write_new
from rollout.features.init.rules import Guessed
from rollout.lab import launch
from rollout.lab.of_cluster import LAB_FOLDER, SSH_CONFIG, serves, specification

_MAX_NAMES = 4 * 1024 * 1024
_PARTS = ("inventories", "playbooks", "templates", PROJECT_FILE)


@registered("Make a project of a kubeconfig, Ansible inventory or names.")
@click.command()
@click.option("--names", "names", metavar="FILE", default="", help="A name or nodeset on each line.")
@click.option("--kubeconfig", metavar="FILE", default="", help="The Nodes of the API server of this kubeconfig.")
@click.option("--ansible", metavar="PATH", default="", help="An Ansible inventory: INI, YAML, a folder or a program.")
@click.option("--nodes", "new_nodes", metavar="NODESET", default="", help="Nodes by name: 'node-[001-060]'.")
@click.option(
    "--cluster", "new_cluster", metavar="NAME", default="", help="The cluster's name (default: the folder's name)."
)
@click.option("--api-server", metavar="VERSION", default="", help="The API server's version, such as v1.34.2.")
@click.option("--lab", is_flag=True, help="Serve the nodes on this machine's loopback, to try rollout without nodes.")
@click.option("--templates", is_flag=True, help="Also copy the shipped templates, to change them.")
def init(
    names: str,
    kubeconfig: str,
    ansible: str,
    new_nodes: str,
    new_cluster: str,
    api_server: str,
    lab: bool,  # noqa: FBT001 - click's flag
    templates: bool,  # noqa: FBT001 - click's flag
) -> None:
    """Make a project in the current folder: inventories/, playbooks/ and rollout.toml. Overwrites nothing.

    Racks, zones and versions that the source does not name are guessed, and each guess is printed.

    Example: `rollout init --kubeconfig ~/.kube/config --cluster rno`
    """
    given = {"--names": names, "--kubeconfig": kubeconfig, "--ansible": ansible, "--nodes": new_nodes}
    if len([value for value in given.values() if value]) != 1:
        raise UsageError("which-nodes", f"give one of {', '.join(given)}", hint="such as --nodes 'node-[001-060]'")
    if lab and kubeconfig:
        hint = "use --nodes, --names or --ansible"
        raise UsageError("which-nodes", "--lab does not serve the Nodes of an API server", hint=hint)
    name = new_cluster or Path.cwd().name
    if not is_name(name):
        raise UsageError("bad-cluster-name", f"`{printable(name, 60)}` is no name for a cluster", hint="use --cluster")
    there = [part for part in _PARTS if os.path.lexists(part)]
    if there:
        hint = "use an empty folder"
        raise UsageError("project-exists", f"nothing was written: {', '.join(there)} is already here", hint=hint)
    made = drafted(name, _found(given), api_server, kubeconfig, str(LAB_FOLDER / SSH_CONFIG) if lab else "")
    write_new(Path(), {**(_templates() if templates else {}), **made.texts})
    say("\n".join(printable(f"guessed {note}", 300) for note in made.notes))
    say(f"written: {', '.join(made.texts)} ({counted(made.nodes, 'node')})")
    if lab:
        inventory = cluster_in(Path(), name)
        launch.up(specification(inventory, list(inventory.nodes), 1.0), LAB_FOLDER)
        say(serves(len(inventory.nodes), inventory.cluster))
    say("next: `rollout doctor`, `rollout plan`")


def _found(given: Mapping[str, str]) -> Guessed:
    if given["--kubeconfig"]:
        return nodes_of_kubeconfig(RealSources(), given["--kubeconfig"])
    if given["--ansible"]:
        return nodes_of_ansible(RealSources(), given["--ansible"])
    if given["--names"]:
        return nodes_of_names(FolderFiles(Path(), _MAX_NAMES).read(given["--names"]), given["--names"])
    return nodes_of_names(given["--nodes"], "--nodes")


def _templates() -> dict[str, str]:
    return {f"templates/{name}": text for name, text in shipped_templates().items()}
