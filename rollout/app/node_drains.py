"""What empties a node before its change, as the worker of nodes asks for it. ``rollout.features.drain`` does it, over the API server.

The machine has the states of such a node, and when each round is (``core.run.drains``); what a round does is of the feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rollout.app.ports import Clock
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Plan
from rollout.core.run.drains import REFERENCE
from rollout.core.run.events import Trigger
from rollout.errors import RemoteError

LATER = 5.0
"""Seconds until the next round where nothing can be done now: evictions are blocked, or something does not answer."""


@dataclass(frozen=True, slots=True)
class DrainRound:
    """The result of a round. ``message``: what it waits for or why it is over. ``again``: seconds until the next."""

    trigger: Trigger
    message: str = ""
    again: float = 0.0

    @property
    def reference(self) -> str:
        return REFERENCE if self.trigger is Trigger.NOT_DRAINED else ""


class NotOursError(Exception):
    """The node no longer belongs to this controller (``refused``), or that is unknown."""

    def __init__(self, *, refused: bool) -> None:
        super().__init__("not ours")
        self.refused = refused


class NodeDrains(Protocol):
    """The drains of one run. Called on many threads, on one at a time for a node. ``counter``: of the token."""

    def round(self, node: str, minor: int, counter: int, seconds_left: float, check: Callable[[], None]) -> DrainRound:
        """``seconds_left``: that the pods still have. ``check`` raises ``NotOursError``; it is called before each step."""
        ...

    def may_wait(self, node: str, seconds_left: float) -> bool:
        """Whether to repeat a request without an answer."""
        ...

    def uncordon(self, node: str, counter: int) -> DrainRound:
        """Lift the run's own cordon."""
        ...

    def came_back(self, node: str, seconds_left: float) -> str:
        """Which pods arrived since it was drained; ``""``: none. ``RemoteError`` without an answer."""
        ...


class NoDrains:
    """Where no API server is set."""

    def round(self, node: str, minor: int, counter: int, seconds_left: float, check: Callable[[], None]) -> DrainRound:  # noqa: ARG002 - the port's signature
        return DrainRound(Trigger.NOT_DRAINED, f"the request to the API server failed: {_ABSENT}")

    def may_wait(self, node: str, seconds_left: float) -> bool:  # noqa: ARG002
        return bool(seconds_left)

    def uncordon(self, node: str, counter: int) -> DrainRound:  # noqa: ARG002
        return DrainRound(Trigger.STILL_CORDONED, _ABSENT)

    def came_back(self, node: str, seconds_left: float) -> str:  # noqa: ARG002
        raise RemoteError("no-endpoint", "no kubeconfig was named")


_ABSENT = "no kubeconfig was named [no-endpoint]"

MakeDrains = Callable[[str, Plan, Clock], NodeDrains]
"""Of a run with this plan."""


def no_drains(_run: str, _plan: Plan, _clock: Clock) -> NodeDrains:
    return NoDrains()
