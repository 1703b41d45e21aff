"""A node's files as runtimes' changes need them: the text, known to be absent, or not known (refused)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from rollout.core.model.snapshot import FileState
from rollout.kubelet.node import layout
from rollout.kubelet.node.layout import LayoutError

Files = Mapping[str, FileState]


def text(files: Files, path: str) -> str | None:
    """The file's text, ``None`` when it is absent; ``LayoutError`` when the snapshot does not know it, or it is no text."""
    state = files.get(path)
    if (state is None and _told(files, path)) or (state is not None and state.kind == "absent"):
        return None
    return layout.text_of(state, path)


def below(files: Files, directory: str) -> tuple[str, ...]:
    """What lies under a directory, in the order in which Go's ``filepath.Walk`` meets it; ``LayoutError`` if not told."""
    if not _told(files, directory + "/"):
        raise LayoutError("layout-not-understood", f"the snapshot does not list the files in {directory}")
    here = [path for path, state in files.items() if path.startswith(directory + "/") and state.kind != "absent"]
    return tuple(sorted(here, key=lambda path: path.split("/")))


def is_there(files: Files, directory: str) -> bool:
    """Is there such a directory, as far as the snapshot shows one?"""
    state = files.get(directory)
    return (state is not None and state.kind != "absent") or any(
        path.startswith(directory + "/") and held.kind != "absent" for path, held in files.items()
    )


def beside(path: str, name: str) -> str:
    """``name`` as a file of this ``path`` would mean it: relative to its directory."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def _told(files: Files, path: str) -> bool:
    """Is a directory above ``path`` in the snapshot? The agent tells what lies in each directory that it names."""
    above = (path[:at] for at, mark in enumerate(path) if mark == "/" and at)
    return any(directory in files and files[directory].kind in {"directory", "absent"} for directory in above)
