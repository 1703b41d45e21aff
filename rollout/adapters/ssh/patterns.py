"""Name patterns with OpenSSH's rules, for ssh_config and known_hosts; and what is an address and no name."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache


def matches(name: str, pattern: str) -> bool:
    """``*`` and ``?`` only; the brackets of ``[host]:port`` are literal."""
    return _pattern(pattern).fullmatch(name) is not None


def listed(name: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches the name, and no pattern with ``!`` does."""
    matched = False
    for pattern in patterns:
        if pattern.startswith("!"):
            if matches(name, pattern[1:]):
                return False
        else:
            matched = matched or matches(name, pattern)
    return matched


def is_literal(pattern: str) -> bool:
    return not set(pattern) & set("*?!")


@lru_cache(4096)
def _pattern(pattern: str) -> re.Pattern[str]:
    """``translate`` makes a pattern without backtracking over ``*``: many stars take no longer."""
    return re.compile(translate(pattern.replace("[", "[[]")))


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
