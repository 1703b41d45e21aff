"""The fault of a run, its instant and its nodes: drawn from a seed, so that a number always names the same run. Pure.

The kinds take turns, so that each has an equal share of any number of runs. Half of the instants are drawn over the
whole duration of an undisturbed run. The others are aimed at a moment: a step of the agent, or an answer in the
journal.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rollout import known_faults
from rollout.app.node_worker import APPLY_MARGIN

NODES = 3
MANY_NODES = 12
"""Used in one run of twenty. Their names are not padded, so they sort in another order than they are listed."""
GUARD = 8
"""The guard's seconds in these runs."""
DEFAULT_GUARD = 120
"""The guard's default, used in one run of ten."""


class Kind(StrEnum):
    """The kinds of faults, in the order of the table."""

    CONTROLLER = known_faults.CONTROLLER_KILLED.name
    SSHD = "kill -9 of sshd"
    POWER = known_faults.REBOOT.name
    LINK_SHORT = f"{known_faults.LINK_CUT.name} for less than the guard's time"
    LINK_LONG = f"{known_faults.LINK_CUT.name} for more than the guard's time"
    FREEZE = known_faults.NODE_FREEZES.name
    DISK = known_faults.FULL_DISK.name
    READ_ONLY = known_faults.READ_ONLY.name
    CLOCK = known_faults.CLOCK_STEP.name
    LATE = "confirm on its way while the guard fires"
    TWO = "a second controller at once"
    FROZEN = known_faults.CONTROLLER_FROZEN.name
    AGENT = known_faults.AGENT_KILLED.name
    MEMORY = "no memory left for the agent"
    FORKS = "no process can be started for seconds"
    SYSTEMD = "PID 1 frozen, then thawed"
    ISOLATE = "isolate rescue.target, then back"
    TARGET = f"{known_faults.REBOOT.name} into another default target"
    IMMUTABLE = "files of the change made immutable, then not"
    SYNC = "sync reports lost writes"
    SLOW_SYNC = "sync is killed, or slow"
    MANAGER = f"{known_faults.DRIFTS.name}: a configuration manager writes old bytes back"
    REWRITE = "ExecStartPre that rewrites the configuration"
    MASKED = "kubelet masked, then not"
    NO_RESTART = "kubelet with Restart=no"
    STARTS = "kubelet's StartLimitBurst used up"
    SESSIONS = "sshd with MaxSessions 1"
    PROXY = "http_proxy on the node"
    BASTION = "nodes behind a real bastion"
    API_SERVER = "API server restarted with a cold RBAC cache"
    ANSWER = "no answer to a request"
    DROP_IN = "a drop-in for all services, and no controller"
    WORKER = "kill -9 of a region's worker"
    WORKER_STOPPED = "a region's worker stopped, then continued"
    SCHEDULER = "kill -9 of the scheduler"
    ENGINE_CUT = "scheduler cut off from controller and workers"
    TWINS = "two workers with one name"
    REPEAT = "calls repeated by Dask"


STRUCK_ENGINE = (Kind.WORKER, Kind.WORKER_STOPPED, Kind.SCHEDULER, Kind.ENGINE_CUT, Kind.TWINS, Kind.REPEAT)
KINDS = tuple(kind for kind in Kind if kind not in STRUCK_ENGINE)
WITH_REGIONS = (
    *STRUCK_ENGINE, Kind.CONTROLLER, Kind.SSHD, Kind.POWER, Kind.LINK_SHORT, Kind.LINK_LONG, Kind.FREEZE, Kind.TWO,
    Kind.FROZEN, Kind.AGENT, Kind.ANSWER,
)  # fmt: skip
"""The kinds for nodes behind workers of regions: what strikes the engine, and what strikes controllers and connections."""
ENGINES = {"embedded": KINDS, "dask": WITH_REGIONS}

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
    Kind.AGENT: ("its shell", "what it started", "its guard", "the elevated shell", "all of it"),
    Kind.MEMORY: ("its verbs", "the guard too"),
    Kind.FORKS: ("",),
    Kind.SYSTEMD: ("shorter than the guard", "longer than the guard"),
    Kind.ISOLATE: ("",),
    Kind.TARGET: ("graphical.target", "fleet.target"),
    Kind.IMMUTABLE: ("+i", "+a"),
    Kind.SYNC: ("once", "each time"),
    Kind.SLOW_SYNC: ("killed", "slow"),
    Kind.MANAGER: ("in place", "by rename"),
    Kind.REWRITE: ("old bytes", "other bytes"),
    Kind.MASKED: ("before the run", "in the middle"),
    Kind.NO_RESTART: ("", "and the kubelet killed"),
    Kind.STARTS: ("",),
    Kind.SESSIONS: ("",),
    Kind.PROXY: ("",),
    Kind.BASTION: ("", "killed"),
    Kind.API_SERVER: ("403", "401, then 403"),
    Kind.ANSWER: ("late", "the link cut", "the elevated shell killed"),
    Kind.DROP_IN: ("ProtectSystem=full", "ProtectSystem=strict", "ReadOnlyPaths", "SystemCallFilter", "RuntimeMaxSec"),
    Kind.WORKER: ("started again at once", "seconds later"),
    Kind.WORKER_STOPPED: ("longer than the guard", "shorter than the guard"),
    Kind.SCHEDULER: ("started again at once", "seconds later"),
    Kind.ENGINE_CUT: ("longer than the guard", "longer than the timeouts", "shorter than the guard"),
    Kind.TWINS: ("beside the first", "the first is stopped"),
    Kind.REPEAT: ("at the same time", "seconds later"),
}
"""The variants of a kind; one of them is drawn."""

SECONDS = {
    Kind.SSHD: (0.0, 0.0),
    Kind.LINK_SHORT: (0.5, GUARD - 3.0),
    Kind.DISK: (1.0, GUARD + 4.0),
    Kind.READ_ONLY: (1.0, GUARD + 4.0),
    Kind.CLOCK: (2.0, GUARD + 2.0),
    Kind.IMMUTABLE: (1.0, GUARD + 4.0),
    Kind.SYNC: (1.0, GUARD + 4.0),
    Kind.SLOW_SYNC: (1.0, GUARD + 4.0),
    Kind.FORKS: (1.0, GUARD - 3.0),
    Kind.MANAGER: (2.0, GUARD + 4.0),
    Kind.MASKED: (1.0, GUARD + 4.0),
    Kind.API_SERVER: (1.5, GUARD - 4.0),
    Kind.ANSWER: (0.5, GUARD + 4.0),
    Kind.DROP_IN: (GUARD + 1.0, GUARD + 4.0),
    Kind.WORKER: (0.5, GUARD + 4.0),
    Kind.SCHEDULER: (0.5, GUARD + 4.0),
    Kind.ENGINE_CUT: (0.5, GUARD - 3.0),
    Kind.WORKER_STOPPED: (0.5, GUARD - 3.0),
    Kind.TWINS: (1.0, GUARD + 4.0),
    Kind.REPEAT: (0.5, 3.0),
}
"""The seconds for which a fault lasts. Kinds that are not listed end in another way."""

BY_SYSTEMD = frozenset({Kind.MASKED})
"""Only nodes with the unit below /usr, where packages put it, can be masked until the next boot."""

WITHOUT_POWER = frozenset({Kind.POWER, Kind.TARGET})
"""Afterwards nothing on the node is pending."""

MENDED_BY_ITSELF = frozenset(
    {Kind.IMMUTABLE, Kind.SYNC, Kind.SLOW_SYNC, Kind.FORKS, Kind.SYSTEMD, Kind.MASKED, Kind.REWRITE}
)
"""The node continues its revert some seconds after the fault is healed, and is not judged before."""

LONGER = {
    Kind.LINK_LONG: (2.0, 4.0),
    Kind.FREEZE: (1.0, 3.0),
    Kind.SYSTEMD: (1.0, 3.0),
    Kind.ANSWER: (APPLY_MARGIN + 2.0, APPLY_MARGIN + 4.0),
    Kind.WORKER_STOPPED: (1.0, 3.0),
    Kind.ENGINE_CUT: (1.0, 3.0),
}
"""Seconds by which a fault outlasts the guard: in the variants "longer than the guard" and "late" of kinds with variants."""

OUTLASTS = ("", "longer than the guard", "late")
DASK_TIMEOUT = 30.0
"""Seconds until a scheduler and its peers give each other up."""

STEPS = {
    "before the receipt": "*/next/armed *",
    "armed, nothing renamed": "*/new.1 *",
    "between two renames": "*/new.2 *",
    "healthy, not yet told": "*/next/finished *",
    "being confirmed": "*/next/confirmed *",
}
"""Moments on the node, by the rename that is held there (see ``tests/bed/mv``)."""

ANSWERS = {"claimed": "read", "applied": "apply", "measured": "measure", "confirmed": "confirm", "cleaned": "clean"}
"""Moments in the journal: the node's first answer to a verb was journaled."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One run. ``moment`` is empty if the instant is ``fraction`` of the undisturbed duration.

    ``struck``: numbers of the affected nodes.
    """

    seed: int
    number: int
    kind: Kind
    variant: str
    moment: str
    fraction: float
    nodes: int
    guard: int
    struck: tuple[int, ...]
    seconds: float
    late: int
    alone: bool  # the run is resumed only when no node has a transaction in progress
    emergency: bool  # reverted by what the nodes report, else by the journal

    def for_guard(self, brief: int) -> Draw:
        """The same on a machine where a short guard has so many seconds: what was drawn for a shorter one lasts longer."""
        return self if self.guard != GUARD else replace(self, seconds=round(self.seconds * brief / GUARD, 2))

    def __str__(self) -> str:
        when = self.moment or f"at {self.fraction:.0%} of the run"
        what = f"{self.kind}{f' ({self.variant})' if self.variant else ''}"
        where = ", ".join(f"node {number + 1}" for number in self.struck)
        among = f" of {self.nodes}" if self.nodes != NODES else ""
        guard = f", guard {self.guard} s" if self.guard != GUARD else ""
        return f"run {self.number} of seed {self.seed}: {what}, {when}, {where}{among}{guard}"


def draw(seed: int, number: int, kinds: Sequence[Kind] = KINDS) -> Draw:
    """Run ``number`` (from 0) of a seed, if these kinds take turns."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311 - the same every time
    kind = kinds[number % len(kinds)]
    variants = VARIANTS[kind]
    variant = variants[number // len(kinds) % len(variants)]  # each in its turn, so that all come in a few runs
    moment = dice.choice([*STEPS, *ANSWERS]) if dice.random() < 0.5 else ""
    fraction = dice.random()
    turn = number % len(kinds) + number // len(kinds)  # so that every kind has every turn, however many kinds there are
    nodes = MANY_NODES if turn % 20 == 4 else NODES
    guard = DEFAULT_GUARD if turn % 10 == 9 else GUARD
    order = [n for n in dice.sample(range(nodes), nodes) if n % 2 == 0 or kind not in BY_SYSTEMD]
    struck = order[: dice.choice((1, 1, 1, 2, 3))]
    return Draw(
        seed=seed,
        number=number,
        kind=kind,
        variant=variant,
        moment=moment,
        fraction=fraction,
        nodes=nodes,
        guard=guard,
        struck=tuple(struck),
        seconds=_seconds(dice, kind, variant, guard),
        late=round(dice.gauss(-150, 250)),
        alone=dice.random() < 0.5 or kind in MENDED_BY_ITSELF,
        emergency=dice.random() < 0.5,
    )


def _seconds(dice: random.Random, kind: Kind, variant: str, guard: int) -> float:
    least, most = SECONDS.get(kind, (0.0, 3.0))
    if kind in LONGER and variant in OUTLASTS:
        least, most = (guard + more for more in LONGER[kind])
    if variant == "longer than the timeouts":
        least, most = DASK_TIMEOUT + 2.0, DASK_TIMEOUT + 5.0
    return round(dice.uniform(least, most), 2)
