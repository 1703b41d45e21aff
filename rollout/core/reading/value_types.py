"""The types of values in our files: durations, shares, names, labels, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from rollout.core.model.playbook import Share
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.reading import schema_words
from rollout.core.reading.validation import Mistakes, kind_of, wrong
from rollout.core.text import node_names
from rollout.core.text.durations import DurationError, parse
from rollout.core.text.nodesets import is_name
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import Entry, Item


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise wrong("wrong-type", f"KEY must be {what}, not {kind_of(value)}")
    return value


def _duration(value: object) -> float:
    if type(value) in (int, float):
        raise wrong("bad-duration", "KEY is a number without a unit", f"write {value}s for seconds")
    try:
        seconds = parse(_text(value, "a duration such as 90s"))
    except DurationError as error:
        raise wrong("bad-duration", f"KEY: `{printable(str(value), 60)}` is not a duration: {error}") from None
    return seconds


_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def _percent(value: object) -> float:
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < float(match["number"]) <= 100:
        raise wrong(
            "bad-share",
            f"KEY: `{printable(str(value), 60)}` is not a percentage; write for example 5%, over 0% and up to 100%",
        )
    return float(match["number"])


def _share(value: object) -> Share:
    if isinstance(value, str):
        return Share(percent=_percent(value))
    if type(value) is not int:
        raise wrong("bad-share", f"KEY must be a count of nodes or a percentage such as 5%, not {kind_of(value)}")
    if value < 1:
        raise wrong("bad-share", f"KEY must be at least 1 node, not {value}")
    return Share(count=value)


def _name_text(value: object) -> str:
    name = _text(value, "a name")
    if not is_name(name):
        raise wrong("bad-name", f"`{printable(name, 60)}` is not a name; names are letters, digits, `-`, `_` and `.`")
    return name


def _node_name_text(value: object) -> str:
    name = _text(value, "a name")
    for flaw in node_names.node_name_flaws([name]):
        raise wrong(flaw.reference, flaw.message, flaw.hint)
    return name


def _label_text(value: object) -> str:
    if not isinstance(value, str):
        raise wrong(
            "wrong-type",
            f"label KEY must be text, not {kind_of(value)}",
            f'write "{printable(str(value).lower() if isinstance(value, bool) else str(value), 40)}" in quotes',
        )
    if len(value) > _LONGEST_LABEL or not value.isprintable():
        raise wrong("bad-label", f"label KEY must be one line of at most {_LONGEST_LABEL} characters")
    return value


_LONGEST_LABEL = 253


def choice(value: object, choices: tuple[str, ...]) -> str:
    """``value`` if it is one of ``choices``."""
    if value not in choices:
        shown = printable(str(value), 60)
        raise wrong(
            "bad-choice",
            f"KEY must be {', '.join(choices[:-1])} or {choices[-1]}, not `{shown}`",
            did_you_mean(shown, choices),
        )
    return str(value)


def _label_name_text(value: object) -> str:
    if not isinstance(value, str) or not _LABEL_NAME.fullmatch(value):
        raise wrong("bad-label", f"KEY: `{printable(str(value), 60)}` is not a label of a metric or alert")
    return value


_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def _registry_text(value: object) -> str:
    if not isinstance(value, str) or not _REGISTRY.fullmatch(value):
        shown = printable(str(value), 60)
        raise wrong(
            "bad-registry",
            f"KEY: `{shown}` is not a registry; write its host, with port and path if needed, without a scheme",
        )
    return value


_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::[0-9]{1,5})?(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,127}){0,8}")


def between(low: float, high: float, words: str) -> AfterValidator:
    """Seconds within bounds; ``words`` describes the bounds."""

    def check(seconds: float) -> float:
        if not low <= seconds <= high:
            raise wrong("out-of-range", f"KEY must be {words}, not {seconds:g}s")
        return seconds

    return AfterValidator(check)


Duration = Annotated[float, BeforeValidator(_duration), schema_words.DURATION]
Percent = Annotated[float, BeforeValidator(_percent), schema_words.PERCENT]
ShareText = Annotated[Share, BeforeValidator(_share), schema_words.SHARE]
Name = Annotated[str, BeforeValidator(_name_text), schema_words.text("[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")]
NodeName = Annotated[str, BeforeValidator(_node_name_text), schema_words.text(node_names.PATTERN)]
LabelText = Annotated[
    str, BeforeValidator(_label_text), WithJsonSchema({"type": "string", "maxLength": _LONGEST_LABEL})
]
Labels = dict[str, LabelText]
LabelName = Annotated[str, BeforeValidator(_label_name_text), schema_words.text(_LABEL_NAME.pattern)]
Registry = Annotated[
    str,
    BeforeValidator(_registry_text),
    schema_words.text(
        _REGISTRY.pattern, "A registry's host, with port and path if needed.", "mirror.rno.example.net:5000"
    ),
]

SETTING_NAME = re.compile(r"(?:--)?[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*")
_POLICIES = tuple(policy.value for policy in IfUnsupported)
_LONG_FORM = ("value", "ifUnsupported", "pin")


def read_settings(item: Item | None, source: str, mistakes: Mistakes) -> Mapping[str, Setting]:
    """``name: value``, or ``name: {value: …, ifUnsupported: refuse|skip, pin: true|false}``."""
    settings: dict[str, Setting] = {}
    for name, entry in item.entries().items() if item else ():
        if not SETTING_NAME.fullmatch(name):
            mistakes.add(
                entry,
                "bad-setting",
                f"`{printable(name, 60)}` is not a setting's name; names are letters and digits, flags also have `-`",
            )
        value, policy, pin = _setting_value(entry.item, mistakes)
        if value is None:
            mistakes.add(
                entry.item, "bad-setting", f"`{printable(name, 60)}` has no value", "write one, or remove the line"
            )
        settings[name] = Setting(name, value, policy, source, mistakes.place(entry), pin)
    return settings


def _setting_value(item: Item, mistakes: Mistakes) -> tuple[Value, IfUnsupported, bool]:
    """A map is a setting's value, unless one of its keys belongs to the long form: then all must."""
    fields = item.entries()
    if not any(key in fields for key in _LONG_FORM):
        return item.plain(), IfUnsupported.REFUSE, False
    for key in fields.keys() - {*_LONG_FORM}:
        message = f"unknown key `{printable(key, 60)}`"
        mistakes.add(fields[key], "unknown-key", message, did_you_mean(key, _LONG_FORM))
    value = fields["value"].item.plain() if "value" in fields else None
    return value, _policy(fields.get("ifUnsupported"), mistakes), _pin(fields.get("pin"), mistakes)


def _pin(entry: Entry | None, mistakes: Mistakes) -> bool:
    pin = entry.item.plain() if entry else False
    if entry is not None and not isinstance(pin, bool):
        mistakes.add(entry.item, "wrong-type", f"`pin` must be true or false, not {kind_of(pin)}")
    return pin is True


def _policy(entry: Entry | None, mistakes: Mistakes) -> IfUnsupported:
    if entry is None:
        return IfUnsupported.REFUSE
    policy = str(entry.item.plain())
    if policy not in _POLICIES:
        message = f"`ifUnsupported` must be refuse or skip, not `{printable(policy, 60)}`"
        mistakes.add(entry.item, "bad-choice", message, did_you_mean(policy, _POLICIES))
        return IfUnsupported.REFUSE
    return IfUnsupported(policy)
