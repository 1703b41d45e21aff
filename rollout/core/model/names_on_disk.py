"""What a field is called in journals, plans and snapshots, where code calls it otherwise.

A field is written under its own name. Whoever renames one keeps the name that older versions wrote:
``reverts: bool = field(default=False, metadata=on_disk("want_back"))``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

_KEY = "on disk"


def on_disk(name: str) -> Mapping[str, str]:
    """The ``metadata`` of a field that is written as ``name``."""
    return {_KEY: name}


def name_on_disk(field: dataclasses.Field[Any]) -> str:
    found: str = field.metadata.get(_KEY, field.name)
    return found
