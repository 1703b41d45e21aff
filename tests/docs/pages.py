"""The pages, and their parts other than commands: code, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.places import ROOT

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
RECORDS = sorted((ROOT / "results").glob("*.md"))
"""Pages that a make target writes. They show commands that the target printed; no test runs them again."""
FRONT = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
"""Pages for developers. They name commands without examples that run."""

_FENCED = re.compile(r"^ *```(?P<info>.*)\n(?P<text>(?:.*\n)*?) *```$", re.MULTILINE)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4,}.*)?\n)+")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block. ``info``: the text after its fence, empty if it is only indented."""

    info: str
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Every block of code of a page: the fenced ones, then the indented ones."""
    for found in _FENCED.finditer(text):
        yield Block(found["info"].strip(), found["text"])
    for indented in _INDENTED.finditer(_FENCED.sub("", text)):
        if indented[0].strip():
            yield Block("", indented[0])


def prose(text: str) -> str:
    """The page without fenced blocks and without comments for tests."""
    return _HIDDEN.sub("", _FENCED.sub("", text))


def inline_code(text: str) -> list[str]:
    """The texts between backticks, in prose and tables."""
    return [" ".join(found.split()) for found in _INLINE.findall(prose(text))]


def links(text: str) -> list[str]:
    """The targets of the links and pictures of a page."""
    return _LINK.findall(_INLINE.sub("", prose(text)))


def anchors(text: str) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
