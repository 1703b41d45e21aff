"""The playbook's templates rendered for one node, remembered: a fleet has few distinct sets of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from rollout.core.model.inventory import Node
from rollout.core.model.settings import Value
from rollout.core.reading import rendering
from rollout.core.text import json_text

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_NODE = re.compile(r"\bnode\b")


def rendered(text: str, name: str, variables: Mapping[str, Value], node: Node) -> str:
    """The text for this node; ``name`` is the template's, for messages. Mistakes are an ``InputError``."""
    seen: dict[str, Value] = {"name": node.name, "rack": node.rack, "zone": node.zone, "labels": dict(node.labels)}
    return _rendered(text, name, json.dumps({**variables, "node": seen if uses_node(text) else {}}))


@lru_cache(maxsize=64)
def uses_node(text: str) -> bool:
    """Whether a template may render differently for two nodes with the same settings."""
    return bool(_NODE.search(_COMMENT.sub("", text)))


@lru_cache(maxsize=4096)
def _rendered(text: str, name: str, variables: str) -> str:
    return rendering.render(text, name, json_text.parse(variables))
