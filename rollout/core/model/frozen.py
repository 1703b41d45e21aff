"""``dataclass`` for frozen values with slots: what ``dataclasses.dataclass`` makes, in a tenth of its time.

Python compiles six functions for each of them when its module is imported. That takes half a millisecond a class, and a
command imports 300. Here only ``__init__`` is compiled, and at the first value: most commands make values of few classes.
The others are shared, or closures. This ``__init__`` fills the slots directly, which takes half the time of Python's.
Type checkers see ``dataclasses.dataclass``. Python 3.13 compiles all of a class at once: when it is the oldest that rollout
runs on, this module can go.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

Class = Any
"""A class that is made here."""


def _frozen_with_slots(cls: Class) -> Class:
    """``cls`` anew. Of the options of ``field``, ``init``, ``hash`` and ``kw_only`` are not known here; nor is ``ClassVar``.

    Python searches each type that is a text for ``ClassVar``, and makes a docstring from a signature. Both take long.
    """
    types = inspect.get_annotations(cls)
    cls.__annotations__ = dict.fromkeys(types, object)
    cls.__doc__ = cls.__doc__ or cls.__name__
    made: Class = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=True)
    made.__annotations__ = types
    for field in dataclasses.fields(made):
        field.type = types[field.name]
    made.__dataclass_params__.frozen = True  # for subclasses
    compared = [field.name for field in dataclasses.fields(made) if field.compare]
    own = {"__init__": _init_at_first_value(made), **_comparing(compared), **_SHARED}
    for name, function in own.items():
        if cls.__dict__.get(name) is None:  # a class with an ``__eq__`` of its own has ``None`` as its ``__hash__``
            setattr(made, name, function)
    made.__setattr__, made.__delattr__ = _set, _delete
    return made


def _init_at_first_value(made: Class) -> Callable[..., None]:
    def first(self: Any, *arguments: Any, **named: Any) -> None:
        made.__init__ = _init(made)
        made.__init__(self, *arguments, **named)

    return first


def _init(made: Class) -> Callable[..., None]:
    known: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for field in dataclasses.fields(made):
        name, value = field.name, field.name
        known[f"_set_{name}"] = made.__dict__[name].__set__
        known[f"_default_{name}"] = field.default
        if field.default_factory is not dataclasses.MISSING:
            known[f"_new_{name}"] = field.default_factory
            value = f"_new_{name}() if {name} is _MISSING else {name}"
        optional = field.default is not dataclasses.MISSING or value != name
        parameters.append(f"{name}=_default_{name}" if optional else name)
        lines.append(f"_set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
    exec(text, known)  # noqa: S102 - names of fields only; Python's own dataclasses do the same
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _comparing(names: list[str]) -> dict[str, Callable[..., Any]]:
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hashed}


def _shown(self: Any) -> str:
    values = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{self.__class__.__qualname__}({', '.join(values)})"


def _set(_self: Any, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(_self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _kept(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _filled(self: Any, kept: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), kept, strict=True):
        object.__setattr__(self, field.name, value)


_SHARED = {"__repr__": _shown, "__getstate__": _kept, "__setstate__": _filled}


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, **others):
        """All but frozen values with slots, and subclasses of dataclasses, are left to Python."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, **others)
        if not (frozen and slots) or others or hasattr(cls, "__dataclass_fields__"):
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, **others)
        return _frozen_with_slots(cls)
