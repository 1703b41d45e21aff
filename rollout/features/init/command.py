"""``rollout init``: a new project in the current folder, one more cluster in it, or its nodes as they are now."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from rollout.adapters.files import FolderFiles, paths_matching
from rollout.adapters.node_sources import RealSources
from rollout.app.load import path_of
from rollout.app.load_playbook import shipped_templates
from rollout.cli.options import yes_option
from rollout.cli.project import no_cluster, project_here
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import cluster_in
from rollout.core.reading.project_file import PROJECT_FILE
from rollout.core.text.diff import unified
from rollout.core.text.nodesets import is_name
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.init.asking import (
    Drafted,
    drafted,
    nodes_of_ansible,
    nodes_of_kubeconfig,
    nodes_of_nodeset,
    refreshed_texts,
)
from rollout.features.init.client import read_if_there, replace_all, write_new
from rollout.features.init.rules.guesses import Guessed, SourceNote
from rollout.features.init.rules.tables import read_names
from rollout.features.init.words.project import IGNORED, SSH_CONFIGS, inventory_path, ssh_config_path
from rollout.features.init.words.ssh_config import hosts_of
from rollout.kubelet import versions
from rollout.lab import launch
from rollout.lab.of_cluster import LAB_FOLDER, SSH_CONFIG, serves, specification

_MAX_NAMES = 4 * 1024 * 1024
_PARTS = ("inventories", "playbooks", "templates", PROJECT_FILE)
_CHANGES = 10


@registered("Make a project from a kubeconfig, an Ansible inventory or names.")
@click.command()
@click.option(
    "--names", "names", metavar="FILE", default="", help="File with a name or nodeset on each line, or a CSV table."
)
@click.option("--kubeconfig", metavar="FILE", default="", help="Take the Nodes of the API server of this kubeconfig.")
@click.option("--ansible", metavar="PATH", default="", help="An Ansible inventory: INI, YAML, a folder or a program.")
@click.option("--nodes", "new_nodes", metavar="NODESET", default="", help="Nodes by name: 'node-[001-060]'.")
@click.option(
    "--cluster", "new_cluster", metavar="NAME", default="", help="The cluster's name (default: the folder's name)."
)
@click.option("--api-server", metavar="VERSION", default="", help="The API server's version, such as v1.34.2.")
@click.option("--lab", is_flag=True, help="Serve the nodes on this machine's loopback, to try rollout without nodes.")
@click.option("--templates", is_flag=True, help="Also copy the shipped templates, to change them.")
@click.option("--refresh", is_flag=True, help="Show which nodes came and went in the source, then write them.")
@yes_option
def init(
    names: str,
    kubeconfig: str,
    ansible: str,
    new_nodes: str,
    new_cluster: str,
    api_server: str,
    lab: bool,  # noqa: FBT001 - click's flag
    templates: bool,  # noqa: FBT001 - click's flag
    refresh: bool,  # noqa: FBT001 - click's flag
    yes: bool,  # noqa: FBT001 - click's flag
) -> int:
    """Make a project in the current folder: inventories/, playbooks/ and rollout.toml. Overwrites nothing.

    Racks, zones and versions that the source does not name are guessed, and each guess is printed. In a project, another
    `--cluster` is added. With `--refresh`, nodes that came and went since are shown as a diff; nothing else changes.

    Example: `rollout init --kubeconfig ~/.kube/config --cluster rno`
    """
    given = {"--names": names, "--kubeconfig": kubeconfig, "--ansible": ansible, "--nodes": new_nodes}
    if len([value for value in given.values() if value]) != 1:
        raise UsageError("which-nodes", f"give one of {', '.join(given)}", hint="such as --nodes 'node-[001-060]'")
    if lab and kubeconfig:
        hint = "use --nodes, --names or --ansible"
        raise UsageError("which-nodes", "--lab does not serve the Nodes of an API server", hint=hint)
    if refresh:
        if lab or templates or api_server:
            raise UsageError("only-nodes-refreshed", "--refresh takes no --lab, --templates and --api-server")
        return _refresh(new_cluster, given, yes=yes)
    name = new_cluster or Path.cwd().name
    if not is_name(name):
        raise UsageError("bad-cluster-name", f"`{printable(name, 60)}` is no name for a cluster", hint="use --cluster")
    is_second = _is_second(name)
    if lab and is_second:
        raise UsageError(
            "project-exists", f"{PROJECT_FILE} is already here", hint="use `rollout lab up --cluster NAME`"
        )
    found = _found(given)
    version = api_server or found.api_server or (versions.CURRENT if lab else "")
    made = drafted(name, found, version, kubeconfig, str(LAB_FOLDER / SSH_CONFIG) if lab else "")
    texts = _new_texts(name, made, is_second=is_second)
    write_new(Path(), {**(_templates() if templates else {}), **texts})
    _tell(found, made.notes)
    say(f"written: {', '.join(texts)} ({counted(made.nodes, 'node')})")
    if lab:
        inventory = cluster_in(Path(), name)
        served = specification(inventory, list(inventory.nodes), 1.0)
        launch.up(served, LAB_FOLDER)
        say(serves(served))
    _tell_ssh(name, texts, is_lab=lab, is_second=is_second)
    _tell_ignored(texts)
    if is_second:
        _tell_next(name)
    else:
        say("next: `rollout doctor`, `rollout plan`")
    return 0


def _is_second(cluster: str) -> bool:
    """Whether the folder is a project that has no such cluster. Everything else that is there is refused."""
    there = [part for part in _PARTS if os.path.lexists(part)]
    if not there:
        return False
    if PROJECT_FILE not in there:
        raise UsageError(
            "project-exists", f"nothing was written: {', '.join(there)} is already here", hint="use an empty folder"
        )
    project_here()  # it is readable, and nobody else's
    if os.path.lexists(inventory_path(cluster)):
        hint = "`--cluster NAME` adds another cluster, `--refresh` adds and removes nodes of this one"
        message = f"nothing was written: {PROJECT_FILE} and {inventory_path(cluster)} are already here"
        raise UsageError("project-exists", message, hint=hint)
    return True


def _new_texts(cluster: str, made: Drafted, *, is_second: bool) -> dict[str, str]:
    """Those of the project that are not there: a second cluster shares rollout.toml and the playbooks."""
    own = {inventory_path(cluster), ssh_config_path(cluster)}
    skipped = {path for path in made.texts if path not in own} if is_second else set()
    if is_second and not FolderFiles(Path()).list("playbooks", ".yaml"):
        skipped = {path for path in skipped if not path.startswith("playbooks/")}
    if os.path.lexists(".gitignore"):
        skipped.add(".gitignore")
    return {path: text for path, text in made.texts.items() if path not in skipped}


def _refresh(cluster: str, given: Mapping[str, str], *, yes: bool) -> int:
    """The diff stands before the question; 10: there are changes, and they were not written."""
    project = project_here()
    name = cluster or (project.values["cluster"].value if "cluster" in project.values else "")
    if not name:
        raise no_cluster()
    files = FolderFiles(project.folder)
    path_of(files, "inventories", name, "cluster")
    found = _found(given)
    made = refreshed_texts(
        name, found, files.read(inventory_path(name)), read_if_there(project.folder / ssh_config_path(name))
    )
    _tell(found, (), made.notes)
    for path, (here, there) in made.left.items():
        say(f"left as it is: {path}, which a person has changed; the source would change:")
        say("\n".join(unified(here.encode(), there.encode(), path)))
    if not made.texts:
        say(f"no change: {inventory_path(name)} has the nodes of the source")
        return 0
    for path, (old, new) in made.texts.items():
        say("\n".join(unified(old.encode() if old is not None else None, new.encode(), path)))
    if not yes and not (sys.stdin.isatty() and click.confirm("Write this?")):
        say("nothing was written; `--yes` writes it")
        return _CHANGES
    replace_all(project.folder, made.texts)
    say(f"written: {', '.join(made.texts)}")
    _tell_next(name)
    return 0


def _tell_next(cluster: str) -> None:
    say(f"next: `rollout doctor --cluster {cluster}`")


def _tell(found: Guessed, notes: tuple[SourceNote, ...], more: tuple[str, ...] = ()) -> None:
    lines = [*map(str, notes), *found.told, *more]
    if lines:
        say("\n".join(printable(line, 400) for line in lines))


def _tell_ssh(cluster: str, texts: Mapping[str, str], *, is_lab: bool, is_second: bool) -> None:
    path = ssh_config_path(cluster)
    if path not in texts:
        return
    say(f"read {path}: it was made from Ansible's variables, and sets how the nodes are reached")
    line = f"Include {Path.cwd() / path}"
    named = project_here().values.get("ssh_config") if is_second else None
    if named is not None and Path(named.value) == Path.cwd() / SSH_CONFIGS:
        say(f"  `ssh_config` in {PROJECT_FILE} names it, with those of the other clusters")
        _tell_shared_hosts(path, texts[path])
    elif named is not None and Path(named.value).parent == Path.cwd() / Path(SSH_CONFIGS).parent:
        say(f'  for the files of all clusters, write `ssh_config = "{SSH_CONFIGS}"` in {PROJECT_FILE}')
        _tell_shared_hosts(path, texts[path])
    elif is_lab or is_second:
        say(f"  use it with `--ssh-config {path}`, or write `{line}` as the first line of the ssh_config in use")
    else:
        say(
            f"  `ssh_config` in {PROJECT_FILE} names it, so ~/.ssh/config is not read; to have both, remove that line and"
        )
        say(f"  write `{line}` as the first line of ~/.ssh/config")


def _tell_shared_hosts(path: str, text: str) -> None:
    """Of two files with the same host, OpenSSH takes the first value."""
    for other in paths_matching(Path(SSH_CONFIGS)):
        both = hosts_of(read_if_there(other) or "") & hosts_of(text) if other != Path(path) else frozenset[str]()
        if both:
            first = min(str(other), path)
            say(
                f"  {other} also has {counted(len(both), 'host')} of it, such as {printable(min(both), 80)}: {first} wins"
            )


def _tell_ignored(texts: Mapping[str, str]) -> None:
    if ".gitignore" in texts:
        return
    there = (read_if_there(Path(".gitignore")) or "").split()
    missing = [line for line in IGNORED.splitlines() if not line.startswith("#") and line not in there]
    if missing:
        say(f"add to .gitignore: {' '.join(missing)}")


def _found(given: Mapping[str, str]) -> Guessed:
    if given["--kubeconfig"]:
        return nodes_of_kubeconfig(RealSources(), given["--kubeconfig"])
    if given["--ansible"]:
        return nodes_of_ansible(RealSources(), given["--ansible"], str(Path.cwd()))
    if given["--names"]:
        return read_names(FolderFiles(Path(), _MAX_NAMES).read(given["--names"]), given["--names"])
    return nodes_of_nodeset(given["--nodes"])


def _templates() -> dict[str, str]:
    return {f"templates/{name}": text for name, text in shipped_templates().items()}
