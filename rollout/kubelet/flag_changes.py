"""Flags into the environment file or drop-in that is their home, proven by expanding the command line again.

Also: may this kubelet be restarted at all, or would that put somebody else's edits in force?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text import diff
from rollout.kubelet import arguments, env_file, fields, homes, layout, unit_file, values
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.homes import InFlag
from rollout.kubelet.layout import UNIT, VARIABLE, EnvHome, Layout, LayoutError
from rollout.kubelet.rendered import rendered
from rollout.kubelet.versions import Version


@dataclass(frozen=True, slots=True)
class FlagChange:
    """The layout afterwards, the flags that must then be in force, and the edit that brings it (``None``: none needed)."""

    then: Layout
    flags: tuple[InFlag, ...]
    edit: Edit | None


def holds(words: tuple[str, ...], flag: InFlag) -> bool:
    """Is this flag in force on this command line?"""
    found = arguments.last(words, flag.name)
    return found is not None and values.same_flag(flag.kind, found.value, flag.text)


def pending(now: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """Flags that the running kubelet does not have."""
    return tuple(flag.argument for flag in flags if not holds(now.running[1:], flag))


def check_running(now: Layout, flags: tuple[InFlag, ...]) -> None:
    """Nobody else's edit may come into force by our restart."""
    if now.running[1:] == now.asked:
        return
    ours = frozenset(flag.name for flag in flags)
    runs, asked = _others(now.running[1:], ours), _others(now.asked, ours)
    if runs == asked:
        return
    said = [
        *(f"{_safe(name, value)} runs but is not in the files" for name, value in runs if (name, value) not in asked),
        *(
            f"{_safe(name, value)} is in the files but does not run"
            for name, value in asked
            if (name, value) not in runs
        ),
    ]
    difference = ", ".join(said) or "the order differs"
    raise LayoutError("layout-drifted", f"the kubelet does not run as its unit and files say: {difference}")


def _safe(name: str, value: str) -> str:
    return diff.redacted(f"{name}={value}")


def _others(words: tuple[str, ...], ours: frozenset[str]) -> list[tuple[str, str]]:
    return [(flag.name, flag.value) for flag in arguments.given(words) if flag.name not in ours]


def flag_change(  # the parts of a node that flags depend on
    snapshot: Snapshot,
    now: Layout,
    flags: tuple[InFlag, ...],
    settings: Mapping[str, Setting],
    templates: Templates,
    version: Version,
    node: Node,
) -> FlagChange:
    """What must be written so that all ``flags`` are in force, and those the template adds."""
    if not flags:
        return FlagChange(now, (), None)
    home = now.flags_home
    if isinstance(home, EnvHome):
        flags = (*flags, *_template_flags(now, flags, templates, version, node))
    missing = tuple(flag for flag in flags if not holds(now.asked, flag))
    if not missing:
        return FlagChange(now, flags, None)
    text = _env_text(now, home, missing) if isinstance(home, EnvHome) else _drop_in_text(now, missing, templates, node)
    state = snapshot.files.get(home.path)
    before = None if state is not None and state.kind == "absent" else layout.text_of(state, home.path).encode()
    then = _proven(now, home.path, text, flags)
    reasons = tuple(_reason(now, flag, settings, templates) for flag in missing)
    return FlagChange(then, flags, Edit(home.path, before, text.encode(), reasons))


def _template_flags(
    now: Layout, flags: tuple[InFlag, ...], templates: Templates, version: Version, node: Node
) -> tuple[InFlag, ...]:
    """Flags that the template adds to the arguments it was given; it can neither drop nor change one."""
    merged = arguments.merge(now.variable_value, [flag.argument for flag in flags])
    own = [merged[word.start : word.end] for word in arguments.split(merged)]
    variables: dict[str, Value] = {"variable": VARIABLE, "arguments": [_escaped(word) for word in own]}
    text = rendered(templates.flags_env, templates.flags_env_name, variables, node)
    try:
        said = env_file.values(text)
        words = tuple(word.text for word in arguments.split(said.pop(VARIABLE, "")))
    except ValueError as error:
        raise LayoutError("template-not-understood", f"{templates.flags_env_name}: {error}") from None
    own_words = tuple(word.text for word in arguments.split(merged))
    given = {(flag.name, flag.value) for flag in arguments.given(own_words)}
    rest = [flag for flag in arguments.given(words) if (flag.name, flag.value) not in given]
    stray = [*said, *(word for word in words if not word.startswith("-") and word not in own_words)]
    if VARIABLE not in env_file.values(text) or stray:
        what = f"sets {stray[0]!r}" if stray else f"does not set {VARIABLE}"
        raise LayoutError("template-not-understood", f"{templates.flags_env_name} {what}")
    return tuple(_template_flag(flag, templates, version) for flag in rest)


def _template_flag(flag: arguments.Given, templates: Templates, version: Version) -> InFlag:
    known = fields.flag(flag.name)
    if known is None or not known.known_in(version.minor) or flag.name in homes.NOT_OURS:
        message = f"{templates.flags_env_name} adds {flag.name}, which a kubelet {version.short} does not take from us"
        raise LayoutError("template-not-understood", message)
    return InFlag(flag.name, flag.value, known.kind)


def _escaped(word: str) -> str:
    """A word for a bare value in an environment file: a backslash takes the next character there."""
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")


def _env_text(now: Layout, home: EnvHome, missing: tuple[InFlag, ...]) -> str:
    try:
        value = arguments.merge(now.variable_value, [flag.argument for flag in missing])
        return env_file.assign(now.environments.get(home.path, ""), VARIABLE, value)
    except ValueError as error:
        raise LayoutError("layout-not-understood", f"{home.path}: {error}") from None


def _drop_in_text(now: Layout, missing: tuple[InFlag, ...], templates: Templates, node: Node) -> str:
    command = unit_file.merge(now.start.command, tuple(flag.argument for flag in missing))
    variables: dict[str, Value] = {"exec_start": command, "unit": UNIT}
    return rendered(templates.drop_in, templates.drop_in_name, variables, node)


def _proven(now: Layout, path: str, text: str, flags: tuple[InFlag, ...]) -> Layout:
    """What systemd will run once ``path`` holds ``text``: our flags in force, everything else as it was."""
    try:
        then = layout.after(now, path, text)
    except ValueError as error:
        raise LayoutError("template-not-understood", f"{path} as rendered: {error}") from None
    for flag in flags:
        if not holds(then.asked, flag):
            where = then.origin(flag.name) or "nowhere"
            raise LayoutError("flag-shadowed", f"{flag.argument} would not be in force: {flag.name} is set by {where}")
    ours = frozenset(flag.name for flag in flags)
    if _others(then.asked, ours) != _others(now.asked, ours) or then.pieces[0].text != now.pieces[0].text:
        raise LayoutError("template-not-understood", f"{path} as rendered would change more than our flags")
    return then


def _reason(now: Layout, flag: InFlag, settings: Mapping[str, Setting], templates: Templates) -> str:
    setting = settings.get(flag.name)
    if setting is None and flag.name == homes.DEADLINE_FLAG:
        setting = settings.get(homes.DEADLINE)
    old = now.flag(flag.name) or "not set"
    if setting is None:
        return f"{flag.name}: {old} → {flag.text} (template {templates.flags_env_name})"
    return reason(flag.name, old, flag.text, setting)


def must_hold(then: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """The very words the command line must hold afterwards: ``--config`` and our flags, as they will be written."""
    names = ["--config", *(flag.name for flag in flags)]
    found = [arguments.last(then.asked, name) for name in names]
    return tuple(word for flag in found if flag is not None for word in then.asked[flag.start : flag.end])
