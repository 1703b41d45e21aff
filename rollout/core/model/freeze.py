"""A freeze of a cluster: until it is lifted, no controller applies anything to its nodes.

It is recorded twice: in the journal of the controller that ordered it, as a note on the cluster, and on each node, which
then refuses any controller's apply. A node needs no clock for it. A freeze has a token like a run has: a node that accepted
a newer freeze or unfreeze refuses an older one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from rollout.core.model.frozen import dataclass

FROZEN = "frozen"
"""The reference of refusals."""
MOST_WHO, MOST_WHY = 200, 500
"""Characters that are kept of the operator's name and of the reason."""


@dataclass(frozen=True, slots=True)
class NodeFreeze:
    """A freeze as a node records it. ``name``: identifies it, as a run's id does; ``""``: the node's record is unreadable."""

    counter: int
    name: str
    who: str
    reason: str


def told(freeze: NodeFreeze) -> str:
    """In one line: who, why, since which token."""
    if not freeze.name:
        return "frozen, and the node's record of it is unreadable"
    return f"frozen by {freeze.who or 'an unknown operator'}: {freeze.reason or 'no reason given'} (token {freeze.counter} of {freeze.name})"


_FACT = re.compile(r"(\d{1,15}) ([A-Za-z0-9_.@-]{1,200}) ([A-Za-z0-9+/=-]+) ([A-Za-z0-9+/=-]+)")


def of_fact(facts: Mapping[str, str]) -> NodeFreeze | None:
    """The freeze that a node reports among its facts."""
    fact = facts.get(FROZEN)
    if fact is None:
        return None
    match = _FACT.fullmatch(fact)
    if match is None:
        return NodeFreeze(0, "", "", "")
    name = "" if match[2] == "-" else match[2]
    return NodeFreeze(int(match[1]), name, _decoded(match[3])[:MOST_WHO], _decoded(match[4])[:MOST_WHY])


def encoded(text: str) -> str:
    """A word of the agent's alphabet."""
    return base64.b64encode(text.encode()).decode("ascii") or "-"


def _decoded(word: str) -> str:
    try:
        text = "" if word == "-" else base64.b64decode(word, validate=True).decode("utf-8", "replace")
    except ValueError:
        text = ""
    return re.sub(r"[^ -~]", "?", text)
