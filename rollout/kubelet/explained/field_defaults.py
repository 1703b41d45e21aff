"""A field's default over the minors, from the table that the effective configuration is worked out with."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rollout.core.model.settings import Value
from rollout.kubelet import fields
from rollout.kubelet.configuration import gates
from rollout.kubelet.configuration.default_values import defaults, gated
from rollout.kubelet.configuration.defaulting import with_file, without_file
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
    with_config, without = _shown(at(with_file(minor, {}), path)), _shown(at(without_file(minor), path))
    said = with_config if with_config == without else f"{with_config} with --config, {without} without"
    return said + "".join(_by_gate(path, minor))


def _by_gate(path: str, minor: int) -> Iterator[str]:
    """What the default is where the gate that it hangs on is set otherwise."""
    for rule in gated(minor):
        if path in (rule.path[0], ".".join(rule.path)):
            on = gates.default(rule.gate, minor)
            other = _shown(at(with_file(minor, {rule.gate: not on}), path))
            yield f"; {other} with the gate {rule.gate} {'off' if on else 'on'}"


def _shown(value: Value) -> str:
    if value is None:
        return NOT_SET
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
