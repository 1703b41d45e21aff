"""The claims that rollout prints: sentences which say that something was observed. A claim without an observation is a false proof.

A claim is a text of the program with one of ``WORDS``. Its row in ``claims.toml`` names what was observed before it is printed, and a
test that fails when it is printed without that. ``python -m tests.house.claims`` prints the claims without a row.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.places import ROOT

TABLE = Path(__file__).with_name("claims.toml")
ROOMS = (
    "cli",
    "app",
    "core",
    "composition",
    "adapters",
    "web",
    "kubelet/agent",
    "kubelet/health_gates",
    "kubelet/node",
    "kubelet/changes",
)
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


def claims() -> tuple[Claim, ...]:
    """Every text of the program that may claim an observation, each once for a file."""
    found: dict[Claim, None] = {}
    for room in ROOMS:
        for path in sorted((ROOT / "rollout" / room).rglob("*.py")):
            name = str(path.relative_to(ROOT))
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


def rows() -> tuple[Row, ...]:
    table = tomllib.loads(TABLE.read_text())
    said = [Row(row["text"], row["saw"], tuple(row["tests"])) for row in table["claim"]]
    return (*said, *(Row(text, why, ()) for why, every in table["none"].items() for text in every))


def without_a_row() -> tuple[Claim, ...]:
    known = {row.text for row in rows()}
    return tuple(claim for claim in claims() if claim.text not in known)


if __name__ == "__main__":
    for claim in without_a_row():
        print(f"[[claim]]  # {claim.file}\ntext = {claim.text!r}\nsaw = ''\ntests = []\n")  # noqa: T201
