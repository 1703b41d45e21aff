"""What ``-o json`` printed, each document checked against the schema of its kind: exactly its keys, each of its type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from rollout.cli.registry import REGISTERED
from rollout.cli.schema import all_documents, documents_schema
from rollout.cli.table_group import called
from rollout.core.text import documents

_BLANKS = re.compile(r"\s*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

NO_DOCUMENT = frozenset({"cluster unlock", "uninstall", "resume", "pause", "continue", "abort"})
"""Commands that take ``-o`` and may print sentences all the same."""

_formats = FormatChecker(formats=())


@_formats.checks("date-time")
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or _TIME.fullmatch(value) is not None


def only(text: str) -> dict[str, Any]:
    """The one document of a command."""
    (found,) = printed(text)
    return found


def printed(text: str) -> list[dict[str, Any]]:
    """Every document of a command, in order."""
    return [checked(each) for each in _values(text)]


def as_printed(document: object) -> dict[str, Any]:
    """A document as programs see it."""
    return only(documents.page(document))


def checked(document: dict[str, Any]) -> dict[str, Any]:
    kind = document.get("kind")
    assert kind in _kinds(), f"no document of rollout: {str(document)[:400]}"
    wrong = [f"{kind}.{'.'.join(map(str, each.path))}: {each.message}" for each in _kinds()[kind].iter_errors(document)]
    assert not wrong, "\n".join(wrong)
    return document


def check_output(command: Sequence[str], text: str) -> None:
    """Of a command of ours that printed documents."""
    words = list(command)
    if "rollout.cli" not in words or "json" not in words[words.index("rollout.cli") :]:
        return
    name = called(words[words.index("rollout.cli") + 1 :])
    for document in printed(text) if name not in NO_DOCUMENT else ():
        check_declared(name, document["kind"])


def check_declared(name: str, kind: str) -> None:
    """``AssertionError`` if the command of this name prints a document of a kind that it does not declare."""
    all_documents()  # imports every command
    declared = sorted(map(documents.kind_of, REGISTERED[name].documents()))
    assert kind in declared, f"`registered` of `rollout {name}` names {declared}, but it prints {kind}"


def _values(text: str) -> Iterator[Any]:
    at, decoder = 0, json.JSONDecoder()
    while (at := _after_blanks(text, at)) < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


@cache
def _kinds() -> dict[str, Draft202012Validator]:
    found = documents_schema()
    Draft202012Validator.check_schema(found)
    return {kind: Draft202012Validator(_closed(each), format_checker=_formats) for kind, each in found["$defs"].items()}


def _closed(schema: Any) -> Any:
    """A reader must accept keys of later versions. We print no other keys than those of this one."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(each) for key, each in schema.items()}
    return {**found, "additionalProperties": False} if isinstance(found.get("properties"), dict) else found
