"""What ``simulate --seed`` and ``simulate --seeds`` print for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.simulator.play import PlayOutcome, Told
from rollout.simulator.scenario import Fault
from rollout.simulator.tally import Tally

_FAULT = Shown(
    "``at`` counts seconds, or actions of a controller, or requests: see ``simulator.scenario.Fault``.",
    ("kind", "node", "at", PrintedKey("lasting", "lasting_seconds"), "amount", "words"),
)
_TOLD = Shown("", (PrintedKey("at", "after_seconds"), "who", PrintedKey("words", "text")))
_OUTCOME = Shown(
    "",
    (
        "scenario.seed", PrintedKey("broken", or_null=True), "ending",
        PrintedKey("scenario.faults", kind=tuple[Annotated[Fault, _FAULT], ...]),
        PrintedKey("story", kind=tuple[Annotated[Told, _TOLD], ...]),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlayDocument:
    """The story of one seed. ``broken``: the law that broke, ``None`` if every law was kept."""

    outcome: Inline[Annotated[PlayOutcome, _OUTCOME]]


def _in_seconds(hours: float) -> float:
    return hours * 3600


_COUNTS = Mapping[str, int]
_TALLY = Shown(
    "",
    (
        "seeds", "nodes", "events", PrintedKey("hours", "played_seconds", write=_in_seconds), "controllers", "killed",
        PrintedKey("faults", kind=_COUNTS), PrintedKey("endings", kind=_COUNTS), PrintedKey("laws", kind=_COUNTS),
        PrintedKey("broken", kind=Mapping[int, str]), PrintedKey("took", "seconds"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TallyDocument:
    """The results of many seeds: ``broken`` is seed → law. ``played_seconds`` passed in all plays, ``seconds`` here."""

    tally: Inline[Annotated[Tally, _TALLY]]
