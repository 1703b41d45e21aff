"""The table of features: what is not found by itself. Commands are, see ``rollout/cli/registry.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollout.core.reading.schemas import file_schema, inventory_schema, playbook_schema
from rollout.features.sequence.written import SequenceFile

SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "inventory": inventory_schema,
    "playbook": playbook_schema,
    "sequence": lambda: file_schema(SequenceFile, "A sequence of rollout"),
}
"""The files of people: the kernel's, and those of features."""
