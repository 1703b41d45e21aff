"""Files that other users of the machine read: metrics."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from rollout.errors import InputError, Problem


def write_for_all(path: Path, text: str) -> None:
    """Replace a file, readable by everyone. Another process reads the old text or the new one, never a part.

    ``InputError`` ``file-not-writable``.
    """
    fresh: Path | None = None
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False) as file:
            fresh = Path(file.name)
            file.write(text)
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        if fresh is not None:
            with suppress(OSError):
                fresh.unlink()
        raise InputError((Problem("file-not-writable", f"{path}: {error.strerror}"),)) from error
