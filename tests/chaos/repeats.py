"""A worker of a region imports this at its start. It can then carry out an exchange twice, as Dask does if a result is lost.

The call of an exchange names a function of ``rollout.features.regions.client.worker``, which is exchanged here.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from rollout.features.regions.client import worker

FOLDER = "BED_REPEATS"
"""The variable with the folder of these files."""
ORDER = "repeat"
"""While there is this file: the seconds until an exchange is repeated."""
RESULTS = "repeated"
"""A line for each time that a call arrived: its nonce, and ``refused`` or ``carried-out``."""

_once = worker.exchange
_is_new = worker.RegionStation.is_new
_writing = threading.Lock()


def twice(data: bytes) -> bytes:
    """An exchange, and its repeat."""
    try:
        seconds = float((Path(os.environ[FOLDER]) / ORDER).read_text())
    except OSError:
        return _once(data)
    again = threading.Timer(seconds, _once, (data,))
    again.daemon = True  # it waits for answers
    again.start()
    return _once(data)


def noted(station: worker.RegionStation, nonce: str) -> bool:
    """Whether a call is carried out, as the station decides."""
    is_new = _is_new(station, nonce)
    with _writing, (Path(os.environ[FOLDER]) / RESULTS).open("a") as file:
        file.write(f"{nonce} {'carried-out' if is_new else 'refused'}\n")
    return is_new


if FOLDER in os.environ:  # in a worker, and not where somebody only needs the names above
    worker.exchange = twice
    setattr(worker.RegionStation, "is_new", noted)  # noqa: B010 - mypy: a method is exchanged
