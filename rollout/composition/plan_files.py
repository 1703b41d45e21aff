"""Files of plans and snapshots, read for commands."""

from __future__ import annotations

from pathlib import Path

from rollout.app.plan_file import read_plan
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import snapshot_codec
from rollout.errors import InputError, Problem

LARGEST = 2**30
"""Most bytes of a plan or snapshot file."""


def saved_fleet(path: Path) -> FleetSnapshot:
    """The snapshot that ``--save-snapshot`` wrote."""
    try:
        return snapshot_codec.decode(read_bounded(path), str(path))
    except OSError as exc:
        raise InputError((Problem("file-missing", f"{path}: {exc.strerror}"),)) from exc


def read_bounded(path: Path) -> bytes:
    """The content of a plan or snapshot file: a regular file of at most ``LARGEST`` bytes."""
    if path.exists() and (not path.is_file() or path.stat().st_size > LARGEST):
        raise InputError(
            (
                Problem(
                    "file-not-ours", f"{path} is not a plan or snapshot file: not a regular file, or larger than 1 GiB"
                ),
            )
        )
    return path.read_bytes()


def plan_in(path: Path) -> Plan:
    """The plan in a file, or ``InputError``."""
    try:
        return read_plan(read_bounded(path), str(path))
    except OSError as exc:
        hint = "a plan is a file that `rollout plan` writes"
        raise InputError((Problem("file-missing", f"{path}: {exc.strerror}", hint=hint),)) from exc
