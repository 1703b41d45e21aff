"""What must hold of a node's values for a row of a table: the language that known defects and effects share.

A condition is ``{PATH: {TEST: VALUE}}``, and all of them must hold. PATH is a field (``authentication.anonymous.enabled``),
a kubelet flag (``--v``), ``gate:NAME``, ``minor`` (of the kubelet: 31 is 1.31), ``runtime:KEY`` (a key of the runtime's
configuration) or ``fact:NAME`` (of the snapshot). A value that cannot be observed makes a condition unknown: ``None``, which is neither true nor false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.quantities import parse
from rollout.kubelet.values import duration, is_duration, value_at

Test = Callable[[object, Value, str], bool]

UNKNOWN = object()
"""The value of what cannot be observed."""


@dataclass(frozen=True, slots=True)
class NodeValues:
    """What a kubelet 1.``minor`` and its runtime work with. ``runtime`` ``None``: its configuration was not read.

    ``flags`` are those of the kubelet's command line, by name. ``facts``: of the snapshot; a missing one is unknown.
    """

    minor: int
    effective: Mapping[str, Value]
    flags: Mapping[str, str]
    runtime: Mapping[str, Value] | None
    facts: Mapping[str, str]

    def at(self, path: str) -> object:
        """The value, ``None`` where it is not set, ``UNKNOWN`` where that cannot be observed."""
        if path == "minor":
            return self.minor
        kind, _, name = path.rpartition(":")
        if kind == "gate":
            written = self.effective.get("featureGates")
            gates = written if isinstance(written, dict) else {}
            return feature_gates.enabled(name, {gate: value is True for gate, value in gates.items()}, self.minor)
        if kind == "runtime":
            return UNKNOWN if self.runtime is None else self.runtime.get(name)
        if kind == "fact":
            return self.facts.get(name, UNKNOWN)
        return self.flags.get(path) if path.startswith("--") else value_at(self.effective, path)


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """``test`` is a key of ``TESTS`` or of ``CHANGES``."""

    path: str
    test: str
    against: Value

    @property
    def is_of_change(self) -> bool:
        return self.test in CHANGES

    def holds(self, values: NodeValues, before: NodeValues | None = None) -> bool | None:
        """``before``: the values before a change; ``None``: there is none, so nothing changes."""
        now = values.at(self.path)
        if now is UNKNOWN:
            return None
        if self.test in TESTS:
            return TESTS[self.test](now, self.against, self.path)
        old = now if before is None else before.at(self.path)
        return None if old is UNKNOWN else CHANGES[self.test](old, now, self.path) is self.against


def conditions(written: Mapping[str, Mapping[str, Value]]) -> tuple[ValueCondition, ...]:
    """From a table's row; ``ValueError`` for an unknown test."""
    made = tuple(ValueCondition(path, test, value) for path, tests in written.items() for test, value in tests.items())
    wrong = next((each.test for each in made if each.test not in {*TESTS, *CHANGES}), None)
    if wrong is not None:
        raise ValueError(f"unknown test {wrong!r}: one of {', '.join([*TESTS, *CHANGES])}")
    return made


def all_hold(every: tuple[ValueCondition, ...], values: NodeValues, before: NodeValues | None = None) -> bool | None:
    """False if one does not hold, else ``None`` if one is unknown."""
    holding = [each.holds(values, before) for each in every]
    return False if False in holding else None if None in holding else True


def number(value: object, path: str = "") -> float | None:
    """A number, a duration in seconds where ``path`` is one, a percentage or a quantity; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        return float(value)
    if _is_time(path):
        return duration(value)
    try:
        return float(parse(value.removesuffix("%")).amount)
    except (ValueError, OverflowError):
        return None


def _is_time(path: str) -> bool:
    """``500m`` is minutes of a duration, and thousandths of a quantity."""
    if path.startswith("runtime:"):
        return path.endswith("_timeout")
    flag = fields.flag(path)
    return flag.kind == "duration" if flag else is_duration(tuple(path.split(".")))


def _compared(test: Callable[[float, float], bool]) -> Test:
    def compare(now: object, against: Value, path: str) -> bool:
        left, right = number(now, path), number(against, path)
        return left is not None and right is not None and test(left, right)

    return compare


_EQUAL = _compared(operator.eq)


def _is(now: object, against: object, path: str) -> bool:
    if isinstance(now, bool) or isinstance(against, bool):
        return now is against
    return now == against or (isinstance(against, str | int | float) and _EQUAL(now, against, path))


def _leaves(value: object, path: str) -> Iterator[tuple[str, float]]:
    """The numbers in a value, by their place in it."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}")
    elif (found := number(value, path)) is not None:
        yield path, found


def _grows(old: object, now: object, path: str) -> bool:
    before = dict(_leaves(old, path))
    return any(value > before.get(name, 0.0) for name, value in _leaves(now, path))


TESTS: Mapping[str, Test] = {
    "is": _is,
    "not": lambda now, against, path: not _is(now, against, path),
    "above": _compared(operator.gt),
    "below": _compared(operator.lt),
    "in": lambda now, against, path: isinstance(against, list) and any(_is(now, each, path) for each in against),
    "has": lambda now, against, _path: isinstance(now, dict | list | str) and against in now,
    "ends": lambda now, against, _path: isinstance(now, str) and now.endswith(str(against)),
    "set": lambda now, against, _path: (now not in (None, "", [], {})) is against,
}
"""Tests of a value that is in force, with what it is compared to and its path; ``set`` takes a bool."""

CHANGES: Mapping[str, Callable[[object, object, str], bool]] = {
    "changes": lambda old, now, path: not _is(old, now, path),
    "grows": _grows,
    "shrinks": lambda old, now, path: _grows(now, old, path),
}
"""Tests of a change, with the value before and after; each takes a bool. A list or a text neither grows nor shrinks."""
