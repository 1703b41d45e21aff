"""Files that do not exist yet: never over another file, and all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

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
