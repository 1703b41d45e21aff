"""A value of our ``dataclass`` is and does what one of Python's does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Ours:
    name: str
    count: int = 3
    others: Mapping[str, int] = field(default_factory=dict)
    key: str = field(default="k", metadata={"on disk": "clé"})
    place: int = field(default=0, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Pythons:
    name: str
    count: int = 3
    others: Mapping[str, int] = field(default_factory=dict)
    key: str = field(default="k", metadata={"on disk": "clé"})
    place: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: int = 0


@dataclass(frozen=True, slots=True)
class Doubled:
    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", 2 * self.number)


@dataclass(frozen=True, slots=True)
class SameAsAll:  # noqa: PLW1641 - its hash is that of its fields
    number: int

    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "any"


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Triple(Pair):
    middle: int = 1


def described(kind: Any) -> list[Any]:
    fields = [(each.name, each.type, each.default, each.metadata) for each in dataclasses.fields(kind)]
    return [fields, kind.__slots__, kind.__match_args__, hasattr(kind("a"), "__dict__")]


@pytest.mark.parametrize("arguments", [("a",), ("a", 4), ("a", 4, {"x": 1}, "l")])
def test_it_has_the_fields_and_the_text_of_pythons(arguments: tuple[Any, ...]) -> None:
    assert described(Ours) == described(Pythons)
    ours, pythons = Ours(*arguments), Pythons(*arguments)
    assert dataclasses.asdict(ours) == dataclasses.asdict(pythons)
    assert repr(ours) == repr(pythons).replace("Pythons", "Ours")
    assert dataclasses.asdict(replace(ours, count=9)) == dataclasses.asdict(replace(pythons, count=9))


@pytest.mark.parametrize("wrong", [(), ("a", 1, {}, "k", 0, "more")])
def test_wrong_arguments_are_an_error(wrong: tuple[Any, ...]) -> None:
    for kind in (Ours, Pythons):
        with pytest.raises(TypeError, match="__init__"):
            kind(*wrong)


def test_each_value_has_a_default_of_its_own_from_a_factory() -> None:
    assert Ours("a").others == {}
    assert Ours("a").others is not Ours("a").others


def test_values_are_equal_by_their_fields_and_kind() -> None:
    assert Pair(1, 2) == Pair(1, 2)
    assert Pair(1, 2) != Pair(2, 2)
    assert Pair(1, 2) != (1, 2)
    assert Ours("a") != Pythons("a")
    assert Ours("a", place=1) == Ours("a", place=2)
    assert {Pair(1), Pair(1, 0), Pair(2)} == {Pair(2), Pair(1)}
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours("a"))


def test_nothing_of_it_can_be_changed() -> None:
    for value in (Ours("a"), Pythons("a")):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
            value.name = "b"  # type: ignore[misc]
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
            del value.name  # type: ignore[misc]


def test_it_can_be_copied_and_sent_to_another_process() -> None:
    value = Ours("a", 4, {"x": 1})
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes
    assert copy.deepcopy(value) == value


def test_what_a_class_defines_itself_stays() -> None:
    assert Doubled(2).number == 4
    assert SameAsAll(1) == SameAsAll(2)
    assert hash(SameAsAll(1)) != hash(SameAsAll(2))
    assert repr(SameAsAll(1)) == "any"


def test_a_value_can_have_a_base() -> None:
    assert repr(Triple(1, 2, 3)) == "Triple(left=1, right=2, middle=3)"
    assert Triple(1) != Pair(1)
    with pytest.raises(FrozenInstanceError):
        Triple(1).middle = 2  # type: ignore[misc]
