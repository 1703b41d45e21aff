"""What an intent's value must look like, whatever node it ends on."""

from __future__ import annotations

import re

from rollout.core.model.settings import Value
from rollout.kubelet import values
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG, DOWNLOADS, MIRRORS

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"{_NAME}(?::[0-9]{{1,5}})?")
_URL = re.compile(rf"https?://(?:{_NAME}|\[[0-9A-Fa-f:]+\])(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~/-]*)?")
_MOST = 2**31 - 1


def mistake(name: str, value: Value) -> str:
    """What is wrong with ``value`` for this intent, or ``""``."""
    if name in {DEADLINE, DEADLINE_FLAG}:
        return _deadline(name, value)
    if name == DOWNLOADS:
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST
        return "" if whole else f"{name} takes a whole number above 0, not {values.shown(value)}"
    return _mirrors(name, value) if name == MIRRORS else ""


def _deadline(name: str, value: Value) -> str:
    seconds = values.duration(value)
    if seconds is not None and seconds > 0:
        return ""
    return f'{name} takes a duration above 0 such as "5m", not {values.shown(value)}'


def _mirrors(name: str, value: Value) -> str:
    if not isinstance(value, dict) or not value:
        return f"{name} takes a map of registry hosts to lists of mirrors, not {values.shown(value)}"
    for host, endpoints in value.items():
        if not _HOST.fullmatch(host):
            return f"{name}: {values.shown(host)} is not a registry's host such as docker.io or registry.example:5000"
        wrong = _endpoints(endpoints)
        if wrong:
            return f"{name}: {host} {wrong}"
    return ""


def _endpoints(endpoints: Value) -> str:
    if not isinstance(endpoints, list) or not endpoints:
        return f"takes a list of mirrors, not {values.shown(endpoints)}"
    for endpoint in endpoints:
        if not isinstance(endpoint, str) or not _URL.fullmatch(endpoint):
            return "takes mirrors such as https://mirror.example:5000, without user, query or fragment"
    if len({str(endpoint).rstrip("/") for endpoint in endpoints}) < len(endpoints):
        return "names a mirror twice"
    return ""
