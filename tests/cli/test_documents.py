"""Every document: its schema is shipped, no kind is forgotten, and no number is a time in disguise."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rollout.cli.main import INTERNAL, run
from rollout.cli.registry import REGISTERED
from rollout.cli.schema import all_documents, documents_schema
from rollout.core.run.journal_codec import EVENTS
from rollout.core.text import documents
from rollout.core.text.documents import Moment, kind_of
from tests.documents import check_declared, check_output
from tests.places import ROOT

NUMBERS = frozenset({"age", "pace", "percent", "amount", "at"})
"""Fields that are no length of time in seconds, or (``age``) named as people expect it; ``at`` of a played fault may count."""


def test_the_kept_schema_is_that_of_the_documents(capsys: pytest.CaptureFixture[str]) -> None:
    kept = json.loads((ROOT / "docs/schemas/documents.json").read_text())
    assert kept == documents_schema(), "rollout show schema documents > docs/schemas/documents.json"
    Draft202012Validator.check_schema(kept)
    assert run(["show", "schema", "documents"]) == 0
    assert json.loads(capsys.readouterr().out) == kept


def test_every_document_is_in_the_schema() -> None:
    files = (ROOT / "rollout").rglob("*.py")
    named = {name for file in files for name in re.findall(r"^class (\w+)Document:", file.read_text(), re.MULTILINE)}
    derived = set(EVENTS)  # those of events are made from the events
    assert (named - {"GoYaml"}) | derived == {kind_of(each) for each in all_documents()}, (
        "`-o json` prints no GoYamlDocument"
    )
    assert len({kind_of(each) for each in all_documents()}) == len(all_documents())


def test_a_document_that_its_command_does_not_declare_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "config", "-o", "json"]) == 0
    check_output(["python", "-m", "rollout.cli", "show", "config", "-o", "json"], capsys.readouterr().out)
    with pytest.raises(AssertionError, match=r"`rollout runs` names \['Runs'\], but it prints Config"):
        check_declared("runs", "Config")
    monkeypatch.setitem(REGISTERED, "show config", REGISTERED["show config"]._replace(prints=()))
    assert run(["show", "config", "-o", "json"]) == INTERNAL


def parts(kind: Any, found: set[type]) -> Iterator[tuple[type, str, Any]]:
    """Every printed field with a type of its own, at any depth."""
    if typing.get_origin(kind) is typing.Annotated:
        shown = next((mark for mark in kind.__metadata__ if isinstance(mark, documents.Shown)), None)
        if shown is not None:
            yield from shown_parts(kind.__origin__, shown, found)
            return
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind not in found:
            found.add(kind)
            for name, hint in typing.get_type_hints(kind, include_extras=True).items():
                yield kind, name, hint
                yield from parts(hint, found)
        return
    yield from (each for argument in typing.get_args(kind) for each in parts(argument, found))


def shown_parts(kind: type, shown: documents.Shown, found: set[type]) -> Iterator[tuple[type, str, Any]]:
    for _, name, hint in documents.printed_keys(kind, shown):
        yield kind, name, hint
        yield from parts(hint, found)


def test_a_length_of_time_says_its_unit_and_a_time_is_a_time() -> None:
    unnamed = []
    seen: set[type] = set()
    for document in all_documents():
        for kind, name, hint in parts(document, seen):
            hints = (hint, *typing.get_args(hint)) if hint != Moment else ()
            if float in hints and Moment not in hints and not ("seconds" in name or name in NUMBERS):
                unnamed.append(f"{kind.__name__}.{name}")
    assert unnamed == []


def test_what_is_one_of_a_few_words_is_an_enum() -> None:
    """A field that another document has as an enum is not a bare text elsewhere, except the words of other versions and of the lab."""
    words = {"kind", "state", "phase", "verdict", "goal", "ending", "standing", "scope", "disruption"}
    foreign = {"PastRun", "ListedRun", "PlayOutcome", "LabFaultPart"}
    bare = []
    seen: set[type] = set()
    for document in all_documents():
        for kind, name, hint in parts(document, seen):
            choices = [each for each in (hint, *typing.get_args(hint)) if isinstance(each, type)]
            if name in words and kind.__name__ not in foreign and not any(issubclass(each, Enum) for each in choices):
                bare.append(f"{kind.__name__}.{name}")
    assert bare == []
