"""Intents on containerd: keys of config.toml or of a file that it imports, and hosts.toml (``mirrors``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import intents
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.intents import DEADLINE, DOWNLOADS, MIRRORS, Row
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtime_versions import Runtime, RuntimeVersion
from rollout.kubelet.runtimes import containerd_config, direction, mirrors, service, toml_edit
from rollout.kubelet.runtimes.containerd_config import Config, KeyPlace
from rollout.kubelet.runtimes.outcome import Part, RuntimeChange, TomlKey

UNIT = "containerd.service"
_TRANSFER_DEADLINE = (
    "imagePullProgressDeadline covers only layers that report progress, from containerd 2.1 on (transfer service):"
    " it does not end a pull that hangs before the first layer"
)
_TRANSFER_TABLE = (
    "maxConcurrentDownloads is set in the transfer service's table: in the CRI's, containerd 2.1 and later would fall"
    " back to local pulls"
)


def change(snapshot: Snapshot, wanted: Mapping[str, Setting], version: RuntimeVersion) -> RuntimeChange:
    """The change for these intents on this containerd: config.toml is read at its start, hosts.toml at each pull."""
    config = containerd_config.load(snapshot, service.find(snapshot, UNIT), version)
    parts = [_part(snapshot, config, setting) for _, setting in sorted(wanted.items())]
    assignments = tuple(each for part in parts for each in part.assignments)
    edits = (*_edits(config, assignments), *(edit for part in parts for edit in part.edits))
    notes = tuple(note for part in parts for note in part.notes)
    if not assignments:
        return RuntimeChange(edits, notes=notes)
    return RuntimeChange(edits, units=(UNIT,), disruption=Disruption.RESTART_RUNTIME, notes=notes)


def _part(snapshot: Snapshot, config: Config, setting: Setting) -> Part:
    row = intents.row(setting.name, Runtime.CONTAINERD, config.containerd)
    if row is None or row.refusal:
        raise LayoutError(
            "setting-unsupported", row.refusal if row else f"rollout does not know containerd {config.containerd.text}"
        )
    if setting.name == MIRRORS:
        return mirrors.part(snapshot, config, setting, row)
    return _KEYS[setting.name](config, setting, row)


def _deadline(config: Config, setting: Setting, row: Row) -> Part:
    trap = () if containerd_config.local_because(config) else (_TRANSFER_DEADLINE,)
    return _key(setting, row, config.image_key(row.key), trap)


def _downloads(config: Config, setting: Setting, row: Row) -> Part:
    """Sets the table that this containerd reads: the transfer service's, or the CRI's where it pulls locally."""
    local = containerd_config.local_because(config)
    if not local:
        return _key(setting, row, config.transfer_key(row.key), (_TRANSFER_TABLE,))
    place = config.image_key(row.key)
    if config.containerd.number < (2, 1, 0):
        return _key(setting, row, place, ())
    if local == (row.key,) and str(setting.value) == row.default:
        message = f"{row.key} in the CRI's table of {place.path} keeps containerd on local pulls; the value 3 would end that. Remove the key by hand"
        raise LayoutError("containerd-config", message)
    return _key(setting, row, place, (f"this containerd pulls locally because of {', '.join(local)}",))


def _key(setting: Setting, row: Row, place: KeyPlace, traps: tuple[str, ...]) -> Part:
    """Sets one key; nothing where the file or the default already has the value."""
    if place.value is not None and direction.same(setting, place.value):
        return Part()
    if place.value is None and direction.same(setting, row.default) and not setting.pin:
        return Part(notes=(direction.by_default(setting, row.default, "containerd"),))
    now = row.default if place.value is None else place.value
    origin = "containerd's default" if place.value is None else place.path
    old = "not set" if place.value is None else str(place.value)
    why = reason(row.key, old, str(setting.value), setting)
    value = setting.value if isinstance(setting.value, int) else str(setting.value)
    assignment = TomlKey(place.path, place.keys, value, why)
    return Part((assignment,), notes=(direction.direction(setting, now, origin), *traps))


_KEYS: Mapping[str, Callable[[Config, Setting, Row], Part]] = {DEADLINE: _deadline, DOWNLOADS: _downloads}


def _edits(config: Config, assignments: tuple[TomlKey, ...]) -> tuple[Edit, ...]:
    """One edit for each file, with all its keys."""
    edits = []
    for file in config.files:
        ours = [each for each in assignments if each.path == file.path]
        text = f"version = {file.version}\n" if config.made else file.text
        for each in ours:
            text = toml_edit.assign(text, each.keys, each.value, each.path)
        before = None if config.made else file.text.encode()
        if ours:
            edits.append(Edit(file.path, before, text.encode(), tuple(each.reason for each in ours)))
    return tuple(edits)
