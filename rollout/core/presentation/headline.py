"""What a run changes and how far it is: what every view of a run says first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import WantedSetting
from rollout.core.run.state import Goal, NodeState
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable, seconds_text, wall

MOST_SETTINGS = 4
"""Settings that a text names; documents have all."""

_REASON = re.compile(
    r"(?P<name>[^:]{1,200}): (?P<old>.+?) → (?P<new>.+?)(?: \((?:--set|(?:playbook|template|so that) [^()]*)\))?"
)
"""A reason of a file's change: ``serializeImagePulls: true → false (playbook image-pulls)``."""


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting and its values before and after. Both are empty for a reason of another form; ``old`` alone: no node is changed."""

    name: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.name}: {' → '.join(filter(None, (self.old, self.new)))}" if self.new else self.name


@dataclass(frozen=True, slots=True)
class WhatChanged:
    """What a run changes. ``reverts``: the runs that a rollback reverts; its ``settings`` then have the values that it restores last.

    ``playbook`` ``""``: not known, or a rollback without one.
    """

    playbook: str = ""
    settings: tuple[ChangedSetting, ...] = ()
    reverts: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The settings in one line; ``""``: not known."""
        shown = "; ".join(str(setting) for setting in self.settings[:MOST_SETTINGS])
        more = len(self.settings) - MOST_SETTINGS
        return printable(f"{shown}; {more} more" if more > 0 else shown, 400)

    @property
    def source(self) -> str:
        """The playbook, or the runs that are reverted."""
        if self.reverts:
            return f"rolls back {'run' if len(self.reverts) == 1 else 'runs'} {', '.join(self.reverts)}"
        return f"playbook {printable(self.playbook, 60)}" if self.playbook else ""

    def __str__(self) -> str:
        return f"{self.short or 'settings not recorded'}{f' ({self.source})' if self.source else ''}"


NOTHING_KNOWN = WhatChanged()


def changed_settings(reasons: Iterable[str]) -> tuple[ChangedSetting, ...]:
    """Each once, in the order of the plan, without secrets."""
    return tuple(dict.fromkeys(_setting(without_secrets(reason)) for reason in reasons))


def wanted_settings(wanted: Iterable[WantedSetting]) -> tuple[ChangedSetting, ...]:
    """What a plan that changes no node writes for the nodes that join."""
    said = (without_secrets(f"{each.name}: {each.value}") for each in wanted)
    found = (printable(text, 200).partition(": ") for text in said)
    return tuple(dict.fromkeys(ChangedSetting(name, "", value) for name, _, value in found))


def _setting(reason: str) -> ChangedSetting:
    match = _REASON.fullmatch(printable(reason, 500))
    if match is None:
        return ChangedSetting(printable(reason, 200), "", "")
    return ChangedSetting(match["name"], printable(match["old"], 120), printable(match["new"], 120))


def reverted_settings(settings: Iterable[ChangedSetting]) -> tuple[ChangedSetting, ...]:
    """The same settings from their new values back to the old ones."""
    return tuple(dict.fromkeys(ChangedSetting(each.name, each.new, each.old) for each in settings))


@dataclass(frozen=True, slots=True)
class NodesDone:
    """``done`` of ``total`` nodes of a run are confirmed; of a rollback: reverted."""

    done: int
    total: int

    def words(self, goal: str) -> str:
        return f"{self.done:,} of {self.total:,} {NodeState.REVERTED if goal == Goal.REVERT else NodeState.CONFIRMED}"


def nodes_done(goal: str, counts: Mapping[str, int]) -> NodesDone:
    """``counts``: node state → nodes."""
    wanted = NodeState.REVERTED if goal == Goal.REVERT else NodeState.CONFIRMED
    return NodesDone(counts.get(wanted.value, 0), sum(counts.values()))


@dataclass(frozen=True, slots=True)
class Headline:
    """``ended`` ``None``: it has not. ``now``: seconds since the epoch; ``None``: no controller works on it."""

    change: WhatChanged
    goal: str
    nodes: NodesDone
    who: str
    reason: str
    began: float
    ended: float | None
    now: float | None

    @property
    def took(self) -> str:
        """``""``: nobody works on it, so no time runs."""
        if self.ended is not None:
            return f"took {seconds_text(max(0.0, self.ended - self.began))}"
        return "" if self.now is None else f"{seconds_text(max(0.0, self.now - self.began))} so far"


def headline_lines(head: Headline) -> Iterator[str]:
    """What changes, on how many nodes, since when, the operator and the reason."""
    yield f"  changes: {head.change}"
    yield f"  nodes: {head.nodes.words(head.goal)}; began {wall(head.began)}{head.took and f', {head.took}'}"
    yield f"  by {printable(head.who)}: {printable(head.reason, 300) or 'no reason was given'}"
