"""A worker of a region imports this at its start. It can then carry out a call twice, as Dask does if a result is lost.

The task of a call names a function of ``rollout.adapters.regions.worker``, which is exchanged here.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from rollout.adapters.regions import worker
from rollout.adapters.regions.messages import LOST, decode_answer, decode_call

FOLDER = "BED_REPEATS"
"""The variable with the folder of these files."""
ORDER = "repeat"
"""While there is this file: the seconds until a call is repeated."""
RESULTS = "repeated"
"""A line for each time that a call arrived: its nonce, and ``refused`` or ``carried-out``."""

_once = worker.carry
_writing = threading.Lock()


def twice(data: bytes) -> bytes:
    """The task of a call, and its repeat."""
    try:
        seconds = float((Path(os.environ[FOLDER]) / ORDER).read_text())
    except OSError:
        return _once(data)
    again = threading.Timer(seconds, _noted, (data,))
    again.start()
    return _noted(data)


def _noted(data: bytes) -> bytes:
    answer = _once(data)
    word = "refused" if decode_answer(answer)[0].reference == LOST else "carried-out"
    with _writing, (Path(os.environ[FOLDER]) / RESULTS).open("a") as file:
        file.write(f"{decode_call(data).nonce} {word}\n")
    return answer


worker.carry = twice
