"""Every test of the command line also checks that a command prints only documents that it declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click
import pytest

from rollout.cli.main import cli
from rollout.cli.table_group import called
from rollout.core.text import documents
from tests.documents import check_declared


@pytest.fixture(autouse=True)
def only_declared_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints a document of another kind than it declares ends as an internal error."""
    for name in ("page", "line"):
        monkeypatch.setattr(documents, name, partial(_printed, getattr(documents, name)))


def _printed(form: Callable[[Any], str], document: Any) -> str:
    context = click.get_current_context(silent=True)  # none: not in a command, or on another thread of one
    names: list[str] = []
    while context is not None and context.parent is not None:
        names = [*str(context.info_name).split(), *names]
        if context.parent.parent is None:
            break
        context = context.parent
    if context is not None and context.parent is not None and context.parent.command is cli:
        check_declared(called(names), documents.kind_of(type(document)))
    return form(document)
