"""A field's default over the minors, from the table that the effective configuration is worked out with."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rollout.core.model.settings import Value
from rollout.kubelet import fields
from rollout.kubelet.configuration.default_values import defaults, legacy
from rollout.kubelet.in_force import at

NOT_SET = "not set"


def field_defaults(path: str) -> tuple[tuple[int, str], ...]:
    """(first minor, text) of each default in turn; ``()`` for what is no field.

    ``path`` is a field, or one inside it (``authentication.anonymous.enabled``).
    """
    top = fields.field(path.partition(".")[0])
    if top is None:
        return ()
    known = (minor for minor in fields.known_minors() if top.since <= minor <= top.last and defaults(minor))
    return tuple(_steps((minor, _text(path, minor)) for minor in known))


def _steps(texts: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    before = ""
    for minor, text in texts:
        if text != before:
            yield minor, text
        before = text


def _text(path: str, minor: int) -> str:
    with_config, without = _shown(at(defaults(minor), path)), _shown(at(legacy(minor), path))
    return with_config if with_config == without else f"{with_config} with --config, {without} without"


def _shown(value: Value) -> str:
    if value is None:
        return NOT_SET
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
