"""Renders templates into text. Only this module and its limits use Jinja2.

It uses the sandbox, strict about undefined names, and allows less than Jinja2: the same variables always give the same
text (no ``random``), nothing is loaded from elsewhere, and no loop, product, filter or list can exhaust the machine: see
``rendering_limits``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Any, ClassVar

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes, pass_context
from jinja2.environment import Template
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rollout.core.reading import rendering_limits as limits
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem

MAX_TEMPLATE = 256 * 1024
MAX_PARTS = 10_000
"""Statements, operators and values. To compile more of them takes seconds."""

MAX_OUTPUT = 1024 * 1024
_MOST_SHOWN = 400
_MAX_RANGE = 1_000
_FILTERS = (
    "default",
    "first",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "reject",
    "select",
    "sort",
    "trim",
    "unique",
    "upper",
)

Known = Mapping[str, tuple[str, ...] | None]
"""The variables a template may use, each with the attributes it has (``None``: any)."""

NODE_ATTRIBUTES = ("name", "rack", "zone", "labels")
KUBELET_CONFIG: Known = {"fields": None, "node": NODE_ATTRIBUTES}
FLAGS_ENV: Known = {"variable": None, "arguments": None, "node": NODE_ATTRIBUTES}
DROP_IN: Known = {"exec_start": None, "unit": None, "node": NODE_ATTRIBUTES}


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > _MAX_RANGE:
        raise ValueError(f"a range of more than {_MAX_RANGE} numbers")
    return numbers


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops: ClassVar[frozenset[str]] = frozenset({"+", "*", "**", "%"})  # type: ignore[misc] # Jinja2 intends it to be overridden

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float) and operator != "**"):
            raise ValueError(f"`{operator}` takes only numbers here")
        return limits.charge(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, _: Any) -> None:
        """The sandbox's own ``str.format`` pads without a bound; see ``is_safe_attribute``."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """No methods of texts and numbers: ``'{:>999999999}'.format(1)`` and ``(1).to_bytes(999999999)`` would exhaust the memory."""
        return not isinstance(obj, str | bytes | int | float) and super().is_safe_attribute(obj, attr, value)


def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., Any]] = {name: environment.filters[name] for name in _FILTERS} | {
        "join": limits.join,
        "yaml": limits.as_yaml,
    }
    environment.filters = {name: limits.limited(each) for name, each in filters.items()}
    environment.filters |= {limits.CHARGED: pass_context(lambda _, value: limits.charge(value))}
    environment.filters |= {limits.ITEMS: pass_context(lambda _, value, parts: limits.items_of(value, parts))}
    tests: dict[str, Any] = dict(environment.tests)
    environment.tests = {name: limits.limited(each) for name, each in tests.items()}
    environment.globals = {"range": _range}
    return environment


_ENVIRONMENT = _environment()


def render(template: str, name: str, variables: Mapping[str, Any]) -> str:
    """The text of ``template``; ``name`` is its file's, for messages. Raises ``InputError``."""
    try:
        code = _compiled(template, name)
    except (TemplateSyntaxError, *_TOO_MUCH) as error:
        raise InputError((_unusable(error, name),)) from None
    try:
        with limits.one_rendering():
            compiled = Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.globals)
            return "".join(_bounded(compiled.generate(variables)))
    except TemplateSyntaxError as error:
        raise InputError((_syntax(error, name),)) from None
    except Exception as error:  # noqa: BLE001 - a template is a program of its author: each of its errors is an error of the template
        message = printable(str(error), _MOST_SHOWN) or type(error).__name__
        line = _line_of(error.__traceback__, name)
        raise InputError((Problem("template-failed", message, Place(name, line, 1)),)) from None


@lru_cache(maxsize=64)
def _compiled(template: str, name: str) -> CodeType:
    return _ENVIRONMENT.compile(limits.Charging().visit(_parsed(template, name)), name, name)


_REFUSED: Mapping[type[nodes.Node], str] = {
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Extends: "extends",
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter … endfilter",
    nodes.AssignBlock: "set … endset",
    nodes.Concat: "~",
}
"""Statements that would load other files, or double a text until the memory is full."""


def _parsed(template: str, name: str) -> nodes.Template:
    if len(template) > MAX_TEMPLATE:
        raise TemplateSyntaxError("the template is larger than 256 KiB", 1, name)
    tree = _ENVIRONMENT.parse(template, name, name)
    if sum(1 for _ in tree.find_all(nodes.Node)) > MAX_PARTS:
        raise TemplateSyntaxError(f"the template has more than {MAX_PARTS:,} parts", 1, name)
    for kind, word in _REFUSED.items():
        for node in tree.find_all(kind):
            raise TemplateSyntaxError(
                f"`{word}` is not allowed in these templates; write the text out", node.lineno, name
            )
    for loop in tree.find_all(nodes.For):
        if loop.recursive:
            raise TemplateSyntaxError(
                "`recursive` is not allowed in these templates; write the text out", loop.lineno, name
            )
    return tree


def _bounded(pieces: Iterator[str]) -> Iterator[str]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_OUTPUT:
            raise ValueError("the rendered text is larger than 1 MiB")
        yield piece


def _line_of(traceback: TracebackType | None, name: str) -> int:
    line = 1
    while traceback is not None:
        line = traceback.tb_lineno if traceback.tb_frame.f_code.co_filename == name else line
        traceback = traceback.tb_next
    return line


_TOO_MUCH = (RecursionError, MemoryError, SyntaxError, ValueError)
"""Python's errors for the program that Jinja2 makes of a template. Jinja2 hands Python's ``int`` a number of any length."""


def _unusable(error: Exception, name: str) -> Problem:
    if isinstance(error, TemplateSyntaxError):
        return _syntax(error, name)
    message = "a number is too long" if isinstance(error, ValueError) else "the template is nested too deep"
    return Problem("template-syntax", message, Place(name, 1, 1))


def _syntax(error: TemplateSyntaxError, name: str) -> Problem:
    return Problem("template-syntax", printable(error.message or "no template"), Place(name, error.lineno, 1))


def line_behind(template: str, name: str, variables: Mapping[str, Any], line: int) -> int:
    """The line of ``template`` that caused this line of its text: the one with the same words, else the last one used.

    Jinja2 gives the lines of computed text; literal text is found by its words.
    """
    compiled = Template.from_code(_ENVIRONMENT, _compiled(template, name), _ENVIRONMENT.globals)
    writing: Any = compiled.root_render_func(compiled.new_context(dict(variables)))
    with limits.one_rendering():
        pieces = [(piece, compiled.get_corresponding_lineno(writing.gi_frame.f_lineno)) for piece in writing]
    lines = "".join(piece for piece, _ in pieces).split("\n")
    begins = sum(len(before) + 1 for before in lines[: line - 1])
    said, end, written = lines[line - 1], 0, 1
    for piece, by in pieces:
        start, end = end, end + len(piece)
        if start < begins + max(len(said), 1) and begins < end:
            written = max(written, by)
    there = enumerate(template.split("\n"), 1)
    return next((at for at, text in there if at >= written and text.strip() == said.strip()), written)


def undefined_variables(template: str, name: str, known: Known) -> tuple[Problem, ...]:
    """Every variable, attribute and filter that a template uses but that will not exist. Needs no node."""
    try:
        tree = _parsed(template, name)
        undeclared = find_undeclared_variables(tree)
        _compiled(template, name)
    except (TemplateSyntaxError, *_TOO_MUCH) as error:
        return (_unusable(error, name),)
    at = _finder(template, name)
    names = {
        *_unknown_names(tree, undeclared, known, at),
        *_unknown_attributes(tree, known, at),
    }
    return tuple(sorted(names, key=_in_order))


_Finder = Callable[[int, str], Place]


def _finder(template: str, name: str) -> _Finder:
    """Jinja2 gives only lines; the column is the first place of the word in that line."""
    lines = template.splitlines()

    def find(line: int, word: str) -> Place:
        match = re.search(rf"(?<![\\w]){re.escape(word)}(?!\\w)", lines[line - 1]) if 0 < line <= len(lines) else None
        return Place(name, line, match.start() + 1 if match else 1)

    return find


def _unknown_names(tree: nodes.Template, undeclared: set[str], known: Known, at: _Finder) -> Iterator[Problem]:
    defined = {*known, *_ENVIRONMENT.globals}
    for node in tree.find_all(nodes.Name):
        if node.ctx == "load" and node.name in undeclared - defined:
            yield Problem(
                "undefined-variable",
                f"undefined variable `{node.name}`",
                at(node.lineno, node.name),
                did_you_mean(node.name, defined),
            )


def _unknown_attributes(tree: nodes.Template, known: Known, at: _Finder) -> Iterator[Problem]:
    accesses: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    for node in accesses:
        owner = node.node.name if isinstance(node.node, nodes.Name) else ""
        attributes, name = known.get(owner), _attribute(node)
        if attributes is not None and name is not None and name not in attributes:
            message = f"undefined variable `{owner}.{printable(name, 60)}`"
            yield Problem("undefined-variable", message, at(node.lineno, name), did_you_mean(name, attributes))


def _attribute(node: nodes.Getattr | nodes.Getitem) -> str | None:
    """``rack`` of ``node.rack`` and ``node["rack"]``; ``None`` if only rendering can show it."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    return str(node.arg.value) if isinstance(node.arg, nodes.Const) else None


def _in_order(problem: Problem) -> tuple[Place, str]:
    return problem.place or Place("", 0, 0), problem.message
