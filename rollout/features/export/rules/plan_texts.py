"""The texts of a plan for the tools that make new nodes: which formats a playbook or an inventory demands, and the texts as planned."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.conditions import Condition
from rollout.core.model.frozen import dataclass
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import Place

FORMAT_NAMES = (
    "butane", "cloud-init", "ignition", "k3s", "k3s-drop-in", "kops", "kubespray", "mco", "nodeadm", "rke2", "rke2-drop-in",
    "talos",
)  # fmt: skip

MOST_TEXTS = 20
"""Sets of settings with a text of each format in a plan. A fleet with more has settings for single nodes."""


@dataclass(frozen=True, slots=True)
class NoPlace:
    """A setting that a format cannot express, and the reason."""

    setting: str
    why: str


@dataclass(frozen=True, slots=True)
class ExportedText:
    """The ``text`` for ``nodes`` in a format, without comments. ``hints``: what people must know to use it."""

    text: str
    hints: tuple[str, ...]
    no_place: tuple[NoPlace, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormatTexts:
    """The texts in one format, for each distinct set of settings."""

    format: str
    texts: tuple[ExportedText, ...]


@dataclass(frozen=True, slots=True)
class NewNodesRule(Condition):
    """The plan has the texts of these ``formats``. ``path``: of a drop-in on a new node; ``""``: each format's own.

    ``planned``: the texts, under the digest of the plan; none before it is made. ``more``: sets of settings without a text.
    """

    place: Place
    formats: tuple[str, ...]
    path: str = ""
    planned: tuple[FormatTexts, ...] = ()
    more: int = 0

    key = "new_nodes"

    def lines(self) -> Iterator[str]:
        for each in self.planned:
            lacking = dict.fromkeys(lost.setting.partition("=")[0] for text in each.texts for lost in text.no_place)
            without = f", no place for {printable(', '.join(lacking), 200)}" if lacking else ""
            size = " + ".join(str(text.text.count("\n")) for text in each.texts)
            nodes = fold(node for text in each.texts for node in text.nodes)
            yield f"new nodes by {each.format}: {size} lines of text, as {printable(nodes, 100)}{without}; `rollout export new-nodes {each.format} PLAN` prints it"
        if not self.planned:
            names = printable(", ".join(self.formats), 200)
            yield f"new nodes by {names}: no text, because no node is changed; `rollout export new-nodes FORMAT --cluster NAME` prints what is in force"
        if self.more:
            yield f"  {counted(self.more, 'more set')} of settings without a text here: `rollout export new-nodes FORMAT PLAN` prints all"
