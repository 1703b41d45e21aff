"""Messages that say the same of many nodes, each with its own name in it, as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

NODE = "NODE"
"""Stands for each node's own name."""


def nameless(text: str, name: str) -> str:
    """``text`` with ``NODE`` in place of the node's own name where it stands as a word or as a host's first part."""
    return _word(name).sub(NODE, text) if name in text else text


def for_all(text: str, names: Sequence[str]) -> str:
    """A ``nameless`` text for those who share it: one that is alone has its own name back."""
    return text.replace(NODE, names[0]) if len(names) == 1 else text


@lru_cache(maxsize=4096)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
