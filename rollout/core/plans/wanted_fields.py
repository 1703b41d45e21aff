"""The fields of a kubelet that a change wants, for those who write them elsewhere: other tools, and nodes that join later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from rollout.core.model.plan import Change
from rollout.core.model.settings import Value
from rollout.core.text import json_text


def wanted_fields(change: Change, path: str) -> Mapping[str, Value]:
    """What ``/configz`` shows of the wanted fields. It shows no empty value: such a one is as the new file at ``path`` has it.

    A field that neither has is in force by default. It is left out: in a merge patch ``null`` removes the field.
    """
    written = next((_document(file.after) for file in change.files if file.path == path), {})
    shown = {name: json_text.parse(text) for name, text in change.effective}
    return _filled(shown, written)


def _filled(shown: Mapping[str, Value], written: Mapping[str, Value]) -> dict[str, Value]:
    """``shown`` with the values of ``written`` for those that are ``None``."""
    fields: dict[str, Value] = {}
    for name, value in shown.items():
        here = written.get(name)
        if isinstance(value, dict):
            inner = _filled(value, here if isinstance(here, dict) else {})
            fields |= {name: inner} if inner or not value else {}
        elif value is not None or here is not None:
            fields[name] = here if value is None else value
    return fields


_LOADER: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_MOST_DEPTH = 100
"""A kubelet's own fields need five. PyYAML's work for a value grows with its depth."""


def _document(content: bytes) -> Mapping[str, Value]:
    """What a file of a node contains; nothing if it is no map, or too deep."""
    depth = 0
    try:
        for event in yaml.parse(content, _LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_DEPTH:
                return {}
        document = yaml.load(content, _LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
