"""A run in one word with its reason: for the title of a page, for its banner, and for people in a hurry."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.presentation.summary import exit_code
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.presentation.waiting import standing
from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState
from rollout.core.text.terminal import counted, printable

LONGEST_TITLE = 120


class Mood(StrEnum):
    """How much it is worth a look. The class of a banner."""

    PLAIN = ""
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Glance:
    """``sign`` shows the mood to people who cannot see colours."""

    sign: str
    word: str
    reason: str
    mood: Mood
    is_rolled_back: bool = False

    def title(self, cluster: str) -> str:
        """``HALTED – rno: 2 of 60 nodes of rack04 failed``."""
        return printable(f"{self.word.upper()} – {cluster}: {self.reason}", LONGEST_TITLE)


def glance(state: RunState, after: Afterwards) -> Glance:
    return _ended(state, after) if state.phase is Phase.ENDED else _going_on(state, after)


def _going_on(state: RunState, after: Afterwards) -> Glance:
    wave = state.order.waves[min(state.wave, len(state.order.waves) - 1)].name if state.order.waves else ""
    so_far = f"wave {wave}, {_done(state)}" if state.order.goal is Goal.APPLY else _done(state)
    halt = state.halt.message if state.halt is not None else ""
    if not after.controller.alive:
        return Glance("?", "no controller", halt or so_far, Mood.BAD)
    if halt and state.order.goal is Goal.APPLY:
        return Glance("■", "halting", halt, Mood.BAD)
    word = standing(state)
    if state.waits and word in ("on hold", "paused", "window closed"):
        return Glance("‖", word, str(state.paused or state.closed), Mood.WARN)
    return Glance("▸", word, so_far, Mood.PLAIN)


_ENDINGS = {
    Ending.HALTED: ("■", "halted"),
    Ending.INTERRUPTED: ("■", "interrupted"),
    Ending.PREFLIGHT: ("■", "not begun"),
    Ending.CLAIMED: ("■", "refused"),
}


def _ended(state: RunState, after: Afterwards) -> Glance:
    back = sum(len(names) for names in after.rolled_back.values())
    by = ", ".join(after.rolled_back)
    if after.is_rolled_back:
        nodes = f"{counted(back, 'node')} " if back else ""
        return Glance("↩", "rolled back", f"{nodes}by run {by}", Mood.PLAIN, is_rolled_back=True)
    later = f"; {counted(back, 'node')} rolled back by run {by}" if back else ""
    if state.ending is Ending.DONE or state.ending is None:
        if exit_code(state):
            return Glance("▲", "done, incomplete", f"{_others(state)}{later}", Mood.WARN)
        return Glance("✓", "done", f"{_done(state)}{later}", Mood.WARN if back else Mood.GOOD)
    sign, word = _ENDINGS[state.ending]
    halt = state.halt.message if state.halt is not None else _done(state)
    return Glance(sign, word, f"{halt}{later}", Mood.BAD)


def _done(state: RunState) -> str:
    wanted = NodeState.REVERTED if state.order.goal is Goal.REVERT else NodeState.CONFIRMED
    done = sum(record.state is wanted for record in state.nodes.values())
    return f"{done:,} of {counted(len(state.nodes), 'node')} {wanted.value}"


def _others(state: RunState) -> str:
    """What became of the nodes that are not as the run wanted them."""
    wanted = NodeState.REVERTED if state.order.goal is Goal.REVERT else NodeState.CONFIRMED
    counts = Counter(record.state for record in state.nodes.values() if record.state is not wanted)
    parts = [f"{counts[kind]:,} {kind.value}" for kind in NodeState if counts[kind]]
    left_out = sum(left.count for left in state.order.left_out)
    parts += [f"{left_out:,} not in the run"] if left_out else []
    return f"{_done(state)}, {', '.join(parts)}" if parts else _done(state)
