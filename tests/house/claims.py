"""The claims that rollout prints: sentences which say that something was observed. A claim without an observation is a false proof.

A claim is a text of the program with one of ``WORDS``. Its row in ``claims.toml`` names what was observed before it is printed, and
tests that assert it. Each of them has words of the claim in its own texts, or in those of what it uses in its file; or its
comments have ``is claim KEY`` with the ``key`` of the row. ``python -m tests.house.claims`` prints the claims without a row, and the
tests that do not have the words.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.places import ROOT

TABLE = Path(__file__).with_name("claims.toml")
ROOMS = (
    "errors.py",
    "cli",
    "app",
    "features",
    "core",
    "composition",
    "adapters",
    "kubelet/agent",
    "gates",
    "kubelet/node",
    "kubelet/changes",
)
BESIDES = ("features/diagnose/rules/", "features/diagnose/words/", "cli/parameter_table.py")
"""Findings in logs: each names its evidence, and ``tests/features/diagnose/rules`` has two logs for it. The table is a copy of help."""
LONGEST = 600
"""Letters of a claim; what is longer is a style sheet or a program."""

WORDS = re.compile(
    r"\b(?:reverted|healthy|cleaned|left behind|proof|proven|as they should be|no guard|already|untouched|unchanged"
    r"|nothing (?:was|to do|is)|every node|all nodes|rolled back|lifted|released|restored|in force|as planned|no longer"
    r"|was read|has the plan|verified|durable|no drift|as wanted)\b",
    re.IGNORECASE,
)
PLACEHOLDER = "{}"


@dataclass(frozen=True, slots=True)
class Claim:
    """``text`` as it stands in ``file``, with ``{}`` for each inserted value."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """``saw``: the observation behind the claim, or with no ``tests`` the reason why it claims nothing."""

    text: str
    saw: str
    tests: tuple[str, ...]
    key: str = ""


@cache
def claims() -> tuple[Claim, ...]:
    """Every text of the program that may claim an observation, each once for a file."""
    found: dict[Claim, None] = {}
    for room in ROOMS:
        for path in sorted((ROOT / "rollout").glob(room if room.endswith(".py") else f"{room}/**/*.py")):
            name = str(path.relative_to(ROOT))
            if name.removeprefix("rollout/").startswith(BESIDES):
                continue
            for text in texts(ast.parse(path.read_text())):
                said = " ".join(text.split())
                if " " in said and len(said) < LONGEST and WORDS.search(said):
                    found.setdefault(Claim(name, said))
    return tuple(found)


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a module without its docstrings; of an f-string all its parts as one."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr):
                inside.add(id(statement.value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


@cache
def rows() -> tuple[Row, ...]:
    table = tomllib.loads(TABLE.read_text())
    said = [Row(row["text"], row["saw"], tuple(row["tests"]), row.get("key", "")) for row in table["claim"]]
    return (*said, *(Row(text, why, ()) for why, every in table["none"].items() for text in every))


def without_a_row() -> tuple[Claim, ...]:
    known = {row.text for row in rows()}
    return tuple(claim for claim in claims() if claim.text not in known)


RUN_OF_WORDS = 4
"""So many words of a claim, one after the other, show that a test means this claim. Of a shorter part: all its words."""


def asserts(row: Row, test: str) -> bool:
    """Whether a test, ``tests/x/test_y.py::test_z``, exists and has words that only this claim has, or the row's key."""
    file, _, function = test.partition("::")
    source = (ROOT / file).read_text()
    tree = ast.parse(source)
    defined = {name: node for node in tree.body for name in _names(node)}
    if not function.startswith("test_") or not isinstance(defined.get(function), ast.FunctionDef):
        return False
    used = _used(defined, function)
    if row.key and any(f"is claim {row.key}" in (ast.get_source_segment(source, node) or "") for node in used):
        return True
    written = [_plain(each) for node in used for each in texts(ast.Module([node], []))]
    mine = set(runs_of_words(row.text))
    told_apart = mine.difference(*(runs_of_words(each.text) for each in rows() if each.text != row.text))
    return any(f" {run} " in f" {text} " for run in told_apart or mine for text in written)


def runs_of_words(claim: str) -> Iterator[str]:
    """The parts of a claim between its placeholders, in runs of ``RUN_OF_WORDS``. A part without a word of a claim counts too."""
    parts = [_plain(part).split() for part in claim.split(PLACEHOLDER)]
    longest = max(len(part) for part in parts)
    for part in parts:
        length = min(RUN_OF_WORDS, longest)
        for at in range(len(part) - length + 1):
            yield " ".join(part[at : at + length])


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w`-]+", text.replace(PLACEHOLDER, " ").lower()))


def _names(node: ast.stmt) -> Iterator[str]:
    """What a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    for target in node.targets if isinstance(node, ast.Assign) else ():
        yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _used(defined: dict[str, ast.stmt], function: str) -> list[ast.stmt]:
    """A test and everything that it uses in its file."""
    found: dict[str, ast.stmt] = {}
    names = [function]
    while names:
        name = names.pop()
        if name not in found and name in defined:
            found[name] = defined[name]
            names += [node.id for node in ast.walk(defined[name]) if isinstance(node, ast.Name)]
    return list(found.values())


def without_the_words() -> tuple[tuple[Row, str], ...]:
    return tuple((row, test) for row in rows() for test in row.tests if not asserts(row, test))


if __name__ == "__main__":
    for claim in without_a_row():
        print(f"[[claim]]  # {claim.file}\ntext = {claim.text!r}\nsaw = ''\ntests = []\n")  # noqa: T201
    for row, test in without_the_words():
        print(f"# {test} does not have the words of\n#   {row.text}")  # noqa: T201
