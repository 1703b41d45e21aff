"""Compares our result of a case with the kubelet's. One difference on each line; none: we agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rollout.kubelet.configuration.outcome import KubeletOutcome, MessageLevel

LATER = "cannot-run"
"""The reference of failures after the kubelet has found its runtime. Cases recorded without one never got that far."""

GATE = "unknown-gate"
"""The fork of the recorded kubelets only warns of an unknown gate."""

_NOT_TOLD = frozenset({"kind", "apiversion"})
_AFTERWARDS = frozenset({"kubeReserved", "systemReserved"})
"""Fields that reservedSystemCPUs overrides in a running kubelet, after it has printed its configuration."""

_MASKED = "<masked>"
_NOT_BUILT_IN = "Unsupported log format"
"""The recorded kubelets were built without JSON logs."""

_OTHER_NAMES = {"resolverconfig": "resolvconf"}


def differences(told: dict[str, Any], head: dict[str, Any], ours: KubeletOutcome) -> Iterator[str]:
    """``told`` is a recorded line. ``head`` is the first line: the configuration that ``effective`` is relative to, and
    whether there was a runtime.
    """
    fatal = [message for message in ours.messages if message.level is MessageLevel.FATAL]
    excused = {GATE} if head.get("runtime") else {GATE, LATER}
    untold = bool(fatal) and all(message.reference in excused for message in fatal)
    if not told["taken"]:
        if ours.starts and _NOT_BUILT_IN not in told["said"]:
            yield f"the kubelet reports {told['said']!r}; rollout: it starts"
        return
    if told.get("late"):
        if ours.starts:
            yield f"later the kubelet reports {told['late']!r}; rollout: it starts"
        return
    if not ours.starts and not untold:
        yield f"the kubelet starts; rollout: {fatal[0].text if fatal else 'nothing'!r}"
    yield from _ignored(told, ours)
    if ours.starts and told["effective"] is not None:
        overruled = _AFTERWARDS if ours.effective.get("reservedSystemCPUs") else frozenset()
        theirs = {
            name: value
            for name, value in {**head["plain"], **told["effective"]}.items()
            if _json_name(name) not in overruled
        }
        mine = {name: value for name, value in ours.effective.items() if name not in overruled}
        yield from _effective(theirs, mine, "")


def _json_name(name: str) -> str:
    return name[0].lower() + name[1:]


def _ignored(told: dict[str, Any], ours: KubeletOutcome) -> Iterator[str]:
    unknown, ignored = set(told.get("unknown", ())), {_without_indices(path) for path in ours.ignored}
    if {_without_indices(path) for path in unknown} != ignored:
        yield f"the kubelet ignores {sorted(unknown)}, rollout {sorted(ignored)}"


def _without_indices(path: str) -> str:
    """``a[0].b`` and ``a.0.b`` as ``a.b``."""
    return ".".join(part for part in path.replace("[", ".").replace("]", "").split(".") if not part.isdecimal())


def _effective(told: Any, ours: Any, where: str) -> Iterator[str]:
    """The kubelet prints its internal type: names begin with a capital, and empty values are written out."""
    if isinstance(told, dict) and isinstance(ours, dict):
        yield from _objects(told, ours, where)
    elif isinstance(told, list) and isinstance(ours, list) and len(told) == len(ours):
        for at, (left, right) in enumerate(zip(told, ours, strict=True)):
            yield from _effective(left, right, f"{where}[{at}]")
    elif not _same(told, ours):
        yield f"{where}: in force is {json.dumps(told)}, rollout has {json.dumps(ours)}"


def _objects(told: dict[str, Any], ours: dict[str, Any], where: str) -> Iterator[str]:
    by_name = {name.lower(): value for name, value in ours.items()}
    for name, value in told.items():
        key = _OTHER_NAMES.get(name.lower(), name.lower())
        if key not in _NOT_TOLD:
            yield from _effective(value, by_name.pop(key, None), f"{where}.{name}" if where else name)
    for name, value in by_name.items():
        if name not in _NOT_TOLD and not _nothing(value):
            yield f"{where}.{name}: rollout has {json.dumps(value)}, the kubelet does not print it"


def _same(told: Any, ours: Any) -> bool:
    masked = told in (_MASKED, [_MASKED])
    return masked or told == ours or str(told) == str(ours) or (_nothing(told) and _nothing(ours))


def _nothing(value: Any) -> bool:
    return (
        value in (None, "", 0, False, "0s")
        or value == []
        or value == {}
        or (isinstance(value, dict) and all(_nothing(each) for each in value.values()))
    )
