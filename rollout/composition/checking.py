"""``rollout check`` on the real files: of a project, and of the SSH configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rollout.adapters import kubelet_files
from rollout.adapters.clock import SystemZones
from rollout.adapters.files import FolderFiles
from rollout.adapters.local import why_not_run
from rollout.adapters.node_sources import RealSources
from rollout.adapters.ssh import Resolver
from rollout.app.check import CheckResult
from rollout.app.check import check as check_files
from rollout.app.node_access import access_to
from rollout.app.shared_machines import SharedMachines, shared_machines
from rollout.composition.kinds import start_times
from rollout.composition.project import Project
from rollout.composition.wiring import refused_routes
from rollout.core.model.inventory import Inventory
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

__all__ = ["check_project", "kubelet_files"]


def check_project(project: Project, ssh_config: Path | None, fleet: FleetSnapshot | None) -> CheckResult:
    """``fleet`` ``None``: with model nodes."""
    folder = project.folder
    checked = check_files(
        FolderFiles(folder), RealSources(), partial(why_not_run, folder=folder), fleet, start_times(SystemZones())
    )
    refused, shared = _ways_in(ssh_config, checked.inventories)
    problems = (*checked.problems, *_named_cluster(project), *refused)
    return replace(checked, problems=problems, shared=shared)


def _named_cluster(project: Project) -> Iterator[Problem]:
    """The cluster of commands that name none."""
    named, known = project.values.get("cluster"), project.clusters()
    if named is not None and named.value not in known:
        hint = did_you_mean(named.value, known) or f"its inventory would be inventories/{named.value}.yaml"
        yield Problem("unknown-cluster", f"there is no cluster `{printable(named.value, 60)}`", named.place, hint)


def _ways_in(
    ssh_config: Path | None, inventories: Sequence[Inventory]
) -> tuple[tuple[Problem, ...], tuple[SharedMachines, ...]]:
    try:
        resolver = Resolver.reading(ssh_config)
    except InputError as error:
        return error.problems, ()
    accesses = [access_to(inventory, "", tuple(inventory.nodes)) for inventory in inventories]
    refused = (problem for access in accesses for problem in refused_routes(resolver, access.targets.values()))
    return tuple(refused), shared_machines(
        inventories, lambda inventory: resolver.ways(access_to(inventory, "", tuple(inventory.nodes)).targets.values())
    )
