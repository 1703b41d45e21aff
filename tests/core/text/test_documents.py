"""Documents: one form in JSON for every type, and the schema of that form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from rollout.core.text import documents
from rollout.core.text.documents import Inline, Moment, PrintedKey, Shown


class Colour(StrEnum):
    RED = "red"
    GREEN = "dark-green"


@dataclass(frozen=True)
class Inner:
    """Beside ``exit_code``, ``None`` or ``""``."""

    exit_code: int | None
    at: Moment


@dataclass(frozen=True)
class ThingDocument:
    """A thing."""

    inner: Inline[Inner]
    left_out: tuple[Inner, ...]
    counts: Mapping[str, int]
    colours: frozenset[Colour]
    colour: Colour | None
    first: Inner | None
    soak_seconds: float
    from_: str
    ready: bool
    value: object
    until: Moment | None


THING = ThingDocument(
    inner=Inner(3, 0.0),
    left_out=(Inner(None, 1_795_276_800.1239),),
    counts={"snake_case-001": 1},
    colours=frozenset(Colour),
    colour=None,
    first=None,
    soak_seconds=1.5,
    from_="\x9b2J é",
    ready=True,
    value={"snake_case": [None, 1]},
    until=None,
)


def test_the_form_of_a_document() -> None:
    assert documents.values(THING) == {
        "apiVersion": "rollout/v1",
        "kind": "Thing",
        "exitCode": 3,
        "at": "1970-01-01T00:00:00.000Z",
        "leftOut": [{"exitCode": None, "at": "2026-11-21T16:00:00.123Z"}],
        "counts": {"snake_case-001": 1},
        "colours": ["dark-green", "red"],
        "colour": None,
        "first": None,
        "soakSeconds": 1.5,
        "from": "\x9b2J é",
        "ready": True,
        "value": {"snake_case": [None, 1]},
        "until": None,
    }


def test_apiversion_and_kind_come_first_and_the_text_is_ascii() -> None:
    line, page = documents.line(THING), documents.page(THING)
    assert line.startswith('{"apiVersion": "rollout/v1", "kind": "Thing", "exitCode": 3')
    assert line.isascii()
    assert "\n" not in line
    assert page.startswith('{\n  "apiVersion"')
    assert json.loads(line) == json.loads(page) == documents.values(THING)


def test_a_document_fits_its_schema() -> None:
    schema = documents.schema((ThingDocument,))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(documents.values(THING))
    thing = schema["$defs"]["Thing"]
    assert thing["description"] == 'A thing.\n\nBeside `exitCode`, `null` or `""`.'
    assert thing["required"] == list(documents.values(THING))
    assert thing["properties"]["at"] == {"type": "string", "format": "date-time"}
    assert thing["properties"]["colour"] == {"type": ["string", "null"], "enum": ["red", "dark-green", None]}
    assert thing["properties"]["leftOut"]["items"]["description"] == 'Beside `exitCode`, `null` or `""`.'


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "Other"}, {"apiVersion": "rollout/v2"}, {"exitCode": "3"}, {"colour": "blue"}, {"counts": {"a": "b"}}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_is_no_such_document_is_found(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(documents.schema((ThingDocument,))).validate({**documents.values(THING), **wrong})


@dataclass(frozen=True)
class Plain:
    at: Moment


@dataclass(frozen=True)
class UnionDocument:
    either: int | str


def test_what_has_no_form_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="Plain is not a document"):
        documents.line(Plain(1.0))
    with pytest.raises(TypeError, match="no form in a document"):
        documents.line(UnionDocument(1))


@dataclass(frozen=True)
class Spot:
    line: int


@dataclass(frozen=True)
class Mistake:
    words: str
    hint: str
    place: Spot | None

    @property
    def short(self) -> str:
        return self.words[:3]


def _length(mistake: Mistake) -> int:
    return len(mistake.words)


def _doubled(number: int) -> int:
    return 2 * number


def _letters(words: str) -> tuple[str, ...]:
    return tuple(words)


SHOWN = Shown(
    "``None`` where it is ``not_known``.",
    (
        "place.line",
        PrintedKey("place.line", "twice", write=_doubled),
        "short",
        PrintedKey("words", "full_text"),
        PrintedKey("words", "letters", write=_letters),
        PrintedKey("words", "count", write=len, kind=int),
        PrintedKey("", "length", write=_length),
        PrintedKey("hint", or_null=True),
    ),
)


@dataclass(frozen=True)
class MistakeDocument:
    mistake: Inline[Annotated[Mistake, SHOWN]]


@pytest.mark.parametrize(
    ("mistake", "line", "hint"), [(Mistake("none", "", None), None, None), (Mistake("none", "a", Spot(3)), 3, "a")]
)
def test_a_value_is_printed_as_its_keys_name_it(mistake: Mistake, line: int | None, hint: str | None) -> None:
    found = documents.values(MistakeDocument(mistake))
    assert list(found.items())[2:] == [
        ("line", line),
        ("twice", line and 2 * line),
        ("short", "non"),
        ("fullText", "none"),
        ("letters", ["n", "o", "n", "e"]),
        ("count", 4),
        ("length", 4),
        ("hint", hint),
    ]


def test_the_schema_of_keys_has_the_types_of_what_is_printed() -> None:
    made = documents.schema((MistakeDocument,))["$defs"]["Mistake"]
    assert made["description"] == "`null` where it is `notKnown`."
    assert list(made["properties"].items())[2:] == [
        ("line", {"type": ["integer", "null"]}),
        ("twice", {"type": ["integer", "null"]}),
        ("short", {"type": "string"}),
        ("fullText", {"type": "string"}),
        ("letters", {"type": "array", "items": {"type": "string"}}),
        ("count", {"type": "integer"}),
        ("length", {"type": "integer"}),
        ("hint", {"type": ["string", "null"]}),
    ]
