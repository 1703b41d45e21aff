"""Values of fields and flags: whether one fits its field or flag, whether two mean the same, whether one is in force.

The rules and texts are those of the kubelet's own decoding and validation.

Sources: KubeletConfiguration v1beta1 types.go, ``pkg/kubelet/apis/config/validation/validation.go`` (1.36.3), and the
real output of kubelets 1.20.2 and 1.36.3 (a bare number for a duration, ``"fifty"`` for an int, a bool as text: all
fatal).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Setting, Value
from rollout.core.text import durations
from rollout.kubelet import fields

_INT32 = 2**31
_INT64 = 2**63
_DURATION_KEYS = frozenset({"cacheTTL", "cacheAuthorizedTTL", "cacheUnauthorizedTTL", "flushFrequency",
                            "maxContainerRestartPeriod", "evictionSoftGracePeriod"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """A kubelet's allowed range: ``least`` to ``most``, both included."""

    least: int
    most: int = _INT32 - 1


SPANS: Mapping[str, Span] = {
    "containerLogMaxFiles": Span(2),
    "eventBurst": Span(0),
    "eventRecordQPS": Span(0),
    "healthzPort": Span(0, 65535),
    "imageGCHighThresholdPercent": Span(0, 100),
    "imageGCLowThresholdPercent": Span(0, 100),
    "kubeAPIBurst": Span(0),
    "kubeAPIQPS": Span(0),
    "maxParallelImagePulls": Span(1),
    "maxPods": Span(0),
    "nodeLeaseDurationSeconds": Span(1),
    "oomScoreAdj": Span(-1000, 1000),
    "port": Span(1, 65535),
    "readOnlyPort": Span(0, 65535),
    "registryBurst": Span(0),
    "registryPullQPS": Span(0),
}


def duration(text: Value) -> float | None:
    """Seconds, or ``None`` when this is not a Go duration."""
    try:
        return durations.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _whole(value: Value, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


def _list(value: Value, inner: type) -> bool:
    return isinstance(value, list) and all(isinstance(entry, inner) for entry in value)


def _map(value: Value, inner: type) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, inner) for entry in value.values())


_KINDS: Mapping[str, tuple[str, Callable[[Value], bool]]] = {
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int32": ("a whole number", lambda value: _whole(value, _INT32)),
    "int64": ("a whole number", lambda value: _whole(value, _INT64)),
    "float64": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "string": ("text", lambda value: isinstance(value, str)),
    "duration": ('a duration such as "5m" or "1m30s"', lambda value: duration(value) is not None),
    "list<string>": ("a list of texts", lambda value: _list(value, str)),
    "list<int32>": ("a list of whole numbers", lambda value: isinstance(value, list)
                    and all(_whole(entry, _INT32) for entry in value)),
    "list<object>": ("a list of maps", lambda value: _list(value, dict)),
    "map<string,string>": ("a map of texts", lambda value: _map(value, str)),
    "map<string,bool>": ("a map of true or false", lambda value: _map(value, bool)),
    "map<string,list<string>>": ("a map of lists of texts", lambda value: isinstance(value, dict)
                                 and all(_list(entry, str) for entry in value.values())),
    "object": ("a map", lambda value: isinstance(value, dict)),
}  # fmt: skip


def mistake(name: str, kind: str, value: Value) -> str:
    """What is wrong with ``value`` for a field of this kind, or ``""``."""
    wanted, fits = _KINDS[kind]
    if not fits(value):
        return f"{name} takes {wanted}, not {_misfit(value, fits)}"
    span = SPANS.get(name)
    if span is not None and isinstance(value, int) and not span.least <= value <= span.most:
        return f"{name} {value} must be between {span.least} and {span.most}"
    return ""


def _misfit(value: Value, fits: Callable[[Value], bool]) -> str:
    """The entry that does not fit, of a map or a list of which others do; else the value."""
    if isinstance(value, dict) and fits({}):
        key, entry = next((key, entry) for key, entry in value.items() if not fits({key: entry}))
        return f"{shown(entry)} for {shown(key)}"
    if isinstance(value, list) and fits([]):
        at, entry = next((at, entry) for at, entry in enumerate(value, 1) if not fits([entry]))
        return f"{shown(entry)} as entry {at}"
    return shown(value)


def flag_mistake(name: str, kind: str, value: Value) -> str:
    """The same for a flag. Its value becomes one word of one line, so only values that fit there are allowed."""
    if isinstance(value, str) and not value.isprintable():
        return f"{name} contains a control character"
    if kind in _KINDS:
        return mistake(name, kind, value)
    if isinstance(value, str | int | float):
        return ""
    return f"{name} takes text or a number, not {shown(value)}"


def shown(value: Value) -> str:
    """A value in a message, short, as in JSON, which is YAML too."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def reason(name: str, old: str, new: str, setting: Setting | None) -> str:
    """Why a file changes: ``serializeImagePulls: true → false (playbook image-pulls)``."""
    source = f" ({setting.source})" if setting and setting.source else ""
    return f"{name}: {old} → {new}{source}"


def flag_text(value: Value) -> str:
    """A value as a flag's argument."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def same(path: tuple[str, ...], old: Value, new: Value) -> bool:
    """Does a kubelet read both as the same? Durations compare by value if the field is one."""
    if isinstance(old, bool) is not isinstance(new, bool):
        return False
    if old == new:
        return True
    if not is_duration(path):
        return False
    left, right = duration(old), duration(new)
    return left is not None and left == right


def is_duration(path: tuple[str, ...]) -> bool:
    """Whether the field at this path is a duration."""
    from_field = fields.field(path[0]) if path else None
    return bool(from_field and from_field.kind == "duration") or any(part in _DURATION_KEYS for part in path)


def same_flag(kind: str, old: str, new: str) -> bool:
    """Do two written values of a flag mean the same?"""
    if kind == "duration":
        return duration(old) is not None and duration(old) == duration(new)
    if kind == "bool":
        return _bool(old) is not None and _bool(old) == _bool(new)
    if kind in {"int32", "int64"}:
        return _number(old) is not None and _number(old) == _number(new)
    return old == new


def _bool(text: str) -> bool | None:
    """Go's ``strconv.ParseBool``."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    return False if text in {"0", "f", "F", "false", "FALSE", "False"} else None


def _number(text: str) -> int | None:
    try:
        return int(text, 10)
    except ValueError:
        return None


# ``/configz`` compared with the wanted values: fields as a kubelet prints them.
#
# A kubelet leaves out what is empty (``omitempty`` in KubeletConfiguration v1beta1 types.go). So a field that it
# does not show is empty: ``readOnlyPort: 0`` is in force if no ``readOnlyPort`` is shown.


Path = tuple[str, ...]


def is_in_force(shown: Value, wanted: Value, path: Path) -> bool:
    """Is ``wanted`` in force? Of maps only the wanted keys count, everything else counts as a whole. ``None``: not
    shown.
    """
    if wanted is None:
        return shown is None or _empty(shown, path)
    if shown is None:
        return _empty(wanted, path)
    if isinstance(wanted, dict):
        return isinstance(shown, dict) and all(
            is_in_force(shown.get(key), value, (*path, key)) for key, value in wanted.items()
        )
    return same(path, shown, wanted)


def value_at(values: Mapping[str, Value], path: str) -> Value:
    """The value at ``a.b.c``; ``None``: it does not exist."""
    first, *inner = path.split(".")
    value = values.get(first)
    for key in inner:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def whole_number(effective: Mapping[str, Value], field: str, default: int) -> int:
    """A whole number in force, ``default`` if none is shown."""
    value = effective.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _empty(wanted: Value, path: Path) -> bool:
    if isinstance(wanted, dict):
        return all(_empty(value, (*path, key)) for key, value in wanted.items())
    return not wanted or same(path, "0s", wanted)


def part_shown(shown: Value, wanted: Value) -> Value:
    """The shown part of what is wanted, ``null`` for what is not shown."""
    if isinstance(shown, dict) and isinstance(wanted, dict):
        return {key: part_shown(shown.get(key), value) for key, value in wanted.items()}
    return shown


def canonical(value: Value) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
