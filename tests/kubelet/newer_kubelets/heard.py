"""The messages of a kubelet 1.22 or later about its configuration, until it is up or has ended."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.kubelet.real_kubelet.room import STARTED

_LENIENT = re.compile(
    r'Using lenient decoding as strict decoding failed" err=(?:"([^\n]*)"$|<\n(.*?)\n >$)', re.MULTILINE | re.DOTALL
)
_UNKNOWN = re.compile(r'unknown field \\?"(.*?)\\?"(?:,|$)', re.MULTILINE)
_TWICE = re.compile(r'key \\?"([^"\\]*)\\?" already set in map')
_CONFIGURATION = re.compile(r'"KubeletConfiguration" configuration=(?:<$)?(.*?)(?:^ ?>$|\Z)', re.DOTALL | re.MULTILINE)
_LAST = re.compile(r'"command failed" err=(?:"([^\n]*)"$|<\n(.*?)\n >$)', re.MULTILINE | re.DOTALL)
_PANIC = re.compile(r"^(panic: .*?)$", re.MULTILINE)
_NO_RUNTIME = ("nobody.sock", "mount-utils", "no client provided")
VERSION = '"Kubelet version" kubeletVersion'


@dataclass(frozen=True, slots=True)
class Heard:
    """``taken``: the configuration was accepted; ``late`` is the later failure, unless that was due to the runtime."""

    taken: bool
    said: str = ""
    late: str = ""
    unknown: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()
    effective: dict[str, Any] = field(default_factory=dict)


def heard(log: str) -> Heard:
    """From the whole log of a kubelet that is up or has ended."""
    warning = _LENIENT.search(log)
    warned = (warning[1] or warning[2]) if warning else ""
    said = _last_words(log)
    taken = VERSION in log
    early = not taken or STARTED in log or any(word in said for word in _NO_RUNTIME)
    late = "" if early else said
    return Heard(
        taken=taken,
        said="" if taken else said,
        late=late,
        unknown=tuple(_UNKNOWN.findall(warned)),
        twice=tuple(_TWICE.findall(warned)),
        effective=_effective(log) if taken else {},
    )


def _last_words(log: str) -> str:
    found = ["".join(parts).replace("\n\t", "\n").strip() for parts in _LAST.findall(log)] or _PANIC.findall(log)
    return found[-1] if found else "(nothing) " + log[-200:]


def _effective(log: str) -> dict[str, Any]:
    """The internal type as JSON: the names of its fields begin with a capital."""
    found = _CONFIGURATION.search(log)
    if not found:
        return {}
    text = found[1].replace("\n\t", "\n").strip()
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        told, _ = json.JSONDecoder().raw_decode(json.loads(text.splitlines()[0]))
    return dict(told)
