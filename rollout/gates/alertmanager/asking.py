"""The gate that asks for alerts, and the silences that a run sets for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from rollout.app.asked_gate import AskedGate, WaveRun, pattern_of
from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.errors import RemoteError
from rollout.gates.alertmanager.query import Alert, AlertQuery, judge_alerts

LIFT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Silence:
    """A silence of ``seconds`` for alerts with a ``label`` that matches the regular expression ``pattern``."""

    label: str
    pattern: str
    seconds: float
    who: str
    comment: str


class Alerts(Protocol):
    """Firing alerts and silences. ``RemoteError`` without an answer; ``AwayError`` if a retry a second later may succeed."""

    def firing(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        """Firing alerts that match all of ``matchers``, without silenced and inhibited alerts."""
        ...

    def known(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        """The same, with silenced and inhibited alerts."""
        ...

    def silence(self, url: str, silence: Silence, timeout: float) -> str:
        """The id of the new silence."""
        ...

    def standing(self, url: str, comment: str, timeout: float) -> tuple[str, ...]:
        """The silences that have not ended, with comments that begin with ``comment``."""
        ...

    def lift(self, url: str, silence: str, timeout: float) -> None:
        """End a silence, and read back that it has ended. A silence that has expired or is gone is fine."""
        ...


@dataclass(frozen=True, slots=True)
class AlertGate(AskedGate):
    """One gate of a wave. ``timeout`` is seconds for each question, retries included. In the journal each silence is ``ID URL``, or `` URL`` if it may have been set."""

    alerts: Alerts
    query: AlertQuery
    timeout: float
    run: WaveRun

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002 - a baseline of the whole cluster
        """The baseline includes silenced alerts: the end of a silence during the run must not look like a new alert."""
        query = self.query
        known = self.run.answer(partial(self.alerts.known, query.url, query.matchers), self.timeout)
        return Verdict.PASS, f"{len(known)} already firing", sorted({alert.fingerprint for alert in known})

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        """In a round of the soak; ``before`` is the baseline."""
        if not isinstance(before, list):
            return Verdict.UNKNOWN, "it is unknown which alerts fired before the wave"
        query = self.query
        firing = self.run.answer(partial(self.alerts.firing, query.url, query.matchers), self.timeout)
        return judge_alerts(firing, before)

    def silence(self, command: OpenWave) -> str:
        query, plan = self.query, self.run.plan
        comment = f"{self._comment()}{plan.waves[command.wave].name} of {plan.cluster}"
        pattern = pattern_of(command.nodes)
        silence = Silence(query.node_label, pattern, query.silence, self.run.who or "rollout", comment)
        identity = self.run.answer(partial(self.alerts.silence, query.url, silence), self.timeout)
        return f"{identity} {query.url}"

    def lift(self, silences: Sequence[str]) -> tuple[str, ...]:
        """End silences of the run, also of its other gates. An expired one is fine. One that cannot be ended expires.

        A controller may have died between setting a silence and journaling it, or have got no answer when it set one.
        Such a silence is found by its comment.
        """
        left = list(self._lifted([silence for silence in silences if silence.partition(" ")[0]]))
        for url in dict.fromkeys(silence.partition(" ")[2] for silence in silences):
            try:
                found = self.run.answer(partial(self.alerts.standing, url, self._comment()), LIFT_SECONDS)
            except RemoteError as error:
                at = f" at {url}" if url else ""
                left.append(
                    f"it is not known whether more silences of this run are left{at}; they will expire: {error.message}"
                )
            else:
                left += self._lifted([each for name in found if (each := f"{name} {url}") not in silences])
        return tuple(left)

    def _lifted(self, silences: Sequence[str]) -> Iterator[str]:
        for silence in silences:
            identity, _, url = silence.partition(" ")
            try:
                self.run.answer(partial(self.alerts.lift, url, identity), LIFT_SECONDS)
            except RemoteError as error:
                yield f"silence {identity} could not be ended and will expire: {error.message}"

    def _comment(self) -> str:
        """The prefix of the comments of all silences of this run."""
        return f"rollout {self.run.run}, wave "
