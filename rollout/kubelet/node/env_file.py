"""systemd environment files, read as systemd 252 does (``parse_env_file_internal`` in src/basic/env-file.c).

``#`` and ``;`` begin comments only at the start of a line; a value may be bare, in single or in double quotes; bare
values keep quotes in their middle and lose blanks at their end; the last assignment of a variable wins. ``CR`` counts
as a line end. Only the bytes of one assignment are ever replaced.
"""

from __future__ import annotations

from functools import lru_cache

from rollout.core.model.frozen import dataclass

_NEWLINES = "\n\r"
_BLANKS = " \t\n\r"
_ESCAPABLE = '"\\`$'  # systemd's SHELL_NEED_ESCAPE


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name=value``; characters ``start`` to ``end`` (exclusive) of the text, without the line end."""

    name: str
    value: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Assignment, ...]:
    """Every assignment in order. ``ValueError`` where versions of systemd read the file differently, or it is broken."""
    assignments: list[Assignment] = []
    at = 0
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
        elif text[at] in "#;":
            end = _line_end(text, at)
            if text[at:end].endswith("\\"):
                line = _line_of(text, at)
                raise ValueError(
                    f"a comment ends with a backslash, which systemd versions read differently (line {line})"
                )
            at = end
        else:
            at, assignment = _assignment(text, at)
            if assignment is not None:
                assignments.append(assignment)
    return tuple(assignments)


def _line_of(text: str, at: int) -> int:
    """The number of the line with this character, counted as editors do."""
    return len(text[:at].replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _line_end(text: str, at: int) -> int:
    while at < len(text) and text[at] not in _NEWLINES:
        at += 1
    return at


def _assignment(text: str, start: int) -> tuple[int, Assignment | None]:
    end = _line_end(text, start)
    equals = text.find("=", start, end)
    if equals < 0:
        return end, None
    value, at = _value(text, equals + 1)
    return at, Assignment(text[start:equals].rstrip(_BLANKS), value, start, at)


def _value(text: str, at: int) -> tuple[str, int]:
    """Quoted pieces in a row, then perhaps a bare rest up to the end of the line."""
    value = ""
    while at < len(text) and text[at] not in _NEWLINES:
        if text[at] in " \t":
            at += 1
        elif text[at] == "'":
            piece, at = _single(text, at + 1)
            value += piece
        elif text[at] == '"':
            piece, at = _double(text, at + 1)
            value += piece
        else:
            piece, at = _bare(text, at)
            return value + piece, at
    return value, at


def _single(text: str, at: int) -> tuple[str, int]:
    end = text.find("'", at)
    if end < 0:
        raise ValueError(f"a single quote is never closed (line {_line_of(text, at)})")
    return text[at:end], end + 1


def _double(text: str, at: int) -> tuple[str, int]:
    value: list[str] = []
    opened = at
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            if text[at] in _ESCAPABLE:
                value.append(text[at])
            elif text[at] != "\n":
                value.append("\\" + text[at])
        else:
            value.append(text[at])
        at += 1
    if at >= len(text):
        raise ValueError(f"a double quote is never closed (line {_line_of(text, opened)})")
    return "".join(value), at + 1


def _bare(text: str, at: int) -> tuple[str, int]:
    value: list[str] = []
    kept = 0
    while at < len(text) and text[at] not in _NEWLINES:
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            if text[at] not in _NEWLINES:
                value.append(text[at])
                kept = len(value)
        else:
            value.append(text[at])
            if text[at] not in " \t":
                kept = len(value)
        at += 1
    return "".join(value[:kept]), at


def values(text: str) -> dict[str, str]:
    """What systemd makes of the file: the last assignment of each variable."""
    return {assignment.name: assignment.value for assignment in parse(text)}


def quote(value: str) -> str:
    """``value`` so that every systemd reads it back; line ends cannot be written and are refused."""
    if any(mark in value for mark in "\n\r\0"):
        raise ValueError("an environment file cannot contain a line end")
    return '"' + "".join("\\" + mark if mark in _ESCAPABLE else mark for mark in value) + '"'


def assign(text: str, name: str, value: str) -> str:
    """``text`` with ``name`` set to ``value``: the last assignment's bytes are replaced, or a line is added at the end."""
    line = f"{name}={quote(value)}"
    old = next((found for found in reversed(parse(text)) if found.name == name), None)
    if old is not None:
        return text[: old.start] + line + text[old.end :]
    end = "\r\n" if "\r\n" in text else "\n"
    gap = end if text and text[-1] not in _NEWLINES else ""
    for between in (gap, gap + end):  # a last line that ends with a backslash would continue into ours
        assigned = f"{text}{between}{line}{end}"
        if values(assigned).get(name) == value:
            return assigned
    raise ValueError("text added at its end would not be read as a separate line")
