"""What a playbook or an inventory demands of plans before they may change nodes, such as change windows or approvals.

The kernel reads a condition, carries it in the plan and shows it; it knows none by name. ``rollout.features.table`` lists the kinds,
and each entry point makes them known once: ``rollout.composition.kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from rollout.core.model.frozen import dataclass
from rollout.errors import Place


class Condition:
    """The base of all kinds. Subclasses are frozen dataclasses; ``place`` is where one is written.

    ``key``: of the kind in plans. ``is_timed``: it says when changes may start. ``not_the_plans``: why a plan is refused that does
    not have the inventory's condition of today (``""``: it is not refused). ``passed``: what an operator reads before a rollback,
    which does not depend on it.
    """

    __slots__ = ()

    place: Place
    key: str
    is_timed: bool = False
    not_the_plans: str = ""
    passed: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the project that it needs."""
        return ()

    def lines(self) -> Iterator[str]:
        """As a plan shows it."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=Condition)


def of_kind(conditions: Iterable[Condition], kind: type[Kind]) -> tuple[Kind, ...]:
    return tuple(each for each in conditions if isinstance(each, kind))


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """Whether changes may start, ``until`` when that holds (``None``: no end is known), and ``why`` they may not.

    ``until``: seconds since the epoch.
    """

    is_open: bool
    until: float | None
    why: str = ""


OPEN = StartAnswer(is_open=True, until=None)


@dataclass(frozen=True, slots=True)
class ConditionKinds:
    """``kinds``: in the order in which a plan has them. ``written``: key in a playbook or an inventory → the model that reads it.

    The models need pydantic, which few commands do.
    """

    kinds: tuple[type[Condition], ...]
    written: Callable[[], Mapping[str, type[Any]]]


_known: list[ConditionKinds] = []


def know(kinds: ConditionKinds) -> None:
    """Called by entry points, before anything is read."""
    _known[:] = [kinds]


def known() -> ConditionKinds:
    if not _known:
        raise LookupError("the kinds of conditions are not known yet: call rollout.composition.kinds.install() first")
    return _known[0]


def in_order(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Each kind together, in the order of the table."""
    every = tuple(conditions)
    return tuple(each for kind in known().kinds for each in of_kind(every, kind))
