"""What ``rollout explain NAME`` prints, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.core.model.disruption import Disruption
from rollout.kubelet import fields
from rollout.kubelet.explained.explanation import Explanation, What
from rollout.kubelet.explained.words import RuntimeHome

VERSION = 1
_OLDEST = fields.known_minors()[0]


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Lines for people."""
    yield f"{found.name}  {found.what.value}{_kind(found)}"
    if found.purpose:
        yield f"  {found.purpose}"
    yield from _versions(found)
    for since, text in found.defaults:
        yield f"  default: {text}" + (f" (from 1.{since})" if len(found.defaults) > 1 else "")
    yield f"  lives: {found.lives}"
    if found.twins:
        yield f"  the same as: {', '.join(found.twins)}; {found.wins}"
    for home in found.homes:
        yield from _home(home)
    yield f"  a change: {_change(found)}"
    if found.not_ours:
        yield f"  rollout does not set it: {found.not_ours}"
    for trap in found.traps:
        yield f"  trap: {trap}"
    if found.source:
        yield f"  source: {found.source}"


def explanation_document(found: Explanation) -> dict[str, Any]:
    """The same as JSON values; minors are numbers, ``27`` is 1.27."""
    return {
        "version": VERSION,
        "name": found.name,
        "what": found.what.value,
        "type": found.kind,
        "purpose": found.purpose,
        "since": found.since,
        "last": found.last,
        "gone": found.gone,
        "here": found.here,
        "defaults": [{"since": since, "text": text} for since, text in found.defaults],
        "lives": found.lives,
        "homes": [_home_document(home) for home in found.homes],
        "twins": list(found.twins),
        "disruption": found.disruption.value,
        "mayRejectPods": found.may_drain,
        "notOurs": found.not_ours,
        "traps": list(found.traps),
        "source": found.source,
    }


def _kind(found: Explanation) -> str:
    return f", {found.kind}" if found.kind else ""


def _versions(found: Explanation) -> Iterator[str]:
    if found.what is not What.INTENT:
        since = f"since 1.{found.since}" if found.since and found.since > _OLDEST else f"since before 1.{_OLDEST + 1}"
        yield f"  {since}{f', gone: {found.gone}' if found.gone else ''}"
    if found.here:
        yield f"  {found.here}"


def _home(home: RuntimeHome) -> Iterator[str]:
    yield f"  on {home.runtime} ({home.versions}): {home.lives}"
    yield f"    {_restart(home.unit, home.disruption)}; default {home.default}"
    yield from (f"    trap: {trap}" for trap in home.traps)


def _restart(unit: str, disruption: Disruption) -> str:
    doing = "sends SIGHUP to" if disruption is Disruption.RELOAD else "restarts"
    return f"a change {doing} {unit} ({disruption.value})" if unit else f"read anew by itself ({disruption.value})"


def _change(found: Explanation) -> str:
    if found.what is What.INTENT:
        return "see its home"
    stricter = "; a stricter value can reject pods that run (drain-and-restart)" if found.may_drain else ""
    return f"restarts kubelet.service ({found.disruption.value}){stricter}"


def _home_document(home: RuntimeHome) -> dict[str, Any]:
    return {
        "runtime": home.runtime,
        "versions": home.versions,
        "lives": home.lives,
        "unit": home.unit,
        "disruption": home.disruption.value,
        "default": home.default,
        "traps": list(home.traps),
    }
