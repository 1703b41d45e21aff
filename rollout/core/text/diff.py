"""Unified diffs for people: bounded, with secrets redacted and without control characters for a terminal.

Only the printed text is redacted, never the bytes in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rollout.core.text.line_matching import LineMatcher
from rollout.core.text.terminal import CONTROL

MOST_LINES = 200
CONTEXT = 2
"""Unchanged lines around a change."""
REDACTED = "<redacted>"

_SECRET = re.compile(
    r"token|password|passwd|secret|auth|certificate-authority-data|private-?key|client-key-data", re.IGNORECASE
)
_FLAG = re.compile(r"(?P<flag>--[\w.-]+)(?:(?P<sign>=)(?P<value>[^\s\"']*))?")
"""With its value or without: so each flag is looked at once."""

_PAIR = re.compile(r"(?P<head>[-+ ]?\s*(?:-\s+)?[\"']?[\w.-]+[\"']?\s*[:=])(?P<rest>.*)", re.DOTALL)


@lru_cache(maxsize=1024)
def unified(before: bytes | None, after: bytes, path: str, context: int = CONTEXT) -> tuple[str, ...]:
    """The lines of a diff, without line ends. ``None``: the file does not exist yet."""
    if before is not None and not (_is_text(before) and _is_text(after)):
        return (f"--- {path}", f"+++ {path}", f"(binary: {len(before)} bytes become {len(after)})")
    old = [] if before is None else _lines(before)
    lines = list(_unified(old, _lines(after), "/dev/null" if before is None else path, path, context))
    more = len(lines) - MOST_LINES
    shown = tuple(_shown(line) for line in lines[:MOST_LINES])
    return shown if more <= 0 else (*shown, f"… {more} more lines")


def _unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str, context: int) -> Iterator[str]:
    """As ``difflib.unified_diff`` prints it."""
    hunks = LineMatcher(old, new).get_grouped_opcodes(context)
    for number, hunk in enumerate(hunks):
        if not number:
            yield f"--- {old_name}"
            yield f"+++ {new_name}"
        yield f"@@ -{_span(hunk[0][1], hunk[-1][2])} +{_span(hunk[0][3], hunk[-1][4])} @@"
        for kind, start, end, new_start, new_end in hunk:
            if kind == "equal":
                yield from (f" {line}" for line in old[start:end])
                continue
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _span(start: int, end: int) -> str:
    """Lines of a hunk: the first, counted from 1, and how many, unless it is one; of none, the line before."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _lines(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + " (no newline at the end)"]


def _shown(line: str) -> str:
    visible = CONTROL.sub(lambda mark: f"\\x{ord(mark[0]):02x}", line)
    return visible if visible.startswith(("---", "+++", "@@")) else redacted(visible)


def _without_value(found: re.Match[str]) -> str:
    is_secret = found["sign"] and _SECRET.search(found["flag"])
    return f"{found['flag']}={REDACTED}" if is_secret else found[0]


def redacted(line: str) -> str:
    """A line without values that may be secret, judged by their names; other flags on the line are kept."""
    if not _SECRET.search(line):
        return line
    kept = _FLAG.sub(_without_value, line)
    if not _SECRET.search(_FLAG.sub(lambda found: "" if found["sign"] else found[0], kept)):
        return kept
    pair = _PAIR.fullmatch(line)
    if pair is None:
        return line[:1] + REDACTED if line.strip() not in {"", line[:1]} else line
    return line if not pair["rest"].strip() else f"{pair['head']} {REDACTED}"
