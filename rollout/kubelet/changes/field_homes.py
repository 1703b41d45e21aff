"""Which file a node's fields go into, the least invasive first.

A kubelet with ``--config-dir`` gets a drop-in of ours there, and its own file stays unchanged. Where a
drop-in cannot do it (a kubelet 1.28 merges no zero values), the fields go into the ``--config`` file. A kubelet with
neither gets a new ``--config`` file if the playbook accepts that this changes defaults. ``--config-dir`` itself is
never added: from 1.32 on it resets lists that are explicitly empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.settings import Setting, Value
from rollout.kubelet import values
from rollout.kubelet.changes import splice
from rollout.kubelet.configuration.outcome import File, Layer
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import LayoutError, text_of
from rollout.kubelet.node.sources import Found

OWN_DROP_IN = "99-rollout.conf"
NEW_CONFIG = "/var/lib/kubelet/config.yaml"
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
HEADER = (
    "# Written by rollout; fields of your own belong in a file of your own.\n"
    + "".join(f"{name}: {value}\n" for name, value in KIND.items())
).encode()

PULLS, SERIAL = "maxParallelImagePulls", "serializeImagePulls"
_BESIDE = Setting(SERIAL, value=False, source=f"required by {PULLS} in a drop-in")


@dataclass(frozen=True, slots=True)
class FieldHome:
    """The file; ``content`` is ``None`` when it does not exist yet."""

    path: str
    content: bytes | None
    layer: Layer

    @property
    def flags(self) -> tuple[InFlag, ...]:
        """The additional flags that make the kubelet read the file."""
        made = self.layer is Layer.FILE and self.content is None
        return (InFlag("--config", self.path, "string"),) if made else ()

    def edit(self, fields: Mapping[str, Value], settings: Mapping[str, Setting], template: str) -> Edit | None:
        """The file with these fields merged in, or ``None`` if it already contains them."""
        before = HEADER if self.content is None else self.content
        try:
            spliced = splice.splice(before, splice.written(fields), values.same)
        except splice.SpliceError as error:
            raise LayoutError(error.reference, f"{self.path}: {error}") from None
        if spliced.content == self.content:
            return None
        reasons = tuple(_reason(path, old, new, settings, template) for path, old, new in spliced.changed)
        return Edit(self.path, self.content, spliced.content, reasons)


def homes(found: Found) -> tuple[FieldHome, ...]:
    """Possible homes of fields on this node, in the order to try; the last resort is a new ``--config`` file."""
    made = [_main(found.sources.config)] if found.sources.config is not None else []
    if found.sources.drop_ins is not None:
        made = [_drop_in(found, sources.config_dir(found.layout)), *made]
    return tuple(made) or (_new(found),)


def _main(config: File) -> FieldHome:
    try:
        document = splice.read(config.content)
    except splice.SpliceError as error:
        raise LayoutError(error.reference, f"{config.path}: {error}") from None
    for name, value in KIND.items():
        if document.get(name) != value:
            message = f"{config.path} sets {name}: {document.get(name)!r}, not {value}"
            raise LayoutError("not-a-kubelet-config", message)
    return FieldHome(config.path, config.content, Layer.FILE)


def _drop_in(found: Found, directory: str) -> FieldHome:
    path = f"{directory}/{OWN_DROP_IN}"
    held = {file.path: file.content for file in found.sources.drop_ins or ()}
    return FieldHome(path, held.get(path), Layer.DROP_IN)


def _new(found: Found) -> FieldHome:
    state = found.snapshot.files.get(NEW_CONFIG)
    if state is not None and state.kind == "absent":
        return FieldHome(NEW_CONFIG, None, Layer.FILE)
    if state is not None:
        text_of(state, NEW_CONFIG)
    what = "exists but is not used by this kubelet" if state is not None else "is not in the snapshot"
    raise LayoutError("no-config-file", f"the kubelet has no --config, and {NEW_CONFIG} {what}")


def beside(
    home: FieldHome, fields: Mapping[str, Value], found: Found
) -> tuple[Mapping[str, Value], Mapping[str, Setting]]:
    """Fields that a drop-in requires in addition. The base already has its defaults when it is merged, so
    ``maxParallelImagePulls`` above 1 meets ``serializeImagePulls: true`` there and the kubelet would not start (seen on
    1.36.3). An explicitly written ``true`` is not overridden.
    """
    pulls = fields.get(PULLS)
    origin = found.outcome.origins.get(SERIAL)
    said_true = found.outcome.effective.get(SERIAL) is True and origin is not None and origin.layer is not Layer.DEFAULT
    if home.layer is not Layer.DROP_IN or not isinstance(pulls, int) or pulls < 2 or SERIAL in fields or said_true:
        return fields, {}
    return {**fields, SERIAL: False}, {SERIAL: _BESIDE}


def _reason(path: tuple[str, ...], old: Value, new: Value, settings: Mapping[str, Setting], template: str) -> str:
    setting = settings.get(path[0]) or Setting(path[0], new, source=f"template {template}")
    return reason(".".join(path), "not set" if old is None else values.shown(old), values.shown(new), setting)
