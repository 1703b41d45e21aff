"""The back ends of gates, as one value. A back end that is not set raises ``no-endpoint``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn, TypeVar

from rollout.app.ports import Alerts, Clock, Cluster, Metrics, Pages, Silence
from rollout.core.health_gates.alerts import Alert
from rollout.core.health_gates.http import Page
from rollout.core.health_gates.prometheus import Samples
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import BackEnd
from rollout.core.model.live import LiveNode, PullCounter, Sight
from rollout.core.model.pods import Cordon, EvictionAnswer, LeavingPod, PlacedPod
from rollout.errors import AwayError, RemoteError

Said = TypeVar("Said")

EVERY = 1.0
"""Seconds between two tries of a back end that does not answer."""


class Absent:
    """Stands for every back end that is not set."""

    def nodes(self) -> tuple[LiveNode, ...]:
        _absent(BackEnd.KUBECONFIG)

    def look(self, node: str, timeout: float) -> Sight:  # noqa: ARG002 - the port's signature, as below
        _absent(BackEnd.KUBECONFIG)

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def pull_counter(self, node: str, timeout: float) -> PullCounter:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def missing_to_count_pulls(self) -> tuple[str, ...]:
        _absent(BackEnd.KUBECONFIG)

    def missing_rights(self) -> tuple[str, ...]:
        _absent(BackEnd.KUBECONFIG)

    def missing_to_drain(self) -> tuple[str, ...]:
        _absent(BackEnd.KUBECONFIG)

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def leaving(self, node: str, timeout: float) -> tuple[LeavingPod, ...]:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def evict(self, pod: LeavingPod, timeout: float) -> EvictionAnswer:  # noqa: ARG002
        _absent(BackEnd.KUBECONFIG)

    def query(self, url: str, query: str, timeout: float) -> Samples:  # noqa: ARG002
        _absent(BackEnd.PROMETHEUS)

    def firing(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:  # noqa: ARG002
        _absent(BackEnd.ALERTS)

    def known(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:  # noqa: ARG002
        _absent(BackEnd.ALERTS)

    def silence(self, url: str, silence: Silence, timeout: float) -> str:  # noqa: ARG002
        _absent(BackEnd.ALERTS)

    def standing(self, url: str, comment: str, timeout: float) -> tuple[str, ...]:  # noqa: ARG002
        _absent(BackEnd.ALERTS)

    def lift(self, url: str, silence: str, timeout: float) -> None:  # noqa: ARG002
        _absent(BackEnd.ALERTS)

    def get(self, url: str, timeout: float) -> Page:  # noqa: ARG002
        _absent("HTTP client")


def _absent(what: str) -> NoReturn:
    raise RemoteError("no-endpoint", f"no {what} was named")


@dataclass(frozen=True, slots=True)
class Backends:
    """The back ends of gates. ``wait`` sleeps that many seconds between two tries."""

    cluster: Cluster = field(default_factory=Absent)
    metrics: Metrics = field(default_factory=Absent)
    alerts: Alerts = field(default_factory=Absent)
    pages: Pages = field(default_factory=Absent)
    wait: Callable[[float], None] = time.sleep


def patiently(
    ask: Callable[[float], Said], timeout: float, now: Callable[[], float], wait: Callable[[float], None]
) -> Said:
    """Ask, with the time that is left, until there is an answer. After ``timeout`` seconds, raise the last error."""
    until = now() + timeout
    while True:
        try:
            return ask(max(until - now(), 0.001))
        except AwayError:
            if until - now() <= EVERY:
                raise
        wait(EVERY)


@dataclass(frozen=True, slots=True)
class Asking:
    """The back ends with the patience for one that does not answer at once."""

    clock: Clock
    backends: Backends

    def answer(self, ask: Callable[[float], Said], timeout: float) -> Said:
        """The answer within ``timeout`` seconds, retries included; otherwise the last ``RemoteError``."""
        return patiently(ask, timeout, self.clock.now, self.backends.wait)
