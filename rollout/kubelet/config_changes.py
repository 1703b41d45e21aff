"""Fields into the kubelet's own ``--config`` file, spliced and read again; and what the file says as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text import splice
from rollout.kubelet import fields, homes, layout, shadows, values
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.layout import Layout, LayoutError
from rollout.kubelet.rendered import rendered
from rollout.kubelet.versions import Version

NO_CONFIG = (
    "the kubelet has no --config; adding one would change four of its defaults "
    "(anonymous authentication, webhook authentication, authorization mode, read-only port)"
)
_GC_DEFAULTS: Mapping[str, Value] = {"imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80}


@dataclass(frozen=True, slots=True)
class Config:
    """The file; ``document`` is what a kubelet reads in it. ``path`` is ``""`` when the kubelet has none."""

    path: str
    content: bytes
    document: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What the file will say, and the edit that brings it (``None``: none needed)."""

    document: Mapping[str, Value]
    edit: Edit | None


def find(snapshot: Snapshot, now: Layout) -> Config:
    """The ``--config`` file as the snapshot holds it."""
    path = now.config_path
    if not path:
        return Config("", b"", {})
    if not path.startswith("/"):
        raise LayoutError("layout-not-understood", f"--config={path} is not an absolute path")
    content = layout.text_of(snapshot.files.get(path), path).encode()
    try:
        return Config(path, content, splice.read(content))
    except splice.SpliceError as error:
        raise LayoutError(error.reference, f"{path}: {error}") from None


def config_change(
    config: Config,
    wanted: Mapping[str, Value],
    settings: Mapping[str, Setting],
    templates: Templates,
    version: Version,
    now: Layout,
    node: Node,
) -> ConfigChange:
    """What must be written so that all ``wanted`` fields are in force, and those the template adds."""
    if not wanted:
        return ConfigChange(config.document, None)
    if not config.path:
        raise LayoutError("no-config-file", NO_CONFIG)
    text = rendered(templates.kubelet_config, templates.kubelet_config_name, {"fields": dict(wanted)}, node).encode()
    _check(config, _overlay(text, wanted, templates.kubelet_config_name, version), now)
    try:
        spliced = splice.splice(config.content, text, values.same)
    except splice.SpliceError as error:
        raise LayoutError(error.reference, f"{config.path}: {error}") from None
    if spliced.content == config.content:
        return ConfigChange(spliced.document, None)
    reasons = tuple(_reason(path, old, new, settings, templates) for path, old, new in spliced.changed)
    return ConfigChange(spliced.document, Edit(config.path, config.content, spliced.content, reasons))


def _reason(
    path: tuple[str, ...], old: Value, new: Value, settings: Mapping[str, Setting], templates: Templates
) -> str:
    setting = settings.get(path[0]) or Setting(path[0], new, source=f"template {templates.kubelet_config_name}")
    return reason(".".join(path), "not set" if old is None else values.shown(old), values.shown(new), setting)


def _check(config: Config, overlay: Mapping[str, Value], now: Layout) -> None:
    """Would what we write be what the kubelet goes by?"""
    if config.document.get("kind") != "KubeletConfiguration":
        raise LayoutError("not-a-kubelet-config", f"{config.path} is not a KubeletConfiguration")
    for flag in ("--config-dir", "--dynamic-config-dir"):
        if now.flag(flag):
            message = f"{flag}={now.flag(flag)} beats {config.path}, and rollout does not read it yet"
            raise LayoutError("config-dir-in-use", message)
    for name, value in overlay.items():
        shadow = shadows.shadow(name, value, now.asked)
        if shadow:
            where = now.origin(shadow.partition("=")[0])
            raise LayoutError("flag-shadows-field", f"{shadow} ({where}) beats {name} in {config.path}")


def _overlay(text: bytes, wanted: Mapping[str, Value], name: str, version: Version) -> Mapping[str, Value]:
    """The rendered overlay, checked: it says what was asked for, and only what this kubelet knows."""
    try:
        said = splice.read(text)
    except splice.SpliceError as error:
        raise LayoutError("template-not-understood", f"{name}: {error}") from None
    unknown = sorted(set(said) - fields.known_fields(version.minor) | set(said) & set(homes.NOT_OURS))
    if unknown:
        message = f"{name} renders {unknown[0]}, which a kubelet {version.short} does not take from us"
        raise LayoutError("template-not-understood", message)
    lost = [
        field for field, value in wanted.items() if field not in said or not values.same((field,), said[field], value)
    ]
    if lost:
        raise LayoutError("template-not-understood", f"{name} does not render {lost[0]} as it was set")
    for field, value in said.items():
        known = fields.field(field)
        wrong = values.mistake(field, known.kind, value) if known else ""
        if wrong:
            raise LayoutError("template-not-understood", f"{name}: {wrong}")
    return said


def check_document(document: Mapping[str, Value], then: Layout, version: Version) -> None:
    """Would the kubelet's own validation let it start with this file and these flags?"""
    effective = {**_GC_DEFAULTS, **document}
    serial = then.flag("--serialize-image-pulls")
    if serial is not None:
        effective["serializeImagePulls"] = values.same_flag("bool", serial, "true")
    if version.minor < 27:
        effective.pop("maxParallelImagePulls", None)
    wrong = homes.contradiction(effective)
    if wrong:
        raise LayoutError("setting-contradiction", wrong)


def healthz_port(then: Layout, document: Mapping[str, Value]) -> int:
    """Where the kubelet will answer ``/healthz``; 0 is off."""
    said = then.flag("--healthz-port") or document.get("healthzPort")
    if said is None:
        return layout.DEFAULT_HEALTHZ_PORT
    try:
        return int(str(said))
    except ValueError:
        raise LayoutError("layout-not-understood", f"healthzPort is {said!r}") from None
