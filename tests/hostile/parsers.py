"""Every parser of rollout, found in its source: a function with a text among its parameters that reads something out of it.

Nobody lists them by hand. ``found`` walks the source; ``direct`` are those that can be called with nothing but texts and
plain values. The others must be reached by a reader of ``targets``.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path

import rollout

PACKAGE = Path(rollout.__file__).parent
OTHERS = ("cli", "lab", "simulator")
"""Rooms whose texts are the operator's own, or of the lab. So are those of the commands of features."""

_CALLS = frozenset({"int", "float", "Fraction", "Decimal"})
_METHODS = frozenset(
    [
        "fullmatch", "match", "search", "finditer", "findall", "sub", "subn", "split", "rsplit", "partition", "rpartition",
        "splitlines", "loads", "parse", "load", "safe_load", "b64decode", "decodebytes", "fromisoformat", "strptime",
        "fromhex", "ip_address", "ip_network",
    ]
)  # fmt: skip
_TEXTS = frozenset({"str", "bytes", "bytearray", "Value", "object", "Json", "Any"})


@dataclass(frozen=True, slots=True)
class Parser:
    """``name``: as ``module:function`` or ``module:Class.method``."""

    name: str
    file: str
    line: int

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]


@cache
def found() -> tuple[Parser, ...]:
    """All of them, in the order of their files."""
    parsers: list[Parser] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        if inside.parts[0] not in OTHERS and "command" not in inside.with_suffix("").parts:
            module = ".".join(("rollout", *inside.with_suffix("").parts)).removesuffix(".__init__")
            parsers += _in_module(module, str(path), ast.parse(path.read_text(encoding="utf-8")))
    return tuple(parsers)


def _in_module(module: str, file: str, node: ast.AST, ahead: str = "") -> Iterator[Parser]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _in_module(module, file, child, f"{ahead}{child.name}.")
        elif isinstance(child, ast.FunctionDef) and _is_parser(child):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            yield Parser(f"{module}:{ahead}{child.name}", file, first)


def _is_parser(function: ast.FunctionDef) -> bool:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    takes_text = any(
        isinstance(part, ast.Name) and part.id in _TEXTS
        for each in given
        if each.annotation is not None
        for part in ast.walk(each.annotation)
    )
    return takes_text and any(_reads(part) for part in ast.walk(function))


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _CALLS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _METHODS
    return False


# ------------------------------------------------------------------------------------------------- direct calls


def direct(parser: Parser) -> Callable[[str], object] | None:
    """A call of this function alone with a text in each place for one; ``None``: it needs values of our own."""
    module = importlib.import_module(parser.module)
    function = getattr(module, parser.name.partition(":")[2], None)
    if function is None or inspect.isclass(function):
        return None
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), vars(module))
    except Exception:  # noqa: BLE001 - a name for type checkers only
        return None
    made: dict[str, Callable[[str], object]] = {}
    parameters = inspect.signature(inspect.unwrap(function)).parameters
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        make = _file_name if name in _NAMES_OF_FILES else _maker(hints.get(name))
        if make is None and parameter.default is parameter.empty:
            return None
        if make is not None and (parameter.default is parameter.empty or hints.get(name) in (str, bytes)):
            made[name] = make
    positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_ONLY and name in made]

    def call(text: str) -> object:
        values = {name: make(text) for name, make in made.items()}
        result = function(*[values.pop(name) for name in positional], **values)
        return list(result) if isinstance(result, Iterator) else result

    return call


_NAMES_OF_FILES = ("file", "where")
"""Parameters that only name what is read, in a message."""


def _file_name(_text: str) -> str:
    return "file.yaml"


_PLAIN: Mapping[object, Callable[[str], object]] = {
    str: lambda text: text,
    object: lambda text: text,
    typing.Any: lambda text: text,
    bytes: lambda text: text.encode("utf-8", "surrogatepass"),
    bytearray: lambda text: bytearray(text.encode("utf-8", "surrogatepass")),
    int: lambda _: 30,
    float: lambda _: 1.0,
    bool: lambda _: True,
}


def _maker(hint: object) -> Callable[[str], object] | None:
    """How a value for this type is made of a text; ``None``: it needs more than texts."""
    if not isinstance(hint, typing.Hashable):
        return None
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return next((make for each in inner if (make := _maker(each)) is not None), None)
    name = getattr(origin, "__name__", "")
    makers = [_maker(each) for each in inner if each is not Ellipsis]
    if not inner or None in makers or name == "Callable":
        return None
    if name == "tuple" and Ellipsis not in inner:
        return lambda text: tuple(make(text) for make in makers if make)
    if name in {"list", "tuple", "Sequence", "Iterable", "Collection", "Iterator", "frozenset", "set"} and makers[0]:
        one = makers[0]
        kind = {"frozenset": frozenset, "set": set, "list": list}.get(name, tuple)
        return lambda text: kind([one(text)])
    if name in {"dict", "Mapping"} and makers[0] and makers[1]:
        key, value = makers[0], makers[1]
        return lambda text: {key(text): value(text)}
    return None


# ------------------------------------------------------------------------------------------- the patterns of a module


@cache
def patterns(module: str) -> tuple[re.Pattern[str] | re.Pattern[bytes], ...]:
    """The patterns of a module: its own values, those inside its tables, and texts that it hands to ``re`` where they stand.

    A text of a table counts as a pattern if it is one that repeats something: a function may hand it to ``re``.
    """
    made = importlib.import_module(module)
    kept: dict[object, re.Pattern[str] | re.Pattern[bytes]] = {}
    for name, value in vars(made).items():
        if not name.startswith("__"):
            for each in _patterns_in(value, 0):
                kept.setdefault((each.pattern, each.flags), each)
    for node in ast.walk(ast.parse(Path(made.__file__ or "").read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[ast.Constant(value=text), *_]
            ):
                if method != "escape" and isinstance(text, str | bytes):
                    kept.setdefault((text, 0), re.compile(text))
    return tuple(kept.values())


def _patterns_in(value: object, depth: int) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, str | bytes) and depth:
        yield from _repeats(value)
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _patterns_in((key, inner), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
        for inner in value:
            yield from _patterns_in(inner, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type) and depth < _DEEPEST:
        for entry in fields(value):
            yield from _patterns_in(getattr(value, entry.name, None), depth + 1)


_DEEPEST = 4
_REPEATED = re.compile(r"(?<!\\)[*+]|,\}")


def _repeats(text: str | bytes) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    """``text`` as a pattern, if it is one with a repetition."""
    if len(text) < 500 and _REPEATED.search(text if isinstance(text, str) else text.decode("latin-1")):
        with contextlib.suppress(re.error), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield re.compile(text)
