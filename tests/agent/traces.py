"""What a verb does to the node's disk, by its system calls: ``strace`` around the real program, read into steps.

Only successful calls count. ``/run`` and ``/proc`` are no disk. Paths are as the node sees them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rollout.core.model.report import RemoteAnswer, RemoteCommand
from tests.agent.node import PATIENCE, Node

CALLS = (
    "openat,open,creat,write,copy_file_range,sendfile,ftruncate,truncate,rename,renameat,renameat2,link,linkat,unlink,"
    "unlinkat,symlink,symlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,sync,syncfs,chdir,fchdir"
)
_VOLATILE = ("/run/", "/proc/")
_LINE = re.compile(r"(?P<pid>\d+) +(?P<call>\w+)\((?P<rest>.*)\) += (?P<result>-?\d+)", re.DOTALL)
_ESCAPED = re.compile(r'((?:\\x[0-9a-f]{2})+)|"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class Step:
    """``what`` is make, write, copy, cut (to no bytes), rename, link, symlink, unlink, mkdir, sync, or say (to the caller)."""

    what: str
    path: str = ""
    other: str = ""
    content: bytes = b""

    def __str__(self) -> str:
        return f"say {self.content!r}" if self.what == "say" else f"{self.what} {self.path} {self.other}".strip()


def run(node: Node, command: RemoteCommand, folder: Path) -> tuple[RemoteAnswer, list[Step]]:
    """A verb as the controller sends it."""
    return _traced(node, [str(node.bin / "sh"), "-c", command.line], command.stdin, folder)


def trigger(node: Node, what: str, folder: Path, tx: str = "t1") -> tuple[RemoteAnswer, list[Step]]:
    """What the timer or the boot unit runs."""
    return _traced(node, [str(node.bin / "sh"), str(node.tx(tx) / "agent"), what, tx], b"", folder)


def _traced(node: Node, words: list[str], stdin: bytes, folder: Path) -> tuple[RemoteAnswer, list[Step]]:
    file = folder / "trace"
    strace = ["strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "262144", "-o", str(file), "-e", f"trace={CALLS}"]
    done = subprocess.run(
        [*strace, *words], input=stdin, capture_output=True, env=node.env(), cwd="/", timeout=PATIENCE, check=False
    )
    answer = RemoteAnswer(done.returncode, done.stdout, done.stderr, started=True)
    return answer, list(_steps(file.read_text(), str(node.root)))


def _steps(text: str, root: str) -> Iterator[Step]:
    folders: dict[str, str] = {}
    for line in whole(text):
        match = _LINE.match(line)
        if match is None or int(match["result"]) < 0:
            continue
        words = _words(match["rest"])
        if match["call"] in ("chdir", "fchdir"):
            folders[match["pid"]] = _at(words[0], folders.get(match["pid"], "/"))
            continue
        for step in _step(match["call"], words, folders.get(match["pid"], "/"), match["rest"]):
            shown = _seen(step, root)
            if shown is not None:
                yield shown


def whole(text: str) -> Iterator[str]:
    """Calls that another process interrupted, joined where they ended."""
    begun: dict[str, str] = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[pid] = line.removesuffix("<unfinished ...>").removesuffix(" ")
        elif "resumed>" in rest:
            yield begun.pop(pid, "") + rest.partition("resumed>")[2]
        else:
            yield line


def _words(rest: str) -> list[str]:
    """The arguments: strings and paths of descriptors, hexadecimal in the trace, decoded (bytes as Latin-1)."""
    words = []
    for part in rest.split(", "):
        quoted = re.fullmatch(r'"([^"]*)"', part)
        descriptor = re.match(r"(?:\d+|AT_FDCWD)<(.*)>", part, re.DOTALL)
        words.append(_plain(quoted[1] if quoted else descriptor[1] if descriptor else part))
    return words


def _plain(text: str) -> str:
    return re.sub(
        r"(?:\\x[0-9a-f]{2})+", lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("latin-1"), text
    )


def _at(path: str, base: str) -> str:
    return path if path.startswith("/") else f"{base.rstrip('/')}/{path}"


def _step(call: str, words: list[str], cwd: str, rest: str) -> Iterator[Step]:
    def at(path: str, base: str = cwd) -> str:
        return _at(path, base)

    match call:
        case "openat" | "open" | "creat":
            path = at(words[1], words[0]) if call == "openat" else at(words[0])
            if "O_CREAT" in rest or call == "creat":
                yield Step("make", path)
            if "O_TRUNC" in rest or call == "creat":
                yield Step("cut", path)
        case "write":
            said = "say" if words[0].startswith("pipe:") and rest.startswith("1<") else "write"
            yield Step(said, words[0], content=words[1].encode("latin-1"))
        case "copy_file_range":
            yield Step("copy", words[0], words[2])
        case "sendfile":
            yield Step("copy", words[1], words[0])
        case "ftruncate" | "truncate":
            yield Step("cut", at(words[0]))
        case "rename":
            yield Step("rename", at(words[0]), at(words[1]))
        case "renameat" | "renameat2":
            yield Step("rename", at(words[1], words[0]), at(words[3], words[2]))
        case "linkat":
            yield Step("link", at(words[1], words[0]), at(words[3], words[2]))
        case "symlinkat":
            yield Step("symlink", at(words[2], words[1]), words[0])
        case "symlink":
            yield Step("symlink", at(words[1]), words[0])
        case "unlink" | "rmdir":
            yield Step("unlink", at(words[0]))
        case "unlinkat":
            yield Step("unlink", at(words[1], words[0]))
        case "mkdir":
            yield Step("mkdir", at(words[0]))
        case "mkdirat":
            yield Step("mkdir", at(words[1], words[0]))
        case "fsync" | "fdatasync":
            yield Step("sync", words[0])
        case "sync" | "syncfs":
            yield Step("sync", "/")
        case _:
            raise AssertionError(f"a call that is not understood: {call}")


def _seen(step: Step, root: str) -> Step | None:
    """As the node sees it; ``None`` for a path outside its disk."""
    if step.what == "say" or step.path == "/":
        return step
    if not step.path.startswith(f"{root}/"):
        return None
    path, other = step.path.removeprefix(root), step.other.removeprefix(root)
    return None if path.startswith(_VOLATILE) else Step(step.what, path, other, step.content)
