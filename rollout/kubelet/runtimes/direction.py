"""Which way an intent moves a node, for the plan: 5m loosens a limit of 1m, and tightens one that was off."""

from __future__ import annotations

from rollout.core.model.settings import Setting, Value
from rollout.kubelet import values
from rollout.kubelet.intents import DEADLINE


def same(setting: Setting, now: Value) -> bool:
    """Is the value in force already the setting's? Durations compare by value; a number in quotes is none to any runtime."""
    if setting.name == DEADLINE:
        return values.duration(now) is not None and values.duration(now) == values.duration(setting.value)
    return type(now) is type(setting.value) and now == setting.value


def by_default(setting: Setting, now: str, whose: str) -> str:
    """For a setting that does not need to be written."""
    return f"{setting.name}: {now} is already {whose}'s default and not written (`pin: true` writes it)"


def direction(setting: Setting, now: Value, origin: str) -> str:
    """``imagePullProgressDeadline tightens: off (CRI-O's default) → 5m``."""
    way = _deadline(setting, now) if setting.name == DEADLINE else _number(setting, now)
    off = setting.name == DEADLINE and not values.duration(now)
    return f"{setting.name} {way}: {'off' if off else now} ({origin}) → {setting.value}"


def _deadline(setting: Setting, now: Value) -> str:
    old, new = values.duration(now), values.duration(setting.value)
    if not old:
        return "tightens"
    return "stays" if new == old else "loosens" if new is not None and new > old else "tightens"


def _number(setting: Setting, now: Value) -> str:
    new = setting.value
    if not isinstance(new, int) or not str(now).isdecimal():
        return "changes"
    return "stays" if new == int(str(now)) else "raises the limit" if new > int(str(now)) else "lowers the limit"
