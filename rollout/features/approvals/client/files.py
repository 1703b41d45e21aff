"""Signatures beside a plan: ``PLAN.approvals/NAME.sig``, one file for each approval, readable by all who may read the folder."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from rollout.core.model.approvals import Approval
from rollout.errors import InputError, Problem

MOST_FILES = 64
MOST_BYTES = 16 * 1024
SUFFIX = ".sig"


def folder_of(plan: Path) -> Path:
    return plan.with_name(f"{plan.name}.approvals")


def signatures_beside(plan: Path) -> dict[str, str]:
    """File → its text. ``InputError`` for what is no small regular file; links are not followed."""
    folder = folder_of(plan)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))  # noqa: PTH208 - names, not paths
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise _refused(folder, exc.strerror or str(exc)) from exc
    if len(names) > MOST_FILES:
        raise _refused(folder, f"it has more than {MOST_FILES} signatures")
    return {str(folder / name): _text(folder / name) for name in names}


def _text(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                raise _refused(path, f"it is not a regular file of at most {MOST_BYTES} bytes")
            return file.read(MOST_BYTES).decode("ascii", "replace")
    except OSError as exc:
        raise _refused(path, exc.strerror or str(exc)) from exc


def keep_signature(plan: Path, approval: Approval) -> Path:
    """Write the signature into a file of its own. ``InputError``: it cannot be written, or there is one of this key."""
    who = re.sub(r"[^A-Za-z0-9@._-]", "_", approval.person)[:80]
    key = re.sub(r"[^A-Za-z0-9]", "", approval.key.removeprefix("SHA256:"))[:12]
    path = folder_of(plan) / f"{who}-{key}{SUFFIX}"
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="ascii") as file:
            file.write(approval.signature)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise InputError((Problem("approval-same-signer", f"{path}: {approval.person} approved it already"),)) from None
    except OSError as exc:
        raise _refused(path, exc.strerror or str(exc)) from exc
    return path


def _refused(path: Path, why: str) -> InputError:
    return InputError((Problem("approval-file", f"{path}: {why}"),))
