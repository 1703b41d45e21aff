"""Results that equal nodes share: a pure function is called once for the same frozen values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
R = TypeVar("R")


class Once:
    """Calls a pure function at most once with the same arguments, and returns the same result for them.

    Arguments are the same only if they are the same objects, and each is kept with its result: a result can never be that of
    other values, however alike. It is thus for functions that are given nothing but what they look at; a node with its name
    would share nothing. An error is no result: it is raised at each call.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[object, Any]] = {}

    def __call__(self, function: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        key = (id(function), *map(id, arguments))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = ((function, arguments), function(*arguments))
        result: R = known[1]
        return result
