"""Names of the agent that a function sets, and reads after a call that may have set them: in sh, only ``local`` names are a function's own.

Such a name is either the result of that call, or a defect: once, a loop over the ends of a transaction overwrote the reason of
a failed step. It is a result where the caller has it as its local, or where the comment of a function that sets it names it.
``python -m tests.agent.shared_names`` prints all of them.
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
_LOCAL = re.compile(r"(?m)^ *local ([a-z_0-9 ]+)$")
_QUOTED = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*\"|[\w-]+=\*\)""")
_PREFIXED = re.compile(r"[a-z]_[a-z]")
_HEAD = re.compile(r"(?m)^([a-z_0-9]+)\(\) \{[^\n]*\n(?: +#[^\n]*\n)*")
_NAMED = re.compile(r"`([a-z_]+)`")
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


def _locals(text: str) -> set[str]:
    return {name for found in _LOCAL.findall(text) for name in found.split()}


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
    own = {name: _locals(text) for name, text in texts.items()}
    sets = {name: {each.name for each in found if each.what == "sets"} - own[name] for name, found in steps.items()}
    calls = {name: {each.name for each in found if each.what == "calls"} - {name} for name, found in steps.items()}
    while True:
        deeper = {name: sets[name].union(*(sets[called] for called in calls[name])) - own[name] for name in texts}
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


def unnamed(program: str) -> frozenset[SharedName]:
    """Those that are no results."""
    texts = functions(program)
    named = {found[1]: set(_NAMED.findall(found[0])) for found in _HEAD.finditer(program)}
    setters: dict[str, set[str]] = {}
    for function, text in texts.items():
        for step in _steps(text, texts):
            if step.what == "sets":
                setters.setdefault(step.name, set()).add(function)
    return frozenset(
        each
        for each in shared_names(program)
        if each.name not in _locals(texts[each.function])
        and not any(each.name in named.get(function, ()) for function in setters[each.name])
    )


def unprefixed(program: str) -> frozenset[str]:
    """Names that outlive a function, and have no prefix of its part; neither those that a caller has as its local."""
    texts = {name: _QUOTED.sub('""', text) for name, text in functions(program).items()}
    its_callers = {name for text in texts.values() for name in _locals(text)}
    found = {each.name for text in texts.values() for each in _steps(text, {}) if each.what == "sets"}
    outlive = {
        name
        for name in found
        if any(
            name not in _locals(text)
            for text in texts.values()
            if re.search(rf"(?<![\w$]){name}(?:=| in\b)|read -r.*\b{name}\b", text)
        )
    }
    return frozenset(name for name in outlive - its_callers if not _PREFIXED.match(name))


def looped_and_passed(program: str) -> frozenset[tuple[str, str]]:
    """Names that are the variable of a loop somewhere, with each function that reads such a name without setting it first."""
    texts = functions(program)
    looped = {name for text in texts.values() for name in {*_LOOPED.findall(text)} - _locals(text)}
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
