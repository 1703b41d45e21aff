"""How long each verb of the agent may work on a node, and how long the controller waits for its answer.

The controller waits longer than the agent works, so that the agent's own answer is the outcome. Where it waits shorter, the row
has the reason. The answer then counts as lost: the node is read back and charged for nothing but what that read finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rollout.core.model.frozen import dataclass

MARGIN: Final = 5.0
"""Seconds for the way to the node and back, and for the last step of a verb, which has at least one second."""

COMMAND_MARGIN: Final = 3
"""Seconds that the agent takes for a node's command gate, in addition to the command's own."""

_ITS_GUARD: Final = (
    "its guard, which does not wait for the controller, ends what it began; the read back shows which end that was"
)


@dataclass(frozen=True, slots=True)
class Times:
    """``works``: seconds that the agent may work, the sum of its own deadlines. ``waits``: seconds that the controller waits;
    for ``apply`` in addition to the guard's time. ``why_shorter``: the reason if that is less; else empty."""

    works: int
    waits: float
    why_shorter: str = ""


TIMES: Final[Mapping[str, Times]] = MappingProxyType(
    {
        "snapshot": Times(25, 30.0),
        "status": Times(25, 30.0),
        "verify": Times(25, 30.0),
        "apply": Times(60 + 150, 30.0, f"a change that fails needs a revert too: {_ITS_GUARD}"),
        "confirm": Times(150, 40.0, f"a confirm that comes too late reverts: {_ITS_GUARD}"),
        "revert": Times(200, 205.0),
        "freeze": Times(60, 65.0),
        "unfreeze": Times(60, 65.0),
        "cleanup": Times(60, 65.0),
        "forget": Times(60, 65.0),
    }
)
