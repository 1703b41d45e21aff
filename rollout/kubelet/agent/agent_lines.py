"""The lines of an agent's answer, read strictly and within bounds into one ``AgentReading``. Nothing here trusts a
node.

A line that is not in the protocol makes the whole answer unread. Text for people loses every character that could move
a cursor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rollout.core.model.report import LastLog, RemoteAnswer
from rollout.core.model.snapshot import (
    FileState,
    Process,
    Receipt,
    ReceiptState,
    Stale,
    Token,
)
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings, Room, Swap, UnitProcesses
from rollout.core.model.transactions import FileVersions, NodeTransaction
from rollout.core.model.verification import Binary
from rollout.core.text.redaction import without_secrets
from rollout.kubelet.agent.agent_reading import AgentReading
from rollout.kubelet.agent.conversation import OVER
from rollout.kubelet.agent.protocol import ANSWERS, COUNT, ID, NAMES, REFERENCE, TEXT, Line, WordKind
from rollout.kubelet.node import rancher_secrets

MAX_LINE = 256 * 1024
MAX_TOTAL = 8 * 1024 * 1024
MAX_LINES = 2_000
MAX_TEXT = 2_000
MAX_OUTPUT = 200
MAX_LOG_LINES = 20
MAX_LOG = 4_096
MOST_OF_A_KIND = 16
"""Folders of manifests, file systems, kernel settings, units with processes: an agent tells fewer."""

T = TypeVar("T")

_BEGIN = re.compile(rb"^begin ([0-9a-f]{64})(?: gzip)?\n", re.MULTILINE)
_CONTROL = re.compile(r"[^ -~]")


class BadLineError(ValueError):
    """A line that is not in the protocol."""


def read(answer: RemoteAnswer) -> AgentReading:
    """All lines of an answer, or ``BadLineError``."""
    if answer.truncated or len(answer.stdout) > MAX_TOTAL:
        raise BadLineError("the answer is too long")
    lines = answered(answer.stdout).split(b"\n")
    if len(lines) > MAX_LINES:
        raise BadLineError("the answer has too many lines")
    reading = AgentReading()
    for number, line in enumerate(lines[:-1], start=1):  # text after the last newline was cut off
        if len(line) > MAX_LINE:
            raise BadLineError(f"line {number} is too long")
        if reading.ended:
            raise BadLineError(f"line {number} follows the end")
        try:
            _take(reading, line, number)
        except BadLineError:
            if _BEGIN.search(answer.stdout):
                raise
            raise BadLineError(_not_ours(lines[0])) from None
    return reading


def _not_ours(line: bytes) -> str:
    """What a login shell such as nologin printed instead of our program."""
    said = printable(line.decode("ascii", "replace"))[:120]
    return f"no answer of the agent began; the node printed instead: {said}; check that the user's login shell runs commands"


def answered(output: bytes) -> bytes:
    """The text of the last answer; a login shell may print before it. The whole text if there is no marker.

    A verb that was killed has said nothing, and its answer only an end.
    """
    begins = tuple(_BEGIN.finditer(output))
    if not begins:
        return output
    last = begins[-1]
    text = output[last.end() :]
    over = OVER.fullmatch(text, text.rfind(b"over "))
    return text[: over.start()] if over and (over[1] == last[1] or not over.start()) else text


def _take(reading: AgentReading, line: bytes, number: int) -> None:
    word, _, rest = line.decode("ascii", "replace").partition(" ")
    reader = READERS.get(word)
    if reader is None:
        raise BadLineError(f"line {number} is not in the protocol: {printable(word)[:40]}")
    try:
        reader(reading, *_fields(ANSWERS[word], rest))
    except (ValueError, binascii.Error) as error:
        raise BadLineError(f"line {number}, {word}: {printable(str(error))[:200]}") from error


def _fields(line: Line, rest: str) -> list[str]:
    """The words of a line, each of its kind. The last one of a line of text may have blanks, and may be missing; that of names may have blanks."""
    kinds = [kind for _, kind in line.fields]
    if kinds[-1] is TEXT:
        words = [*rest.split(" ", len(kinds) - 1), *[""] * len(kinds)][: len(kinds)]
    elif len(kinds) == 1:
        words = [rest]
    else:
        words = rest.split(" ", len(kinds) - 1 if kinds[-1] is NAMES else -1)
        if len(words) != len(kinds):
            raise ValueError(f"{len(words)} words, not {len(kinds)}")
    return [_match(kind, word) for kind, word in zip(kinds, words, strict=True)]


def _refused(reading: AgentReading, reference: str, text: str) -> None:
    reading.refused = (reference, printable(text))


def _failed(reading: AgentReading, reference: str, text: str) -> None:
    reading.failed = (reference, printable(text))


def _say(reading: AgentReading, text: str) -> None:
    reading.said.append(printable(text))


def _token(reading: AgentReading, counter: str, run: str, state: str) -> None:
    reading.token = Token(int(counter), _known(run), state == "live")


def _receipt(reading: AgentReading, rest: str) -> None:
    reading.receipt = _receipt_of(rest)


def _history(reading: AgentReading, rest: str) -> None:
    reading.history.append(_receipt_of(rest))


def _receipt_of(rest: str) -> Receipt:
    pairs = dict(word.split("=", 1) for word in rest.split(" ") if "=" in word)
    if len(pairs) != len(rest.split(" ")):
        raise ValueError("a word is not key=value")
    wanted = {"tx", "run", "counter", "state", "cause", "left", "finished"}
    if missing := wanted - pairs.keys():
        raise ValueError(f"without {', '.join(sorted(missing))}")
    return Receipt(
        tx=_match(ID, pairs["tx"]),
        run="" if pairs["run"] == "-" else _match(ID, pairs["run"]),
        counter=_number(pairs["counter"]),
        state=ReceiptState(pairs["state"]),
        cause="" if pairs["cause"] == "-" else _match(REFERENCE, pairs["cause"]),
        left=float(_number(pairs["left"])),
        finished=pairs["finished"] == "1",
    )


def _healthy(reading: AgentReading, answer: str, text: str) -> None:
    ill = reading.healthy is not None and not reading.healthy[0]
    words = reading.healthy[1] if ill and reading.healthy else printable(text)  # the reason of the revert stays
    reading.healthy = (answer == "yes", words)


def _exited(reading: AgentReading, how: str) -> None:
    """Before the ``log`` line, if there is one."""
    reading.log = LastLog(how)


def _log(reading: AgentReading, encoded: str) -> None:
    """Secrets are removed before the lines are recorded anywhere."""
    text = _decoded(encoded)
    if len(text) > MAX_LOG:
        raise ValueError("longer than the agent sends")
    lines = text.decode("ascii", "replace").splitlines()[-MAX_LOG_LINES:]
    reading.log = replace(reading.log or LastLog(), lines=tuple(without_secrets(printable(line)) for line in lines))


def _fact(reading: AgentReading, key: str, text: str) -> None:
    reading.facts[key] = printable(text)


def _unit(reading: AgentReading, unit: str, key: str, text: str) -> None:
    reading.unit = unit
    reading.properties[key] = printable(text)


def _process(reading: AgentReading, pid: str, encoded: str) -> None:
    reading.process = rancher_secrets.process_of(reading.unit, _process_of(pid, encoded))


def _process_of(pid: str, encoded: str) -> Process:
    words = _decoded(encoded).decode("utf-8", "replace").split("\0")
    return Process(int(pid), tuple(map(printable, words[:-1] if words[-1] == "" else words)))


def _service(reading: AgentReading, unit: str, key: str, text: str) -> None:
    reading.services.setdefault(unit, {})[key] = printable(text)


def _serving(reading: AgentReading, unit: str, pid: str, encoded: str) -> None:
    reading.serving[unit] = _process_of(pid, encoded)


def _pulls(reading: AgentReading, images: str) -> None:
    reading.pulls = () if images == "-" else tuple(images.split(" "))


def _healthz(reading: AgentReading, text: str) -> None:
    reading.healthz = printable(text)


def _lenient(reading: AgentReading, count: str) -> None:
    reading.lenient = int(count)


def _took(reading: AgentReading, milliseconds: str) -> None:
    reading.took = int(milliseconds) / 1000


def _voided(reading: AgentReading, tx: str) -> None:
    reading.voided = tx


def _expected(
    reading: AgentReading,
    tx: str,
    state: str,
    applied_at: str,
    reverted_at: str,
    before: str,
    after: str,
    mode: str,
    owner: str,
    path: str,
) -> None:
    file = FileVersions(path, _known(before, "absent"), _known(after, "absent"), _known(mode), _known(owner))
    known = reading.transactions.get(tx)
    transaction = NodeTransaction(
        tx, ReceiptState(state), int(applied_at), (*known.files, file) if known else (file,), int(reverted_at)
    )
    if known and known != replace(transaction, files=known.files):
        raise ValueError("a transaction with two states")
    reading.transactions[tx] = transaction


def _stale(reading: AgentReading, how: str, seconds: str, unit: str, path: str) -> None:
    reading.stale.append(Stale(path, unit, how == "edited", int(seconds)))


def _kubelet(reading: AgentReading, tx: str, before: str, now: str) -> None:
    reading.binary = Binary(tx, before, now)


def _started(reading: AgentReading, seconds: str) -> None:
    reading.age = int(seconds)


def _file(
    reading: AgentReading, kind: str, mode: str, owner: str, size: str, digest: str, path: str, promised: str
) -> None:
    content = b"" if kind == "regular" and size == "0" else None
    file = FileState(path, kind, _known(mode), _known(owner), int(_known(size) or 0), _known(digest), content)
    reading.files[path] = file
    if promised == "+":
        reading.promised.append(file)


def _content(reading: AgentReading, encoded: str) -> None:
    """The bytes of the announced files, one after the other."""
    whole = _decoded(encoded)
    for file in reading.promised:
        content, whole = whole[: file.size], whole[file.size :]
        if hashlib.sha256(content).hexdigest() != file.digest:
            raise ValueError("the file changed while it was read")
        reading.files[file.path] = replace(file, content=content)
    if whole:
        raise ValueError("more bytes than announced")
    reading.promised.clear()


def _command(reading: AgentReading, name: str, status: str, encoded: str) -> None:
    reading.commands[name] = int(status)
    if encoded != "-":
        text = printable(_decoded(encoded).decode("ascii", "replace"))
        reading.outputs[name] = " ".join(text.split())[:MAX_OUTPUT]


def _left(reading: AgentReading, text: str) -> None:
    reading.left.append(printable(text))


def _kubelet_root(reading: AgentReading, path: str) -> None:
    _around(reading, kubelet_root=printable(path))


def _cgroups(reading: AgentReading, extent: str, names: str) -> None:
    _around(reading, cgroups=_names(extent, names))


def _sockets(reading: AgentReading, extent: str, names: str) -> None:
    _around(reading, sockets=_names(extent, names))


def _devices(reading: AgentReading, extent: str, names: str) -> None:
    _around(reading, devices=_names(extent, names))


def _manifests(reading: AgentReading, folder: str, extent: str, names: str) -> None:
    found = Manifests(printable(folder), _names(extent, names))
    _around(reading, manifests=_one_more(_seen(reading).manifests, found))


def _sysctl(reading: AgentReading, path: str, value: str) -> None:
    known = _seen(reading).sysctls
    if len(known) >= MOST_OF_A_KIND:
        raise ValueError("too many of this kind")
    _around(reading, sysctls={**known, path.replace("/", "."): value})


def _swaps(reading: AgentReading, extent: str, names: str) -> None:
    """Cut off, it is still known that there is swap."""
    lines = (name.rsplit(":", 3) for name in _names(extent, names).names)
    _around(
        reading, swaps=tuple(Swap(device, kind, _number(size), _number(used)) for device, kind, size, used in lines)
    )


def _room(
    reading: AgentReading, of: str, path: str, kind: str, size: str, free: str, inodes: str, free_inodes: str
) -> None:
    found = Room(of, printable(path), kind, int(size), int(free), int(inodes), int(free_inodes))
    _around(reading, rooms=_one_more(_seen(reading).rooms, found))


def _inhibit_delay(reading: AgentReading, microseconds: str) -> None:
    _around(reading, inhibit_delay=int(microseconds) / 1_000_000)


def _processes(reading: AgentReading, unit: str, extent: str, names: str) -> None:
    """Cut off, what was counted is still there."""
    counted = (name.rsplit(":", 1) for name in _names(extent, names).names)
    units = tuple(UnitProcesses(unit, name, _number(count)) for name, count in counted)
    known = _seen(reading).processes or ()
    if len(known) + len(units) > MOST_OF_A_KIND * MOST_OF_A_KIND:
        raise ValueError("too many of this kind")
    _around(reading, processes=(*known, *units))


def _seen(reading: AgentReading) -> NodeSurroundings:
    return reading.surroundings or NodeSurroundings()


def _around(reading: AgentReading, **found: Any) -> None:
    reading.surroundings = replace(_seen(reading), **found)


def _names(extent: str, names: str) -> Listing:
    return Listing(() if names == "-" else tuple(sorted(set(names.split(" ")))), extent == "whole")


def _one_more(known: tuple[T, ...], found: T) -> tuple[T, ...]:
    if len(known) >= MOST_OF_A_KIND:
        raise ValueError("too many of this kind")
    return (*known, found)


def _end(reading: AgentReading, verb: str) -> None:
    if reading.promised:
        raise ValueError("the content of a file is missing")
    reading.ended = verb


READERS: Mapping[str, Callable[..., None]] = {
    "refused": _refused,
    "failed": _failed,
    "say": _say,
    "token": _token,
    "receipt": _receipt,
    "history": _history,
    "healthy": _healthy,
    "exited": _exited,
    "log": _log,
    "fact": _fact,
    "unit": _unit,
    "process": _process,
    "service": _service,
    "serving": _serving,
    "pulls": _pulls,
    "healthz": _healthz,
    "lenient": _lenient,
    "took": _took,
    "voided": _voided,
    "file": _file,
    "content": _content,
    "command": _command,
    "left": _left,
    "expected": _expected,
    "stale": _stale,
    "kubelet": _kubelet,
    "started": _started,
    "kubelet-root": _kubelet_root,
    "cgroups": _cgroups,
    "sockets": _sockets,
    "devices": _devices,
    "manifests": _manifests,
    "sysctl": _sysctl,
    "swaps": _swaps,
    "room": _room,
    "inhibit-delay": _inhibit_delay,
    "processes": _processes,
    "end": _end,
}


def _known(word: str, none: str = "-") -> str:
    """Empty for a field that does not apply."""
    return "" if word == none else word


def _match(kind: WordKind, text: str) -> str:
    if not kind.pattern.fullmatch(text):
        raise ValueError(f"not as expected: {text[:40]!r}")
    return text


def _number(text: str) -> int:
    return int(_match(COUNT, text))


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def printable(text: str) -> str:
    return _CONTROL.sub("?", text)[:MAX_TEXT]
