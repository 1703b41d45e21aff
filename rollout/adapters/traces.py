"""Traces of what failed inside rollout on one node's content: kept in one file, for whoever reports them."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from rollout.adapters.private_files import private_state, write_privately
from rollout.errors import InputError, StateError

FILE = "failed-on-nodes.txt"
MOST = 20
LONGEST = 64 * 1024


class Traces:
    """The traces of one command. Its first begins the file anew; nodes that fail alike are kept once. Thread-safe."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._kept: dict[str, str] = {}
        self._lock = Lock()

    def keep(self, node: str, trace: str) -> str:
        """Where the trace is, or why it is nowhere: that is no reason to end what the other nodes are asked for."""
        path = self._state / FILE
        with self._lock:
            if trace not in self._kept and len(self._kept) < MOST:
                self._kept[trace] = node
                try:
                    private_state(self._state)
                    write_privately(path, self._text().encode("utf-8", "replace"))
                except (InputError, StateError) as error:
                    del self._kept[trace]
                    return f"The trace could not be kept: {error}"
        return f"The trace is in {path}, readable by you alone"

    def _text(self) -> str:
        return "\n".join(f"{node}\n{trace[:LONGEST]}" for trace, node in self._kept.items())
