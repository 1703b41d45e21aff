"""What rollout imports is declared, what is declared is imported, and CONTRIBUTING tells what each is for."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from tests.places import ROOT

PARTS = {"pydantic-core": "pydantic"}
"""Distributions that another one pins exactly and documents as its own: they come with it and only with it."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROW = re.compile(r"^\| ([\w.-]+) \|", re.MULTILINE)


def plain(name: str) -> str:
    """A distribution's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    entries = [
        *project["dependencies"],
        *(entry for extra in extras if extra not in ("dev", "docs") for entry in extras[extra]),
    ]
    return {plain(found[0]) for entry in entries if (found := _NAME.match(entry))}


def modules(text: str) -> Iterator[str]:
    """Dotted names of what a module imports, ours, the standard library's and the type checker's left out."""
    ours = {*sys.stdlib_module_names, "_typeshed", "rollout"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] not in ours)


def distribution(module: str, known: dict[str, list[str]]) -> str:
    """The distribution that a module comes from. ``ruamel`` is a name that several share."""
    top = module.partition(".")[0]
    owners = {plain(name) for name in known[top]}
    owner = plain(".".join(module.split(".")[:2])) if len(owners) > 1 else owners.pop()
    return PARTS.get(owner, owner)


def imported() -> set[str]:
    known = {name: list(owners) for name, owners in packages_distributions().items()}
    texts = [path.read_text() for path in (ROOT / "rollout").rglob("*.py")]
    return {distribution(module, known) for text in texts for module in modules(text)}


def test_what_is_imported_is_declared_and_nothing_else() -> None:
    assert imported() == declared()


def test_the_table_names_exactly_what_is_declared() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("\n## Dependencies\n")[2].partition("\n## ")[0]
    rows = _ROW.findall(section.partition("| --- | --- |")[2])
    assert sorted(map(plain, rows)) == sorted(declared()), "each once"


def test_imports_are_found_wherever_they_stand() -> None:
    text = "import os, yaml\nfrom ruamel.yaml import YAML\nfrom rollout import x\ndef f():\n    from . import y\n    import rich.live\n"
    assert sorted(modules(text)) == ["rich.live", "ruamel.yaml", "yaml"]
    assert distribution("ruamel.yaml.nodes", {"ruamel": ["ruamel.yaml", "ruamel.yaml.clib"]}) == "ruamel-yaml"
    assert distribution("yaml", {"yaml": ["PyYAML"]}) == "pyyaml"
    assert distribution("pydantic_core", {"pydantic_core": ["pydantic_core"]}) == "pydantic"
