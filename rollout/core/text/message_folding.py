"""Folds messages that are the same for many nodes, except for the node's name, into one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

NODE = "NODE"
"""Stands for each node's own name."""


OWN_PLACE = re.compile(r"(\bbastion \S+: [^()]*)?\(at [^()]+\)")
"""How a connection error gives the address and its key, which differ for each node. After a bastion's name they are the bastion's."""


def nameless(text: str, name: str) -> str:
    """``text`` with ``NODE`` in place of the node's own name where it is a word or a host's first part.

    An address in ``(at …)`` is replaced, too.
    """
    named = _word(name).sub(NODE, text) if name in text else text
    return OWN_PLACE.sub(_without_address, named) if "(at " in named else named


def _without_address(place: re.Match[str]) -> str:
    return place[0] if place[1] else f"(at the address of {NODE})"


def for_all(text: str, names: Sequence[str]) -> str:
    """A ``nameless`` text for the nodes that share it; for a single node its name is put back."""
    return text.replace(NODE, names[0]) if len(names) == 1 else text


def folded(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Reason → its nodes, most first."""
    together: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        together.setdefault(nameless(reason, name), []).append(name)
    return dict(sorted(together.items(), key=lambda item: -len(item[1])))


@lru_cache(maxsize=4096)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
