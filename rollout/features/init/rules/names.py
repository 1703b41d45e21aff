"""Names of nodes, checked as Kubernetes checks the name of a Node: an RFC 1123 subdomain of at most 253 characters."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from rollout.core.text.terminal import printable
from rollout.errors import Place, Problem

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
LONGEST_NAME = 253


def is_node_name(name: str) -> bool:
    """Whether Kubernetes accepts it as the name of a Node."""
    return len(name) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(name) is not None


def name_problem(name: str, where: str = "", place: Place | None = None) -> Problem:
    """Why a name is none, with the name that was probably meant."""
    near = name.lower().replace("_", "-")
    hint = f"its Node is probably `{near}`" if near != name and is_node_name(near) else ""
    if len(name) > LONGEST_NAME:
        why = f"is longer than {LONGEST_NAME} characters"
    else:
        why = "cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them"
    start = f"{where}: " if where else ""
    return Problem("bad-node-name", f"{start}`{printable(name, 60)}` {why}", place, hint)


def addresses_among(names: Iterable[str]) -> tuple[str, ...]:
    """Those that are IP addresses: a Node has its host's name as a rule."""
    return tuple(name for name in names if _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
