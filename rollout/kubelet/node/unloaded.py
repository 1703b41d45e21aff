"""Values in a node's files that are not in force: the files changed after the process that reads them started.

A restart of ours would put all of them in force. So each such value is reported, and the playbook must accept those
that no setting asks for. The values of the running process are known from ``/configz`` or from our last transaction;
otherwise they are *unknown*. What differs from the last known bytes of the files then comes first: that is the edit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot, Stale
from rollout.core.text import json_text
from rollout.kubelet import fields, values, versions
from rollout.kubelet.configuration.outcome import File, Layer, Sources
from rollout.kubelet.node import layout, sources
from rollout.kubelet.node.layout import KUBELET_UNITS, LayoutError
from rollout.kubelet.node.sources import FitNode

# The configuration that a running kubelet has read, if its files have changed since.


LOADED = "loaded."
"""The prefix of the agent's facts that name the transaction which started a unit's process."""


COMPARED_WITH = "compared with"
"""The fact that names what the values of the files are compared with. It has a space, so no fact of a node has its name."""

LAST_KNOWN = "last known"
"""The fact with the outcome of the last known bytes, canonical JSON. They are no proof of what the kubelet has loaded."""


_OF_KUBEADM: Mapping[str, Value] = {
    "authentication": {"x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}},
    "cgroupDriver": "systemd",
    "clusterDomain": "cluster.local",
    "rotateCertificates": True,
    "staticPodPath": "/etc/kubernetes/manifests",
}
"""What kubeadm writes into every file beyond the kubelet's defaults (cmd/kubeadm/app/componentconfigs/kubelet.go)."""


def is_asked_for(snapshot: Snapshot) -> bool:
    """Whether the kubelet's configuration changed after it started, as far as its files can be understood."""
    try:
        return config_is_stale(snapshot, sources.sources_of(snapshot, layout.find(snapshot)))
    except LayoutError:
        return False


def effective(snapshot: Snapshot, loaded: Mapping[str, bytes]) -> str:
    """Canonical JSON of the kubelet's outcome for these bytes, path → content; ``""`` if not all of them are known."""
    version = versions.parse(snapshot.kubelet_version)
    if version is None or version.minor not in fields.known_minors() or not is_asked_for(snapshot):
        return ""
    try:
        here = sources.find(snapshot, version, Node(snapshot.node, "", "", ""))
    except LayoutError:
        return ""
    changed = {entry.path for entry in snapshot.stale if entry.unit in KUBELET_UNITS}
    if any(file.path in changed and file.path not in loaded for file in files_of(here.sources)):
        return ""
    then = sources.outcome_of(version, with_files(here.sources, loaded))
    return values.canonical(dict(then.effective)) if then.starts else ""


UNKNOWN = "unknown"
_BARE = b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unloaded:
    """One value, or a whole file of a runtime (``field`` is ``()``). ``told`` is for people: ``maxPods: 110 → 1``."""

    field: Path
    file: str
    told: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a playbook may use for it in ``accept``: each part of its path from the top, or its file."""
        return (self.file, *(".".join(self.field[: end + 1]) for end in range(len(self.field))))


def of_kubelet(fit: FitNode) -> tuple[Unloaded, ...]:
    """Fields of the kubelet's ``--config`` and drop-ins with another value in force, or an unknown one.

    If nothing shows what is in force, values come first that differ from the last known bytes of the files, then those that
    differ from the defaults of the kubelet and of kubeadm.
    """
    stale = {entry.path: entry for entry in fit.snapshot.stale if entry.unit in KUBELET_UNITS}
    files = [file.path for file in files_of(fit.sources) if file.path in stale]
    if not files:
        return ()
    written = {path: value for path, value in _leaves(dict(fit.outcome.effective)) if _by_file(fit, path)}
    if not fit.snapshot.running:
        held = fit.snapshot.facts.get(LAST_KNOWN, "")
        edits = tuple(_differ(fit, json_text.parse(held), files, UNKNOWN)) if held else ()
        told = {edit.field for edit in edits}
        # What this kubelet would have in force with the same flags and files without a field; ``{}`` if it would not start.
        bare = {file.path: _BARE for file in files_of(fit.sources)}
        usual: tuple[Value, ...] = (
            dict(sources.outcome_of(fit.version, with_files(fit.sources, bare)).effective),
            dict(_OF_KUBEADM),
        )
        ranked = sorted(written.items(), key=lambda item: any(_same(item[0], _at(u, item[0]), item[1]) for u in usual))
        others = (
            _unloaded(path, fit.outcome.origins[path[0]].where, UNKNOWN, values.shown(value))
            for path, value in ranked
            if path not in told and fit.outcome.origins[path[0]].where in files
        )
        return (*edits, *others)
    return tuple(_differ(fit, json_text.parse(fit.snapshot.running), files))


def compared_with(fit: FitNode) -> str:
    """What the values of ``of_kubelet`` are compared with, as a sentence."""
    known = fit.snapshot.facts.get(COMPARED_WITH, "")
    if fit.snapshot.running:
        return f"Compared with {known or 'the running kubelet'}"
    first = f"the last known bytes ({known})" if known else "the defaults of the kubelet and of kubeadm"
    return f"What the running kubelet has loaded is unknown; what differs from {first} comes first"


def _differ(fit: FitNode, before: Value, files: list[str], hedge: str = "") -> Iterator[Unloaded]:
    """The values that differ from an outcome ``before``."""
    effective: Value = dict(fit.outcome.effective)
    running = dict(_leaves(before))
    every = {path: None for path in (*running, *dict(_leaves(effective))) if not _by_flag(fit, path)}
    for path in sorted(every):
        old, new = running.get(path), _at(effective, path)
        if not _same(path, old, new):
            shown = f"{hedge}, last known {values.shown(old)}" if hedge else values.shown(old)
            yield _unloaded(path, _origin(fit, path, files), shown, values.shown(new))


def of_runtime(snapshot: Snapshot, units: Collection[str]) -> tuple[Unloaded, ...]:
    """Files of these units' processes; nothing shows which of their values are in force."""
    return tuple(Unloaded((), entry.path, f"{entry.path} ({how(entry)})") for entry in edited(snapshot, units))


def edited(snapshot: Snapshot, units: Collection[str]) -> tuple[Stale, ...]:
    """The configuration files among those. Command lines are compared separately, so systemd's files do not count."""
    return tuple(entry for entry in snapshot.stale if entry.unit in units and "/systemd/" not in entry.path)


def how(entry: Stale) -> str:
    """``edited after kubelet.service started``."""
    return f"{'edited' if entry.edited else 'replaced'} after {entry.unit} started"


def config_is_stale(snapshot: Snapshot, given: Sources) -> bool:
    """Whether the configuration of the running kubelet must be read."""
    stale = {entry.path for entry in snapshot.stale if entry.unit in KUBELET_UNITS}
    return any(file.path in stale for file in files_of(given))


def with_files(given: Sources, held: Mapping[str, bytes]) -> Sources:
    """These sources as they were when these files contained these bytes."""
    config = given.config and replace(given.config, content=held.get(given.config.path, given.config.content))
    drop_ins = given.drop_ins and tuple(
        replace(file, content=held.get(file.path, file.content)) for file in given.drop_ins
    )
    return replace(given, config=config, drop_ins=drop_ins)


def sets(wanted: Mapping[str, Value], path: Path) -> bool:
    """Whether ``wanted`` sets the value at ``path``, or everything around it."""
    value: Value = dict(wanted)
    for key in path:
        if not isinstance(value, dict):
            return True
        if key not in value:
            return False
        value = value[key]
    return True


def files_of(given: Sources) -> tuple[File, ...]:
    """The ``--config`` file and the drop-ins."""
    return (*((given.config,) if given.config else ()), *(given.drop_ins or ()))


def _unloaded(path: Path, file: str, old: str, new: str) -> Unloaded:
    return Unloaded(path, file, f"{'.'.join(path)}: {old} → {new}")


def _origin(fit: FitNode, path: Path, files: list[str]) -> str:
    """The file that sets it. A removed value is no longer in the file that changed."""
    origin = fit.outcome.origins.get(path[0])
    return origin.where if origin and origin.where in files else files[0]


def _by_file(fit: FitNode, path: Path) -> bool:
    origin = fit.outcome.origins.get(path[0])
    return origin is not None and origin.layer in (Layer.FILE, Layer.DROP_IN)


def _by_flag(fit: FitNode, path: Path) -> bool:
    origin = fit.outcome.origins.get(path[0])
    return origin is not None and origin.layer is Layer.FLAG


def _leaves(value: Value, path: Path = ()) -> Iterator[tuple[Path, Value]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif path:
        yield path, value


def _at(value: Value, path: Path) -> Value:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _same(path: Path, old: Value, new: Value) -> bool:
    return values.is_in_force(old, new, path) and values.is_in_force(new, old, path)
