"""YAML written by people, as a tree with the line and column of every key and value. The only module that uses PyYAML.

The tree is built from libyaml's *events* (its pure twin where libyaml is missing), on a stack of our own: PyYAML's
composer recurses without a bound, crashes the interpreter on a deep enough file, and is six times slower.

Strict where YAML readers disagree: ``yes`` and ``no``, octal, hexadecimal and sexagesimal numbers must be written so
that all readers agree. Tags, merge keys and keys that are not text are refused; size, depth and aliases are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import yaml

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.core.text.terminal import CONTROL, printable
from rollout.errors import Place, Problem

MAX_CHARACTERS = 32 * 1024 * 1024
# The value is not repeated: a secret that begins with `!` or `*` without quotes is a tag or an alias.
_TAGGED = "tags (`!…` before a value) are not accepted; write only the value"
_UNKNOWN_ALIAS = "an alias (`*…`) refers to nothing above it, or to itself; a value that begins with `*` needs quotes"
MAX_DEPTH = 40
MAX_ALIASES = 1_000
MAX_ITEMS = 4_000_000  # every alias counts as often as it is used


@dataclass(slots=True)
class Item:
    """A value and where it begins; lines and columns count from 1."""

    value: Scalar | list[Item] | dict[str, Entry]
    line: int
    column: int

    def entries(self) -> dict[str, Entry]:
        """The keys of a map; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Value:
        """The value without places."""
        value = self.value
        if isinstance(value, dict):
            return {key: entry.item.plain() for key, entry in value.items()}
        return [item.plain() for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Entry:
    """A key's place and its value."""

    item: Item
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file: the tree as far as it could be read (``None``: not at all), and the mistakes in its YAML."""

    file: str
    root: Item | None
    problems: tuple[Problem, ...]


def read_yaml(text: str, file: str) -> Document:
    """Never raises: mistakes are in the document."""
    if len(text) > MAX_CHARACTERS:
        return Document(
            file, None, (Problem("yaml-too-large", "the file has more than 32 Mi characters", Place(file, 1, 1)),)
        )
    text = text.removeprefix("\ufeff")  # parsers count no column for it
    hidden = tuple(_hidden(text, file))
    if hidden:
        return Document(file, None, hidden)
    tree = _Tree(file)
    try:
        loader = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
        try:
            while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
                _HANDLERS[type(event)](tree, event)
        finally:
            loader.dispose()
    except _StopError as stop:
        return Document(file, None, (*tree.problems, stop.problem))
    except yaml.MarkedYAMLError as error:
        return Document(file, None, (*tree.problems, _syntax(error, text, file)))
    return Document(file, tree.root, tuple(tree.problems))


def _hidden(text: str, file: str) -> Iterator[Problem]:
    """Finds characters that are invisible or move the cursor, before any parser reads them."""
    for found in CONTROL.finditer(text.replace("\r\n", " \n")):
        before = found.string[: found.start()]
        place = Place(file, before.count("\n") + 1, found.start() - before.rfind("\n"))
        yield Problem("control-character", f"control or invisible character U+{ord(found.group()):04X}", place)
        return  # one is enough: a binary file would yield thousands


_NO_COLON = "could not find expected ':'"
_CLEARER = {
    "found a tab character that violates indentation": "a tab is used as indentation; YAML takes spaces only",
    "found a tab character where an indentation space is expected": "a tab is used as indentation; YAML takes spaces only",
    "mapping values are not allowed in this context": "a second `: ` in one line, or a line that is indented too far",
    "mapping values are not allowed here": "a second `: ` in one line, or a line that is indented too far",
    _NO_COLON: "the `:` after a key is missing",
    "found unexpected end of stream": "a quote is opened here and never closed",
}


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    problem = str(error.problem or error.context or "not YAML")
    opened = problem == "found unexpected end of stream" and error.context_mark is not None
    mark = error.context_mark if opened else error.problem_mark
    if mark is None:
        return Problem("yaml-syntax", problem, Place(file, 1, 1))
    lines = text.splitlines()
    quote = _quote_before(lines, mark) or _quoted_key(error, lines)
    if quote is not None:
        problem = f"a quote is opened here and not closed in its line; the next one, in line {mark.line + 1}, closes it"
        return Problem("yaml-syntax", problem, Place(file, quote.line + 1, quote.column + 1))
    if problem == _NO_COLON and error.context_mark is not None:
        mark = error.context_mark  # where the key begins; the parser misses the colon in the next line
    here = lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ""
    return Problem("yaml-syntax", _clearer(problem, here), Place(file, mark.line + 1, mark.column + 1))


def _quote_before(lines: list[str], mark: Any) -> Any:
    """The start of a quoted text of several lines that ends in the line of a mistake.

    A quote that was not closed is closed by the next quote, even many lines below; the parser then reports a mistake
    after that one.
    """
    text = "\n".join([*lines[: mark.line], *(line[: mark.column] for line in lines[mark.line : mark.line + 1])])
    loader: Any = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
    found = None
    try:
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            long = isinstance(event, yaml.ScalarEvent) and event.style in ("'", '"')
            if long and event.start_mark.line < event.end_mark.line == mark.line:
                found = event.start_mark
    except yaml.YAMLError:
        return found
    finally:
        loader.dispose()
    return found


def _quoted_key(error: yaml.MarkedYAMLError, lines: list[str]) -> Any:
    """The same for a quote before a key."""
    began, mark = error.context_mark, error.problem_mark
    if error.context != "while scanning a simple key" or began is None or mark is None:
        return None
    quoted = began.line < mark.line and lines[began.line][began.column : began.column + 1] in ("'", '"')
    return began if quoted else None


def _clearer(message: str, here: str) -> str:
    if "cannot start any token" in message:
        return (
            _CLEARER["found a tab character that violates indentation"]
            if here == "\t"
            else f"a value that begins with `{here}` needs quotes"
        )
    return _CLEARER.get(message, message)


class _StopError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class _Open:
    """A list or map that has not ended yet. ``key`` is a map's key that waits for its value."""

    item: Item
    anchor: str | None
    began: int
    key: tuple[str, int, int] | None = None


class _Tree:
    """Events in, ``root`` and ``problems`` out."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Item | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Item, int]] = {}
        self._items = 0
        self._aliases = 0

    def ignore(self, _: Any) -> None:
        """Events without content."""

    def document(self, event: Any) -> None:
        if self.root is not None:
            raise self._stop("yaml-documents", "a second document begins here; one file holds one document", event)

    def scalar(self, event: Any) -> None:
        if event.tag is not None:
            self._wrong("yaml-tag", _TAGGED, event)
        top = self._open[-1] if self._open else None
        mark = event.start_mark
        if top is not None and top.key is None and type(top.item.value) is dict:
            top.key = (self._key(event), mark.line + 1, mark.column + 1)
            return
        item = Item(self._scalar_value(event), mark.line + 1, mark.column + 1)
        self._count(1, event)
        self._place(item)
        if event.anchor is not None:
            self._anchors[event.anchor] = (item, 1)

    def start(self, event: Any) -> None:
        if event.tag is not None:
            self._wrong("yaml-tag", _TAGGED, event)
        if len(self._open) >= MAX_DEPTH:
            raise self._stop("yaml-too-deep", f"nested more than {MAX_DEPTH} levels deep", event)
        self._no_key_here(event)
        mark = event.start_mark
        value: list[Item] | dict[str, Entry] = {} if isinstance(event, yaml.MappingStartEvent) else []
        item = Item(value, mark.line + 1, mark.column + 1)
        self._count(1, event)
        self._open.append(_Open(item, event.anchor, self._items - 1))

    def end(self, _: Any) -> None:
        closed = self._open.pop()
        self._place(closed.item)
        if closed.anchor is not None:
            self._anchors[closed.anchor] = (closed.item, self._items - closed.began)

    def alias(self, event: Any) -> None:
        self._no_key_here(event)
        self._aliases += 1
        if event.anchor not in self._anchors:
            raise self._stop("yaml-alias", _UNKNOWN_ALIAS, event)
        if self._aliases > MAX_ALIASES:
            raise self._stop("yaml-too-large", f"more than {MAX_ALIASES} aliases", event)
        item, size = self._anchors[event.anchor]
        self._count(size, event)
        self._place(item)

    def _place(self, item: Item) -> None:
        """Add a finished value to its parent."""
        if not self._open:
            self.root = item
            return
        top = self._open[-1]
        if isinstance(top.item.value, list):
            top.item.value.append(item)
        elif isinstance(top.item.value, dict) and top.key is not None:
            (key, line, column), top.key = top.key, None
            entry = Entry(item, line, column)
            first = top.item.value.setdefault(key, entry)
            if first is not entry:
                message = f"`{printable(key, 60)}` is written twice, first in line {first.line}"
                self.problems.append(Problem("duplicate-key", message, Place(self.file, entry.line, entry.column)))

    def _key(self, event: Any) -> str:
        text: str = event.value
        if event.implicit[0]:
            if text == "<<":
                self._wrong("yaml-merge", "merge keys (`<<`) are not accepted; use groups and levels", event)
            elif not isinstance(plain_scalar(text), str):
                self._wrong("yaml-key", f"`{printable(text, 60)}` as a key is not text; write it in quotes", event)
        return self._shown(text, event)

    def _scalar_value(self, event: Any) -> Scalar:
        if not event.implicit[0]:
            return self._shown(event.value, event)
        value = plain_scalar(event.value)
        if isinstance(value, Ambiguous):
            self._wrong("yaml-ambiguous", value.message, event)
            return str(event.value)
        return value

    def _shown(self, text: str, event: Any) -> str:
        """``"\\e[31m"`` hides an escape from the reader; it is refused."""
        control = CONTROL.search(text) if event.style == '"' else None
        if control:
            self._wrong(
                "control-character", f"control or invisible character U+{ord(control.group()):04X} in quotes", event
            )
        return text

    def _no_key_here(self, event: Any) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and top.key is None and isinstance(top.item.value, dict):
            raise self._stop("yaml-key", "a key must be text, not a list, a map or an alias", event)

    def _count(self, items: int, event: Any) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise self._stop("yaml-too-large", f"more than {MAX_ITEMS} values", event)

    def _wrong(self, reference: str, message: str, event: Any) -> None:
        self.problems.append(self._stop(reference, message, event).problem)

    def _stop(self, reference: str, message: str, event: Any) -> _StopError:
        mark = event.start_mark
        return _StopError(Problem(reference, message, Place(self.file, mark.line + 1, mark.column + 1)))


_HANDLERS = {
    yaml.StreamStartEvent: _Tree.ignore,
    yaml.DocumentStartEvent: _Tree.document,
    yaml.DocumentEndEvent: _Tree.ignore,
    yaml.ScalarEvent: _Tree.scalar,
    yaml.AliasEvent: _Tree.alias,
    yaml.SequenceStartEvent: _Tree.start,
    yaml.MappingStartEvent: _Tree.start,
    yaml.SequenceEndEvent: _Tree.end,
    yaml.MappingEndEvent: _Tree.end,
}


# Unquoted words of YAML: the value that every reader gives them, or why readers differ.
#
# YAML 1.1 and 1.2, Go's two libraries and Python's do not agree on ``yes``, ``010`` or ``1:30``. Words that they
# agree on are accepted; the rest is refused with a hint how to write it.


Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A word that must be written differently; ``message`` explains how."""

    message: str


_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEANS = {
    form: meaning
    for words, meaning in ((("yes", "on", "y"), "true"), (("no", "off", "n"), "false"))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NUMBER_STARTS = frozenset("+-.0123456789")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)?(?:\.[0-9]+|(?<=[0-9])\.)?(?:(?<=[0-9.])[eE][-+]?[0-9]+)?")
_ODD_NUMBER = re.compile(
    r"[-+]?(?:0[0-9_]+|0[xX][0-9a-fA-F_]+|0[ob][0-7_]+|[0-9][0-9_]*_[0-9_]*|[0-9]+(?::[0-5]?[0-9])+|0[0-9]+\.[0-9]*|\.(?:inf|Inf|INF|nan|NaN|NAN))"
)
_MOST_DIGITS = 18
_LONGEST_NUMBER = 64  # longer words are text, and are not matched against expressions


def plain_scalar(text: str) -> Scalar | Ambiguous:
    """The value that every reader of YAML gives an unquoted word, or why they differ."""
    if text[:1] in _NUMBER_STARTS:
        if _INT.fullmatch(text):
            if len(text) > _MOST_DIGITS:
                return Ambiguous(f"a number with more than {_MOST_DIGITS} digits; if it is text, write it in quotes")
            return int(text)
        if len(text) > _LONGEST_NUMBER:
            return text
        if _ODD_NUMBER.fullmatch(text):
            return Ambiguous(
                f"YAML readers take `{text}` for different numbers; write it in decimal, or in quotes if it is text"
            )
        return _float(text) if text[-1].isdigit() or text[-1] == "." else text
    if text in _WORDS:
        return _WORDS[text]
    if text in _OLD_BOOLEANS:
        return Ambiguous(
            f'`{text}` is a boolean to some readers and text to others; write {_OLD_BOOLEANS[text]} or "{text}"'
        )
    return text


def _float(text: str) -> Scalar | Ambiguous:
    if not _FLOAT.fullmatch(text) or not any(character.isdigit() for character in text):
        return text
    number = float(text)
    return Ambiguous(f"`{text}` is too large for a number") if isinf(number) else number
