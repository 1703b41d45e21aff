"""Names of the agent that a function sets, and reads after a call that may have set them: in sh, all names are shared.

Such a name is either the result of that call, or a defect: once, a loop over the ends of a transaction overwrote the reason of
a failed step. ``python -m tests.agent.shared_names`` prints all of them; ``test_shared_names`` has those that are results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollout.adapters.agent_program import agent_program

_FUNCTION = re.compile(
    r"(?ms)^(?P<long>[a-z_0-9]+)\(\) \{(?: #[^\n]*)?\n(?P<body>.*?)^\}|^(?P<short>[a-z_0-9]+)\(\) \{ (?P<line>[^\n]*) \}"
)
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))# .*$")
_NAME = r"[a-z_][a-z_0-9]*"
_SETS = re.compile(
    rf"(?<![\w$\{{.\-/\"'=])(?P<name>{_NAME})=(?!=)|\bfor (?P<loop>{_NAME}) in\b|\bread -r (?P<read>{_NAME}(?: {_NAME})*)"
)
_LOOPED = re.compile(rf"\bfor ({_NAME}) in\b")
_READS = re.compile(rf"\$\{{?({_NAME})")
_COUNTS = re.compile(r"\$\(\((.*?)\)\)")
_END = re.compile(r"[;\n&|)]")
_SUBSHELL = re.compile(r"\$\((?!\()|\)")
_LOOP = re.compile(r"\b(?:for|while|until|done)\b(?=[\s;)]|$)")


@dataclass(frozen=True, order=True)
class Step:
    """``what``: sets, calls or reads ``name``, at a place in the function's text."""

    place: int
    what: str
    name: str


@dataclass(frozen=True, order=True)
class SharedName:
    """``function`` sets ``name``, calls ``by``, which may set it too, and then reads it."""

    function: str
    name: str
    by: str


def functions(program: str) -> Mapping[str, str]:
    """Name → text of each function, without comments."""
    found = _FUNCTION.finditer(program)
    return {each["long"] or each["short"]: _COMMENT.sub("", each["body"] or each["line"]) for each in found}


def _steps(text: str, names: Mapping[str, str]) -> Iterator[Step]:
    for found in _SETS.finditer(text):
        for name in (found["name"] or found["loop"] or found["read"]).split():
            yield Step(found.start(), "sets", name)
    for found in _READS.finditer(text):
        yield Step(found.start(), "reads", found[1])
    for found in _COUNTS.finditer(text):
        for name in re.findall(_NAME, found[1]):
            yield Step(found.start(), "reads", name)
    for found in re.finditer(r"(?<![\w$.\-/=\"'])([a-z_0-9]+)(?![\w=\-.])", text):
        if found[1] in names and not _in_a_subshell(text, found.start()):
            end = _END.search(text, found.end())  # its arguments are read before it
            yield Step(end.start() if end else len(text), "calls", found[1])


def _in_a_subshell(text: str, place: int) -> bool:
    depth = 0
    for found in _SUBSHELL.finditer(text, 0, place):
        depth = depth + 1 if found[0] == "$(" else max(0, depth - 1)
    return depth > 0


def _with_loops_twice(text: str, steps: Sequence[Step]) -> Iterator[Step]:
    """In the order of the text, and at the end of each loop its steps again."""
    begun: list[int] = []
    ends: list[tuple[int, int]] = []
    for found in _LOOP.finditer(text):
        if found[0] != "done":
            begun.append(found.start())
        elif begun:
            ends.append((found.start(), begun.pop()))
    waiting = sorted(ends)
    for step in steps:
        while waiting and waiting[0][0] < step.place:
            end, start = waiting.pop(0)
            yield from (each for each in steps if start <= each.place < end)
        yield step
    for end, start in waiting:
        yield from (each for each in steps if start <= each.place < end)


def shared_names(program: str) -> frozenset[SharedName]:
    """All in a program of the agent's form: a function begins and ends at the beginning of a line, or is one line."""
    texts = functions(program)
    steps = {name: sorted(_steps(text, texts)) for name, text in texts.items()}
    sets = {name: {each.name for each in found if each.what == "sets"} for name, found in steps.items()}
    calls = {name: {each.name for each in found if each.what == "calls"} - {name} for name, found in steps.items()}
    while True:
        deeper = {name: sets[name].union(*(sets[called] for called in calls[name])) for name in texts}
        if deeper == sets:
            break
        sets = deeper
    found: set[SharedName] = set()
    for function, text in texts.items():
        mine: set[str] = set()
        by: dict[str, str] = {}
        for step in _with_loops_twice(text, steps[function]):
            if step.what == "sets":
                mine.add(step.name)
                by.pop(step.name, None)
            elif step.what == "calls":
                by |= dict.fromkeys(mine & sets[step.name], step.name)
            elif step.name in by:
                found.add(SharedName(function, step.name, by[step.name]))
    return frozenset(found)


def looped_and_passed(program: str) -> frozenset[tuple[str, str]]:
    """Names that are the variable of a loop somewhere, with each function that reads such a name without setting it first."""
    texts = functions(program)
    looped = {name for text in texts.values() for name in _LOOPED.findall(text)}
    found: set[tuple[str, str]] = set()
    for function, text in texts.items():
        mine: set[str] = set()
        for step in sorted(_steps(text, texts)):
            if step.what == "sets":
                mine.add(step.name)
            elif step.what == "reads" and step.name in looped - mine:
                found.add((function, step.name))
    return frozenset(found)


if __name__ == "__main__":
    for each in sorted(shared_names(agent_program())):
        print(f"{each.function} {each.name} {each.by}")  # noqa: T201
