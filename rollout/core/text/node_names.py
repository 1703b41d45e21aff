"""Names of nodes, checked as Kubernetes checks the name of a Node: an RFC 1123 subdomain of at most 253 characters."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator

from rollout.core.text.nodesets import Flaw, fold, is_name
from rollout.core.text.terminal import printable
from rollout.errors import Place, Problem

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
PATTERN = rf"{_LABEL}(?:\.{_LABEL})*"
LONGEST_NAME = 253
_SUBDOMAIN = re.compile(PATTERN)


def is_node_name(name: str) -> bool:
    """Whether Kubernetes accepts it as the name of a Node."""
    return len(name) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(name) is not None


def node_name_flaws(names: Iterable[str]) -> Iterator[Flaw]:
    """One flaw for all that could be names of something else, as a nodeset, and one for each of the others."""
    wrong = [name for name in names if not is_node_name(name)]
    alike = [name for name in wrong if is_name(name)]
    if alike:
        yield _flaw(fold(alike), alike)
    for name in wrong:
        if not is_name(name):
            yield _flaw(name, [name])


def _flaw(shown: str, names: list[str]) -> Flaw:
    near = names[0].lower().replace("_", "-")
    node = "its Node" if len(names) == 1 else f"the Node of `{names[0]}`"
    hint = f"{node} is probably `{near}`" if near != names[0] and is_node_name(near) else ""
    if len(names[0]) > LONGEST_NAME:
        why = f"is longer than {LONGEST_NAME} characters"
    else:
        why = "cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them"
    return Flaw("bad-node-name", f"`{printable(shown, 60)}` {why}", hint)


def node_name_problems(names: Iterable[str], where: str = "", place: Place | None = None) -> list[Problem]:
    """The flaws of names, with what they come from."""
    start = f"{where}: " if where else ""
    return [Problem(flaw.reference, f"{start}{flaw.message}", place, flaw.hint) for flaw in node_name_flaws(names)]


def addresses_among(names: Iterable[str]) -> tuple[str, ...]:
    """Those that are IP addresses: a Node has its host's name as a rule."""
    return tuple(name for name in names if _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
