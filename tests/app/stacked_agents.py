"""A fake of the port ``Nodes``: nodes with files, receipts, copies and a claim, which answer in the agent's protocol.

What a node keeps and answers is that of the real agent; ``tests/agent/test_stacked_agents.py`` compares both. Requests are
carried out at once and always succeed on healthy nodes: faults are the simulator's matter.
"""

from __future__ import annotations

import base64
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import digest
from tests.app.agents import MACHINE, answer, well

MOST_TOLD = 8
"""Receipts in one answer."""


class RefusedError(Exception):
    """The agent refuses: its reference, and the text."""


@dataclass
class Applied:
    """A transaction on a node. ``versions``: path → bytes before (``None``: absent) and after."""

    tx: str
    run: str
    counter: int
    seq: int
    versions: Mapping[str, tuple[bytes | None, bytes]]
    state: str = "armed"
    cause: str = "-"
    place: int = 0
    keeps_foreign: bool = False
    """A forced revert found bytes that no receipt names: they are kept until ``forget``."""

    @property
    def last(self) -> int:
        return max(self.seq, self.place)

    def told(self, word: str) -> str:
        return (
            f"{word} tx={self.tx} run={self.run} counter={self.counter} state={self.state} cause={self.cause} "
            f"left={20 if self.state == 'armed' else 0} finished=1"
        )


@dataclass
class StackedNode:
    """``files``: path → bytes; a path that is not there is absent."""

    files: dict[str, bytes]
    applied: list[Applied] = field(default_factory=list)
    claim: tuple[int, str, str] = (0, "-", "ended")
    voided: set[str] = field(default_factory=set)
    frozen: str = "0 - open - -"

    def do(self, verb: str, words: Mapping[str, str], lines: Sequence[str]) -> Iterable[str]:
        try:
            yield from _VERBS[verb](self, words, lines)
        except RefusedError as error:
            yield f"refused {error.args[0]} {error.args[1]}"
            if (found := self.known(words.get("tx", ""))) is not None:
                yield found.told("receipt")

    def known(self, tx: str) -> Applied | None:
        return next((each for each in self.applied if each.tx == tx), None)

    def at(self, path: str) -> bytes | None:
        return self.files.get(path)

    def _fence(self, words: Mapping[str, str]) -> None:
        counter, run, state = self.claim
        asked = (int(words["counter"]), words["run"])
        if asked[0] < counter or (asked[0] == counter and asked[1] != run):
            raise RefusedError("fenced", f"this node has accepted token {counter} of run {run}")
        if state == "live" and run != asked[1] and "force" not in words:
            raise RefusedError("claimed", f"by run {run}")

    def _accept(self, words: Mapping[str, str]) -> None:
        if self.claim[:2] != (int(words["counter"]), words["run"]):
            self.claim = (int(words["counter"]), words["run"], "live")

    def _state(self, tx: str = "") -> Iterator[str]:
        yield f"token {' '.join(map(str, self.claim))}"
        for each in sorted(self.applied, key=lambda found: -found.seq)[:MOST_TOLD]:
            yield each.told("history")
        if (found := self.known(tx)) is not None:
            yield found.told("receipt")
        yield f"fact machine-id {MACHINE}"
        yield from self._frozen()

    def _frozen(self) -> Iterator[str]:
        counter, name, state, who, why = self.frozen.split(" ")
        if state == "frozen":
            yield f"fact frozen {counter} {name} {who} {why}"

    def freeze(self, words: Mapping[str, str], lines: Sequence[str], state: str = "frozen") -> Iterator[str]:
        if int(words["counter"]) <= int(self.frozen.split(" ")[0]) or int(words["counter"]) < self.claim[0]:
            raise RefusedError("fenced", "this node has accepted a newer token")
        said = dict(line.split(" ", 1) for line in lines)
        self.frozen = " ".join((words["counter"], words["run"], state, said["who"], said["why"]))
        yield from self._frozen()

    def unfreeze(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        return self.freeze(words, lines, "open")

    def _shown(self, paths: Iterable[str]) -> Iterator[str]:
        for path in dict.fromkeys(paths):
            content = self.at(path)
            if content is None:
                yield f"file absent - - - - {path} -"
            else:
                yield f"file regular 644 0:0 {len(content)} {digest(content)} {path} -"

    def status(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        if "claim" in words:
            self._fence(words)
            if self.claim[:2] != (int(words["counter"]), words["run"]):
                self.voided = set()
            self.claim = (int(words["counter"]), words["run"], "live")
        if "void" in words and self.known(words["tx"]) is None:
            self.voided.add(words["tx"])
            yield f"voided {words['tx']}"
        yield from self._state(words.get("tx", ""))
        if "measure" in words:
            yield from (*well(), *self._shown(_paths(lines)))

    def apply(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        self._fence(words)
        if any(self._frozen()):
            raise RefusedError("frozen", "since a token")
        if words["tx"] in self.voided:
            raise RefusedError("voided", "its run has given this transaction up")
        if self.known(words["tx"]) is None:
            versions: dict[str, tuple[bytes | None, bytes]] = {}
            for line in lines:
                kind, _, rest = line.partition(" ")
                if kind == "file":
                    _, path, before, _after, _mode, encoded = rest.split(" ")
                    now = self.at(path)
                    if before != ("absent" if now is None else digest(now)):
                        raise RefusedError("drifted", path)
                    versions[path] = (now, base64.b64decode("" if encoded == "-" else encoded))
            if any(each.state == "armed" for each in self.applied):
                raise RefusedError("armed-by-another", "a transaction is armed")
            self._accept(words)
            self.applied.append(Applied(words["tx"], words["run"], int(words["counter"]), self._next(), versions))
            self.files |= {path: after for path, (_, after) in versions.items()}
        yield "healthy yes process 7"
        yield from self._state(words["tx"])

    def _next(self) -> int:
        return max((each.last for each in self.applied), default=0) + 1

    def confirm(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert not lines
        self._fence(words)
        found = self._of(words)
        if found.state == "reverted":
            raise RefusedError("too-late", f"{found.tx} is reverted")
        self._accept(words)
        found.state = "confirmed"
        self._prune(int(words["keep"]))
        yield from self._state(words["tx"])

    def _prune(self, keep: int) -> None:
        kept, seen = [], Counter[str]()
        for each in sorted(self.applied, key=lambda each: -each.last):
            seen[each.state] += 1
            newest = each.state == "confirmed" and seen["confirmed"] == 1
            if (
                each.state == "armed"
                or newest
                or each.keeps_foreign
                or (seen["confirmed"] <= keep and seen["reverted"] <= 4 * keep)
            ):
                kept.append(each)
        self.applied = [each for each in self.applied if each in kept]

    def revert(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert not lines
        self._fence(words)
        found = self._of(words)
        self._accept(words)
        if found.state != "reverted":
            if any(each.state == "armed" and each is not found for each in self.applied):
                raise RefusedError("armed-by-another", "a transaction is armed")
            for path, versions in found.versions.items():
                if self.at(path) not in versions:
                    if "force" not in words:
                        raise RefusedError("foreign-bytes", path)
                    found.keeps_foreign |= self.at(path) is not None
            found.place = self._next() if found.state == "confirmed" else 0
            for path, (before, _) in found.versions.items():
                if before is None:
                    self.files.pop(path, None)
                else:
                    self.files[path] = before
            found.state, found.cause = "reverted", "asked"
        yield "healthy yes process 7"
        yield from self._state(words["tx"])

    def _of(self, words: Mapping[str, str]) -> Applied:
        found = self.known(words["tx"])
        if found is None:
            raise RefusedError("no-transaction", words["tx"])
        return found

    def cleanup(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert not lines
        self._fence(words)
        self.claim = (int(words["counter"]), words["run"], "ended")
        yield from self._state()

    def verify(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert words["unit"]
        yield from self._state()
        for each in sorted(self.applied, key=lambda found: -found.seq):
            for path, (before, after) in each.versions.items():
                was = "absent" if before is None else digest(before)
                yield f"expected {each.tx} {each.state} {each.seq} {each.place} {was} {digest(after)} 644 0:0 {path}"
        paths = [path for each in self.applied for path in each.versions]
        yield from (*well(), *self._shown((*paths, *_paths(lines))))

    def forget(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert not lines
        self._fence(words)
        if any(each.state == "armed" for each in self.applied):
            raise RefusedError("armed-by-another", "a transaction is armed")
        self.applied, self.claim = [], (0, "-", "ended")
        yield from ()

    def snapshot(self, words: Mapping[str, str], lines: Sequence[str]) -> Iterator[str]:
        assert words["unit"]
        assert not lines
        yield from self._state()
        yield from well()


def _paths(lines: Sequence[str]) -> Iterator[str]:
    return (line.removeprefix("path ") for line in lines if line.startswith("path "))


_VERBS = {
    "status": StackedNode.status,
    "apply": StackedNode.apply,
    "confirm": StackedNode.confirm,
    "revert": StackedNode.revert,
    "cleanup": StackedNode.cleanup,
    "verify": StackedNode.verify,
    "forget": StackedNode.forget,
    "freeze": StackedNode.freeze,
    "unfreeze": StackedNode.unfreeze,
    "snapshot": StackedNode.snapshot,
}


@dataclass
class StackedAgents:
    """``says``: (node, verb) → its answer instead. ``asked``: (node, verb) of every request that may change a node."""

    nodes: Mapping[str, StackedNode]
    says: dict[tuple[str, str], RemoteAnswer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        assert command.request is not None
        verb, *words = command.request.words.split()
        said = dict(word.split("=", 1) for word in words)
        with self.lock:
            if verb not in ("verify", "status") or "claim" in said:
                self.asked.append((target.name, verb))
            if (target.name, verb) in self.says:
                return self.says[target.name, verb]
            lines = command.request.payload.decode().splitlines()
            return answer(verb, *self.nodes[target.name].do(verb, said, lines))

    def release(self, _target: Target) -> None: ...

    def close(self) -> None: ...
