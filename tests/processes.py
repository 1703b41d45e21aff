"""What every process of the machine shows to everybody who looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def every_process() -> Iterator[set[bytes]]:
    """Command lines and environments of whatever runs meanwhile. The set grows until the block has ended."""
    seen: set[bytes] = set()
    over = threading.Event()
    watcher = threading.Thread(target=_look_again_and_again, args=(seen, over))
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def _look_again_and_again(seen: set[bytes], over: threading.Event) -> None:
    """A third of the time, so that those who are looked at get on."""
    took = 0.0
    while not over.wait(2 * took):
        began = time.thread_time()
        for folder in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    seen.add((folder / name).read_bytes())
                except OSError:
                    continue
        took = time.thread_time() - began
