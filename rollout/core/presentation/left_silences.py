"""Silences that a run without a controller has left, and when they end, from its journal and plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Plan
from rollout.core.run.events import Event, Resumed, SilencesLifted, WaveOpened
from rollout.core.run.state import RunState
from rollout.core.text.documents import Moment
from rollout.core.text.terminal import printable, seconds_text, wall

Step = tuple[Event, RunState, RunState]
"""An event with the state before and after it."""


@dataclass(frozen=True, slots=True)
class LeftSilence:
    """``identity`` is ``""`` where the controller ended before it could record one, if it set one."""

    identity: str
    url: str
    wave: str
    until: Moment


def left_silences(steps: Iterable[Step], plan: Plan, now: float) -> tuple[LeftSilence, ...]:
    """The silences that have not ended by ``now``, of a run with these steps. A resumed run lifts them all at its end."""
    lengths = _lengths(plan)
    longest = max(lengths.values(), default=0.0)
    left: dict[str, LeftSilence] = {}
    newest: RunState | None = None
    for event, before, after in steps:
        newest = after
        if isinstance(event, SilencesLifted):
            left.clear()
        elif isinstance(event, Resumed):
            left |= _not_written_down(before, plan, longest)
        elif isinstance(event, WaveOpened):
            for silence in event.silences:
                identity, _, url = silence.partition(" ")
                until, wave = event.at + lengths.get(url, longest), plan.waves[event.wave].name
                if not identity and any(not each.identity and each.wave == wave for each in left.values()):
                    continue  # a silence of this wave without a known id is listed already
                left.setdefault(silence, LeftSilence(identity, url, wave, until))
    if newest is not None:
        left |= _not_written_down(newest, plan, longest)
    return tuple(each for each in left.values() if each.until > now)


def sets_silences(plan: Plan) -> bool:
    """Whether a gate of the plan silences alerts. If none does, its run leaves none."""
    return bool(_lengths(plan))


def _lengths(plan: Plan) -> Mapping[str, float]:
    """URL → seconds of the longest silence that is set there."""
    lengths: dict[str, float] = {}
    for gate in plan.gates:
        query = gate.asks
        if query.silence:
            lengths[query.url] = max(query.silence, lengths.get(query.url, 0.0))
    return lengths


def _not_written_down(state: RunState, plan: Plan, longest: float) -> dict[str, LeftSilence]:
    """The silences of a wave for which no answer was recorded. They are set last, after every gate's baseline."""
    if not longest or not state.wave_is_opening:
        return {}
    asking = 2 * sum(gate.timeout for gate in plan.gates if gate.scope is GateScope.WAVE)
    until = state.now + asking + longest
    return {f" {until}": LeftSilence("", "", plan.waves[state.wave].name, until)}


def left_silences_lines(left: Iterable[LeftSilence], run: str, now: float) -> Iterator[str]:
    """For people: which alerts are silenced, and until when."""
    for each in left:
        until = f"{wall(each.until)} ({seconds_text(each.until - now)} from now)"
        wave = printable(each.wave, 60)
        if each.identity:
            at = f" at {printable(each.url, 200)}" if each.url else ""
            yield f"  alerts of wave {wave} stay silenced until {until}: silence {printable(each.identity, 80)}{at}; a resumed run lifts it at its end"
        else:
            yield (
                f"  alerts of wave {wave} may stay silenced until {until} at the latest: the controller ended while it set "
                f"silences; Alertmanager shows them with the comment `rollout {run}, wave {wave}`"
            )
