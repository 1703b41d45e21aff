"""A container runtime's start and its SIGHUP as functions: command line and files in; journal lines and outcome out."""

from __future__ import annotations

from rollout.kubelet.runtimes.stand_in import RuntimeExitError
from rollout.lab.kubelet import ProgramStart
from rollout.lab.runtimes import STAND_INS
from rollout.lab.units import Tree


def start(unit: str, version: str, arguments: tuple[str, ...], tree: Tree) -> ProgramStart:
    """Start a runtime of this ``version`` (``""``: any) with a command line on a node's files."""
    try:
        STAND_INS[unit].read(version, arguments, tree)
    except RuntimeExitError as error:
        return ProgramStart((f'time="2026-11-20T09:00:00Z" level=fatal msg="{error}"',), 1)
    return ProgramStart()


def reload(unit: str, arguments: tuple[str, ...], tree: Tree) -> tuple[str, ...] | None:
    """Its log lines after a SIGHUP; ``None``: it does not handle the signal and dies."""
    daemon = STAND_INS.get(unit)
    if daemon is None or daemon.reload is None:
        return None
    try:
        level, text = "info", daemon.reload(arguments, tree)
    except RuntimeExitError as error:
        level, text = "error", str(error)
    return (f'time="2026-11-20T09:00:00Z" level={level} msg="{text}"',)
