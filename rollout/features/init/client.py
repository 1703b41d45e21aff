"""Files that do not exist yet: never over another file, and all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rollout.adapters.files import FolderFiles, write_for_all
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem


def write_new(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes each text to its path below ``folder``. If one cannot be made, those before it are removed again."""
    made: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            if not path.parent.exists():
                path.parent.mkdir()
                made.append(path.parent)
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except OSError as error:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        message = f"nothing was written: {printable(str(error.filename or folder))}: {error.strerror}"
        raise InputError((Problem("file-not-writable", message),)) from None


def read_if_there(path: Path) -> str | None:
    """``None``: there is no such file."""
    return FolderFiles(path.parent).read(path.name) if path.is_file() else None


def replace_all(folder: Path, texts: Mapping[str, tuple[str | None, str]]) -> None:
    """Writes each new text over the old one. ``InputError``, before the first: another text is there by now."""
    for name, (old, _) in texts.items():
        if read_if_there(folder / name) != old:
            message = f"nothing was written: {printable(name)} has changed since it was shown"
            raise InputError((Problem("file-changed", message, hint="run the command again"),))
    for name, (_, new) in texts.items():
        write_for_all((folder / name).resolve(), new)
