"""What a kind of wave gate implements, and what it is given of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rollout.app.patience import patiently
from rollout.app.ports import Clock, Local
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.core.text.name_pattern import PatternTooLongError, name_pattern
from rollout.errors import RemoteError

Said = TypeVar("Said")


@dataclass(frozen=True, slots=True)
class WaveRun:
    """The run that asks, and patience for a back end that does not answer at once. ``who``: the operator."""

    run: str
    plan: Plan
    local: Local
    clock: Clock
    wait: Callable[[float], None]
    who: str = ""

    def answer(self, ask: Callable[[float], Said], timeout: float) -> Said:
        """The answer within ``timeout`` seconds, retries included; otherwise the last ``RemoteError``."""
        return patiently(ask, timeout, self.clock.now, self.wait)


class AskedGate:
    """One gate of a wave. All methods but ``lift`` raise ``RemoteError`` if its back end does not answer."""

    __slots__ = ()

    def remember(self, earlier: Any) -> None:
        """What this gate kept before the newest wave: a new controller goes on with it. Most gates compare with nothing else."""

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any] | None:
        """The verdict before the wave, and the baseline to compare with; ``None``: it is not asked before a wave."""
        raise NotImplementedError

    def now(self, command: JudgeWave, before: Any) -> Judged:
        """The verdict in a round of the soak; ``before`` is the baseline."""
        raise NotImplementedError

    def silence(self, command: OpenWave) -> str:
        """Silences the alerts of the wave's nodes; how the journal names this silence. Only of queries with a ``silence``."""
        raise NotImplementedError

    def lift(self, silences: Sequence[str]) -> tuple[str, ...]:
        """Ends silences of the run. Each that cannot be ended is returned with the reason; it expires."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PlainGate(AskedGate):
    """A gate that compares with nothing from before the wave: ``ask`` it, in so many seconds, for a verdict."""

    ask: Callable[[Any, float], Judged]
    query: GateQuery
    timeout: float
    run: WaveRun

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002 - it is not about nodes
        """Whether it passes already. There is no baseline."""
        return *self._judged(), None

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        return self._judged()

    def _judged(self) -> Judged:
        return self.run.answer(partial(self.ask, self.query), self.timeout)


Asker = Callable[[Any, float, WaveRun], AskedGate]
"""Makes the gate for a query of its kind, with the gate's timeout."""


def pattern_of(nodes: Sequence[str]) -> str:
    """The nodes' names as a regular expression for a back end."""
    try:
        return name_pattern(nodes)
    except PatternTooLongError as error:
        raise RemoteError("pattern-too-long", str(error)) from None
