"""What a real kubelet 1.20.2 said: whether it starts, its last words, what it warned of and what is in force."""

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
    """``said`` is the fatal line of a kubelet that does not start. ``unknown`` is the *first* unknown field by name, all that its
    warning tells; ``twice`` are the keys that it warned of as being there twice. ``effective`` is ``None`` where a kubelet that
    started could not be asked for it."""

    starts: bool
    said: str = ""
    unknown: str | None = None
    twice: tuple[str, ...] = ()
    effective: Effective | None = field(default=None)


def heard(log: str, *, ended: int | None, effective: Effective | None) -> Verdict:
    """From a kubelet's log and its exit code; ``ended`` ``None``: it was running when it was told to go."""
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
