"""The parts of a documentation page that can be run.

A block that begins with ```` ```console ```` contains commands (``$ …``) and, below each, lines of its output in this
order. ``…`` in a line matches anything, and the output may have further lines. ``# exits with 3`` at a command's end is
its exit code; without it, the exit code is 0. Comments contain steps for the test that a reader need not see:

    <!-- $ COMMAND -->        run it
    <!-- & COMMAND -->        begin it, in the background
    <!-- until COMMAND -->    run it again and again until it exits with 0, for a minute at most
    <!-- kill -->             kill -9 the background command
    <!-- ended 3 -->          the background command ends by itself, with this exit code
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_EXITS = re.compile(r"\s+# exits with (\d+)$")
_HIDDEN = re.compile(r"<!-- (?P<what>\$|&|until|kill|ended) ?(?P<rest>.*?) ?-->")


@dataclass(frozen=True)
class Step:
    """``what`` is ``run``, ``begin``, ``until``, ``kill`` or ``ended``; ``says`` are lines of the output, in order."""

    what: str
    command: str
    code: int
    says: tuple[str, ...]
    line: int


def steps(page: Path) -> tuple[Step, ...]:
    """All steps of a page, in order."""
    return tuple(_steps(page.read_text().splitlines()))


def _steps(lines: list[str]) -> Iterator[Step]:
    inside, command, said, began = False, "", list[str](), 0
    for number, line in enumerate([*lines, "```"], start=1):
        begins = line.startswith("```console")
        if inside and line.startswith(("$ ", "```")):
            if command:
                yield _run(command, said, began)
            command, said, began = line[2:] if line.startswith("$ ") else "", [], number
            inside = line != "```"
        elif inside:
            said.append(line)
        elif begins:
            inside, command = True, ""
        elif hidden := _HIDDEN.fullmatch(line.strip()):
            yield _hidden(hidden["what"], hidden["rest"], number)


def _run(command: str, said: list[str], line: int) -> Step:
    exits = _EXITS.search(command)
    code = int(exits[1]) if exits else 0
    return Step("run", _EXITS.sub("", command), code, tuple(text for text in said if text.strip()), line)


def _hidden(what: str, rest: str, line: int) -> Step:
    if what == "ended":
        return Step("ended", "", int(rest), (), line)
    exits = _EXITS.search(rest)
    code = int(exits[1]) if exits else 0
    kind = {"$": "run", "&": "begin"}.get(what, what)
    return Step(kind, _EXITS.sub("", rest), code, (), line)


def matches(wanted: str, line: str) -> bool:
    """Whether a line of output matches the page's line; ``…`` matches anything."""
    pattern = ".*".join(re.escape(part.strip()) for part in wanted.strip().split("…"))
    return re.search(pattern, line) is not None


def missing(says: tuple[str, ...], output: str) -> str:
    """The first line of the page that the output does not have in its place; empty: all are there."""
    rest = iter(output.splitlines())
    return next((wanted for wanted in says if not any(matches(wanted, line) for line in rest)), "")
