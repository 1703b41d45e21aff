"""One line as encoding/csv reads it: what pflag's lists of texts go through."""

from __future__ import annotations

from rollout.kubelet.configuration.go_values import GoValueError


def comma_separated(text: str) -> list[str]:
    """The fields of the first line; ``GoValueError`` for a quote in the wrong place."""
    line = text.lstrip("\n").partition("\n")[0] if '"' not in text else text
    if not line:
        raise GoValueError("EOF")
    found: list[str] = []
    at = 0
    while at <= len(line):
        value, at = _quoted(line, at + 1) if line[at : at + 1] == '"' else _bare(line, at)
        found.append(value)
    return found


def _bare(line: str, start: int) -> tuple[str, int]:
    end = line.find(",", start)
    value = line[start:] if end < 0 else line[start:end]
    if '"' in value:
        column = len(line[: start + value.index('"')].encode()) + 1
        raise GoValueError(f'parse error on line 1, column {column}: bare " in non-quoted-field')
    return value, start + len(value) + 1


def _quoted(line: str, start: int) -> tuple[str, int]:
    value: list[str] = []
    at = start
    while True:
        end = line.find('"', at)
        if end < 0:
            column = len(line.encode()) + 1
            raise GoValueError(f'parse error on line 1, column {column}: extraneous or missing " in quoted-field')
        value.append(line[at:end])
        following = line[end + 1 : end + 2]
        if following in {"", ","}:
            return "".join(value), end + 2
        if following != '"':
            column = len(line[:end].encode()) + 1
            raise GoValueError(f'parse error on line 1, column {column}: extraneous or missing " in quoted-field')
        value.append('"')
        at = end + 2
