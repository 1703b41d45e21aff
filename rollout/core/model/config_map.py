"""A ConfigMap that a run writes after its last wave, so that nodes that join later get the same settings."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import digest


@dataclass(frozen=True, slots=True)
class ConfigMapChange:
    """The exact text of one key before and after. All other keys, and the rest of the object, stay.

    ``uid``: the object's, as the plan has read it. Other clusters have objects of this name too, often with the same text.
    """

    namespace: str
    name: str
    key: str
    before: str
    after: str
    uid: str

    @property
    def title(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}, key {self.key}"

    @property
    def digest_before(self) -> str:
        """Hex SHA-256."""
        return digest(self.before.encode())

    @property
    def digest_after(self) -> str:
        return digest(self.after.encode())

    @property
    def undone(self) -> ConfigMapChange:
        """What restores the old text."""
        return ConfigMapChange(self.namespace, self.name, self.key, self.after, self.before, self.uid)


RENAMED = "config-map-renamed"
"""kubeadm reads another ConfigMap by now. A rollback restores this one all the same; a run does not write it."""


class ConfigMapOutcome(StrEnum):
    """What was read from the API server in the end. Nothing else shows that a write was done."""

    WRITTEN = "written"  # it has the text that the run wants
    CHANGED = "changed-by-others"  # it has neither the old text nor the new one, or is gone: it was left alone
    UNANSWERED = "unanswered"  # it could not be read, or its write got no answer: it may have either text
    REFUSED = "refused"  # it was read, and the API server refuses the write for good: it has the text that was read


@dataclass(frozen=True, slots=True)
class ConfigMapStanding:
    """``sent``: a write may have been sent, from before the first one on. ``asked``: its answer is outstanding.

    ``restores``: the old text was asked for last, by a rollback or by a run that halted.
    """

    sent: bool = False
    asked: bool = False
    restores: bool = False
    outcome: ConfigMapOutcome | None = None
    reference: str = ""
    message: str = ""


NOT_SENT = ConfigMapStanding()
