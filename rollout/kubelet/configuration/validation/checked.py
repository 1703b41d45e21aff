"""The configuration under validation: a mapping with all defaults, read by the type of value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.feature_gates import enabled
from rollout.kubelet.configuration.go_values import duration

SECOND = 10**9
MILLISECOND = 10**6


@dataclass(frozen=True, slots=True)
class Checked:
    """One configuration of one minor. A missing field is zero, as in Go. ``given`` are the values of its flags."""

    values: Mapping[str, Any]
    minor: int
    cgroup_v1: bool | None = None
    given: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> int:
        value = self.values.get(name)
        return value if isinstance(value, int) else 0

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def duration(self, name: str) -> int:
        """Nanoseconds."""
        return duration(self.text(name) or "0s")

    def shown_duration(self, name: str) -> str:
        """In messages, in braces: ``String`` of ``metav1.Duration`` needs a pointer (1.20.2 and 1.36.2 print it so)."""
        return f"{{{self.text(name) or '0s'}}}"

    def flag(self, name: str) -> bool:
        return self.values.get(name) is True

    def entries(self, name: str) -> list[Any]:
        value = self.values.get(name)
        return value if isinstance(value, list) else []

    def inner(self, name: str) -> Mapping[str, Any]:
        value = self.values.get(name)
        return value if isinstance(value, Mapping) else {}

    def gate_on(self, name: str) -> bool:
        """Does this minor have the gate, and is it on?"""
        return self._has_gate(name) and enabled(name, self.inner("featureGates"), self.minor)

    def gate_off(self, name: str) -> bool:
        """Does this minor have the gate, and is it off? A removed gate is not off."""
        return self._has_gate(name) and not enabled(name, self.inner("featureGates"), self.minor)

    def _has_gate(self, name: str) -> bool:
        return name in feature_gates.known_gates(self.minor)


@dataclass(frozen=True, slots=True)
class Complaint:
    """The kubelet's error, and the top-level field that causes it. ``inner``: the keys below it; ``hint`` is ours."""

    field: str
    text: str
    inner: tuple[str, ...] = ()
    hint: str = ""


Check = Callable[[Checked], Iterator[Complaint]]


def wrong(field: str, text: str) -> Complaint:
    """With the prefix of nearly all of them."""
    return Complaint(field, f"invalid configuration: {text}")
