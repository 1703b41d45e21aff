"""The result of a real kubelet 1.20.2: whether it starts, its last message, its warnings and the values in force."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Effective = Mapping[str, Any]
"""Top-level field → value, as ``/configz`` shows it."""

_LINE = r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "
_FATAL = re.compile(rf"^F{_LINE[6:]}\S+\] (.*?)(?=^goroutine |\Z)", re.DOTALL | re.MULTILINE)
_PANIC = re.compile(r"^(panic: .*?)(?=^goroutine |\Z)", re.DOTALL | re.MULTILINE)
_LENIENT = re.compile(
    rf"using lenient decoding as strict decoding failed: (.*?)(?=^{_LINE}|^Flag --|\Z)", re.DOTALL | re.MULTILINE
)
_UNKNOWN = re.compile(r"found unknown field: (.*), error found in #\d+ byte")
_TWICE = re.compile(r'line \d+: key "(.*?)" already set in map')


@dataclass(frozen=True, slots=True)
class Verdict:
    """``said`` is the fatal line of a kubelet that does not start.

    ``unknown`` is the *first* unknown field by name: the warning contains no more. ``twice`` are the duplicate keys in
    the warning. ``effective`` is ``None`` where a kubelet started but its values could not be read.
    """

    starts: bool
    said: str = ""
    unknown: str | None = None
    twice: tuple[str, ...] = ()
    effective: Effective | None = field(default=None)


def heard(log: str, *, ended: int | None, effective: Effective | None) -> Verdict:
    """From a kubelet's log and its exit code; ``ended`` ``None``: it was still running when it was stopped."""
    warning = _LENIENT.search(log)
    warned = warning[1] if warning else ""
    unknown = _UNKNOWN.findall(warned)
    starts = ended is None
    return Verdict(
        starts=starts,
        said="" if starts else _last_words(log, ended or 0),
        unknown=unknown[-1] if unknown else None,
        twice=tuple(_TWICE.findall(warned)),
        effective=effective if starts else None,
    )


def _last_words(log: str, ended: int) -> str:
    found = _FATAL.search(log) or _PANIC.search(log)
    return found[1].strip() if found else f"(no fatal line, exit code {ended}) {log.strip()[-200:]}"
