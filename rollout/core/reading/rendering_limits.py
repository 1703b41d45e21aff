"""What one rendering may use: steps, and the size of each value. Both are counted, so they are the same on every machine.

A loop costs its items times the parts of its body, a filter, a test, a comparison and a list cost the parts of what they are
given and give, and 64 characters count as one part. A value may be as large as a whole output, and is measured before a
filter uses it: lists that hold a list twice, again and again, are small and print without end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import islice
from typing import Any, cast

from jinja2 import Undefined, nodes, pass_context
from jinja2.visitor import NodeTransformer

MAX_STEPS = 4_000_000
MAX_SIZE = 1024 * 1024
"""Characters and parts of one value."""

_PER_STEP = 64
"""Characters that count as one step."""

_MOST_BITS = 256
"""A number is shorter: squares of squares fill any memory."""

CHARGED = " charged"
"""A filter that returns its value. No template can write this name after a bar."""


class _Steps:
    """What is left of one rendering."""

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ValueError(f"the template takes more than {MAX_STEPS:,} steps")


_STEPS: ContextVar[_Steps | None] = ContextVar("steps", default=None)


@contextmanager
def one_rendering() -> Iterator[None]:
    """Counts what is rendered inside as one."""
    before = _STEPS.set(_Steps())
    try:
        yield
    finally:
        _STEPS.reset(before)


def take(count: int) -> None:
    """Raises ``ValueError`` if the current rendering has no more steps; outside of one nothing is counted."""
    steps = _STEPS.get()
    if steps is not None:
        steps.take(count)


def charge(value: Any) -> Any:
    """``value``, with its parts taken as steps; ``ValueError``: it is too large."""
    size, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Undefined):
            continue  # it refuses to be counted, and ``default`` is for it
        if isinstance(part, str | bytes):
            size += len(part)
            take(1 + len(part) // _PER_STEP)
        elif isinstance(part, Collection):
            size += len(part)
            take(1 + len(part))
            if size <= MAX_SIZE:
                waiting.extend(part)
                waiting.extend(part.values() if isinstance(part, Mapping) else ())
        elif isinstance(part, int):
            take(1)
            if part.bit_length() > _MOST_BITS:
                raise ValueError(f"a number of more than {_MOST_BITS} bits")
        if size > MAX_SIZE:
            raise ValueError("a value is larger than 1 MiB")
    return value


def limited(function: Any) -> Callable[..., Any]:
    """A filter or a test that takes the parts of its values and of its result. What it gives one by one becomes a list."""
    wants_context = hasattr(function, "jinja_pass_arg")

    @pass_context  # so that Jinja2 does not compute it while it compiles
    @wraps(function, updated=())
    def within(context: Any, value: Any, *arguments: Any, **more: Any) -> Any:
        for each in (value, *arguments, *more.values()):
            charge(each)
        given = _first_argument(function, context) if wants_context else ()
        result = function(*given, value, *arguments, **more)
        return charge(list(_within_size(result)) if isinstance(result, Iterator) else result)

    return within


def _first_argument(function: Any, context: Any) -> tuple[Any, ...]:
    """What Jinja2 passes before the value to functions that ask for it."""
    kind: Any = getattr(function, "jinja_pass_arg", None)
    return {"context": (context,), "eval_context": (context.eval_ctx,), "environment": (context.environment,)}[
        kind.name
    ]


def _within_size(items: Iterable[Any]) -> Iterator[Any]:
    for number, item in enumerate(items):
        if number >= MAX_SIZE:
            raise ValueError("a value is larger than 1 MiB")
        take(1)
        yield item


def join(value: Iterable[Any], between: Any = "", attribute: None = None) -> str:
    """Jinja2's ``join`` without ``attribute``. The size of the text is known before the text is made."""
    if attribute is not None:
        raise ValueError("`join` takes no `attribute` here; use `map(attribute=…)` before it")
    separator, parts, size = str(between), [], 0
    for item in value:
        parts.append(str(item))
        size += len(parts[-1]) + len(separator)
        if size > MAX_SIZE + len(separator):
            raise ValueError("a value is larger than 1 MiB")
    return separator.join(parts)


def as_yaml(value: object) -> str:
    """A value as YAML on one line; JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)


def items_of(value: Any, parts: int) -> Any:
    """What a loop goes through, with the steps of its body taken before it begins. ``parts``: of the body."""
    if not isinstance(value, Collection):
        value = list(islice(value, MAX_SIZE + 1))
    charge(value)
    take(len(value) * parts)
    return value


class Charging(NodeTransformer):
    """Puts a charge around each expression of a template that is not a filter and may cost more than a step."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - Jinja2's name
        each_time = [*node.body, *([node.test] if node.test else [])]
        parts = len(each_time) + sum(1 for part in each_time for _ in part.find_all(nodes.Node))
        loop = cast("nodes.For", self.generic_visit(node))
        loop.iter = nodes.Filter(loop.iter, ITEMS, [nodes.Const(parts)], [], None, None)
        loop.iter.set_lineno(node.lineno)
        return loop

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        compare = cast("nodes.Compare", self.generic_visit(node))
        compare.expr = _charged(compare.expr)
        for operand in compare.ops:
            operand.expr = _charged(operand.expr)
        return compare

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:  # noqa: N802
        listed = cast("nodes.Tuple", self.generic_visit(node))
        return _charged(listed) if listed.ctx == "load" else listed

    def visit_List(self, node: nodes.List) -> nodes.Expr:  # noqa: N802
        return _charged(cast("nodes.Expr", self.generic_visit(node)))

    visit_Dict = visit_List  # noqa: N815

    def visit_Call(self, node: nodes.Call) -> nodes.Expr:  # noqa: N802
        return _charged(cast("nodes.Expr", self.generic_visit(node)))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        item = cast("nodes.Getitem", self.generic_visit(node))
        return _charged(item) if isinstance(item.arg, nodes.Slice) else item


ITEMS = " items"
"""The filter of ``items_of``, with a name as that of ``CHARGED``."""


def _charged(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, nodes.Const):
        return node
    charged = nodes.Filter(node, CHARGED, [], [], None, None)
    charged.set_lineno(node.lineno)
    return charged
