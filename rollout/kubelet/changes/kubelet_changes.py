"""The kubelet's part of a change: its fields and flags, tried in the least invasive home first and proven by the outcome."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting, Value
from rollout.kubelet import fields, in_force, values
from rollout.kubelet.changes import field_homes, flag_changes, moved_flags, new_config, overlays, policy_states, proof
from rollout.kubelet.changes.field_homes import FieldHome
from rollout.kubelet.changes.moved_flags import Moved
from rollout.kubelet.configuration.outcome import Outcome
from rollout.kubelet.edits import Edit
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import drift, sources, unloaded
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import DEFAULT_HEALTHZ_PORT, Layout, LayoutError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be in force in the kubelet, and who said so."""

    fields: Mapping[str, Value]
    flags: tuple[InFlag, ...]
    settings: Mapping[str, Setting]
    policy: Policy


@dataclass(frozen=True, slots=True)
class KubeletChange:
    """The edits; ``pending`` are flags and fields that are written already but are not in force yet."""

    edits: tuple[Edit, ...]
    then: Layout
    flags: tuple[InFlag, ...]
    pending: tuple[str, ...]
    outcome: Outcome
    fields: Mapping[str, Value]  # all that must be in force, those of the template too
    notes: tuple[str, ...]

    @property
    def restarts(self) -> bool:
        """Whether the kubelet must be started anew."""
        return bool(self.edits or self.pending)

    @property
    def effective(self) -> tuple[tuple[str, str], ...]:
        """Of each field what we want of it, as ``/configz`` will show it."""
        shown = self.outcome.effective
        return tuple(
            (name, in_force.canonical(in_force.part(shown.get(name), self.fields[name])))
            for name in sorted(self.fields)
        )

    @property
    def healthz_port(self) -> int:
        """Where the kubelet will answer ``/healthz``; 0 is off."""
        port = self.outcome.effective.get("healthzPort", DEFAULT_HEALTHZ_PORT)
        return port if isinstance(port, int) else DEFAULT_HEALTHZ_PORT


def kubelet_change(found: Found, wanted: Wanted) -> KubeletChange:
    """What must happen to the kubelet's own files, or ``LayoutError``: the first home's reason when none will do."""
    try:
        asked = overlays.overlay(found, wanted.fields, wanted.policy.templates)
        needed = overlays.needed(found.outcome, asked, wanted.settings, found.version.minor)
        made = _in_the_first_home(found, wanted, asked, needed)
    except LayoutError:
        drift.check(found.layout, {flag.name for flag in wanted.flags})  # a stranger's edit explains more
        raise
    drift.check(found.layout, {flag.name for flag in made.flags})
    if made.restarts:
        policy_states.check(found, made.then, made.outcome)
    return made


def _in_the_first_home(
    found: Found, wanted: Wanted, asked: Mapping[str, Value], needed: Mapping[str, Value]
) -> KubeletChange:
    if not needed:
        return _attempt(found, wanted, asked, Moved({}, {}), None)
    refused: LayoutError | None = None
    for home in field_homes.homes(found):
        try:
            written = overlays.with_defaults(found.outcome, asked, needed) if home.flags else needed
            moved = moved_flags.moved(found, written, wanted.policy.shadowed, home.path)
            return _attempt(found, wanted, asked, moved, home)
        except LayoutError as error:
            refused = refused or error
    raise refused or LayoutError("no-config-file", "there is no file that the fields could go into")


def _attempt(
    found: Found, wanted: Wanted, asked: Mapping[str, Value], moved: Moved, home: FieldHome | None
) -> KubeletChange:
    settings, templates = wanted.settings, wanted.policy.templates
    flags, edits = wanted.flags, list[Edit]()
    if home is not None:
        written, beside = field_homes.beside(home, moved.fields, found)
        edit = home.edit(written, {**settings, **beside}, templates.kubelet_config_name)
        edits += [edit] if edit is not None else []
        flags = (*flags, *home.flags)
        asked = {**asked, **written}
    by_flag = flag_changes.flag_change(found, flags, moved.flags, settings, templates)
    edits += by_flag.edits
    given = sources.after(found.sources, by_flag.then, {edit.path: edit.after for edit in edits})
    outcome = sources.outcome(found.version, given)
    proof.prove(found.outcome, outcome, asked, found.version.minor)
    paths = [known.field for flag in by_flag.flags if (known := fields.flag(flag.name)) and known.field]
    if home is not None and home.flags:
        notes = new_config.check_accepted(found.outcome, outcome, asked, paths, wanted.policy.accepted)
    else:
        notes = _side_effects(found.outcome, outcome, {*asked, *(path.split(".")[0] for path in paths)})
    notes += overlays.by_others(found.outcome, asked, moved.fields)
    pending = (*flag_changes.pending(found.layout, by_flag.flags), *_unloaded(found, asked))
    return KubeletChange(tuple(edits), by_flag.then, by_flag.flags, pending, outcome, asked, notes)


def _unloaded(found: Found, asked: Mapping[str, Value]) -> tuple[str, ...]:
    """What the files say of the fields that are ``asked`` for, and the running kubelet has not read."""
    return tuple(each.told for each in unloaded.of_kubelet(found) if unloaded.says(asked, each.field))


def _side_effects(before: Outcome, after: Outcome, meant: Collection[str]) -> tuple[str, ...]:
    """What changes besides because a default hangs on it, for people."""
    changed = proof.side_effects(before, after, meant)
    return tuple(
        f"{name}: {values.shown(old)} → {values.shown(new)} follows from this" for name, (old, new) in changed.items()
    )
