"""The project folder: the nearest folder with ``rollout.toml``, from the current folder upwards, as git finds its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rollout.adapters.files import FolderFiles
from rollout.adapters.owners import REMEDY, others_hold
from rollout.core.reading.project_file import PROJECT_FILE, PROJECT_KEYS, ProjectValue, read_project
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

MAX_BYTES = 16 * 1024


@dataclass(frozen=True)
class Project:
    """``folder`` is the current one (as ``.``) if there is no ``rollout.toml``; ``file`` is then ``None``.

    ``values`` has absolute paths.
    """

    folder: Path = field(default_factory=Path)
    file: Path | None = None
    values: Mapping[str, ProjectValue] = field(default_factory=dict)

    def clusters(self) -> Sequence[str]:
        """The names of its inventories, in order."""
        from rollout.app.load import INVENTORY_FOLDER, names_in  # noqa: PLC0415 - what reads inventories takes 0.1 s to import

        return sorted(names_in(FolderFiles(self.folder), INVENTORY_FOLDER))

    def default(self, key: str) -> str:
        """The value of a key that is set nowhere: a path of the project."""
        known = PROJECT_KEYS[key]
        return str(self.folder / known.default) if known.is_path and known.default else known.default


def project_at(start: Path) -> Project:
    """The project that ``start`` is in. Raises ``InputError`` for a wrong file, or one that others control."""
    try:
        here = start.absolute()
    except FileNotFoundError:
        raise _problem("file-unreadable", "the current folder was removed", "change to another folder") from None
    for folder in (here, *here.parents):
        if os.path.lexists(folder / PROJECT_FILE):
            file = folder / PROJECT_FILE
            _check_owner(file)
            text = FolderFiles(folder, MAX_BYTES).read(PROJECT_FILE)
            written = read_project(text, printable(str(file), 500))
            values = {key: _absolute(key, value, folder) for key, value in written.items()}
            return Project(folder, file, values)
    return Project()


def _absolute(key: str, written: ProjectValue, folder: Path) -> ProjectValue:
    if not PROJECT_KEYS[key].is_path:
        return written
    path = os.path.expanduser(written.value)  # noqa: PTH111 - `~` of an unknown user stays as written
    return ProjectValue(str(folder / path), written.place)


def _check_owner(file: Path) -> None:
    """A file above the current folder may be another user's, and a kubeconfig of theirs would run their programs."""
    try:
        why = others_hold(file)
    except OSError as error:
        raise _problem("file-unreadable", f"{file}: {error.strerror}") from None
    if why:
        raise _problem("project-not-yours", f"{file}: {why}", REMEDY)


def _problem(reference: str, message: str, hint: str = "") -> InputError:
    return InputError((Problem(reference, printable(message, 500), hint=printable(hint, 500)),))
