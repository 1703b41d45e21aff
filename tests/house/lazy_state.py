"""State of modules and closures that a function changes after it was made: two threads may be in it at once.

A function that fills a list of its module or of the function around it at its first use may be called by a second thread
while the first one is filling. So such places are counted, and each known one says why it is safe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CHANGES = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "setdefault",
        "sort",
        "update",
    ]
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def filled_later(source: str) -> Iterator[tuple[str, int]]:
    """The name and line of each change, inside a function, of what is bound outside it. Imported modules do not count."""
    tree = ast.parse(source)
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for name, line in _inside(tree, frozenset()):
        if name not in imported:
            yield name, line


def _inside(node: ast.AST, own: frozenset[str]) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield from _inside(child, _bound(child))
            continue
        if isinstance(child, ast.Global | ast.Nonlocal):
            yield from ((name, child.lineno) for name in child.names)
        changed = _changed(child)
        if changed and changed not in {*own, "self", "cls"} and own:
            yield changed, child.lineno  # type: ignore[attr-defined]  # expressions have lines
        yield from _inside(child, own)


def _changed(node: ast.AST) -> str:
    """The name of the value that this expression changes, or ``""``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGES:
            return name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
    return ""


def _bound(function: _Function) -> frozenset[str]:
    """The names that a function binds itself; ``self`` too, so that none is without any."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return frozenset({"self", *(each.arg for each in given if each), *_stored(function)})


def _stored(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
        elif isinstance(child, ast.Lambda):
            continue
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        else:
            if isinstance(child, ast.ExceptHandler) and child.name:
                yield child.name
            yield from _stored(child)
