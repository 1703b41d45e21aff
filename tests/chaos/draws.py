"""What strikes in a run, when and where: drawn from a seed, so that a number names a run for ever. Pure.

The kinds come round one after the other, so that each has its share of any number of runs. Half of the instants are drawn
over the whole duration of an undisturbed run; the others are aimed at a moment: a step of the agent, or an answer in the journal.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

NODES = 3
GUARD = 8
"""Seconds until a node takes itself back, in these runs."""


class Kind(StrEnum):
    """What happens, in the order of the table."""

    CONTROLLER = "kill -9 of the controller"
    SSHD = "kill -9 of sshd"
    POWER = "power cut, then boot"
    LINK_SHORT = "link cut for less than the guard's time"
    LINK_LONG = "link cut for more than the guard's time"
    FREEZE = "node frozen, then thawed"
    DISK = "disk full, then freed"
    READ_ONLY = "/var read-only, then healed"
    CLOCK = "wall clock of the node stepped by a day"
    LATE = "confirm on its way while the guard fires"
    TWO = "a second controller at once"
    FROZEN = "controller frozen through its lease, thawed"


KINDS = tuple(Kind)

VARIANTS = {
    Kind.CONTROLLER: ("",),
    Kind.SSHD: ("listener", "sessions", "both"),
    Kind.POWER: ("at once", "seconds later"),
    Kind.LINK_SHORT: ("",),
    Kind.LINK_LONG: ("",),
    Kind.FREEZE: ("shorter than the guard", "longer than the guard"),
    Kind.DISK: ("",),
    Kind.READ_ONLY: ("",),
    Kind.CLOCK: ("+1 day", "-1 day"),
    Kind.LATE: ("",),
    Kind.TWO: ("apply", "rollback", "apply, another journal", "emergency, another journal"),
    Kind.FROZEN: ("lease ran out", "unlocked"),
}
"""How it happens; one of them is drawn."""

SECONDS = {
    Kind.SSHD: (0.0, 0.0),
    Kind.LINK_SHORT: (0.5, GUARD - 3.0),
    Kind.LINK_LONG: (GUARD + 2.0, GUARD + 4.0),
    Kind.DISK: (1.0, GUARD + 4.0),
    Kind.READ_ONLY: (1.0, GUARD + 4.0),
    Kind.CLOCK: (2.0, GUARD + 2.0),
}
"""How long a fault lasts; what is not here has its own way to end."""

STEPS = {
    "before the receipt": "*/next/armed *",
    "armed, nothing renamed": "*/new.1 *",
    "between two renames": "*/new.2 *",
    "healthy, not yet told": "*/next/finished *",
    "being confirmed": "*/next/confirmed *",
}
"""Moments on the node, by the rename that then waits (see ``tests/bed/mv``)."""

ANSWERS = {"claimed": "read", "applied": "apply", "measured": "measure", "confirmed": "confirm", "cleaned": "clean"}
"""Moments in the journal: the node's first answer to a verb was written down."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One run. ``moment`` is empty where the instant is ``fraction`` of the undisturbed duration. ``struck`` are numbers of nodes."""

    seed: int
    number: int
    kind: Kind
    variant: str
    moment: str
    fraction: float
    struck: tuple[int, ...]
    seconds: float
    late: int
    alone: bool  # the nodes are left alone until none is under way, and only then resumed
    emergency: bool  # taken back from the nodes alone, else by the journal

    def __str__(self) -> str:
        when = self.moment or f"at {self.fraction:.0%} of the run"
        what = f"{self.kind}{f' ({self.variant})' if self.variant else ''}"
        where = ", ".join(f"node {number + 1}" for number in self.struck)
        return f"run {self.number} of seed {self.seed}: {what}, {when}, {where}"


def draw(seed: int, number: int) -> Draw:
    """Run ``number`` (from 0) of a seed."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311 - the same every time
    kind = KINDS[number % len(KINDS)]
    variants = VARIANTS[kind]
    variant = variants[number // len(KINDS) % len(variants)]  # each in its turn, so that all come in a few runs
    moment = dice.choice([*STEPS, *ANSWERS]) if dice.random() < 0.5 else ""
    fraction = dice.random()
    order = dice.sample(range(NODES), NODES)
    struck = order[: dice.choice((1, 1, 1, 2, 3))]
    return Draw(
        seed=seed,
        number=number,
        kind=kind,
        variant=variant,
        moment=moment,
        fraction=fraction,
        struck=tuple(struck),
        seconds=_seconds(dice, kind, variant),
        late=round(dice.gauss(-150, 250)),
        alone=dice.random() < 0.5,
        emergency=dice.random() < 0.5,
    )


def _seconds(dice: random.Random, kind: Kind, variant: str) -> float:
    least, most = SECONDS.get(kind, (0.0, 3.0))
    if kind is Kind.FREEZE and variant.startswith("longer"):
        least, most = GUARD + 1.0, GUARD + 3.0
    return round(dice.uniform(least, most), 2)
