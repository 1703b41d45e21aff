"""The diagrams of the run machine, drawn from the code: ``make declared`` writes them into ``docs/run-machine.md``.

A node's moves are found by trying: each state hears everything that can be heard, in all circumstances that a move may
depend on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

from rollout.core.model.approvals import USED
from rollout.core.model.freeze import FROZEN
from rollout.core.model.playbook import Cause, PullsInFlight
from rollout.core.run.events import Trigger
from rollout.core.run.run_moves import RUN_MOVES
from rollout.core.run.state import (
    Applying,
    Armed,
    Confirmed,
    Drained,
    Draining,
    Goal,
    NodeRecord,
    NodeState,
    Pending,
    Phase,
    Postponed,
    PostponedFor,
    Rehearsal,
    State,
    Unknown,
)
from rollout.core.run.transitions import (
    ANOTHER_MACHINE,
    Circumstances,
    Decision,
    Heard,
    IllegalMoveError,
    Move,
    move,
)
from tests.orders import CURRENT
from tests.places import ROOT

PAGE = ROOT / "docs" / "run-machine.md"
_PLACE = re.compile(r"(<!-- drawn: ([a-z]+) -->\n\n)(.*?)(?=\n\n|\Z)", re.DOTALL)

WAIT = Postponed(PostponedFor.PULLS, 5.0, {PostponedFor.PULLS: 1.0, PostponedFor.BASELINE: 1.0})
STATES: tuple[State, ...] = (
    *CURRENT.values(),
    Pending(WAIT, 1.0),
    Draining(1.0, 1.0),
    Drained(),
    Applying(drained=True, postponed=WAIT),
    Armed(1.0),
    Confirmed(1.0),
    Unknown(1, 1.0, 1.0),
)
HEARD = (
    *(Heard(on) for on in (*Trigger, *Decision)),
    *(Heard(Trigger.REFUSED, reference) for reference in ("locked", FROZEN, USED, ANOTHER_MACHINE)),
)
CIRCUMSTANCES = tuple(
    Circumstances(now, goal, 180.0, pulls=PullsInFlight(60.0)) for now, goal in product((2.0, 1000.0), Goal)
)
Case = tuple[NodeRecord, Heard, Circumstances]


def _records(at: State) -> Iterator[NodeRecord]:
    """A node in this state, with everything outside the state that a move may depend on."""
    for to_revert, owed, orphaned, touched in product((False, True), repeat=4):
        for rehearsal, cause in product((Rehearsal.NONE, Rehearsal.BACK), (None, Cause.UNHEALTHY)):
            yield NodeRecord(
                at, cause, owed=owed, to_revert=to_revert, rehearsal=rehearsal, orphaned=orphaned, touched=touched
            )


@cache
def moves() -> tuple[tuple[Case, Move], ...]:
    """Every move of a node that is not impossible."""
    found: list[tuple[Case, Move]] = []
    for at, heard in product(STATES, HEARD):
        for node, run in product(_records(at), CIRCUMSTANCES):
            try:
                found.append(((node, heard, run), move(node, heard, run)))
            except IllegalMoveError:
                break  # what is possible depends on the state and on what is heard alone
    return tuple(found)


def node_lines() -> Iterator[str]:
    """Of each two states what leads from one to the other, by its name in the code or the reference of a refusal."""
    arrows: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for (node, heard, _), found in moves():
        before, after = type(node.current).__name__, type(found.to).__name__
        if before != after:
            arrows[before, after][heard.reference or heard.on.name.lower().replace("_", "-")] = None
    yield "stateDiagram-v2"
    yield "    [*] --> Pending: apply"
    yield "    [*] --> Unknown: rollback"
    for (before, after), words in arrows.items():
        yield f"    {before} --> {after}: {', '.join(words)}"


def run_lines() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {Phase.OPENING}"
    for (before, after), why in RUN_MOVES.items():
        if after is not Phase.OPENING:
            yield f"    {before} --> {after}: {why}"
    yield f"    {Phase.ENDED} --> {Phase.OPENING}: {RUN_MOVES[Phase.ENDED, Phase.OPENING]}"
    yield f"    {Phase.ENDED} --> [*]"


def words_lines() -> Iterator[str]:
    """The states of each word that people are shown."""
    yield "| on screens | state of the machine |"
    yield "| --- | --- |"
    names: Mapping[NodeState, dict[str, None]] = defaultdict(dict)
    for at in STATES:
        names[at.state][type(at).__name__] = None
    for state in NodeState:
        yield f"| `{state}` | {', '.join(f'`{name}`' for name in names[state])} |"


DRAWN = {"node": node_lines, "run": run_lines, "words": words_lines}


def drawn(text: str) -> str:
    """The page with its diagrams as the code has them now."""

    def one(found: re.Match[str]) -> str:
        lines = list(DRAWN[found[2]]())
        return found[1] + "\n".join(lines if found[2] == "words" else ["```mermaid", *lines, "```"])

    return _PLACE.sub(one, text)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
