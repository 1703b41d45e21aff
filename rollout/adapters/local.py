"""Runs a wave's command gate on the controller's machine: no shell, bounded time, output thrown away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping


class LocalCommands:
    """``None`` when the command could not be run or did not end in time."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> int | None:
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
                start_new_session=True,  # a Ctrl-C at our terminal is ours to hear
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.returncode
