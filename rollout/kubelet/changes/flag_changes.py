"""Flags into the environment file or drop-in that is their home, others out of theirs, proven by expanding the command
line again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting
from rollout.kubelet import values
from rollout.kubelet.changes import flag_texts
from rollout.kubelet.changes.template_flags import template_flags
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.homes import InFlag
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments, layout
from rollout.kubelet.node.drift import others
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import EnvHome, Layout, LayoutError


@dataclass(frozen=True, slots=True)
class FlagChange:
    """The layout afterwards, the flags that must then be in force, and the edits that bring it."""

    then: Layout
    flags: tuple[InFlag, ...]
    edits: tuple[Edit, ...]


def holds(words: tuple[str, ...], flag: InFlag) -> bool:
    """Is this flag in force on this command line?"""
    found = arguments.last(words, flag.name)
    return found is not None and values.same_flag(flag.kind, found.value, flag.text)


def pending(now: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """Flags that the running kubelet does not have."""
    return tuple(flag.argument for flag in flags if not holds(now.running[1:], flag))


def flag_change(
    found: Found,
    flags: tuple[InFlag, ...],
    taken: Mapping[str, str],
    settings: Mapping[str, Setting],
    templates: Templates,
) -> FlagChange:
    """What must be written so that all ``flags`` are in force, those the template adds too, and none of ``taken`` is left.

    ``taken``: flag → the field that is written instead of it.
    """
    now = found.layout
    if flags and isinstance(now.flags_home, EnvHome):
        flags = (*flags, *template_flags(now, flags, templates, found.version, found.node))
    missing = tuple(flag for flag in flags if not holds(now.asked, flag))
    if not missing and not taken:
        return FlagChange(now, flags, ())
    texts = flag_texts.texts(found, tuple(flag.argument for flag in missing), taken, templates)
    then = _proven(now, texts, flags, taken)
    reasons = {
        path: tuple(
            [_taken(now, flag, field, settings) for flag, field in taken.items() if path in _files(now, flag)]
            + [_reason(now, flag, settings, templates) for flag in missing if path == now.flags_home.path]
        )
        for path in texts
    }
    edits = tuple(_edit(found, path, text, reasons[path]) for path, text in texts.items())
    return FlagChange(then, flags, edits)


def _edit(found: Found, path: str, text: str, reasons: tuple[str, ...]) -> Edit:
    state = found.snapshot.files.get(path)
    before = None if state is not None and state.kind == "absent" else layout.text_of(state, path).encode()
    return Edit(path, before, text.encode(), reasons)


def _files(now: Layout, name: str) -> tuple[str, ...]:
    """The files that change when this flag is taken out."""
    return tuple(
        flag_texts.file_of(now, now.pieces[1 + flag.start]) for flag in arguments.given(now.asked) if flag.name == name
    )


def _proven(now: Layout, texts: Mapping[str, str], flags: tuple[InFlag, ...], taken: Mapping[str, str]) -> Layout:
    """What systemd will run with ``texts``: our flags in force, those taken out gone, everything else as it was."""
    paths = ", ".join(texts)
    try:
        then = layout.rewritten(now, texts)
    except ValueError as error:
        raise LayoutError("template-not-understood", f"{paths} as rendered: {error}") from None
    for flag in flags:
        if not holds(then.asked, flag):
            where = then.origin(flag.name) or "nowhere"
            raise LayoutError("flag-shadowed", f"{flag.argument} would not be in force: {flag.name} is set by {where}")
    ours = frozenset(flag.name for flag in flags) | frozenset(taken)
    if others(then.asked, ours) != others(now.asked, ours) or then.pieces[0].text != now.pieces[0].text:
        raise LayoutError("template-not-understood", f"{paths} as rendered would change more than our flags")
    left = next((flag for flag in taken if then.flag(flag) is not None), "")
    if left:
        raise LayoutError("flag-shadows-field", f"{left} would still be set by {then.origin(left)}")
    return then


def _taken(now: Layout, flag: str, field: str, settings: Mapping[str, Setting]) -> str:
    return reason(flag, now.flag(flag) or "", f"taken out, {field} is written instead", settings.get(field))


def _reason(now: Layout, flag: InFlag, settings: Mapping[str, Setting], templates: Templates) -> str:
    setting = settings.get(flag.name)
    if setting is None and flag.name == DEADLINE_FLAG:
        setting = settings.get(DEADLINE)
    old = now.flag(flag.name) or "not set"
    if setting is None and flag.name == "--config":
        return f"--config: {old} → {flag.text} (so that the kubelet reads it)"
    if setting is None:
        return f"{flag.name}: {old} → {flag.text} (template {templates.flags_env_name})"
    return reason(flag.name, old, flag.text, setting)


def must_hold(then: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """The very words the command line must hold afterwards: ``--config`` and our flags, as they will be written."""
    names = dict.fromkeys(["--config", *(flag.name for flag in flags)])
    found = [arguments.last(then.asked, name) for name in names]
    return tuple(word for flag in found if flag is not None for word in then.asked[flag.start : flag.end])
