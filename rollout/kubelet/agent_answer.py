"""What the agent printed, read strictly and within bounds: a snapshot, or the report of a verb.

Nothing here believes a node. Lines that cannot be read make the whole answer unread; text meant for people loses every
character that could move a cursor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rollout.core.remote import RemoteAnswer
from rollout.core.report import Outcome, Report
from rollout.core.snapshot import (
    FileState,
    Measurement,
    Process,
    Receipt,
    ReceiptState,
    Snapshot,
    Token,
    UnitState,
    Unread,
)
from rollout.core.verification import UNDER_WAY, Binary, Expected, Stale, Verification

MAX_LINE = 256 * 1024
MAX_TOTAL = 8 * 1024 * 1024
MAX_LINES = 2_000
MAX_TEXT = 2_000
MAX_OUTPUT = 200

_REFERENCE = re.compile(r"[a-z][a-z0-9-]{0,40}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_KIND = re.compile(r"regular|absent|directory|symlink|other")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[A-Za-z0-9_.@:-]{1,200}")
_CONTROL = re.compile(r"[^ -~]")
_SUDO = re.compile(r"no-sudo|sudo-[a-z-]+")
_NO_SUDO = re.compile(
    rb"sudo: (?:a password is required|.*command not found|a terminal is required)|sudo: not found|is not (?:in the sudoers|allowed to)"
)


class _BadLineError(ValueError):
    """A line that is not in the protocol."""


@dataclass
class _Reading:
    """What has been read so far of one answer."""

    refused: tuple[str, str] | None = None
    ended: str = ""
    said: list[str] = field(default_factory=list)
    token: Token | None = None
    receipt: Receipt | None = None
    history: list[Receipt] = field(default_factory=list)
    healthy: tuple[bool, str] | None = None
    facts: dict[str, str] = field(default_factory=dict)
    unit: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    process: Process | None = None
    healthz: str | None = None
    lenient: int | None = None
    files: dict[str, FileState] = field(default_factory=dict)
    commands: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    stale: list[Stale] = field(default_factory=list)
    binary: Binary | None = None
    age: int | None = None

    def measurement(self) -> Measurement | None:
        if not (self.unit or self.process or self.healthz or self.files or self.commands):
            return None
        return Measurement(
            unit=UnitState(self.unit, dict(self.properties)) if self.unit else None,
            process=self.process,
            healthz=self.healthz,
            lenient=self.lenient,
            files=dict(self.files),
            commands=dict(self.commands),
            outputs=dict(self.outputs),
        )


def parse_snapshot(node: str, answer: RemoteAnswer) -> Snapshot | Unread:
    """One node as it said it is, or why that is not known."""
    reading = _whole(node, "snapshot", answer)
    if isinstance(reading, Unread):
        return reading
    facts = dict(reading.facts)
    return Snapshot(
        node=node,
        machine_id=facts.pop("machine-id", ""),
        boot_id=facts.pop("boot-id", ""),
        kubelet_version=_kubelet_version(facts.pop("kubelet-version", "")),
        runtimes={key.removeprefix("runtime-"): facts.pop(key) for key in sorted(facts) if key.startswith("runtime-")},
        measurement=reading.measurement() or Measurement(),
        files=dict(reading.files),
        token=reading.token or Token(),
        receipts=tuple(reading.history),
        facts=facts,
    )


def parse_verification(node: str, answer: RemoteAnswer) -> Verification | Unread:
    """What one node should hold and holds, or why that is not known."""
    reading = _whole(node, "verify", answer)
    if isinstance(reading, Unread):
        return reading
    facts = dict(reading.facts)
    return Verification(
        node=node,
        machine_id=facts.pop("machine-id", ""),
        token=reading.token or Token(),
        receipts=tuple(reading.history),
        expected=tuple(reading.expected),
        files=dict(reading.files),
        measurement=reading.measurement() or Measurement(),
        stale=tuple(reading.stale),
        binary=reading.binary,
        age=reading.age,
        facts=facts,
    )


def _whole(node: str, verb: str, answer: RemoteAnswer) -> _Reading | Unread:
    """The answer to a verb that only reads: all of it, or nothing."""
    if (trouble := _not_run(answer)) is not None:
        return Unread(node, trouble[1], trouble[2])
    try:
        reading = _read(answer)
    except _BadLineError as error:
        return Unread(node, "bad-answer", str(error))
    if reading.refused:
        return Unread(node, *reading.refused)
    if reading.ended != verb:
        return Unread(node, "answer-cut-off", _evidence(answer))
    return reading


def parse_report(node: str, verb: str, answer: RemoteAnswer, seconds: float) -> Report:
    """How a verb ended, as far as its answer tells."""
    if (trouble := _not_run(answer)) is not None:
        return Report(node, verb, *trouble, seconds=seconds)
    try:
        reading = _read(answer)
    except _BadLineError as error:
        return Report(node, verb, Outcome.LOST, "bad-answer", str(error), seconds=seconds)
    outcome, reference, message = _outcome(verb, answer, reading)
    return Report(
        node=node,
        verb=verb,
        outcome=outcome,
        reference=reference,
        message=message,
        receipt=reading.receipt,
        receipts=tuple(reading.history),
        token=reading.token,
        healthy=reading.healthy[0] if reading.healthy else None,
        measurement=reading.measurement(),
        leftovers=tuple(reading.left),
        seconds=seconds,
    )


def _not_run(answer: RemoteAnswer) -> tuple[Outcome, str, str] | None:
    """Why the agent's program never ran, if that is certain."""
    if not answer.started and _SUDO.fullmatch(answer.reference):  # the node is there, and said no
        return Outcome.REFUSED, answer.reference, _printable(answer.message)
    if not answer.started:
        return Outcome.UNREACHED, answer.reference or "unreachable", _printable(answer.message)
    if not answer.stdout and answer.status and _NO_SUDO.search(answer.stderr):
        return Outcome.REFUSED, "no-sudo", _evidence(answer)
    return None


def _outcome(verb: str, answer: RemoteAnswer, reading: _Reading) -> tuple[Outcome, str, str]:
    if reading.ended != verb or answer.status is None:
        return Outcome.LOST, answer.reference or "answer-cut-off", _printable(answer.message) or _evidence(answer)
    if reading.refused:
        return Outcome.REFUSED, *reading.refused
    message = reading.healthy[1] if reading.healthy else "; ".join(reading.said)[:MAX_TEXT]
    return Outcome.DONE, "", message


def _evidence(answer: RemoteAnswer) -> str:
    """The last line of standard error, or the exit status."""
    lines = [line for line in answer.stderr[-4096:].decode("ascii", "replace").splitlines() if line.strip()]
    return _printable(lines[-1]) if lines else f"exit status {answer.status}"


def _read(answer: RemoteAnswer) -> _Reading:
    if answer.truncated or len(answer.stdout) > MAX_TOTAL:
        raise _BadLineError("the answer is too long")
    lines = answer.stdout.split(b"\n")
    if len(lines) > MAX_LINES:
        raise _BadLineError("the answer has too many lines")
    reading = _Reading()
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline was cut off
        if len(line) > MAX_LINE:
            raise _BadLineError(f"line {number} is too long")
        if reading.ended:
            raise _BadLineError(f"line {number} follows the end")
        _take(reading, line, number)
    return reading


def _take(reading: _Reading, line: bytes, number: int) -> None:
    word, _, rest = line.decode("ascii", "replace").partition(" ")
    reader = _READERS.get(word)
    if reader is None:
        raise _BadLineError(f"line {number} is not in the protocol: {_printable(word)[:40]}")
    try:
        reader(reading, rest)
    except (ValueError, binascii.Error) as error:
        raise _BadLineError(f"line {number}, {word}: {_printable(str(error))[:200]}") from error


def _refused(reading: _Reading, rest: str) -> None:
    reference, _, text = rest.partition(" ")
    reading.refused = (_match(_REFERENCE, reference), _printable(text))


def _say(reading: _Reading, rest: str) -> None:
    reading.said.append(_printable(rest))


def _token(reading: _Reading, rest: str) -> None:
    counter, run, state = _words(rest, 3)
    if state not in ("live", "ended"):
        raise ValueError("neither live nor ended")
    reading.token = Token(_number(counter), "" if run == "-" else _match(_KEY, run), state == "live")


def _receipt(reading: _Reading, rest: str) -> None:
    reading.receipt = _receipt_of(rest)


def _history(reading: _Reading, rest: str) -> None:
    reading.history.append(_receipt_of(rest))


def _receipt_of(rest: str) -> Receipt:
    pairs = dict(word.split("=", 1) for word in rest.split(" ") if "=" in word)
    if len(pairs) != len(rest.split(" ")):
        raise ValueError("a word is not key=value")
    wanted = {"tx", "run", "counter", "state", "cause", "left", "finished"}
    if missing := wanted - pairs.keys():
        raise ValueError(f"without {', '.join(sorted(missing))}")
    return Receipt(
        tx=_match(_KEY, pairs["tx"]),
        run=_match(_KEY, pairs["run"]),
        counter=_number(pairs["counter"]),
        state=ReceiptState(pairs["state"]),
        cause="" if pairs["cause"] == "-" else _match(_REFERENCE, pairs["cause"]),
        left=float(_number(pairs["left"])),
        finished=pairs["finished"] == "1",
    )


def _healthy(reading: _Reading, rest: str) -> None:
    answer, _, text = rest.partition(" ")
    if answer not in ("yes", "no"):
        raise ValueError("neither yes nor no")
    ill = reading.healthy is not None and not reading.healthy[0]
    words = reading.healthy[1] if ill and reading.healthy else _printable(text)  # why the change was taken back stays
    reading.healthy = (answer == "yes", words)


def _fact(reading: _Reading, rest: str) -> None:
    key, _, text = rest.partition(" ")
    reading.facts[_match(_KEY, key)] = _printable(text)


def _unit(reading: _Reading, rest: str) -> None:
    unit, key, text = (*rest.split(" ", 2), "", "")[:3]
    reading.unit = _match(_KEY, unit)
    reading.properties[_match(_KEY, key)] = _printable(text)


def _process(reading: _Reading, rest: str) -> None:
    pid, encoded = _words(rest, 2)
    words = _decoded(encoded).decode("utf-8", "replace").split("\0")
    reading.process = Process(_number(pid), tuple(map(_printable, words[:-1] if words[-1] == "" else words)))


def _healthz(reading: _Reading, rest: str) -> None:
    reading.healthz = _printable(rest)


def _lenient(reading: _Reading, rest: str) -> None:
    reading.lenient = _number(rest)


def _expected(reading: _Reading, rest: str) -> None:
    tx, state, digest, mode, owner, path = _words(rest, 6)
    found = ReceiptState(state)
    if (digest == "-") is not (found in UNDER_WAY):
        raise ValueError("a digest is expected of what is over, and only of that")
    reading.expected.append(
        Expected(
            path=_absolute(path),
            tx=_match(_KEY, tx),
            state=found,
            digest="" if digest in ("-", "absent") else _match(_DIGEST, digest),
            mode="" if mode == "-" else _match(_NUMBER, mode),
            owner="" if owner == "-" else _match(_KEY, owner),
        )
    )


def _stale(reading: _Reading, rest: str) -> None:
    kind, seconds, path = _words(rest, 3)
    if kind not in ("edited", "replaced"):
        raise ValueError("neither edited nor replaced")
    reading.stale.append(Stale(_absolute(path), kind == "edited", _number(seconds)))


def _kubelet(reading: _Reading, rest: str) -> None:
    tx, before, now = (_match(_KEY, word) for word in _words(rest, 3))
    reading.binary = Binary(tx, before, now)


def _started(reading: _Reading, rest: str) -> None:
    reading.age = _number(rest)


def _absolute(path: str) -> str:
    if not path.startswith("/") or _CONTROL.search(path):
        raise ValueError("not an absolute path")
    return path


def _file(reading: _Reading, rest: str) -> None:
    kind, mode, owner, size, digest, path, encoded = _words(rest, 7)
    _absolute(path)
    content = _content(encoded, kind, size, digest)
    reading.files[path] = FileState(
        path=path,
        kind=_match(_KIND, kind),
        mode="" if mode == "-" else _match(_NUMBER, mode),
        owner="" if owner == "-" else _match(_KEY, owner),
        size=0 if size == "-" else _number(size),
        digest="" if digest == "-" else _match(_DIGEST, digest),
        content=content,
    )


def _content(encoded: str, kind: str, size: str, digest: str) -> bytes | None:
    if encoded == "-":
        return b"" if kind == "regular" and size == "0" else None
    content = _decoded(encoded)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("it changed while it was read")
    return content


def _command(reading: _Reading, rest: str) -> None:
    name, code, encoded = _words(rest, 3)
    reading.commands[_match(_KEY, name)] = _number(code)
    if encoded != "-":
        text = _printable(_decoded(encoded).decode("ascii", "replace"))
        reading.outputs[name] = " ".join(text.split())[:MAX_OUTPUT]


def _left(reading: _Reading, rest: str) -> None:
    reading.left.append(_printable(rest))


def _end(reading: _Reading, rest: str) -> None:
    reading.ended = _match(_REFERENCE, rest)


_READERS: Mapping[str, Callable[[_Reading, str], None]] = {
    "refused": _refused,
    "say": _say,
    "token": _token,
    "receipt": _receipt,
    "history": _history,
    "healthy": _healthy,
    "fact": _fact,
    "unit": _unit,
    "process": _process,
    "healthz": _healthz,
    "lenient": _lenient,
    "file": _file,
    "command": _command,
    "left": _left,
    "expected": _expected,
    "stale": _stale,
    "kubelet": _kubelet,
    "started": _started,
    "end": _end,
}


def _words(text: str, count: int) -> list[str]:
    words = text.split(" ")
    if len(words) != count:
        raise ValueError(f"{len(words)} words, not {count}")
    return words


def _match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"not as expected: {text[:40]!r}")
    return text


def _number(text: str) -> int:
    return int(_match(_NUMBER, text))


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _printable(text: str) -> str:
    return _CONTROL.sub("?", text)[:MAX_TEXT]


def _kubelet_version(text: str) -> str:
    """``Kubernetes v1.20.15`` → ``1.20.15``."""
    last = text.rsplit(" ", maxsplit=1)[-1]
    return last.removeprefix("v") if re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*", last) else ""
