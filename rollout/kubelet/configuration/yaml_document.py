"""YAML bytes as a kubelet converts them to JSON: sigs.k8s.io/yaml over yaml.v2, first lenient, then strict.

Only the first document is read. Anchors, aliases and merge keys (``<<``) work. The last of two equal keys wins, and
each earlier one is reported, since only the strict reading refuses it. Keys become text as in Go (``yes:`` is
``"true"``). Source: ``vendor/gopkg.in/yaml.v2/decode.go`` and ``vendor/sigs.k8s.io/yaml/yaml.go`` of 1.20.2. libyaml,
of which yaml.v2 is a port, does the parsing; ``yaml_words`` handles the differences between the two.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import yaml

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration import yaml_words
from rollout.kubelet.configuration.yaml_words import Scalar, ScalarError, resolve


def float_key(value: float) -> str:
    """``FormatFloat(f, 'g', -1, 32)``: the shortest text that gives the same 32-bit float; exponents from 21 on."""
    if not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    short = next(text for digits in range(1, 18) if _same_32((text := f"{value:.{digits}g}"), value) or digits == 17)
    number = float(short)
    exponent = math.floor(math.log10(abs(number))) if number else 0
    if exponent < -4 or exponent >= 21:
        return f"{number:e}" if "e" not in short else short
    return str(int(number)) if number.is_integer() else short


def _same_32(text: str, value: float) -> bool:
    try:
        return struct.pack("f", float(text)) == struct.pack("f", value)
    except OverflowError:
        return False


Json = Scalar | list[Any] | dict[str, Any]
Path = tuple[str | int, ...]

_FLOATS_IN_FULL = 1e21  # encoding/json writes floats below this without an exponent
_MOST_DEPTH = 200  # protects Python's stack; no configuration has more than five levels
_MOST_VALUES = 100_000
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class DocumentError(ValueError):
    """The kubelet cannot read this; the text is the kubelet's. ``line`` and ``column`` count from 1."""

    def __init__(self, text: str, line: int = 1, column: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A duplicate key: its path, and the line of its value from 1 as yaml.v2 counts it."""

    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class GoYamlDocument:
    """The resulting JSON, and the duplicate keys. ``rest``: line of a second document with content, which nobody reads; 0: none."""

    value: Json
    duplicates: tuple[Duplicate, ...] = ()
    rest: int = 0


def read(content: bytes) -> GoYamlDocument:
    """The first document, or ``DocumentError``."""
    for letter in yaml_words.STAND_INS:
        if letter.encode() in content:
            raise DocumentError(f"rollout cannot judge a document with the character U+{ord(letter):04X}")
    if content.startswith(2 * yaml_words.BYTE_ORDER_MARK):
        raise DocumentError("rollout cannot judge a document that begins with two byte order marks")
    loader = _LOADER(yaml_words.prepared(content))
    try:
        return _Reader(loader.get_event).document()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"yaml: {getattr(error, 'reason', error)}") from None
    finally:
        loader.dispose()


def _syntax(error: yaml.MarkedYAMLError) -> DocumentError:
    """yaml.v2 counts lines from 0 in errors of its parser and from 1 in those of its scanner, and omits line 0."""
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "unknown problem parsing YAML content"
    if mark is None:
        return DocumentError(f"yaml: {problem}")
    counted = mark.line + 1 if mark.line and isinstance(error, yaml.scanner.ScannerError) else mark.line
    where = f"line {counted}: " if counted else ""
    return DocumentError(f"yaml: {where}{problem}", mark.line + 1, mark.column + 1)


@dataclass(frozen=True, slots=True)
class _Merge:
    """The key ``<<``."""


@dataclass(slots=True)
class _Anchor:
    """The value of an anchor. ``whole`` is false until its end was read; ``size`` counts the values in it."""

    value: Json = None
    whole: bool = False
    size: int = 1


class _Reader:
    """Events in, JSON out. Follows yaml.v2's decoder step by step, so that errors come in the same order."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._inside: list[str] = []  # the closing brackets of the open flow collections
        self._anchors: dict[str, _Anchor] = {}
        self._duplicates: list[Duplicate] = []
        self._path: list[str | int] = []
        self._values = 0
        self._depth = 0  # of maps and lists, also of those used as a key

    def document(self) -> GoYamlDocument:
        self._next()  # the stream's start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return GoYamlDocument(None)
        if event.version is not None and tuple(event.version) != (1, 1):
            raise self._error("found incompatible YAML document", event)
        value = self._value(self._next())
        self._next()  # the document's end: an error directly after the document belongs to the document
        return GoYamlDocument(as_json(value), tuple(self._duplicates), self._rest())

    def _rest(self) -> int:
        """Go reads no further, so a mistake there is none."""
        try:
            self._next()  # the next document's start, or the stream's end
            event = self._next()
        except yaml.YAMLError:
            return 0
        empty = event is None or (isinstance(event, yaml.ScalarEvent) and event.value == "")
        return 0 if empty else event.start_mark.line + 1

    def _value(self, event: Any) -> Json:
        self._values += 1
        if self._depth > _MOST_DEPTH or self._values > _MOST_VALUES:
            raise self._error("document is too large or too deeply nested", event)
        if isinstance(event, yaml.ScalarEvent):
            return self._anchored(event, self._scalar(event))
        if isinstance(event, yaml.MappingStartEvent):
            return self._collection(event, self._mapping)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._collection(event, self._sequence)
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise self._error(f"unknown anchor '{event.anchor}' referenced", event)
        if not anchor.whole:
            raise self._error(f"anchor '{event.anchor}' value contains itself", event)
        self._values += anchor.size
        if self._values > _MOST_VALUES:
            raise self._error("document contains excessive aliasing", event)
        return anchor.value

    def _scalar(self, event: Any) -> Scalar:
        text = yaml_words.restored(str(event.value))
        if event.tag is None and not event.implicit[0]:
            return text
        if self._inside and not event.style and yaml_words.stops_at(text):
            closing = self._inside[-1]
            raise DocumentError(f"yaml: {_counted(event)}did not find expected ',' or '{closing}'", *_at(event))
        try:
            return resolve(event.tag or "", text)
        except ScalarError as error:
            raise self._error(str(error), event) from None

    def _anchored(self, event: Any, value: Json) -> Json:
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(value, whole=True)
        return value

    def _collection(self, event: Any, read_inside: Callable[[], Json]) -> Json:
        anchor = _Anchor()
        before = self._values
        if event.anchor is not None:
            self._anchors[event.anchor] = anchor
        self._depth += 1
        if event.flow_style:
            self._inside.append("]" if isinstance(event, yaml.SequenceStartEvent) else "}")
        anchor.value = read_inside()
        if event.flow_style:
            self._inside.pop()
        self._depth -= 1
        anchor.whole, anchor.size = True, self._values - before + 1
        return anchor.value

    def _sequence(self) -> Json:
        entries: list[Json] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self._path.append(len(entries))
            entries.append(self._value(event))
            self._path.pop()
        return entries

    def _mapping(self) -> Json:
        entries: dict[str, Json] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event)
            self._path.append(key if isinstance(key, str) else "<<")
            following = self._next()
            value = self._value(following)
            self._path.pop()
            if isinstance(key, str):
                self._set(entries, key, value, following)
            else:
                # Earlier maps of a list override later ones: they are set last.
                maps = value[::-1] if isinstance(value, list) else [value]
                for merged in maps:
                    if not isinstance(merged, dict):
                        raise self._error("map merge requires map or sequence of maps as the value", following)
                    for key, inner in merged.items():
                        self._set(entries, key, inner, following)
        return entries

    def _set(self, entries: dict[str, Json], key: str, value: Json, event: Any) -> None:
        if key in entries:
            self._duplicates.append(Duplicate((*self._path, key), event.start_mark.line + 1))
        entries[key] = value

    def _key(self, event: Any) -> str | _Merge:
        if (
            isinstance(event, yaml.ScalarEvent)
            and event.value == "<<"
            and (event.implicit[0] or event.tag == "tag:yaml.org,2002:merge")
        ):
            self._anchored(event, "<<")
            return _Merge()
        value = self._value(event)
        if isinstance(value, list | dict):
            raise self._error("invalid map key", event)
        if value is None:
            raise DocumentError("Unsupported map key of type: %!s(<nil>), key: <nil>", *_at(event))
        return key_text(value)

    def _error(self, text: str, event: Any) -> DocumentError:
        return DocumentError(f"yaml: {text}", *_at(event))


def _at(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _counted(event: Any) -> str:
    """The line as yaml.v2 counts it in errors of its parser: from 0, and line 0 is omitted."""
    return f"line {event.start_mark.line}: " if event.start_mark.line else ""


def key_text(value: Scalar) -> str:
    """A key as Go converts it to text; the reader refuses ``None``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_key(value)
    return str(value)


def as_json(value: Json) -> Json:
    """encoding/json writes whole floats without a point, so they pass as integers; it refuses NaN and infinity."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise DocumentError(f"json: unsupported value: {shown}")
        return int(value) if value.is_integer() and abs(value) < _FLOATS_IN_FULL else value
    return value
