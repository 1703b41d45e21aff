"""Many seeds: played on all cores, counted, and reported as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from os import sched_getaffinity
from time import monotonic
from typing import Annotated

from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.simulator.draw import scenario
from rollout.simulator.play import Play, PlayOutcome
from rollout.simulator.scenario import FaultKind, Scenario

# Shrinking a broken law: faults are left out one by one while the law still breaks.


def smallest(scenario: Scenario) -> PlayOutcome:
    """The play with the fewest faults that break the same law; the whole scenario's if it breaks none."""
    outcome = Play(scenario).run()
    if not outcome.broken:
        return outcome
    left = 0
    while left < len(outcome.scenario.faults):
        faults = outcome.scenario.faults
        shorter = Play(replace(scenario, faults=(*faults[:left], *faults[left + 1 :]))).run()
        if law_of(shorter.broken) == law_of(outcome.broken):
            outcome = shorter
        else:
            left += 1
    return outcome


def law_of(words: str) -> str:
    """``law 4: …`` is law 4."""
    return words.partition(":")[0]


CHUNK = 50
"""Seeds that one process plays before it reports."""

MOST_KEPT = 100
"""How many broken seeds are listed."""

_LOST, _LIMITS, _LEFT = "law 1", "law 4", "law 8"


@dataclass
class Tally:
    """The results of many plays. ``broken`` is seed → law."""

    seeds: int = 0
    nodes: int = 0
    events: int = 0
    hours: float = 0.0
    controllers: int = 0
    killed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    laws: Counter[str] = field(default_factory=Counter)
    broken: dict[int, str] = field(default_factory=dict)
    took: float = 0.0

    def add(self, other: Tally) -> None:
        for name in ("seeds", "nodes", "events", "hours", "controllers", "killed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("faults", "endings", "laws"):
            getattr(self, name).update(getattr(other, name))
        self.broken |= dict(list(other.broken.items())[: MOST_KEPT - len(self.broken)])


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


def played(first: int, count: int) -> Tally:
    """This many seeds from the first one on, in this process."""
    tally = Tally()
    for seed in range(first, first + count):
        drawn = scenario(seed)
        outcome = Play(drawn).run()
        tally.seeds += 1
        tally.nodes += len(drawn.order.nodes)
        tally.events += outcome.events
        tally.hours += outcome.seconds / 3600
        tally.controllers += outcome.controllers
        tally.killed += outcome.killed
        tally.faults.update(str(fault.kind) for fault in drawn.faults)
        tally.endings[outcome.ending] += 1
        if outcome.broken:
            tally.laws[law_of(outcome.broken)] += 1
            tally.broken[seed] = outcome.broken
    return tally


def played_on_all_cores(first: int, count: int, progress: Callable[[Tally], None], workers: int = 0) -> Tally:
    """The same on all cores; ``progress`` is called for each chunk."""
    began, whole = monotonic(), Tally()
    with ProcessPoolExecutor(workers or cores()) as pool:
        chunks = [(at, min(CHUNK, first + count - at)) for at in range(first, first + count, CHUNK)]
        for done in as_completed([pool.submit(played, at, size) for at, size in chunks]):
            whole.add(done.result())
            whole.took = monotonic() - began
            progress(whole)
    return whole


def cores() -> int:
    """The cores that this process may use."""
    return len(sched_getaffinity(0))


def rows(tally: Tally) -> Iterator[tuple[str, str]]:
    """The rows of the report."""
    yield "seeds", f"{tally.seeds:,}"
    yield "nodes", f"{tally.nodes:,}"
    yield "events", f"{tally.events:,}"
    yield "hours of the nodes' time", f"{tally.hours:,.0f}"
    yield "controllers", f"{tally.controllers:,}"
    yield "controllers killed", f"{tally.killed:,}"
    yield "faults", f"{tally.faults.total():,}"
    yield "nodes lost (law 1)", f"{tally.laws[_LOST]:,}"
    yield "limit violations (law 4)", f"{tally.laws[_LIMITS]:,}"
    yield "leftovers (law 8)", f"{tally.laws[_LEFT]:,}"
    rest = tally.laws.total() - tally.laws[_LOST] - tally.laws[_LIMITS] - tally.laws[_LEFT]
    yield "other laws broken", f"{rest:,}"


_WHAT_IT_IS = (
    "The run machine, the driver, the journal's rules and every decision are the real ones. The nodes, their agents, their kubelets,",
    "the network and the disk are models: differences between a real systemd, sshd or file system and its model are not found here.",
    "For that there are [real nodes](reliability.md). A fault of a kind that no table names was not drawn.",
)


def page(tally: Tally, command: str) -> str:
    """The page that the command writes."""
    lines = [
        "# What the simulator found", "",
        f"Written by `{command}`, which took {tally.took:,.0f} s of {cores()} cores. What is played and which laws are checked: [simulate](../docs/simulate.md).", "",
        *_WHAT_IT_IS, "",
        *_table(("", "count"), rows(tally)), "",
        *_table(("the run ended", "plays"), ((name, f"{count:,}") for name, count in tally.endings.most_common())), "",
        *_table(("fault", "times"), ((kind, f"{tally.faults[kind]:,}") for kind in FaultKind)),
    ]  # fmt: skip
    if tally.broken:
        lines += ["", *_table(("broken seed", "law"), ((str(seed), law) for seed, law in sorted(tally.broken.items())))]
    return "\n".join(lines) + "\n"


def _table(head: tuple[str, str], body: Iterator[tuple[str, str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---", "---"), *body)]
