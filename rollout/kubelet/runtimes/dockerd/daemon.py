"""dockerd, below dockershim and cri-dockerd: concurrent downloads in daemon.json, read again at SIGHUP (``daemon/reload.go``).

dockerd does not start with an option both in daemon.json and on its command line, so a flag there is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot
from rollout.core.text import json_text
from rollout.kubelet.intents import DOWNLOADS, MIRRORS
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, node_files, service
from rollout.kubelet.runtimes.description import (
    FIRST,
    Daemon,
    Number,
    PullMessage,
    PullStep,
    ReadAtStart,
    Row,
    Runtime,
    Wanted,
)
from rollout.kubelet.runtimes.dockerd import stand_in
from rollout.kubelet.values import reason

# One top-level key of a JSON file (dockerd's daemon.json), order and spacing kept: only its value's bytes are
# replaced.
#
# Proven by reading again: the pairs, in order, must be the old ones with ours. A duplicate key is refused: readers
# differ in which one they use.


_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class _Member:
    """``"name": value``; characters ``begin`` (of the name) to ``end`` (exclusive), the value from ``start``."""

    name: str
    value: Any
    begin: int
    start: int
    end: int


def object_of(text: str, path: str) -> dict[str, Any]:
    """The file's object; an empty file is an empty object, as in dockerd. ``LayoutError`` for anything else."""
    return {member.name: member.value for member in _members(text, path)} if text.strip() else {}


def with_member(text: str, key: str, value: int, path: str) -> str:
    """``text`` with ``key`` set, proven."""
    if not text.strip():
        return "{\n  " + f"{json.dumps(key)}: {value}" + "\n}\n"
    members = _members(text, path)
    old = next((member for member in members if member.name == key), None)
    if old is not None and old.value == value and not isinstance(old.value, bool):
        return text
    after = f"{text[: old.start]}{value}{text[old.end :]}" if old is not None else _added(text, members, key, value)
    wanted = {**{member.name: member.value for member in members}, key: value}
    if list(object_of(after, path).items()) != list(wanted.items()):
        raise LayoutError("json-unprovable", f"{path} as edited would not read back as the old file with the new key")
    return after


def _added(text: str, members: tuple[_Member, ...], key: str, value: int) -> str:
    """Adds the member at the end, with the spacing of the member before it."""
    member = f"{json.dumps(key)}: {value}"
    if not members:
        end = "" if "\n" in text[text.index("{") : text.rindex("}")] else "\n"
        return text.replace("{", "{\n  " + member + end, 1)
    last = members[-1]
    begin = len(text[: last.begin].rstrip(" \t\r\n"))
    return f"{text[: last.end]},{text[begin : last.begin]}{member}{text[last.end :]}"


def _members(text: str, path: str) -> tuple[_Member, ...]:
    try:
        found = tuple(_scan(text))
    except (ValueError, RecursionError, IndexError) as error:
        raise LayoutError("json-unreadable", f"{path} is not readable JSON: {error or 'it ends too early'}") from None
    begins: dict[str, int] = {}
    for member in found:
        first = begins.setdefault(member.name, member.begin)
        if first != member.begin:
            lines = " and ".join(str(text.count("\n", 0, begin) + 1) for begin in (first, member.begin))
            message = f"{path} contains {json.dumps(member.name)} twice, in lines {lines}"
            raise LayoutError("json-unreadable", message)
    return found


def _scan(text: str) -> list[_Member]:
    decoder = json.JSONDecoder(object_pairs_hook=json_text.unique)
    at = _expect(text, 0, "{")
    members: list[_Member] = []
    while text[at] != "}":
        if members:
            at = _expect(text, at, ",")
        if text[at] != '"':
            raise json.JSONDecodeError("a key was expected", text, at)
        begin = at
        name, at = decoder.raw_decode(text, begin)
        start = _expect(text, _blank(text, at), ":")
        value, end = decoder.raw_decode(text, start)
        members.append(_Member(name, value, begin, start, end))
        at = _blank(text, end)
    if _blank(text, at + 1) != len(text):
        raise json.JSONDecodeError("something follows the object", text, _blank(text, at + 1))
    return members


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, mark: str) -> int:
    """The position after ``mark`` and the blanks that follow it."""
    at = _blank(text, at)
    if text[at] != mark:
        raise json.JSONDecodeError(f"{mark} was expected", text, at)
    return _blank(text, at + 1)


_UNIT = "docker.service"
_FILE = "/etc/docker/daemon.json"
_KEY = "max-concurrent-downloads"
_DEFAULT = 3


def change(snapshot: Snapshot, wanted: Wanted) -> Change:
    """The key and a SIGHUP, nothing where it is in force or not wanted, or ``LayoutError``."""
    setting = wanted.get(DOWNLOADS)
    if setting is None:
        return Change()
    command = service.find(snapshot, _UNIT)
    given = command.flag(f"--{_KEY}")
    if given is not None:
        piece = command.origin(f"--{_KEY}")
        told = f" from {piece.origin}" if piece else ""
        raise LayoutError(
            "dockerd-flag",
            f"dockerd runs with --{_KEY}={given}{told}; it would not start with the key in a file as well",
        )
    path = command.flag("--config-file") or _FILE
    before = node_files.text(snapshot.files, path)
    now = object_of(before or "", path).get(_KEY)
    if now is not None and direction.same(setting, now):
        return Change()
    if now is None and direction.same(setting, _DEFAULT) and not setting.pin:
        return Change(notes=(direction.by_default(setting, str(_DEFAULT), "dockerd"),))
    after = with_member(before or "", _KEY, int(str(setting.value)), path)
    why = reason(_KEY, "not set" if now is None else str(now), str(setting.value), setting)
    edit = FileChange(path, None if before is None else before.encode(), after.encode(), (why,))
    way = direction.direction(
        setting, _DEFAULT if now is None else now, path if now is not None else "dockerd's default"
    )
    return Change((edit,), hangups=(_UNIT,), disruption=Disruption.RELOAD, notes=(way,))


def is_daemon_json(path: str, text: str) -> bool:
    """Whether a change of dockerd writes a file of this path and text."""
    return _KEY in object_of(text, path)


_READS = ReadAtStart(("--config-file",), _FILE)
DAEMON = Daemon(_UNIT, "docker", stand_in.DAEMON, reads=(_READS,), agent_part="dockerd")
LOGS = (PullMessage(PullStep.ENDED, "Not continuing with pull after error: ", r"(?P<error>.*)"),)
"""moby distribution/pull.go."""
HUNG_UP = frozenset({_UNIT})
READERS = {DOWNLOADS: _UNIT}
_NO_MIRRORS = "dockerd's registry-mirrors covers docker.io only; rollout does not write it"


def rows(runtime: Runtime, end: Number) -> tuple[Row, ...]:
    """The homes of what dockerd does for this runtime; ``end`` is the end of its known versions."""
    return (
        Row(DOWNLOADS, runtime, FIRST, end, _KEY, str(_DEFAULT), _FILE, _UNIT, Disruption.RELOAD),
        Row(MIRRORS, runtime, FIRST, end, refusal=_NO_MIRRORS),
    )


NEGATIVE_GRACE = "Docker waits without a limit for a negative number and never sends SIGKILL"
