"""Numbers from the source text: modules, their importers, and class names that occur twice."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SMALL = 60
"""Lines. A module with fewer lines and a single importer is likely a part of the importer."""


@dataclass(frozen=True)
class Module:
    """One Python file of the product that contains code."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def imported(self, names: Mapping[str, object]) -> Iterator[str]:
        """The modules among ``names`` that this one imports, in any spelling."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from (name for name in inside if name in names)
                if node.module in names and not all(name in names for name in inside):
                    yield node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in names)

    @property
    def public_classes(self) -> Iterator[str]:
        """Read of a tree that is not kept: all trees at once are 770,000 nodes, which the collector looks at again and again."""
        return (
            node.name for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"
        )

    @property
    def functions(self) -> Iterator[ast.FunctionDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))


def modules(root: Path) -> tuple[Module, ...]:
    """The modules of the package ``root``. An ``__init__.py`` with at most a docstring is not counted as a module."""
    found = []
    for path in sorted(root.rglob("*.py")):
        module = Module(".".join(path.relative_to(root.parent).with_suffix("").parts), path.read_text())
        if path.name != "__init__.py" or len(module.tree.body) > 1:
            found.append(module)
    return tuple(found)


def importers(found: tuple[Module, ...]) -> Mapping[str, set[str]]:
    """Module → the modules that import it."""
    known = {module.name: module for module in found}
    by: dict[str, set[str]] = defaultdict(set)
    for module in found:
        for name in module.imported(known):
            by[name].add(module.name)
    return by


def with_one_importer(found: tuple[Module, ...]) -> tuple[Module, ...]:
    by = importers(found)
    return tuple(module for module in found if len(by[module.name]) == 1)


def classes_named_alike(found: tuple[Module, ...]) -> Mapping[str, int]:
    """Public class name → number of classes with this name, if there are several."""
    counted = Counter(name for module in found for name in module.public_classes)
    return {name: count for name, count in counted.items() if count > 1}


def function_lengths(found: tuple[Module, ...]) -> list[int]:
    """Lines of each function, shortest first."""
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for module in found for node in module.functions)
