"""The fields that the playbook's template makes of a node's settings, checked, and which of them must be written."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting, Value
from rollout.kubelet import fields, homes, in_force, values
from rollout.kubelet.changes import splice
from rollout.kubelet.changes.rendered import rendered
from rollout.kubelet.configuration.outcome import Layer, Outcome
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.versions import Version

_WRITTEN = frozenset({Layer.FILE, Layer.DROP_IN})


def overlay(found: Found, wanted: Mapping[str, Value], templates: Templates) -> Mapping[str, Value]:
    """Every field that must be in force: it says what was asked for, and only what this kubelet knows."""
    if not wanted:
        return {}
    name = templates.kubelet_config_name
    text = rendered(templates.kubelet_config, name, {"fields": dict(wanted)}, found.node).encode()
    try:
        said = splice.read(text)
    except splice.SpliceError as error:
        raise LayoutError("template-not-understood", f"{name}: {error}") from None
    wrong = _wrong(said, wanted, found.version)
    if wrong:
        raise LayoutError("template-not-understood", f"{name}{wrong}")
    return said


def _wrong(said: Mapping[str, Value], wanted: Mapping[str, Value], version: Version) -> str:
    unknown = sorted(set(said) - fields.known_fields(version.minor) | set(said) & set(homes.NOT_OURS))
    if unknown:
        return f" renders {unknown[0]}, which a kubelet {version.short} does not take from us"
    lost = [
        field for field, value in wanted.items() if field not in said or not values.same((field,), said[field], value)
    ]
    if lost:
        return f" does not render {lost[0]} as it was set"
    for field, value in said.items():
        known = fields.field(field)
        mistake = values.mistake(field, known.kind, value) if known else ""
        if mistake:
            return f": {mistake}"
    return ""


def needed(
    outcome: Outcome, fields_wanted: Mapping[str, Value], settings: Mapping[str, Setting]
) -> Mapping[str, Value]:
    """What must be written: what is not in force, and what is pinned and in force by a default or a flag only.

    A field that is as wanted by default is not written: a kubelet is not restarted for what it does already.
    """
    return {
        name: value
        for name, value in fields_wanted.items()
        if not in_force.holds(outcome.effective.get(name), value, (name,)) or _unpinned(outcome, name, settings)
    }


def _unpinned(outcome: Outcome, name: str, settings: Mapping[str, Setting]) -> bool:
    setting, origin = settings.get(name), outcome.origins.get(name)
    return setting is not None and setting.pin and (origin is None or origin.layer not in _WRITTEN)


def with_defaults(outcome: Outcome, asked: Mapping[str, Value], needed: Mapping[str, Value]) -> Mapping[str, Value]:
    """What must be written into a first ``--config`` file: its defaults are others than those in force."""
    flags = {name for name, origin in outcome.origins.items() if origin.layer is Layer.FLAG}
    return {name: value for name, value in asked.items() if name in needed or name not in flags}


def by_others(outcome: Outcome, fields_wanted: Mapping[str, Value], written: Mapping[str, Value]) -> tuple[str, ...]:
    """Notes on fields that are as wanted although nobody wrote them into a file."""
    notes = []
    for name in fields_wanted.keys() - written.keys():
        origin = outcome.origins.get(name)
        if origin is None or origin.layer is Layer.DEFAULT:
            notes.append(f"{name} is as wanted by default and not written; `pin: true` has it written")
        elif origin.layer is Layer.FLAG:
            notes.append(f"{name} is as wanted by {origin.where} and not written; `pin: true` has it written")
    return tuple(sorted(notes))
