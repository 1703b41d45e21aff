"""Secrets in lines that other programs wrote: they are replaced before a line is shown, recorded or put into a report."""

from __future__ import annotations

import re

from rollout.core.text.diff import REDACTED

_SECRETS = (
    re.compile(r"(?i)(?P<keep>://)[^/@\s\"']+(?=@)"),  # user:password@ of an address
    re.compile(r"(?i)(?P<keep>\b(?:authorization|x-registry-auth)[\"']?\s*[:=]\s*[\"']?)(?:(?:basic|bearer)\s+)?[^\s\"',]+"),
    re.compile(r"(?i)(?P<keep>\b(?:basic|bearer)\s+)[A-Za-z0-9+/=._~-]{8,}"),
    re.compile(r"(?i)(?P<keep>\b\w*(?:password|passwd|secret|token|signature|credential)s?[\"']?\s*[:=]\s*[\"']?)[^\s\"',&]+"),
    re.compile(r"(?P<keep>https?://[^\s\"'?]+\??)[^\s\"']*"),  # a signed address; each address is looked at once
)  # fmt: skip


def _replaced(match: re.Match[str]) -> str:
    return match[0] if match.end() == match.end("keep") else f"{match['keep']}{REDACTED}"


def without_secrets(line: str) -> str:
    """``line`` with each secret that is recognized replaced."""
    for pattern in _SECRETS:
        line = pattern.sub(_replaced, line)
    return line
