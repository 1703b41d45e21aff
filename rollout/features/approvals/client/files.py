"""Signatures beside a plan: ``PLAN.approvals/NAME.sig``, one file for each approval, readable by all who may read the folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rollout.adapters.files import write_for_all
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
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                raise _refused(path, f"it is not a regular file of at most {MOST_BYTES} bytes")
            return file.read(MOST_BYTES).decode("ascii", "replace")
    except OSError as exc:
        raise _refused(path, exc.strerror or str(exc)) from exc


def keep_signature(plan: Path, approval: Approval, is_good: Callable[[str], bool]) -> Path:
    """Write the signature into a file of its own. ``InputError``: it cannot be written, or a good one of this key is there.

    ``is_good``: whether the text of a file is an approval now. Another one, such as one that has expired, is replaced.
    """
    who = re.sub(r"[^A-Za-z0-9@._-]", "_", approval.person)[:80]
    key = re.sub(r"[^A-Za-z0-9]", "", approval.key.removeprefix("SHA256:"))[:12]
    path = folder_of(plan) / f"{who}-{key}{SUFFIX}"
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as exc:
        raise _refused(path, exc.strerror or str(exc)) from exc
    if os.path.lexists(path) and is_good(_text(path)):
        raise InputError((Problem("approval-same-signer", f"{path}: {approval.person} approved it already"),))
    try:
        write_for_all(path, approval.signature)
    except InputError as error:
        raise InputError(tuple(replace(each, reference="approval-file") for each in error.problems)) from error
    return path


def _refused(path: Path, why: str) -> InputError:
    return InputError((Problem("approval-file", f"{path}: {why}"),))
