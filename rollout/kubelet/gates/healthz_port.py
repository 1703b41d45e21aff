"""Where a node's kubelet is asked for its health, by what was read of the node: no plan is needed.

Only the place to ask: a wrong one is not answered, which proves nothing.
"""

from __future__ import annotations

import re

from rollout.core.model.snapshot import Process, Snapshot

DEFAULT_HEALTHZ_PORT = 10248
_FLAG = "--healthz-port"
_FIELD = re.compile(rb"""^\s*,?\s*["']?healthzPort["']?\s*:\s*([0-9]{1,5})\b""", re.MULTILINE)


def healthz_port(snapshot: Snapshot) -> int:
    """By the flag, which beats files; else by the last file that says it, as drop-ins come after the file; else 10248."""
    process = snapshot.measurement.process
    said = flag_value(process, _FLAG)
    if said.isdecimal():
        return int(said)
    folder, main = flag_value(process, "--config-dir"), flag_value(process, "--config")
    paths = [main, *sorted(path for path in snapshot.files if folder and path.startswith(folder.rstrip("/") + "/"))]
    contents = (state.content for path in paths if (state := snapshot.files.get(path)) and state.content)
    fields = [found[-1] for content in contents if (found := _FIELD.findall(content))]
    return int(fields[-1]) if fields else DEFAULT_HEALTHZ_PORT


def flag_value(process: Process | None, flag: str) -> str:
    """What a flag was given last on the command line; ``""``: not given."""
    words = process.command_line[1:] if process else ()
    value = ""
    for index, word in enumerate(words):
        if word.startswith(f"{flag}="):
            value = word.partition("=")[2]
        elif word == flag and index + 1 < len(words):
            value = words[index + 1]
    return value
