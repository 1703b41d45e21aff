"""Equal nodes share results, and a result is never that of other values."""

from __future__ import annotations

import pytest

from rollout.core.model.once import Once


def test_a_function_is_called_once_with_the_same_objects() -> None:
    calls: list[tuple[object, object]] = []

    def pair(left: object, right: object) -> tuple[object, object]:
        calls.append((left, right))
        return left, right

    once, left, right = Once(), {"a": 1}, {"b": 2}
    assert once(pair, left, right) is once(pair, left, right)
    assert once(pair, right, left) == (right, left)
    assert calls == [(left, right), (right, left)]


def test_equal_values_that_are_other_objects_are_looked_at_themselves() -> None:
    """``1 == True``, and a mapping may be equal now and another one later."""
    once = Once()
    assert once(repr, {"a": 1}) == "{'a': 1}"
    assert once(repr, {"a": True}) == "{'a': True}"


def test_values_are_kept_with_their_result() -> None:
    """Without that, the next value may be made where the last one was, and would get its result."""
    once = Once()
    assert [once(repr, [at]) for at in range(1000)] == [f"[{at}]" for at in range(1000)]


def test_functions_are_told_apart() -> None:
    once, value = Once(), ("a",)
    assert (once(repr, value), once(len, value)) == ("('a',)", 1)


def test_an_error_is_raised_at_each_call() -> None:
    once, text = Once(), "x"
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            once(int, text)
