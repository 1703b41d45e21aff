"""Gates as values. What a gate asks is a value of its kind; each kind has a package in ``rollout.gates``, and none is named here."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Endpoints


class GateScope(StrEnum):
    NODE = "node"  # before confirm, again in the soak; a command runs on the node
    WAVE = "wave"  # in every round of the soak; a command runs where the controller runs


class GateQuery:
    """What a gate asks: the base of all kinds, with what is asked of each of them. Subclasses are frozen dataclasses.

    ``kind``: its name in playbooks and plans. ``back_end``: the one that the inventory may name, as people know it.
    ``url``: its own server; ``""``: the inventory's, or none. ``program``: what it runs, with its arguments. ``silence``:
    seconds for which it silences alerts of a wave's nodes (0: none). ``compares_readings``: it judges what one process of a run read
    one after the other, so a late watch does not ask it.
    """

    __slots__ = ()

    kind: str
    back_end: str = ""
    url: str = ""
    program: tuple[str, ...] = ()
    silence: float = 0.0
    asks_http: bool = False
    asks_api: bool = False
    compares_readings: bool = False

    @property
    def reads_configz(self) -> bool:
        """Whether what it found is compared with ``/configz``, too."""
        return False

    @property
    def wants_ready(self) -> bool:
        """Whether a node must be Ready before its change."""
        return False

    def words(self) -> tuple[str, ...]:
        """What it asks, as a plan shows it."""
        return ()

    def lacks_back_end(self, endpoints: Endpoints) -> bool:  # noqa: ARG002 - most kinds need none
        """Whether neither it nor the inventory has the address of its back end."""
        return False

    def least_harmed(self, fewest: int) -> int | None:  # noqa: ARG002 - of most kinds it is not known
        """On how many nodes of a wave it sees harm at least; ``None``: not known. ``fewest``: nodes of the wave's smallest kind."""
        return None


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition that must hold. ``timeout`` is seconds to ask, retries included."""

    asks: GateQuery
    scope: GateScope
    name: str
    timeout: float = 10.0

    @property
    def kind(self) -> str:
        return self.asks.kind

    @property
    def can_be_late(self) -> bool:
        """Whether a watch after the run can ask it."""
        return not self.asks.compares_readings if self.scope is GateScope.WAVE else self.asks.asks_api
