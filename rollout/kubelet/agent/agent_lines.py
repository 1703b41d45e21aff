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

from rollout.core.model.report import LastLog, RemoteAnswer
from rollout.core.model.snapshot import (
    FileState,
    Process,
    Receipt,
    ReceiptState,
    Stale,
    Token,
)
from rollout.core.model.transactions import FileVersions, NodeTransaction
from rollout.core.model.verification import Binary
from rollout.core.text.redaction import without_secrets
from rollout.kubelet.agent.agent_reading import AgentReading
from rollout.kubelet.agent.conversation import OVER

MAX_LINE = 256 * 1024
MAX_TOTAL = 8 * 1024 * 1024
MAX_LINES = 2_000
MAX_TEXT = 2_000
MAX_OUTPUT = 200
MAX_LOG_LINES = 20
MAX_LOG = 4_096

_REFERENCE = re.compile(r"[a-z][a-z0-9-]{0,40}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_KIND = re.compile(r"regular|absent|directory|symlink|other")
_EXIT = re.compile(r"code=(?:exited|killed|dumped), status=[0-9A-Za-z/-]{1,60}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
)  # of a run or a transaction: the agent can be asked for these again
_KEY = re.compile(r"[A-Za-z0-9_.@:-]{1,200}")
_IMAGE = re.compile(r"[A-Za-z0-9_./:@%+=,-]{1,300}|\(unnamed\)")
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
    return f"the agent did not start; the node printed instead: {said}; check that the user's login shell runs commands"


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
        reader(reading, rest)
    except (ValueError, binascii.Error) as error:
        raise BadLineError(f"line {number}, {word}: {printable(str(error))[:200]}") from error


def _refused(reading: AgentReading, rest: str) -> None:
    reference, _, text = rest.partition(" ")
    reading.refused = (_match(_REFERENCE, reference), printable(text))


def _failed(reading: AgentReading, rest: str) -> None:
    reference, _, text = rest.partition(" ")
    reading.failed = (_match(_REFERENCE, reference), printable(text))


def _say(reading: AgentReading, rest: str) -> None:
    reading.said.append(printable(rest))


def _token(reading: AgentReading, rest: str) -> None:
    counter, run, state = _words(rest, 3)
    if state not in ("live", "ended"):
        raise ValueError("neither live nor ended")
    reading.token = Token(_number(counter), "" if run == "-" else _match(_ID, run), state == "live")


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
        tx=_match(_ID, pairs["tx"]),
        run="" if pairs["run"] == "-" else _match(_ID, pairs["run"]),
        counter=_number(pairs["counter"]),
        state=ReceiptState(pairs["state"]),
        cause="" if pairs["cause"] == "-" else _match(_REFERENCE, pairs["cause"]),
        left=float(_number(pairs["left"])),
        finished=pairs["finished"] == "1",
    )


def _healthy(reading: AgentReading, rest: str) -> None:
    answer, _, text = rest.partition(" ")
    if answer not in ("yes", "no"):
        raise ValueError("neither yes nor no")
    ill = reading.healthy is not None and not reading.healthy[0]
    words = reading.healthy[1] if ill and reading.healthy else printable(text)  # the reason of the revert stays
    reading.healthy = (answer == "yes", words)


def _exited(reading: AgentReading, rest: str) -> None:
    """Before the ``log`` line, if there is one."""
    reading.log = LastLog(_match(_EXIT, rest))


def _log(reading: AgentReading, rest: str) -> None:
    """Secrets are removed before the lines are recorded anywhere."""
    text = _decoded(rest)
    if len(text) > MAX_LOG:
        raise ValueError("longer than the agent sends")
    lines = text.decode("ascii", "replace").splitlines()[-MAX_LOG_LINES:]
    reading.log = replace(reading.log or LastLog(), lines=tuple(without_secrets(printable(line)) for line in lines))


def _fact(reading: AgentReading, rest: str) -> None:
    key, _, text = rest.partition(" ")
    reading.facts[_match(_KEY, key)] = printable(text)


def _unit(reading: AgentReading, rest: str) -> None:
    unit, key, text = (*rest.split(" ", 2), "", "")[:3]
    reading.unit = _match(_KEY, unit)
    reading.properties[_match(_KEY, key)] = printable(text)


def _process(reading: AgentReading, rest: str) -> None:
    reading.process = _process_of(*_words(rest, 2))


def _process_of(pid: str, encoded: str) -> Process:
    words = _decoded(encoded).decode("utf-8", "replace").split("\0")
    return Process(_number(pid), tuple(map(printable, words[:-1] if words[-1] == "" else words)))


def _service(reading: AgentReading, rest: str) -> None:
    unit, key, text = (*rest.split(" ", 2), "", "")[:3]
    reading.services.setdefault(_match(_KEY, unit), {})[_match(_KEY, key)] = printable(text)


def _serving(reading: AgentReading, rest: str) -> None:
    unit, pid, encoded = _words(rest, 3)
    reading.serving[_match(_KEY, unit)] = _process_of(pid, encoded)


def _pulls(reading: AgentReading, rest: str) -> None:
    reading.pulls = () if rest == "-" else tuple(_match(_IMAGE, word) for word in rest.split(" "))


def _healthz(reading: AgentReading, rest: str) -> None:
    reading.healthz = printable(rest)


def _lenient(reading: AgentReading, rest: str) -> None:
    reading.lenient = _number(rest)


def _took(reading: AgentReading, rest: str) -> None:
    reading.took = _number(rest) / 1000


def _voided(reading: AgentReading, rest: str) -> None:
    reading.voided = _match(_ID, rest)


def _expected(reading: AgentReading, rest: str) -> None:
    """A file before and after a transaction, with the places of its apply and of its requested revert (0: none)."""
    tx, state, applied_at, reverted_at, before, after, mode, owner, path = _words(rest, 9)
    file = FileVersions(
        path=_absolute(path),
        before=_digest_or_absent(before),
        after=_digest_or_absent(after),
        mode="" if mode == "-" else _match(_NUMBER, mode),
        owner="" if owner == "-" else _match(_KEY, owner),
    )
    known = reading.transactions.get(_match(_ID, tx))
    found = NodeTransaction(
        tx, ReceiptState(state), _number(applied_at), (*known.files, file) if known else (file,), _number(reverted_at)
    )
    if known and known != replace(found, files=known.files):
        raise ValueError("a transaction with two states")
    reading.transactions[tx] = found


def _digest_or_absent(word: str) -> str:
    return "" if word == "absent" else _match(_DIGEST, word)


def _stale(reading: AgentReading, rest: str) -> None:
    kind, seconds, unit, path = _words(rest, 4)
    if kind not in ("edited", "replaced"):
        raise ValueError("neither edited nor replaced")
    reading.stale.append(Stale(_absolute(path), _match(_KEY, unit), kind == "edited", _number(seconds)))


def _kubelet(reading: AgentReading, rest: str) -> None:
    tx, before, now = (_match(_KEY, word) for word in _words(rest, 3))
    reading.binary = Binary(tx, before, now)


def _started(reading: AgentReading, rest: str) -> None:
    reading.age = _number(rest)


def _absolute(path: str) -> str:
    if not path.startswith("/") or _CONTROL.search(path):
        raise ValueError("not an absolute path")
    return path


def _file(reading: AgentReading, rest: str) -> None:
    kind, mode, owner, size, digest, path, encoded = _words(rest, 7)
    _absolute(path)
    if encoded not in ("-", "+"):
        raise ValueError("neither + nor -")
    file = FileState(
        path=path,
        kind=_match(_KIND, kind),
        mode="" if mode == "-" else _match(_NUMBER, mode),
        owner="" if owner == "-" else _match(_KEY, owner),
        size=0 if size == "-" else _number(size),
        digest="" if digest == "-" else _match(_DIGEST, digest),
        content=b"" if kind == "regular" and size == "0" else None,
    )
    reading.files[path] = file
    if encoded == "+":
        reading.promised.append(file)


def _content(reading: AgentReading, rest: str) -> None:
    """The bytes of the announced files, one after the other."""
    whole = _decoded(rest)
    for file in reading.promised:
        content, whole = whole[: file.size], whole[file.size :]
        if hashlib.sha256(content).hexdigest() != file.digest:
            raise ValueError("the file changed while it was read")
        reading.files[file.path] = replace(file, content=content)
    if whole:
        raise ValueError("more bytes than announced")
    reading.promised.clear()


def _command(reading: AgentReading, rest: str) -> None:
    name, code, encoded = _words(rest, 3)
    reading.commands[_match(_KEY, name)] = _number(code)
    if encoded != "-":
        text = printable(_decoded(encoded).decode("ascii", "replace"))
        reading.outputs[name] = " ".join(text.split())[:MAX_OUTPUT]


def _left(reading: AgentReading, rest: str) -> None:
    reading.left.append(printable(rest))


def _end(reading: AgentReading, rest: str) -> None:
    if reading.promised:
        raise ValueError("the content of a file is missing")
    reading.ended = _match(_REFERENCE, rest)


READERS: Mapping[str, Callable[[AgentReading, str], None]] = {
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


def printable(text: str) -> str:
    return _CONTROL.sub("?", text)[:MAX_TEXT]
