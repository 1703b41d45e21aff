"""Whether texts follow docs/language.md, as far as a program can count it: words, people, the length of sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from tests.places import ROOT

LONGEST = 30
"""Words that a sentence of a printed text may have. The rule for writers is 25; a name or a path may need the rest."""

PRINTERS = ("rollout", "benchmarks", "tests/chaos", "tests/incidents", "tests/power")
"""Folders whose strings are printed, or written to a page. A long string of any other test is a file or an answer."""

INSTEAD = {
    r"\b(?:taken?|takes|taking|took|gives?|given|gave) (?:it |them |that |this )?back\b": "revert, reverted",
    r"\bways? back\b": "revert, rollback",
    r"\b(?:went|go(?:es|ne)?|going) wrong\b": "failed",
    r"(?<![-\w])sick(?![-\w])": "unhealthy",
    r"\bowe[ds]?\b|\bowing\b": "pending recovery",
    r"\bmend(?:s|ed|ing)?\b": "fix, fixed",
    r"\bspeaks?\b|\bspoke\b": "answers",
    r"\b(?:falls?|fell) silent\b": "does not respond",
    r"\bsays? no\b": "refuses",
    r"\bwhoever\b|\bwhomever\b": "the node, run or command that",
    r"\bcatch(?:es)?[- ]up\b": "recover",
    r"\bbesides\b": "also, side effect",
}
"""Patterns of words that the glossary replaces, and what it says for them."""

_WHO = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
_PERSON = re.compile(
    r"\b(?:admin\w*|anybody|anyone|author|colleagues?|contributors?|developers?|engineers?|everybody|everyone|human"
    r"|maintainers?|newcomers?|those|nobody|operators?|others|owners?|people|persons?|readers?|somebody|someone|teams?|users?"
    r"|you|your|ann\w*|they|vendors?|attackers?|forgers?"
    r"|who (?:approved|asked|has|is there|may|paused|publishes|runs|started|unlocked|writes))\b|^\|? ?who\b|, from where and why",
    re.IGNORECASE,
)
_GRAMMAR = re.compile(r"\b(?:an?|are|is|of|the|to)\b")
"""A string of many words without one of these is a list, not a sentence."""
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), better) for pattern, better in INSTEAD.items())
_CODE = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|<[^>]*>|\[[^\]]*\]|\([^)]*://[^)]*\)")
_STRING_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]+|\\.|"(?!""))*+"""'
    r"|\'\'\'(?:[^'\\]+|\\.|'(?!''))*+\'\'\'"
    r'|"(?:[^"\\]+|\\.)*+"'
    r"|'(?:[^'\\]+|\\.)*+'"
    r"|(#[^\n]*)",
    re.DOTALL,
)
"""Of a source that Python 3.11 reads: no quote of an f-string stands in its braces. `tokenize` takes twenty times as long."""
_END = re.compile(r"[.;:!?](?=\s|$)|\n\s*\n|\n\s*[*|#]")


class Kind(Enum):
    """What a text is for."""

    PRINTED = auto()
    DOCUMENTATION = auto()


@dataclass(frozen=True)
class Prose:
    """Words that a person reads, and the line on which they begin."""

    line: int
    text: str
    kind: Kind


def python_prose(source: str) -> Iterator[Prose]:
    """Docstrings, comments, and the strings that have at least three words."""
    line = at = 0
    for found in _STRING_OR_COMMENT.finditer(source):
        if found[1]:
            line, at = line + source.count("\n", at, found.start()), found.start()
            yield Prose(line + 1, found[1].lstrip("# "), Kind.DOCUMENTATION)
    nodes = list(ast.walk(ast.parse(source)))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if len(text.split()) > 2:
            yield Prose(node.lineno, text, Kind.DOCUMENTATION if id(node) in documented else Kind.PRINTED)


def shell_prose(source: str) -> Iterator[Prose]:
    """Comments that have a line of their own."""
    for number, line in enumerate(source.splitlines(), 1):
        if re.match(r"\s*#[^!]", line):
            yield Prose(number, line.strip("\t #"), Kind.DOCUMENTATION)


def page_prose(source: str) -> Iterator[Prose]:
    """A page without its blocks of code."""
    code = False
    for number, line in enumerate(source.splitlines(), 1):
        code ^= line.startswith("```")
        if not code and not line.startswith(("```", "<!--")):
            yield Prose(number, line, Kind.DOCUMENTATION)


READERS = {".py": python_prose, ".sh": shell_prose, ".md": page_prose}


def complaints(prose: Prose) -> Iterator[str]:
    """What a text does that the rules forbid. What stands in quotes or is code is not looked at."""
    text = _CODE.sub("x", prose.text)
    for sentence in (part.strip() for part in _END.split(text)):
        if _WHO.search(sentence) and not _PERSON.search(sentence):
            yield f"'who' is for people: {sentence[:90]}"
        for pattern, better in _PATTERNS:
            if found := pattern.search(sentence):
                yield f"'{found[0]}' → {better}: {sentence[:90]}"
        words = len(sentence.split())
        if prose.kind is Kind.PRINTED and words > LONGEST and _GRAMMAR.search(sentence):
            yield f"{words} words in a sentence: {sentence[:90]}"


def of_file(path: Path) -> list[str]:
    """``LINE: complaint`` for each."""
    printed = any((ROOT / folder) in path.parents for folder in PRINTERS)
    found = [prose for prose in READERS[path.suffix](path.read_text()) if printed or prose.kind is not Kind.PRINTED]
    return [f"{prose.line}: {complaint}" for prose in found for complaint in complaints(prose)]
