"""The playbook's templates rendered for one node, remembered: a fleet has few distinct sets of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rollout.core.model.inventory import Node
from rollout.core.model.settings import Value
from rollout.core.reading import rendering
from rollout.core.text import json_text
from rollout.errors import InputError, Place
from rollout.kubelet.node.layout import LayoutError

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_NODE = re.compile(r"\bnode\b")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a template made of its variables (as JSON), and how to find the line of it that is to blame."""

    text: str
    template: str
    name: str
    variables: str

    def refused(
        self, message: str, *, line: int = 0, words: tuple[str, ...] = (), about: tuple[str, ...] = ()
    ) -> LayoutError:
        """The template does not say what was set: in the line that wrote ``line`` of its text, else where the first of
        ``words`` stands that it has.
        """
        at = self._behind(line) if line else next(filter(None, map(self._line_of, words)), 1)
        return LayoutError("template-not-understood", message, place=Place(self.name, at, 1), about=about)

    def _behind(self, line: int) -> int:
        """An error at the end of the text is one of its last line."""
        last = self.text.rstrip().count("\n") + 1
        return rendering.line_behind(self.template, self.name, json_text.parse(self.variables), min(line, last))

    def _line_of(self, word: str) -> int:
        """Where the template first has this word outside of its comments, 0: nowhere."""
        text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), self.template)
        found = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
        return text.count("\n", 0, found.start()) + 1 if found else 0


def rendered(text: str, name: str, variables: Mapping[str, Value], node: Node) -> Rendered:
    """The text for this node; ``name`` is the template's, for messages. ``LayoutError``: it fails on this node."""
    seen: dict[str, Value] = {"name": node.name, "rack": node.rack, "zone": node.zone, "labels": dict(node.labels)}
    try:
        return _rendered(text, name, json.dumps({**variables, "node": seen if uses_node(text) else {}}))
    except InputError as error:
        problem = error.problems[0]
        raise LayoutError(problem.reference, problem.message, place=problem.place) from None


@lru_cache(maxsize=64)
def uses_node(text: str) -> bool:
    """Whether a template may render differently for two nodes with the same settings."""
    return bool(_NODE.search(_COMMENT.sub("", text)))


@lru_cache(maxsize=4096)
def _rendered(text: str, name: str, variables: str) -> Rendered:
    return Rendered(rendering.render(text, name, json_text.parse(variables)), text, name, variables)
