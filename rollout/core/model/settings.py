"""Settings and their precedence: cluster < group (in file order) < node < ``--set``. Four levels and no more.

The cluster level is the inventory's ``settings`` overlaid with the playbook's: both apply to the whole cluster.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.errors import Place

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]
"""A value of YAML or JSON."""


class IfUnsupported(StrEnum):
    """What to do on a node if its kubelet has no home for a setting."""

    REFUSE = "refuse"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value to be in force, under its Kubernetes name or an intent's, with its ``source`` and place.

    ``pin``: it is written even if the default in force is the same.
    """

    name: str
    value: Value
    if_unsupported: IfUnsupported = IfUnsupported.REFUSE
    source: str = ""
    place: Place | None = field(default=None, compare=False)
    pin: bool = False
