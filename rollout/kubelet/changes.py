"""What must happen to one node so that its settings are in force: exact bytes with a reason each, or why not.

Pure: the same snapshot and settings give the same bytes. Every result is proven before it is proposed: the command line
is expanded again from the new files, the new configuration is read again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.disruption import Disruption
from rollout.core.model.inventory import Node
from rollout.core.model.plan import Change, Left, Standing
from rollout.core.model.playbook import Policy, Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text.blobs import digest
from rollout.kubelet import config_changes, fitness, flag_changes, homes, layout, versions
from rollout.kubelet.edits import Edit
from rollout.kubelet.homes import InField, InFlag, NoHome
from rollout.kubelet.layout import UNIT, LayoutError
from rollout.kubelet.runtime_versions import Runtime
from rollout.kubelet.versions import Version


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change, what kind of node it is for, and the contents its digests stand for."""

    change: Change
    label: str
    blobs: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The settings by where they live on this node, and notes on those skipped."""

    fields: Mapping[str, Value]
    flags: tuple[InFlag, ...]
    notes: tuple[str, ...]


def change_for(snapshot: Snapshot, settings: Mapping[str, Setting], policy: Policy, node: Node) -> Proposal | Left:
    """The change for one node, or why it is left alone (as wanted, or refused with a reference)."""
    refused = fitness.refusal(snapshot, policy.guard)
    if refused is not None:
        return Left(node.name, node.rack, Standing.REFUSED, *refused)
    try:
        found = _propose(snapshot, settings, policy.templates, node)
    except LayoutError as error:
        return Left(node.name, node.rack, Standing.REFUSED, error.reference, str(error))
    if isinstance(found, str):
        return Left(node.name, node.rack, Standing.AS_WANTED, "as-wanted", found)
    return found


def _propose(snapshot: Snapshot, settings: Mapping[str, Setting], templates: Templates, node: Node) -> Proposal | str:
    version = versions.known(snapshot.kubelet_version)
    now = layout.find(snapshot)
    config = config_changes.find(snapshot, now)
    runtime = layout.runtime(now, version, config.document.get("containerRuntimeEndpoint"))
    wanted = _wanted(settings, version, runtime)
    by_flag = flag_changes.flag_change(snapshot, now, wanted.flags, settings, templates, version, node)
    flag_changes.check_running(now, by_flag.flags)
    by_file = config_changes.config_change(config, wanted.fields, settings, templates, version, now, node)
    config_changes.check_document(by_file.document, by_flag.then, version)
    edits = tuple(edit for edit in (by_file.edit, by_flag.edit) if edit is not None)
    pending = flag_changes.pending(now, by_flag.flags)
    if not edits and not pending:
        return "; ".join(["files and running kubelet are as wanted", *wanted.notes])
    settle, why = _settle(version)
    change = Change(
        files=tuple(edit.change for edit in edits),
        units=(UNIT,),
        reload=any(edit.path == layout.DROP_IN for edit in edits),
        disruption=Disruption.RESTART_KUBELET,
        arguments=flag_changes.must_hold(by_flag.then, by_flag.flags),
        config_path=config.path,
        healthz_port=config_changes.healthz_port(by_flag.then, by_file.document),
        settle=settle,
        notes=(*_restart_only(edits, pending), *wanted.notes, *_risks(wanted.fields), *why),
    )
    label = f"kubelet {version.text}, {_runtime(snapshot, runtime)}, {now.name}"
    return Proposal(change, label, {digest(content): content for edit in edits for content in edit.contents})


def _runtime(snapshot: Snapshot, runtime: Runtime) -> str:
    """The runtime with its minor version where the node told it: a canary stands for containerd 1.7 or for 2.1."""
    printed = _SERIES.search(snapshot.runtimes.get(_PROGRAMS.get(runtime, ""), ""))
    return f"{runtime.value} {printed[1]}" if printed else runtime.value


_PROGRAMS = {Runtime.CONTAINERD: "containerd", Runtime.CRIO: "crio", Runtime.CRI_DOCKERD: "cri-dockerd"}
_SERIES = re.compile(r"\bv?(\d+\.\d+)\.\d+")


def _wanted(settings: Mapping[str, Setting], version: Version, runtime: Runtime) -> _Wanted:
    found = [homes.home(settings[name], version, runtime) for name in sorted(settings)]
    refused = [home for home in found if isinstance(home, NoHome)]
    if refused:
        raise LayoutError(refused[0].reference, "; ".join(home.reason for home in refused))
    return _Wanted(
        {home.name: home.value for home in found if isinstance(home, InField)},
        tuple(home for home in found if isinstance(home, InFlag)),
        tuple(home.note for home in found if isinstance(home, homes.Skipped)),
    )


def _restart_only(edits: tuple[Edit, ...], pending: tuple[str, ...]) -> tuple[str, ...]:
    if edits:
        return ()
    return (f"restart only: the files are as wanted, the running kubelet does not have {', '.join(pending)} yet",)


def _settle(version: Version) -> tuple[float, tuple[str, ...]]:
    """Seconds a restarted node counts as unavailable, by what its version is known to do, and why."""
    if version.minor <= 30:
        why = "probed pods are NotReady until probed (kubernetes #78733), the node for up to 10 s (#122338)"
        return 20.0, (f"unavailable for 20 s after its restart: {why}",)
    if version.minor <= 34:
        return 10.0, (
            "unavailable for 10 s after its restart: probed pods are NotReady until probed (kubernetes #78733)",
        )
    return 0.0, ()


def _risks(wanted: Mapping[str, Value]) -> tuple[str, ...]:
    stricter = [name for name in wanted if name in homes.MAY_REJECT_PODS]
    if not stricter:
        return ()
    return (f"{', '.join(stricter)}: a stricter value can make running pods fail re-admission (kubernetes #105523)",)
