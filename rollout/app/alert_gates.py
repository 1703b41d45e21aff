"""The gate that asks for alerts, and the silences that a run sets for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rollout.app.backends import Asking
from rollout.app.metric_gates import pattern_of
from rollout.app.ports import Silence
from rollout.core.health_gates.alerts import judge_alerts
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import AlertQuery
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.errors import RemoteError

LIFT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class AlertGate:
    """One gate of a wave. ``timeout`` is seconds for each question, retries included."""

    query: AlertQuery
    timeout: float
    asking: Asking

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002 - a baseline of the whole cluster
        """The baseline includes silenced alerts: the end of a silence during the run must not look like a new alert."""
        query = self.query
        known = self.asking.answer(partial(self.asking.backends.alerts.known, query.url, query.matchers), self.timeout)
        return Verdict.PASS, f"{len(known)} already firing", sorted({alert.fingerprint for alert in known})

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        """In a round of the soak; ``before`` is the baseline."""
        if not isinstance(before, list):
            return Verdict.UNKNOWN, "it is unknown which alerts fired before the wave"
        query = self.query
        firing = self.asking.answer(
            partial(self.asking.backends.alerts.firing, query.url, query.matchers), self.timeout
        )
        return judge_alerts(firing, before)


@dataclass(frozen=True, slots=True)
class RunSilences:
    """The silences of one run. They name ``operator``; in the journal each is ``ID URL``."""

    run: str
    plan: Plan
    asking: Asking
    operator: str

    def set(self, gate: AlertGate, command: OpenWave) -> str:
        """Silence the alerts of the wave's nodes. ``RemoteError``: it could not be set."""
        query = gate.query
        comment = f"{self._comment()}{self.plan.waves[command.wave].name} of {self.plan.cluster}"
        pattern = pattern_of(command.nodes)
        silence = Silence(query.node_label, pattern, query.silence, self.operator or "rollout", comment)
        identity = self.asking.answer(partial(self.asking.backends.alerts.silence, query.url, silence), gate.timeout)
        return f"{identity} {query.url}"

    def lift(self, silences: Sequence[str]) -> tuple[str, ...]:
        """End them. An expired silence is fine. Each that cannot be ended is returned with the reason; it expires.

        A controller may have died between setting a silence and journaling it. Such a silence is found by its comment.
        """
        left = list(self._lifted(silences))
        left += self._lifted([found for found in self._forgotten(silences) if found not in silences])
        return tuple(left)

    def _lifted(self, silences: Sequence[str]) -> Iterator[str]:
        for silence in silences:
            identity, _, url = silence.partition(" ")
            try:
                self.asking.answer(partial(self.asking.backends.alerts.lift, url, identity), LIFT_SECONDS)
            except RemoteError as error:
                yield f"silence {identity} could not be ended and will expire: {error.message}"

    def _forgotten(self, known: Sequence[str]) -> list[str]:
        """Silences of this run that were not journaled. If they cannot be listed, they expire by themselves."""
        found = []
        for url in dict.fromkeys(silence.partition(" ")[2] for silence in known):
            with suppress(RemoteError):
                standing = partial(self.asking.backends.alerts.standing, url, self._comment())
                found += [f"{identity} {url}" for identity in self.asking.answer(standing, LIFT_SECONDS)]
        return found

    def _comment(self) -> str:
        """The prefix of the comments of all silences of this run."""
        return f"rollout {self.run}, wave "
