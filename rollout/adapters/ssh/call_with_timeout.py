"""Calls without a deadline of their own (getaddrinfo, an ssh-agent), on a thread that may be abandoned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from rollout.adapters.ssh.error_mapping import translate
from rollout.errors import RemoteError

T = TypeVar("T")


def aside(call: Callable[[], T], seconds: float, late: RemoteError) -> T:
    """The result of ``call``. Raises its error as ``RemoteError``, or ``late`` after the timeout."""
    box: list[T | RemoteError] = []

    def work() -> None:
        try:
            box.append(call())
        except Exception as error:  # noqa: BLE001 - passed to the waiting thread
            box.append(translate(error))

    thread = threading.Thread(target=work, name="ssh-aside", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise late
    if isinstance(box[0], RemoteError):
        raise box[0]
    return box[0]
