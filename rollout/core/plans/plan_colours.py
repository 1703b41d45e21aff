"""A plan's text in colour, for a terminal: diffs, titles and warnings. Prose is wrapped and indented, a diff is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout.core.text.terminal import hanging

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "31", "32", "33", "36"

_DIFF = re.compile(r" {6}(?:(?P<file>---|\+\+\+) |(?P<place>@@)|(?P<more>\+)|(?P<less>-)|(?P<same> ))")
_OF_DIFF = {"file": _BOLD, "place": _CYAN, "more": _GREEN, "less": _RED, "same": ""}
_GROUP = re.compile(r"\S+  \S.*: [\d,]+ nodes?  ")
_TITLE = re.compile(r"[A-Z]\S*(?: \S+){0,2}")
WARNINGS = "Warnings"


def painted(text: str, width: int, *, colours: bool = True) -> str:
    """``text`` of ``plan_text`` with escape sequences for colours, in lines of at most ``width`` columns."""
    return "\n".join(
        f"\x1b[{style}m{line}\x1b[0m" if colours and style and line else line for style, line in _lines(text, width)
    )


def _lines(text: str, width: int) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    section = ""
    for line in text.split("\n"):
        if match := _DIFF.match(line):
            yield _OF_DIFF[match.lastgroup or "same"], line
            continue
        section = line if line[:1] != " " else section
        style = _style(line, section)
        yield from ((style, part) for part in hanging(line, width))


def _style(line: str, section: str) -> str:
    if line.startswith("…"):
        return _DIM
    if line.startswith("Plan for ") or _GROUP.match(line) or _TITLE.fullmatch(line):
        return _BOLD
    return _YELLOW if section == WARNINGS else ""
