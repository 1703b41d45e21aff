"""A mount that is read-only when a run cleans up: what stays behind is reported, and ``rollout cluster unlock`` removes it later.

The mount is a real one: a folder of the node's files, mounted on itself.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, until
from tests.story.conftest import Site
from tests.story.test_faults import begun, few, nothing_left, plan, where

pytestmark = [pytest.mark.process, pytest.mark.root]

__all__ = ["few"]  # the fixture

NODE = "small-001"
UNLOCK = ("cluster", "unlock", "--cluster", "small", "--limit", NODE, "--yes", "--reason", "a mount was read-only")


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """The folder is a mount of its own; it ends writable."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,bind,{how}", str(folder)], check=True)


def test_what_a_read_only_mount_kept_behind_is_named_truly_and_removed_by_unlock(few: Site) -> None:
    plan(few, NODE)
    folder = few.node(NODE) / "etc/default"
    with mounted(folder):
        with begun(few, "apply", "p.json", "--yes") as process:
            until(lambda: "=5m" in few.flags(NODE), PATIENCE, "the new files are in place, and not confirmed")
            process.kill()
            process.wait(PATIENCE)
        remount(folder, "ro")
        resumed = few.rollout("resume", "--yes")
        assert where(few)["counts"] == {"confirmed": 1}, resumed.all
        behind = [path for path in folder.iterdir() if path.name != "kubelet"]
        assert [path.name.startswith(".rollout-") for path in behind] == [True], resumed.all
        named = f"/etc/default/{behind[0].name}"
        assert f"left behind: {NODE}" in resumed.out, resumed.all

        tried = few.rollout(*UNLOCK)
        assert (tried.code, behind[0].exists()) == (4, True), tried.all
        assert f"left behind on {NODE}, to be removed: {named}" in tried.all
        assert f"{NODE}: {named}" in tried.out.splitlines(), "it is still there, and that is said"
        assert "unlocked: 0 nodes released, 1 not released" in tried.out

        remount(folder, "rw")
        done = few.rollout(*UNLOCK)
        assert (done.code, behind[0].exists()) == (0, False), done.all
        assert "unlocked: 1 node released, 0 not released" in done.out
        again = few.rollout(*UNLOCK)
        assert (again.code, "no lease and no claim" in again.all) == (0, True), again.all
    nothing_left(few, NODE)
    assert few.is_new(NODE), "the change itself is untouched"
