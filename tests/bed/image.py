"""The nodes' root file system: built once (30 s; minutes on a loaded machine), cached under the digest of its recipe."""

from __future__ import annotations

import fcntl
import hashlib
import os
from enum import StrEnum
from pathlib import Path

from tests.bed.shell import run

RECIPE = Path(__file__).with_name("image.sh")
PATIENCE = 3600.0
"""Seconds for a build: it fetches 100 MB, and others may load the machine. apt gives up a dead mirror much earlier."""


class System(StrEnum):
    """The operating system of a bed's nodes. ``image.sh`` knows them by these names."""

    BOOKWORM = "bookworm"
    TRIXIE = "trixie"
    SID = "sid"
    SID_RUST = "sid-rust"  # sudo-rs and rust-coreutils


def cache() -> Path:
    """The bed's folder for files; on a disk, since the nodes' overlays are there too."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "rollout" / "bed"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(system: System = System.BOOKWORM) -> Path:
    """Where the image of this recipe is, once it has been made."""
    return cache() / f"image-{system}-{hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:16]}.tar.zst"


def image(system: System = System.BOOKWORM) -> Path:
    """The cached image, made now if needed; concurrent runs make it once. `make` makes it before the tests."""
    made = kept(system)
    with (cache() / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            fresh = made.with_name(made.name.replace("image-", "fresh-"))
            run(str(RECIPE), str(fresh), system, timeout=PATIENCE)
            fresh.rename(made)
    return made


def unpack(folder: Path, system: System = System.BOOKWORM) -> None:
    """Unpack the image as a tree, the lower layer of every node's overlay."""
    folder.mkdir(parents=True)
    run("tar", "--numeric-owner", "-I", "zstd", "-xf", str(image(system)), "-C", str(folder))
