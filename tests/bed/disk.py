"""A node's disk: an ext4 file system of its own, in a file. It can be filled, and it can lose its power."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bed.shell import run

SIZE = 64 * 1024 * 1024
"""Bytes; sparse: a booted node uses about 15 MiB of them."""

_BLOCK = 1024

_SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN: the file system accepts no more writes."""
_AS_IT_IS = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: not even those in its journal's memory."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The file systems of one node below ``folder``: what it writes, and the root it sees over ``image``."""

    folder: Path
    image: Path
    name: str

    @property
    def written(self) -> Path:
        """What the node wrote: the upper layer of its root."""
        return self._place / "written"

    @property
    def root(self) -> Path:
        """The node's root, as it sees it."""
        return self.folder / "root"

    def make(self) -> None:
        """An empty disk; ``written`` may be filled, then ``mount``."""
        self._place.mkdir(parents=True)
        self.root.mkdir()
        with self._file.open("wb") as file:
            file.truncate(SIZE)
        run("mkfs.ext4", "-q", "-m", "0", "-b", str(_BLOCK), str(self._file))
        run("mount", "-o", "loop", str(self._file), str(self._place))
        self.written.mkdir()
        self._work.mkdir()

    def mount(self) -> None:
        """Mount the root; all data written so far survives a power cut."""
        run("sync", "-f", str(self._place))
        lower = f"lowerdir={self.image},upperdir={self.written},workdir={self._work}"
        run("mount", "-t", "overlay", self.name, "-o", lower, str(self.root))

    def unmount(self) -> None:
        for point in (self.root, self._place):
            run("umount", "-l", str(point), check=False)

    def stop(self) -> None:
        """No power: from this instant no write reaches the disk."""
        place = os.open(self._place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, _SHUTDOWN, struct.pack("I", _AS_IT_IS))
        finally:
            os.close(place)

    def restart(self) -> None:
        """Power again, after ``stop``: unsynced data is lost. (A copy, since other processes may still use the dead one.)"""
        self.unmount()
        copy = self._file.with_suffix(".copy")
        run("cp", "--sparse=always", str(self._file), str(copy))
        copy.replace(self._file)
        run("mount", "-o", "loop", str(self._file), str(self._place))
        self.mount()

    def fill(self, leave: int = 0) -> None:
        """Use up all room but ``leave`` KiB."""
        run("sync", "-f", str(self._place))
        step = room = self._room() - leave * 1024
        with self._ballast.open("ab") as ballast:
            while min(step, room) >= _BLOCK:
                try:
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), min(step, room))
                except OSError:  # metadata of the ballast takes room too
                    step //= 2
                room = self._room() - leave * 1024

    def use_up_inodes(self) -> None:
        """No further file or folder can be made."""
        self._names.mkdir(exist_ok=True)
        with suppress(OSError):
            for number in itertools.count():
                (self._names / str(number)).touch()

    def spare_a_little(self) -> None:
        """Free what an overlay needs to be mounted again, on a disk without blocks and inodes."""
        for number in range(16):
            (self._names / str(number)).unlink()
        os.truncate(self._ballast, self._ballast.stat().st_size - 64 * _BLOCK)
        run("sync", "-f", str(self._place))

    def _room(self) -> int:
        found = os.statvfs(self._place)
        return found.f_bavail * found.f_frsize

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)
        shutil.rmtree(self._names, ignore_errors=True)

    @property
    def _place(self) -> Path:
        return self.folder / "disk"

    @property
    def _file(self) -> Path:
        return self.folder / "disk.ext4"

    @property
    def _work(self) -> Path:
        return self._place / "work"

    @property
    def _names(self) -> Path:
        return self._place / "names"

    @property
    def _ballast(self) -> Path:
        return self._place / "ballast"
