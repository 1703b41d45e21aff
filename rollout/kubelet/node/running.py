"""The configuration that a running kubelet has read, where its files have changed since."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.inventory import Node
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import fields, in_force, versions
from rollout.kubelet.node import found, layout, sources, unloaded
from rollout.kubelet.node.layout import UNIT, LayoutError

LOADED = "loaded."
"""How the agent's facts begin that name the transaction that started a unit's process."""


def is_asked_for(snapshot: Snapshot) -> bool:
    """Whether the kubelet's configuration changed after it started, as far as its files can be understood."""
    try:
        return unloaded.config_is_stale(snapshot, sources.sources_of(snapshot, layout.find(snapshot)))
    except LayoutError:
        return False


def effective(snapshot: Snapshot, loaded: Mapping[str, bytes]) -> str:
    """Canonical JSON of what the kubelet made of these bytes, path → content; ``""`` where not all of them are known."""
    version = versions.parse(snapshot.kubelet_version)
    if version is None or version.minor not in fields.known_minors() or not is_asked_for(snapshot):
        return ""
    try:
        here = found.find(snapshot, version, Node(snapshot.node, "", "", ""))
    except LayoutError:
        return ""
    changed = {entry.path for entry in snapshot.stale if entry.unit == UNIT}
    if any(file.path in changed and file.path not in loaded for file in unloaded.files_of(here.sources)):
        return ""
    then = sources.outcome(version, unloaded.with_files(here.sources, loaded))
    return in_force.canonical(dict(then.effective)) if then.starts else ""
