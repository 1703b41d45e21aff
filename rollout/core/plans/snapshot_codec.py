"""A fleet's snapshot as a file, so that ``plan --snapshot FILE`` works offline.

File contents are held once, by digest, in ``blobs`` (2,000 nodes have few distinct ones) and checked when read. The
file contains the nodes' files, credentials included: it must be written with mode 0600.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rollout.core.model.snapshot import FileState, FleetSnapshot, Snapshot, Unread, digest
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

VERSION = 4
MOST_BYTES = 512 * 1024 * 1024
_KEYS = frozenset({"version", "cluster", "inventory_digest", "taken", "order", "blobs", "read", "unread"})
_NAMES = ("cluster", "inventory_digest", "taken")

Files = Mapping[str, FileState]


def encode(fleet: FleetSnapshot) -> bytes:
    """Deterministic JSON, one line per node and per content."""
    contents: dict[str, bytes] = {}

    def keep(state: FileState) -> FileState:
        if state.content is None:
            return state
        found = digest(state.content)
        contents[found] = state.content
        return replace(state, content=found.encode())

    read = {name: node for name, node in fleet.nodes.items() if isinstance(node, Snapshot)}
    unread = {name: node for name, node in fleet.nodes.items() if isinstance(node, Unread)}
    nodes = {name: json_text.encode(_with_files(node, keep)) for name, node in read.items()}
    parts = {
        "version": json.dumps(VERSION),
        **{name: json.dumps(getattr(fleet, name)) for name in _NAMES},
        "order": json.dumps(list(fleet.nodes)),
        "read": _lines(nodes),
        "unread": _lines({name: json_text.encode(node) for name, node in unread.items()}),
        "blobs": _lines({name: json_text.converter(bytes).encode(content) for name, content in contents.items()}),
    }
    return ("{\n" + ",\n".join(f'"{key}": {text}' for key, text in parts.items()) + "\n}\n").encode()


def decode(data: bytes, file: str) -> FleetSnapshot:
    """The snapshot in a file, or ``InputError``."""
    if len(data) > MOST_BYTES:
        raise _error("snapshot-unreadable", f"{file} is larger than {MOST_BYTES >> 20} MiB")
    try:
        document = json_text.parse(data)
    except ValueError:
        raise _error("snapshot-unreadable", f"{file} is not JSON") from None
    if not isinstance(document, dict) or "version" not in document:
        raise _error("snapshot-unreadable", f"{file} is not a snapshot")
    if document["version"] != VERSION:
        raise _error(
            "snapshot-version",
            f"{file} is a snapshot of version {printable(str(document['version']), 40)}; this rollout reads {VERSION}",
        )
    try:
        return _fleet(document)
    except json_text.ShapeError as error:
        raise _error("snapshot-unreadable", f"{file}: {error}") from None


def _fleet(document: dict[str, Any]) -> FleetSnapshot:
    if document.keys() != _KEYS:
        raise json_text.ShapeError(f"{min(document.keys() ^ _KEYS)[:80]!r} is unknown or missing")
    texts: dict[str, str] = {name: json_text.converter(str).decode(document[name], name) for name in _NAMES}
    contents = _decoded(bytes, document["blobs"], "blobs")
    for name, content in contents.items():
        if digest(content) != name:
            raise json_text.ShapeError(f"blobs.{printable(name, 80)} is not the content of that digest")

    def fill(state: FileState) -> FileState:
        if state.content is None:
            return state
        content = contents.get(state.content.decode("utf-8", "replace"))
        if content is None:
            raise json_text.ShapeError(f"{printable(state.path)} has a content that is not in blobs")
        return replace(state, content=content)

    read = _decoded(Snapshot, document["read"], "read")
    nodes: dict[str, Snapshot | Unread] = {name: _with_files(node, fill) for name, node in read.items()}
    nodes |= _decoded(Unread, document["unread"], "unread")
    order = json_text.converter(tuple[str, ...]).decode(document["order"], "order")
    if sorted(order) != sorted(nodes):
        raise json_text.ShapeError("order does not name the nodes read and unread")
    return FleetSnapshot(nodes={name: nodes[name] for name in order}, **texts)


def _decoded(kind: Any, data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise json_text.ShapeError(f"{where} is not an object")
    inner = json_text.converter(kind)
    return {name: inner.decode(entry, f"{where}.{name}") for name, entry in data.items()}


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
