"""A node's files for changes of runtimes: the text, known to be absent, or not known (refused)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from rollout.core.model.snapshot import FileState
from rollout.kubelet.node import layout
from rollout.kubelet.node.layout import LayoutError

Files = Mapping[str, FileState]


def text(files: Files, path: str) -> str | None:
    """The file's text, ``None`` when it is absent; ``LayoutError`` when the snapshot lacks it, or it is no text."""
    state = files.get(path)
    if (state is None and _told(files, path)) or (state is not None and state.kind == "absent"):
        return None
    return layout.text_of(state, path)


def below(files: Files, directory: str) -> tuple[str, ...]:
    """The files under a directory, in the order of Go's ``filepath.Walk``; ``LayoutError`` when they are not listed."""
    if not _told(files, directory + "/"):
        raise LayoutError("layout-not-understood", f"the snapshot does not list the files in {directory}")
    here = [path for path, state in files.items() if path.startswith(directory + "/") and state.kind != "absent"]
    return tuple(sorted(here, key=lambda path: path.split("/")))


def is_there(files: Files, directory: str) -> bool:
    """Does the directory exist, as far as the snapshot shows?"""
    state = files.get(directory)
    return (state is not None and state.kind != "absent") or any(
        path.startswith(directory + "/") and held.kind != "absent" for path, held in files.items()
    )


def beside(path: str, name: str) -> str:
    """``name`` as it is meant in the file of this ``path``: relative to its directory."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def _told(files: Files, path: str) -> bool:
    """Is a directory above ``path`` in the snapshot? The agent lists the files in each directory that it names."""
    above = (path[:at] for at, mark in enumerate(path) if mark == "/" and at)
    return any(directory in files and files[directory].kind in {"directory", "absent"} for directory in above)
