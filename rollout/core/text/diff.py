"""Unified diffs for people: bounded, with secrets redacted and without control characters for a terminal.

Only the printed text is redacted, never the bytes in the plan.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from functools import lru_cache

from rollout.core.text import json_text
from rollout.core.text.terminal import CONTROL

MOST_LINES = 200
SHORT_JSON = 80
"""Characters of JSON that are readable on one line."""
CONTEXT = 2
"""Unchanged lines around a change."""
REDACTED = "<redacted>"

_SECRET = re.compile(
    r"token|password|passwd|secret|auth|certificate-authority-data|private-?key|client-key-data|datastore[-_]endpoint",
    re.IGNORECASE,
)
"""Names of keys with a secret in their value. A datastore's address has its password: k3s, RKE2."""
_FLAG = re.compile(r"(?P<flag>--[\w.-]+)(?:(?P<sign>=)(?P<value>[^\s\"']*))?")
"""With its value or without: so each flag is looked at once."""

_HARMLESS = re.compile(
    r"--(?:authorization-mode|authorization-webhook-cache-(?:un)?authorized-ttl|authentication-token-webhook(?:-cache-ttl)?"
    r"|tls-private-key-file)\b(?!-)|\btlsPrivateKeyFile\b|\bauth(?:entication|orization)[\"']?\s*:(?=\s*(?:$|[{#]))"
)
"""A kubelet's flags and fields that look like secrets and contain none: modes, times, names of files, and maps."""

_JSON_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^"{}\[\],]+')

_PAIR = re.compile(r"(?P<head>[-+ ]?\s*(?:-\s+)?[\"']?[\w.-]+[\"']?\s*[:=])(?P<rest>.*)", re.DOTALL)


@lru_cache(maxsize=1024)
def unified(before: bytes | None, after: bytes, path: str, context: int = CONTEXT) -> tuple[str, ...]:
    """The lines of a diff, without line ends. ``None``: the file does not exist yet."""
    if before is not None and not (_is_text(before) and _is_text(after)):
        return (f"--- {path}", f"+++ {path}", f"(binary: {len(before)} bytes become {len(after)})")
    old, new, name = [] if before is None else _lines(before), _lines(after), path
    if before is not None and _is_json_line(before) and _is_json_line(after):
        old, new, name = [*_laid_out(before)], [*_laid_out(after)], f"{path} (JSON in one line, shown by value)"
    lines = list(_unified(old, new, "/dev/null" if before is None else name, name, context))
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


def _is_json_line(content: bytes) -> bool:
    """A map in one line of JSON: any change of it would show all of it twice."""
    text = content.strip()
    if not text.startswith(b"{") or b"\n" in text or len(text) < SHORT_JSON:
        return False
    try:
        json_text.parse(text)
    except ValueError:
        return False
    return True


def _laid_out(content: bytes) -> Iterator[str]:
    """Each value of a JSON text on a line of its own; only blanks between the values change."""
    line, depth = "", 0
    for part in _JSON_PART.findall(content.decode().strip()):
        if part in {"}", "]"}:
            depth -= 1
            if line.strip():
                yield line
            line = _indent(depth) + part
            continue
        line += (
            part
            if part.startswith('"') or part in {"{", "[", ","}
            else part.strip() + " " * part.rstrip().endswith(":")
        )
        if part in {"{", "[", ","}:
            depth += part != ","
            yield line
            line = _indent(depth)
        line = line if line.strip() else _indent(depth)
    if line.strip():
        yield line


DEEPEST = 20
"""Levels of JSON that are indented: a text that is nested more deeply would grow by its square."""


def _indent(depth: int) -> str:
    return "  " * min(depth, DEEPEST)


def _shown(line: str) -> str:
    visible = CONTROL.sub(lambda mark: f"\\x{ord(mark[0]):02x}", line)
    return visible if visible.startswith(("---", "+++", "@@")) else redacted(visible)


def _without_value(match: re.Match[str]) -> str:
    is_secret = match["sign"] and _SECRET.search(match["flag"]) and not _HARMLESS.fullmatch(match["flag"])
    return f"{match['flag']}={REDACTED}" if is_secret else match[0]


def redacted(line: str) -> str:
    """A line without values that may be secret, judged by their names; other flags on the line are kept."""
    if not _SECRET.search(_HARMLESS.sub("", line)):
        return line
    kept = _FLAG.sub(_without_value, line)
    if not _SECRET.search(_HARMLESS.sub("", _FLAG.sub(lambda found: "" if found["sign"] else found[0], kept))):
        return kept
    pair = _PAIR.fullmatch(line)
    if pair is None:
        return line[:1] + REDACTED if line.strip() not in {"", line[:1]} else line
    return line if not pair["rest"].strip() else f"{pair['head']} {REDACTED}"


SHORT = 400
"""Lines of both files in a part for difflib."""


class LineMatcher(SequenceMatcher[str]):
    """difflib's, with matching blocks of ``matching``."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._blocks = [*joined(matching(old, new)), Match(len(old), len(new), 0)]

    def get_matching_blocks(self) -> list[Match]:
        return self._blocks


def matching(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Runs of equal lines in both, in order."""
    first, end, new_end = 0, len(old), len(new)
    while first < min(end, new_end) and old[first] == new[first]:
        first += 1
    while first < min(end, new_end) and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    yield Match(0, 0, first)
    at, new_at = first, first
    for anchor, new_anchor in [*_anchors(old[first:end], new[first:new_end]), (end - first, new_end - first)]:
        stop, new_stop = first + anchor, first + new_anchor
        lines, new_lines = old[at:stop], new[new_at:new_stop]
        if lines and new_lines and len(lines) + len(new_lines) <= SHORT:
            for found in SequenceMatcher(None, lines, new_lines, autojunk=False).get_matching_blocks():
                yield Match(at + found.a, new_at + found.b, found.size)
        if stop < end or new_stop < new_end:
            yield Match(stop, new_stop, 1)
        at, new_at = stop + 1, new_stop + 1
    yield Match(end, new_end, len(old) - end)


def joined(blocks: Iterator[Match]) -> Iterator[Match]:
    """Without empty blocks; blocks that touch are one."""
    last = Match(0, 0, 0)
    for block in blocks:
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            last = Match(last.a, last.b, last.size + block.size)
            continue
        if last.size:
            yield last
        last = block
    if last.size:
        yield last


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that stand once in each, in rising order in both: as many as there are."""
    if len(old) + len(new) <= SHORT:
        return []
    once, new_once = ({line for line, count in Counter(lines).items() if count == 1} for lines in (old, new))
    both = once & new_once
    places = {line: at for at, line in enumerate(new) if line in both}
    pairs = [(at, places[line]) for at, line in enumerate(old) if line in both]
    ends: list[int] = []  # for each length of a chain: the lowest place in ``new`` where one of it ends
    lasts: list[int] = []  # and the pair that it ends with
    before: list[int] = []  # for each pair: the pair before it in the longest chain that ends with it, or -1
    for number, (_, new_at) in enumerate(pairs):
        length = bisect_left(ends, new_at)
        before.append(lasts[length - 1] if length else -1)
        if length == len(ends):
            ends.append(new_at)
            lasts.append(number)
        else:
            ends[length], lasts[length] = new_at, number
    chain, number = [], lasts[-1] if lasts else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
