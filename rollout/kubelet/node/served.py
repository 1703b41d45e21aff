"""What a running kubelet serves: the port of ``/healthz``, and whether ``/configz`` shows a change as planned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rollout.core.model.plan import Change
from rollout.core.model.snapshot import Snapshot
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text import json_text
from rollout.core.text.terminal import counted
from rollout.kubelet import values
from rollout.kubelet.node import arguments

DEFAULT_HEALTHZ_PORT = 10248
_FLAG = "--healthz-port"
_FIELD = re.compile(rb"""^\s*,?\s*["']?healthzPort["']?\s*:\s*([0-9]{1,5})\b""", re.MULTILINE)


def healthz_port(snapshot: Snapshot) -> int:
    """The flag, which overrides files; else the last file that sets it, as drop-ins come after the file; else 10248.

    From the node's snapshot: no plan is needed. It is only used for requests: a wrong port does not answer, which proves nothing.
    """
    process = snapshot.measurement.process
    words = process.command_line[1:] if process else ()
    flag_port = _given(words, _FLAG)
    if flag_port.isdecimal():
        return int(flag_port)
    folder, main = _given(words, "--config-dir"), _given(words, "--config")
    paths = [main, *sorted(path for path in snapshot.files if folder and path.startswith(folder.rstrip("/") + "/"))]
    contents = (state.content for path in paths if (state := snapshot.files.get(path)) and state.content)
    fields = [ports[-1] for content in contents if (ports := _FIELD.findall(content))]
    return int(fields[-1]) if fields else DEFAULT_HEALTHZ_PORT


def _given(words: Sequence[str], flag: str) -> str:
    """``""``: the flag is not given."""
    given = arguments.last(words, flag)
    return given.value if given else ""


def shown_as_planned(change: Change, shown: Mapping[str, Any]) -> Judged:
    """Does ``/configz`` show each field as planned?"""
    for name, text in change.effective:
        planned = json_text.parse(text)
        if not values.is_in_force(shown.get(name), planned, (name,)):
            in_force = values.canonical(values.part_shown(shown.get(name), planned))
            return Verdict.FAIL, f"configz shows {name} {in_force}, planned {text}"
    return Verdict.PASS, f"configz shows {counted(len(change.effective), 'field')} as planned"
