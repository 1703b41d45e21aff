"""A disk behind a page cache: what steps leave when the power fails, in every way that a file system may choose.

The rules are stricter than any file system's. Bytes are safe after a sync of their file; a name (made, linked, renamed,
removed) after a sync of its *folder*. Of the rest, each folder keeps any number of its latest changes, in their
order, and each file its old bytes or its new bytes; one that was made or cut since its last sync may have none. A file
that is only written in place keeps its length, so it is never empty. A renamed file may have both names, but never neither.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.agent.traces import Step

ROOT = 0


@dataclass(slots=True)
class Thing:
    """A file, a folder or a symbolic link, whatever its names: now, and on the disk. ``cut``: to no byte, since its last sync."""

    kind: str
    now: bytes = b""
    safe: bytes = b""
    cut: bool = False

    def clean(self) -> None:
        self.safe, self.cut = self.now, False


@dataclass(frozen=True, slots=True)
class Naming:
    """A folder gives a name to a thing, or removes it. ``first``: the naming that must be on the disk no later.

    ``number`` grows with time.
    """

    number: int
    folder: int
    name: str
    thing: int | None
    first: Naming | None = None


@dataclass(slots=True)
class Disk:
    """``names`` and ``safe_names``: folder → name → thing, now and on the disk.

    ``pending`` is the difference: folder → what was named since, in its order.
    """

    things: dict[int, Thing] = field(default_factory=lambda: {ROOT: Thing("folder")})
    names: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    safe_names: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    pending: dict[int, deque[Naming]] = field(default_factory=dict)
    named: int = 0

    @classmethod
    def of(cls, top: Path, *parts: str) -> Disk:
        """These folders of a real tree, all of it safe."""
        disk = cls()
        seen: dict[int, int] = {}
        for part in parts:
            for path in (top / part, *sorted((top / part).rglob("*"))):
                disk._take(path, "/" + str(path.relative_to(top)), seen)
        disk.do(Step("sync", "/"))
        return disk

    def _take(self, path: Path, name: str, seen: dict[int, int]) -> None:
        if path.is_symlink():
            self.do(Step("symlink", name, str(path.readlink())))
        elif path.is_dir():
            self.do(Step("mkdir", name))
        elif path.stat().st_ino in seen:
            self._name(name, seen[path.stat().st_ino])
        else:
            self.do(Step("make", name))
            self.do(Step("write", name, content=path.read_bytes()))
            seen[path.stat().st_ino] = self.find(name) or ROOT

    # -- looking

    def find(self, path: str, *, safe: bool = False) -> int | None:
        """The thing of this name; ``safe``: that the disk has it under this name."""
        names, at = (self.safe_names if safe else self.names), ROOT
        for part in path.strip("/").split("/"):
            if part not in names.get(at, {}):
                return None
            at = names[at][part]
        return at

    def read(self, path: str, *, safe: bool = False) -> bytes | None:
        found = self.find(path, safe=safe)
        return None if found is None else self.things[found].safe if safe else self.things[found].now

    def paths(self, *, safe: bool = False) -> Iterator[str]:
        """All of them."""
        yield from self._below(ROOT, "", self.safe_names if safe else self.names)

    def _below(self, folder: int, path: str, names: dict[int, dict[str, int]]) -> Iterator[str]:
        for name, number in names[folder].items():
            yield f"{path}/{name}"
            if number in names:
                yield from self._below(number, f"{path}/{name}", names)

    def is_safe(self, path: str) -> bool:
        """The disk has it exactly as it is now, or has not: each name of its path, and its bytes."""
        found = self.find(path)
        if found != self.find(path, safe=True):
            return False
        return found is None or self.things[found].safe == self.things[found].now

    def is_written(self, path: str) -> bool:
        """The disk has its bytes, under any name."""
        thing = self._thing(path)
        return thing.safe == thing.now

    # -- doing

    def do(self, step: Step) -> None:
        match step.what:
            case "make":
                if self.find(step.path) is None:
                    self._name(step.path, self._new("file"))
            case "mkdir":
                if self.find(step.path) is None:
                    self._name(step.path, self._new("folder"))
            case "symlink":
                self._name(step.path, self._new("link", step.other.encode()))
            case "cut":
                thing = self._thing(step.path)
                thing.now, thing.cut = b"", True
            case "write":
                self._write(step)
            case "copy":
                self._thing(step.other).now = self._thing(step.path).now
            case "link":
                self._name(step.other, self._known(step.path))
            case "rename":
                given = self._name(step.other, self._known(step.path))
                self._name(step.path, None, given)
            case "unlink":
                self._name(step.path, None)
            case "sync":
                self._sync(step.path)

    def _write(self, step: Step) -> None:
        """In place for the files that are never cut before (`1<>`), else at the end."""
        thing = self._thing(step.path)
        in_place = step.path.endswith(("/token", "/holder"))
        thing.now = step.content + thing.now[len(step.content) :] if in_place else thing.now + step.content

    def _sync(self, path: str) -> None:
        if path == "/":
            for folder in list(self.pending):
                self._settle_all(folder)
            for thing in self.things.values():
                thing.clean()
            return
        found = self._known(path)
        self.things[found].clean()
        self._settle_all(found)

    def _settle_all(self, folder: int) -> None:
        if folder in self.pending:
            self._settle(self.pending[folder][-1])

    def _settle(self, naming: Naming) -> None:
        """Put it on the disk, with earlier changes of its folder, and with what must be there no later."""
        while (queue := self.pending.get(naming.folder)) and queue[0].number <= naming.number:
            if (earliest := queue[0]).first is not None:
                self._settle(earliest.first)
            if queue and queue[0] is earliest:  # not yet settled with its first
                _put(self.safe_names, queue.popleft())
            if not queue:
                self.pending.pop(naming.folder, None)

    def _new(self, kind: str, content: bytes = b"") -> int:
        number = len(self.things)
        self.things[number] = Thing(kind, content, content)
        if kind == "folder":
            self.names[number], self.safe_names[number] = {}, {}
        return number

    def _name(self, path: str, thing: int | None, first: Naming | None = None) -> Naming:
        folder, _, name = path.rpartition("/")
        at = self._known(folder) if folder else ROOT
        self.named += 1
        naming = Naming(self.named, at, name, thing, first)
        self.pending.setdefault(at, deque()).append(naming)
        _put(self.names, naming)
        return naming

    def _known(self, path: str) -> int:
        found = self.find(path)
        assert found is not None, f"{path} was never made"
        return found

    def _thing(self, path: str) -> Thing:
        return self.things[self._known(path)]

    # -- the power fails

    def cuts(self, chance: random.Random) -> Iterator[Cut]:
        """What may be on the disk: nothing, everything, each folder or file alone ahead or behind, and three at random."""
        folders = sorted(self.pending)
        files = sorted(number for number, thing in self.things.items() if thing.safe != thing.now)
        new, old = dict.fromkeys(files, "now"), dict.fromkeys(files, "safe")
        whole = {folder: len(self.pending[folder]) for folder in folders}
        yield self._cut({}, old)
        yield self._cut(whole, new)
        yield self._cut(whole, old)
        yield self._cut(whole, dict.fromkeys(files, "empty"))
        for folder in folders:
            yield self._cut({folder: whole[folder]}, new)
            yield self._cut({**whole, folder: 0}, new)
        for file in files:
            yield self._cut(whole, {**new, file: "empty"})
        for _ in range(3):
            some = {folder: chance.randint(0, count) for folder, count in whole.items()}
            yield self._cut(some, {file: chance.choice(("now", "safe", "empty")) for file in files})

    def _cut(self, kept: dict[int, int], bytes_of: dict[int, str]) -> Cut:
        waiting = {folder: namings.copy() for folder, namings in self.pending.items()}
        after = Disk(self.things, self.names, {f: dict(n) for f, n in self.safe_names.items()}, waiting)
        for folder, count in kept.items():
            if count:
                after._settle(self.pending[folder][count - 1])
        content = {n: _bytes(thing, bytes_of.get(n, "safe")) for n, thing in self.things.items()}
        return Cut(tuple(after._tree(ROOT, "", content)))

    def _tree(self, folder: int, path: str, content: dict[int, bytes]) -> Iterator[tuple[str, str, int, bytes]]:
        for name, number in sorted(self.safe_names[folder].items()):
            kind = self.things[number].kind
            yield f"{path}/{name}", kind, number, content[number]
            if kind == "folder":
                yield from self._tree(number, f"{path}/{name}", content)


@dataclass(frozen=True)
class Cut:
    """A tree after a power cut: path, kind, thing (the same twice: a hard link) and bytes."""

    tree: tuple[tuple[str, str, int, bytes], ...]

    def lay(self, top: Path, instead: tuple[str, str]) -> None:
        """Write it to a real disk; ``instead``: a path in the bytes, and its replacement."""
        before, after = (text.encode() for text in instead)
        laid: dict[int, Path] = {}
        for path, kind, number, content in self.tree:
            real = top / path[1:]
            if kind == "folder":
                real.mkdir()
            elif kind == "link":
                real.symlink_to(content.decode())
            elif number in laid:
                real.hardlink_to(laid[number])
            else:
                real.write_bytes(content.replace(before, after))
                laid[number] = real


def _bytes(thing: Thing, choice: str) -> bytes:
    return {"now": thing.now, "safe": thing.safe, "empty": b"" if thing.cut else thing.safe}[choice]


def _put(names: dict[int, dict[str, int]], naming: Naming) -> None:
    if naming.thing is None:
        names[naming.folder].pop(naming.name, None)
    else:
        names[naming.folder][naming.name] = naming.thing
