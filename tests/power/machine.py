"""An emulated machine: a Debian kernel, busybox, the agent, one ext4 disk. It can be switched off."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk")
TOOLS = ("busybox", "flock")
DISK = 64 * 1024 * 1024


def make_disk(file: Path, tree: Path) -> None:
    """A file system that contains this tree."""
    file.unlink(missing_ok=True)
    with file.open("wb") as disk:
        disk.truncate(DISK)
    subprocess.run(["mkfs.ext4", "-q", "-d", str(tree), str(file)], check=True)


def make_memory(file: Path, tree: Path, kernel: Path) -> None:
    """What the kernel unpacks at boot: ``tree``, ``init``, busybox and flock, and the modules that the disk needs."""
    shutil.copy(HERE / "init", tree / "init")
    (tree / "init").chmod(0o755)
    for name in TOOLS:
        program = Path(shutil.which(name) or f"/usr/bin/{name}").resolve()
        for path in (program, *_libraries(program)):
            inside = tree / (f"bin/{name}" if path == program else str(path).lstrip("/"))
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path.resolve(), inside)
    lines = []
    for name in MODULES:
        found = next(kernel.rglob(f"{name}.ko"), None)
        if found is not None:
            shutil.copy(found, tree / found.name)
            lines.append(f"/{found.name}\n")
    (tree / "modules").write_text("".join(lines))
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with file.open("wb") as out:
        subprocess.run(
            ["busybox", "cpio", "-o", "-H", "newc"],
            input=names.encode(),
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=tree,
            check=True,
        )


def _libraries(program: Path) -> Iterator[Path]:
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    for word in said.split():
        if word.startswith("/"):
            yield Path(word)


class Machine:
    """Switched on when made; ``lines`` is its output as long as it runs; ``off`` is a power cut."""

    def __init__(self, kernel: Path, memory: Path, disk: Path, words: str) -> None:
        self._process = subprocess.Popen(
            [
                "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-m", "256", "-nographic", "-nodefaults", "-no-reboot",
                "-kernel", str(kernel), "-initrd", str(memory), "-append", f"console=ttyS0 quiet panic=-1 no_timer_check {words}",
                "-drive", f"file={disk},format=raw,if=virtio,cache=writeback", "-serial", "stdio",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        atexit.register(self.off)

    @property
    def pid(self) -> int:
        return self._process.pid

    def lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.decode("ascii", "replace").strip()

    def off(self) -> None:
        self._process.kill()
        self._process.wait()


def kernel_of(folder: Path) -> Path:
    """The kernel image below a folder of unpacked packages, or of this machine."""
    found = sorted(folder.glob("vmlinuz-*"))
    if not found:
        raise SystemExit(f"NOT TESTED: no kernel in {folder} (tests/power/get-kernel.sh brings one)")
    return Path(os.path.realpath(found[-1]))
