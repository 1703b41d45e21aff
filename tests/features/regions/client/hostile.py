"""What a hostile worker or scheduler sends: pickles that run code in each process that loads them, and what it prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker
from distributed.protocol.pickle import dumps
from distributed.protocol.serialize import ToPickle, to_serialize

ESCAPES = "\x1b]0;owned\x07"


def leave_mark(folder: str) -> str:
    """The code of the attacker: it leaves a file with the number of the process in which it runs."""
    Path(folder, str(os.getpid())).touch()
    return "harmless"


class Evil:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return leave_mark, (self.folder,)


class EvilError(Exception):
    def __reduce__(self) -> tuple[Any, ...]:
        return leave_mark, (str(self.args[0]),)


# Called on the worker. ``data``: the folder for marks.


def result(data: bytes) -> Any:
    return Evil(data.decode())


def nested_result(data: bytes) -> Any:
    return {"answers": [(1, Evil(data.decode()))]}


def serialized_result(data: bytes) -> Any:
    return to_serialize(Evil(data.decode()))  # type: ignore[no-untyped-call]


def pickled_result(data: bytes) -> Any:
    return ToPickle(Evil(data.decode()))


def error(data: bytes) -> Any:
    raise EvilError(data.decode())


class EvilBytes(bytes):
    """Bytes by every check that the controller can make, once it has been loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return leave_mark, (self.decode(),)


def subclass_of_bytes(data: bytes) -> Any:
    return EvilBytes(data)


async def event(data: bytes, *, dask_worker: Worker) -> bytes:
    """Dask's own clients print such events as they are, and unpickle a warning's words."""
    evil = dumps(Evil(data.decode()))  # type: ignore[no-untyped-call]
    dask_worker.log_event("warn", {"message": evil, "category": evil})
    dask_worker.log_event("print", {"args": (ESCAPES,), "end": "\n", "sep": "", "file": 2, "flush": True})
    return b""


# Run on the scheduler.


def turn_hostile(folder: str, *, dask_scheduler: Scheduler) -> None:
    """From now on each answer of the scheduler about its workers has a pickle in it."""
    own = dask_scheduler.handlers["identity"]

    def identity(**words: Any) -> Any:
        return {**own(**words), "evil": ToPickle(Evil(folder))}

    dask_scheduler.handlers["identity"] = identity


def report_an_error(folder: str, *, dask_scheduler: Scheduler) -> None:
    """As if it had failed: the client's stream gets an exception."""
    evil = dumps(Evil(folder))  # type: ignore[no-untyped-call]
    for comm in dask_scheduler.client_comms.values():
        comm.send({"op": "error", "status": "error", "exception": evil, "traceback": evil})
