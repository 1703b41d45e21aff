"""Calls that know no deadline (getaddrinfo, an ssh-agent), made on a thread that may be left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from rollout.adapters.ssh.error_mapping import translate
from rollout.errors import RemoteError

T = TypeVar("T")


def aside(call: Callable[[], T], seconds: float, late: RemoteError) -> T:
    """What ``call`` returns. Its trouble, or ``late`` when it takes longer, is raised as ``RemoteError``."""
    box: list[T | RemoteError] = []

    def work() -> None:
        try:
            box.append(call())
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits
            box.append(translate(error))

    thread = threading.Thread(target=work, name="ssh-aside", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise late
    if isinstance(box[0], RemoteError):
        raise box[0]
    return box[0]
