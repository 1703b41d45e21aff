"""Settings and their precedence: cluster < group (in file order) < node < ``--set``. Four levels and no more.

The cluster level is the inventory's ``settings`` with the playbook's laid over it: both speak for the whole cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from rollout.errors import Place

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]
"""What YAML and JSON can say."""


class IfUnsupported(StrEnum):
    """What to do on a node whose kubelet has no home for a setting."""

    REFUSE = "refuse"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value to be in force, under its Kubernetes name or an intent's; who said so (``source``), and where.

    ``pin``: it is written out even where the default in force is already the same.
    """

    name: str
    value: Value
    if_unsupported: IfUnsupported = IfUnsupported.REFUSE
    source: str = ""
    place: Place | None = field(default=None, compare=False)
    pin: bool = False
