"""A fleet's snapshot as a file, so that ``plan --snapshot FILE`` works offline.

2,000 nodes are of few kinds. The first node of each kind is in ``kinds`` in full; each node of ``read`` names its kind and has
what differs. File contents are held once, by digest, in ``blobs``, and checked when read. The file contains the nodes' files,
credentials included: it must be written with mode 0600.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rollout.core.model.snapshot import FileState, FleetSnapshot, Snapshot, Unread, digest
from rollout.core.text import json_differences, json_text
from rollout.core.text.json_text import Json, JsonStream, ShapeError
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

VERSION = 8
_MISSING_IN = {5: ("jumps", "addresses"), 6: ("addresses",), 7: ()}
"""Versions that are still read → the keys that they do not have: how their nodes were reached is not known. Their nodes have no ``surroundings``."""
MOST_BYTES = 512 * 1024 * 1024
_TEXTS = ("cluster", "inventory_digest", "taken")
_KEYS = ("version", *_TEXTS, "order", "blobs", "kinds", "read", "unread", "jumps", "addresses")
"""In the order in which they stand: a node is read with its kind, and a kind with its contents."""
_KINDS: Mapping[str, Any] = {
    "order": tuple[str, ...],
    "jumps": Mapping[str, tuple[str, ...]],
    "addresses": Mapping[str, str],
}
_WHOLE = frozenset({"files", "runtimes", "command_line"})
"""Nodes of a kind have the same of these."""


def encode(fleet: FleetSnapshot) -> bytes:
    """Deterministic JSON, one line per node, kind and content."""
    contents: dict[str, bytes] = {}

    def keep(state: FileState) -> FileState:
        if state.content is None:
            return state
        computed = digest(state.content)
        contents[computed] = state.content
        return replace(state, content=computed.encode())

    kinds: dict[str, tuple[str, Json]] = {}
    read: dict[str, Json] = {}
    for name, node in fleet.nodes.items():
        if isinstance(node, Snapshot):
            tree = json_text.encode(_with_files(node, keep))
            outline = json.dumps(json_differences.outline(tree, _WHOLE), sort_keys=True)
            kind, first = kinds.setdefault(outline, (str(len(kinds) + 1), tree))
            read[name] = {"kind": kind, "but": json_differences.difference(first, tree)}
    unread = {name: json_text.encode(node) for name, node in fleet.nodes.items() if isinstance(node, Unread)}
    parts = {
        "version": json.dumps(VERSION),
        **{name: json.dumps(getattr(fleet, name)) for name in _TEXTS},
        "order": json.dumps(list(fleet.nodes)),
        "blobs": _lines({name: json_text.converter(bytes).encode(content) for name, content in contents.items()}),
        "kinds": _lines(dict(kinds.values())),
        "read": _lines(read),
        "unread": _lines(unread),
        "jumps": _lines(fleet.jumps),
        "addresses": _lines(fleet.addresses),
    }
    return ("{\n" + ",\n".join(f'"{key}": {parts[key]}' for key in _KEYS) + "\n}\n").encode()


def decode(data: bytes, file: str) -> FleetSnapshot:
    """The snapshot in a file, or ``InputError``."""
    if len(data) > MOST_BYTES:
        raise _error("snapshot-unreadable", f"{file} is larger than {MOST_BYTES >> 20} MiB")
    try:
        stream = JsonStream(data.decode())
        del data  # with 100,000 nodes it is large
        return _fleet(stream, file)
    except ShapeError as error:
        raise _error("snapshot-unreadable", f"{file}: {error}") from None
    except ValueError:
        raise _error("snapshot-unreadable", f"{file} is not JSON") from None


@dataclass(slots=True)
class _Parts:
    """The parts of a snapshot as they are read."""

    version: int = VERSION
    values: dict[str, Any] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, Snapshot] = field(default_factory=dict)
    nodes: dict[str, Snapshot | Unread] = field(default_factory=dict)

    def take(self, key: str, stream: JsonStream) -> None:
        """The value of one key of the document."""
        if key == "blobs":
            self.contents = {name: _content(name, value) for name, value in _entries(stream)}
        elif key == "kinds":
            inner = json_text.converter(Snapshot)
            decoded = ((name, inner.decode(self._told(value), f"kinds.{name}")) for name, value in _entries(stream))
            self.kinds = {name: _with_files(node, self._fill) for name, node in decoded}
        elif key == "read":
            self.nodes = {name: self._node(name, value) for name, value in _entries(stream)}
        elif key == "unread":
            inner = json_text.converter(Unread)
            self.nodes |= {name: inner.decode(value, f"unread.{name}") for name, value in _entries(stream)}
        else:
            self.values[key] = json_text.converter(_KINDS.get(key, str)).decode(stream.value(), key)

    def _told(self, value: Json) -> Json:
        return {"surroundings": None, **value} if self.version < 8 and isinstance(value, dict) else value

    def _fill(self, state: FileState) -> FileState:
        if state.content is None:
            return state
        content = self.contents.get(state.content.decode("utf-8", "replace"))
        if content is None:
            raise ShapeError(f"{printable(state.path)} has a content that is not in blobs")
        return replace(state, content=content)

    def _node(self, name: str, value: Json) -> Snapshot:
        where = f"read.{printable(name, 80)}"
        if not isinstance(value, dict) or value.keys() != {"kind", "but"}:
            raise ShapeError(f"{where} is not a kind and what differs")
        first = self.kinds.get(value["kind"]) if isinstance(value["kind"], str) else None
        if first is None or not isinstance(value["but"], dict):
            raise ShapeError(f"{where} is of no known kind")
        snapshot: Snapshot = json_differences.applied(Snapshot, first, value["but"], where)
        if snapshot.files is not first.files or snapshot.measurement.files is not first.measurement.files:
            raise ShapeError(f"{where} has files that are not in its kind")  # their contents would not be checked
        return snapshot


def _fleet(stream: JsonStream, file: str) -> FleetSnapshot:
    parts, expected = _Parts(), iter(_KEYS)
    for key in stream.each_key():
        if key != next(expected, None):
            raise ShapeError(f"{key[:80]!r} is unknown, or another key is missing before it")
        if key == "version":
            parts.version = stream.value()
            expected = iter(_keys_of(parts.version, file))
        else:
            parts.take(key, stream)
    stream.end()
    if next(expected, None) is not None:
        raise ShapeError("it is not a snapshot")
    order = parts.values.pop("order")
    if sorted(order) != sorted(parts.nodes):
        raise ShapeError("order does not name the nodes read and unread")
    return FleetSnapshot(nodes={name: parts.nodes[name] for name in order}, **parts.values)


def _keys_of(version: Json, file: str) -> tuple[str, ...]:
    """The keys that follow the version in a file of this version."""
    if isinstance(version, int) and version in (VERSION, *_MISSING_IN):
        return tuple(key for key in _KEYS[1:] if key not in _MISSING_IN.get(version, ()))
    shown = printable(str(version), 40)
    reads = f"this rollout reads {min(_MISSING_IN)} to {VERSION}"
    raise _error("snapshot-version", f"{file} is a snapshot of version {shown}; {reads}")


def _entries(stream: JsonStream) -> Iterator[tuple[str, Json]]:
    for name in stream.each_key():
        yield name, stream.value()


def _content(name: str, value: Json) -> bytes:
    content: bytes = json_text.converter(bytes).decode(value, f"blobs.{name}")
    if digest(content) != name:
        raise ShapeError(f"blobs.{printable(name, 80)} is not the content of that digest")
    return content


def _with_files(node: Snapshot, each: Callable[[FileState], FileState]) -> Snapshot:
    files = {path: each(state) for path, state in node.files.items()}
    measured = {path: each(state) for path, state in node.measurement.files.items()}
    return replace(node, files=files, measurement=replace(node.measurement, files=measured))


def _lines(entries: Mapping[str, Any]) -> str:
    if not entries:
        return "{}"
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(entries[key], sort_keys=True)}" for key in sorted(entries))
        + "\n}"
    )


def _error(reference: str, message: str) -> InputError:
    return InputError((Problem(reference, message),))
