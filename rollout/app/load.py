"""Inventories by name: ``inventories/rno.yaml`` is cluster ``rno``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from rollout.app.ports import Files, NodeSources
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.reading import ansible_inventory, found_nodes
from rollout.core.reading.found_nodes import FoundNodes
from rollout.core.reading.inventory_draft import InventoryDraft, draft_of, finish
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.text.nodesets import is_name
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem, RemoteError, UsageError

INVENTORY_FOLDER = "inventories"
PLAYBOOK_FOLDER = "playbooks"
SUFFIX = ".yaml"


def load_cluster(files: Files, sources: NodeSources, cluster: str, instead: str = "") -> Inventory:
    """The inventory of a cluster, with the nodes of its source if it names one.

    ``instead``: the kubeconfig that ``sources`` use in place of the inventory's. Errors name the one that was used.
    Raises ``UsageError`` for an unknown name, ``InputError`` for a wrong file and for a source that does not answer.
    """
    try:
        return ask_for_cluster(files, sources, cluster, instead)
    except RemoteError as error:
        raise InputError((Problem(error.reference, f"{cluster}: {error.message}", hint=error.hint),)) from None


def ask_for_cluster(files: Files, sources: NodeSources, cluster: str, instead: str = "") -> Inventory:
    """``load_cluster`` for callers that continue without an API server: if it does not answer, ``RemoteError``."""
    path = path_of(files, INVENTORY_FOLDER, cluster, "cluster")
    draft = draft_of(files.read(path), path)
    inventory = finish(draft, _found(files, draft, sources, instead))
    check_name("cluster", inventory.cluster, cluster, path)
    return replace(inventory, endpoints=_reached(files, inventory.endpoints))


def _reached(files: Files, written: Endpoints) -> Endpoints:
    """Files of an inventory are relative to its project."""
    return replace(
        written,
        kubeconfig=files.at(written.kubeconfig),
        token_file=files.at(written.token_file),
        ca_file=files.at(written.ca_file),
        cert_file=files.at(written.cert_file),
        key_file=files.at(written.key_file),
    )


def _found(files: Files, draft: InventoryDraft, sources: NodeSources, instead: str) -> FoundNodes | None:
    source = draft.source
    if source is None:
        return None
    if isinstance(source, FromAnsible):
        path = str(PurePosixPath(INVENTORY_FOLDER) / source.path)
        hosts = ansible_inventory.read_hosts(sources.ansible(files.at(path)), path)
        names = ansible_inventory.hosts_of(hosts, source)
        templates = hosts.templates(names, ansible_inventory.variables_of(source))
        hosts.filled = sources.ansible_values(files.at(path), templates) if templates else {}
        return ansible_inventory.found_nodes(hosts, source)
    kubeconfig = files.at(source.kubeconfig or "")
    try:
        live = sources.live(kubeconfig, source.context or "")
    except RemoteError as error:
        message = f"{found_nodes.WHERE} of {printable(instead or kubeconfig, 80)}: {error.message}"
        raise RemoteError(error.reference, message, hint=error.hint) from None
    return found_nodes.nodes_from_api(live, source)


def names_in(files: Files, folder: str) -> tuple[str, ...]:
    """The names of the clusters or playbooks in a folder."""
    return tuple(name.removesuffix(SUFFIX) for name in files.list(folder, SUFFIX))


def path_of(files: Files, folder: str, name: str, what: str) -> str:
    """The file of a cluster or a playbook. ``UsageError``: there is none of this name."""
    path = f"{folder}/{name}{SUFFIX}"
    if is_name(name) and files.exists(path):
        return path
    known = names_in(files, folder)
    hint = did_you_mean(name, known) or (
        f"choose one of: {', '.join(known[:20])}" if known else f"{folder}/ has no {SUFFIX} file"
    )
    raise UsageError(f"unknown-{what}", f"there is no {what} `{printable(name, 60)}`", hint=hint)


def check_name(key: str, said: str, name: str, path: str) -> None:
    """A copied file that still contains the old name would act on the wrong cluster, or under the wrong name."""
    if said != name:
        message = f"`{key}` is {said}, but the file is {path}"
        raise InputError((Problem("wrong-name", message, Place(path, 1, 1), "rename one of them"),))
