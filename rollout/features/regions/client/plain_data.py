"""A stand-in for the module ``pickle``: it reads plain data, and refuses a pickle that names a class or a function.

Dask pickles what it carries, also where rollout sends JSON: the type of a result is a pickle, an error is one, and any
message may contain one. To read a pickle is to run what its sender wrote into it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from io import BytesIO
from types import ModuleType
from typing import Any, NoReturn

_TYPE_OF_BYTES = frozenset(pickle.dumps(bytes, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1))
"""The only name that an answer needs: Dask sends it as the type of each result that is bytes."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"a peer sent {module}.{name}, which is not plain data")


def load(data: Any, *, buffers: Iterable[Any] = ()) -> Any:
    """Numbers, texts, bytes and collections of them, or the type ``bytes``. ``UnpicklingError`` for anything that is more."""
    text = bytes(data)
    return bytes if text in _TYPE_OF_BYTES else _PlainUnpickler(BytesIO(text), buffers=buffers).load()


def stand_in() -> ModuleType:
    """``pickle``, except that it loads plain data only."""
    made = ModuleType("pickle", __doc__)
    vars(made).update(vars(pickle), loads=load, load=None, Unpickler=None)
    return made
