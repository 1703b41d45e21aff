"""Every document that ``-o json`` prints, for its schema: those that the commands declare."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from rollout.cli.command_table import COMMANDS
from rollout.cli.errors import ErrorDocument
from rollout.cli.registry import REGISTERED, Kinds
from rollout.core.text import documents


@cache
def all_documents() -> Kinds:
    """That of an error, and those of each command. It imports every command, which takes a second."""
    for listed in COMMANDS.values():
        import_module(f"rollout.{listed.where.partition(':')[0]}")
    return tuple(dict.fromkeys((ErrorDocument, *(kind for name in COMMANDS for kind in REGISTERED[name].documents()))))


def documents_schema() -> dict[str, Any]:
    return documents.schema(all_documents())
