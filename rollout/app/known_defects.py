"""The known defects that a project adds to those of rollout."""

from __future__ import annotations

from rollout.app.ports import Files
from rollout.kubelet.defects.rows import OWN_FILE, Defect, of_project


def own_defects(files: Files) -> tuple[Defect, ...]:
    """The rows of the project's file, ``()`` if it has none. ``InputError`` with every mistake in it."""
    return of_project(files.read(OWN_FILE)) if files.exists(OWN_FILE) else ()
