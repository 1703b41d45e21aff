"""The words of a shell program that stand where a command is expected: what it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_BEFORE_COMMANDS = {"if", "then", "elif", "else", "while", "until", "do", "command", "exec"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_HERE = re.compile(r"<<([A-Z]+)")
_CALLBACK = re.compile(r"each \w+ ([a-z_]+)")


@dataclass(frozen=True, order=True)
class Command:
    """``name`` begins at ``place`` of the text."""

    place: int
    name: str


def commands(text: str) -> Iterator[Command]:
    """In the form that the agent is written in. The third word of ``each KIND FUNCTION`` is a call too; the head of a function is none."""
    nested: list[str] = []  # what is open: `"`, or `(` of a substitution
    place, expected = 0, True
    chosen = pattern = False  # behind `case`, before its `in`; in the pattern of an arm
    while place < len(text):
        char = text[place]
        quoted = bool(nested) and nested[-1] == '"'
        if char == "\\":
            place += 2
        elif text.startswith("$((", place):
            place = text.index("))", place) + 2
            expected = False
        elif text.startswith("${", place):
            place = _end_of_expansion(text, place)
            expected = expected and quoted
        elif text.startswith("$(", place):
            nested.append("(")
            place, expected = place + 2, True
        elif char == '"':
            if quoted:
                nested.pop()
                expected = False
            else:
                nested.append('"')
            place += 1
        elif quoted:
            place += 1
        elif char == "'":
            place = text.index("'", place + 1) + 1
            expected = False
        elif char == "#" and (place == 0 or text[place - 1] in " \n;"):
            place = text.index("\n", place)
        elif text.startswith(";;", place):
            place, expected, pattern = place + 2, False, True
        elif pattern and char != ")":
            if found := _WORD.match(text, place):
                pattern = found[0] != "esac"
                place = found.end()
            else:
                place += 1
        elif char in "\n;&|({}" or text.startswith("! ", place):
            expected = True
            place += 1
        elif char == ")":
            if nested and nested[-1] == "(":
                nested.pop()
                expected = False
            else:
                expected, pattern = True, False
            place += 1
        elif found := _HERE.match(text, place):
            end = text.index(f"\n{found[1]}\n", found.end())
            text = text[: found.end()] + " " * (end + 1 + len(found[1]) - found.end()) + text[end + 1 + len(found[1]) :]
            place = found.end()
        elif char in " \t":
            place += 1
        elif expected and (found := _ASSIGNMENT.match(text, place)):
            place = found.end()
            expected = place < len(text) and text[place] in " \t"
        elif found := _WORD.match(text, place):
            place = found.end()
            if expected and text.startswith("()", place):
                place += 2
                continue
            if chosen and found[0] == "in":
                chosen, pattern = False, True
            if expected:
                chosen = found[0] == "case"
                yield Command(found.start(), found[0])
                if called := _CALLBACK.match(text, found.start()):
                    yield Command(called.start(1), called[1])
            expected = expected and found[0] in _BEFORE_COMMANDS
        else:
            place += 1
            expected = False


def _end_of_expansion(text: str, start: int) -> int:
    depth, place = 0, start
    while True:
        if text[place] == "\\":
            place += 1
        elif text.startswith("${", place):
            depth += 1
            place += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place + 1
        elif text[place] == "'" and (end := text.find("'", place + 1)) >= 0 and "\n" not in text[place:end]:
            place = end
        place += 1
