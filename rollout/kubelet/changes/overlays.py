"""The fields that the playbook's template makes of a node's settings, checked, and which of them must be written."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting, Value
from rollout.kubelet import fields, homes, values
from rollout.kubelet.changes import already, splice
from rollout.kubelet.changes.rendered import Rendered, rendered
from rollout.kubelet.configuration.outcome import File, Layer, Outcome
from rollout.kubelet.configuration.places import place
from rollout.kubelet.node.found import Found
from rollout.kubelet.versions import Version

_WRITTEN = frozenset({Layer.FILE, Layer.DROP_IN})


def overlay(found: Found, wanted: Mapping[str, Value], templates: Templates) -> Mapping[str, Value]:
    """Every field that must be in force: it says what was asked for, and only what this kubelet knows."""
    if not wanted:
        return {}
    variables: dict[str, Value] = {"fields": dict(wanted)}
    made = rendered(templates.kubelet_config, templates.kubelet_config_name, variables, found.node)
    try:
        said = splice.read(made.text.encode())
    except splice.SpliceError as error:
        raise made.refused(f"what the template renders: {error}", line=error.line) from None
    _check_unknown(made, said, found.version)
    _check_lost(made, said, wanted)
    for field, value in said.items():
        known = fields.field(field)
        mistake = values.mistake(field, known.kind, value) if known else ""
        if mistake:
            raise made.refused(mistake, line=_line(made, field), about=(field,))
    return said


def _check_unknown(made: Rendered, said: Mapping[str, Value], version: Version) -> None:
    for field in sorted(set(said) - fields.known_fields(version.minor) | set(said) & set(homes.NOT_OURS)):
        message = f"the template renders {field}, which a kubelet {version.short} does not take from us"
        raise made.refused(message, line=_line(made, field))


def _check_lost(made: Rendered, said: Mapping[str, Value], wanted: Mapping[str, Value]) -> None:
    for field, value in wanted.items():
        if field not in said:
            raise made.refused(f"the template drops the setting {field}", words=("fields",), about=(field,))
        if not values.same((field,), said[field], value):
            message = f"the template renders {field}: {values.shown(said[field])}, the setting is {values.shown(value)}"
            raise made.refused(message, line=_line(made, field), about=(field,))


def _line(made: Rendered, field: str) -> int:
    """Where a field stands in what was rendered."""
    found = place(File(made.name, made.text.encode()), (field,))
    return found.line if found else 0


def needed(
    outcome: Outcome, fields_wanted: Mapping[str, Value], settings: Mapping[str, Setting], minor: int
) -> Mapping[str, Value]:
    """What must be written: what is not in force, and what is pinned and in force by a default or a flag only.

    A field that is as wanted by default is not written: a kubelet is not restarted for what it does already.
    """
    return {
        name: value
        for name, value in fields_wanted.items()
        if not already.holds(name, outcome.effective.get(name), value, minor) or _unpinned(outcome, name, settings)
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
