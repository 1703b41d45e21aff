"""Is a change right? What the kubelet made of its node before is compared with what it will make of it afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollout.core.model.settings import Value
from rollout.kubelet import values
from rollout.kubelet.changes import already
from rollout.kubelet.configuration.outcome import Layer, Outcome
from rollout.kubelet.node.found import fatal
from rollout.kubelet.node.layout import LayoutError


def prove(before: Outcome, after: Outcome, wanted: Mapping[str, Value], minor: int) -> None:
    """It starts, ignores nothing more than before, and goes by every field that is wanted; else ``LayoutError``."""
    if not after.starts:
        about = tuple(dict.fromkeys(message.about for message in after.messages if message.about))
        raise LayoutError("kubelet-would-not-start", f"the kubelet would not start: {fatal(after)}", about=about)
    ignored = [path for path in after.ignored if path not in before.ignored]
    if ignored:
        message = f"the kubelet would drop {', '.join(ignored)} with a warning and go on with the default"
        raise LayoutError("setting-without-effect", message, about=tuple(path.split(".")[0] for path in ignored))
    for name, value in wanted.items():
        if not already.holds(name, after.effective.get(name), value, minor):
            _refuse(after, name, value)


def _refuse(after: Outcome, name: str, value: Value) -> None:
    origin = after.origins.get(name)
    shown = values.shown(after.effective.get(name))
    if origin is not None and origin.layer is Layer.FLAG:
        raise LayoutError("flag-shadows-field", f"{origin.where} beats {name}: {shown} would be in force")
    where = f" ({origin.where or origin.layer.value})" if origin is not None else ""
    message = f"{name}: {values.shown(value)} would have no effect, {shown} would be in force{where}"
    raise LayoutError("setting-without-effect", message, about=(name,))


def side_effects(before: Outcome, after: Outcome, meant: Collection[str]) -> Mapping[str, tuple[Value, Value]]:
    """Fields besides those ``meant`` that change too, with their values before and after (``None``: not shown)."""
    names = sorted(set(before.effective) | set(after.effective))
    return {
        name: (before.effective.get(name), after.effective.get(name))
        for name in names
        if name not in meant and before.effective.get(name) != after.effective.get(name)
    }
