"""The agent's verbs as commands for a node: exact strings, nothing unquoted, nothing outside a small alphabet."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum

from rollout.core.model.freeze import MOST_WHO, MOST_WHY, NodeFreeze, encoded
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import AgentRequest, RemoteCommand
from rollout.core.text.terminal import printable
from rollout.kubelet.agent import conversation
from rollout.kubelet.agent.sudo import quiet

ABSENT = "absent"

_WORD = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
_TX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # part of a unit's name, where "@" would mean a template
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MODE = re.compile(r"[0-7]{3,4}")
_MACHINE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Claim:
    """A run's fencing token. ``force`` takes a node over from a run that still has its claim (emergency, unlock)."""

    counter: int
    run: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class NodeCommand:
    """A shell command line of the playbook, run on the node for at most ``seconds``."""

    name: str
    seconds: int
    line: str


@dataclass(frozen=True, slots=True)
class Measure:
    """What ``status`` reads in addition to the receipts."""

    unit: str = "kubelet.service"
    healthz_port: int = 0
    paths: tuple[str, ...] = ()
    commands: tuple[NodeCommand, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOrder:
    """One file: the digest that it must have now (``""``: absent) and its new bytes. ``mode`` counts if it is absent."""

    path: str
    before: str
    after: str
    mode: str
    content: bytes


class PullsFound(StrEnum):
    """What an apply does about image pulls under way on its node."""

    REFUSE = "refuse"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class ApplyOrder:
    """One node's transaction, complete. ``guard`` is in seconds, ``keep`` is how many transactions stay on the node.

    ``unit`` is the kubelet's unit; its health counts whether it is restarted or not. ``hangups`` get SIGHUP before
    ``units`` are restarted in their order; both may be empty. ``log_unread``: a kubelet with an unreadable log may be
    healthy. ``pulls``: whether image pulls under way refuse the order, or are named and cancelled; ``None``: not looked at.
    ``measured``: the files to measure with the kubelet once it has restarted and is healthy; ``None``: nothing is measured.
    """

    tx: str
    run: str
    counter: int
    machine_id: str
    guard: int
    keep: int
    unit: str
    healthz_port: int
    files: tuple[FileOrder, ...]
    units: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    hangups: tuple[str, ...] = ()
    log_unread: bool = False
    pulls: PullsFound | None = None
    measured: tuple[str, ...] | None = None


def snapshot(program: str, *, unit: str, sudo: bool, deadline: float, healthz_port: int = 10248) -> RemoteCommand:
    words = [f"unit={_name(unit)}", f"healthz={_count(healthz_port)}"]
    return _command(program, "snapshot", words, (), sudo=sudo, deadline=deadline)


def status(
    program: str,
    *,
    tx: str = "",
    claim: Claim | None = None,
    void: bool = False,
    measure: Measure | None = None,
    strays: bool = False,
    sudo: bool,
    deadline: float,
) -> RemoteCommand:
    """``void`` (with a claim): if the node has no such transaction, it refuses a later apply of it.

    ``strays``: the answer names the files of ours outside ``/var/lib/rollout``, as a cleanup's does.
    """
    words = [f"tx={_match(_TX, tx, 'transaction')}"] if tx else []
    words += ["strays=1"] if strays else []
    if claim:
        words += ["claim=1", *_token(claim.run, claim.counter), *(["force=1"] if claim.force else [])]
        words += ["void=1"] if void and tx else []
    lines: list[str] = []
    if measure:
        words += ["measure=1", f"unit={_name(measure.unit)}", f"healthz={_count(measure.healthz_port)}"]
        lines += [f"path {_path(path)}" for path in measure.paths]
        lines += [
            f"command {_name(gate.name)} {_count(gate.seconds)} {_encoded(gate.line.encode())}"
            for gate in measure.commands
        ]
    return _command(program, "status", words, lines, sudo=sudo, deadline=deadline)


def verify(
    program: str,
    *,
    unit: str,
    paths: tuple[str, ...] = (),
    sudo: bool,
    deadline: float,
    healthz_port: int = 10248,
) -> RemoteCommand:
    """What our transactions left on the node and what exists there now; ``paths`` are checked in addition to their
    files.
    """
    words = [f"unit={_name(unit)}", f"healthz={_count(healthz_port)}"]
    return _command(program, "verify", words, [f"path {_path(path)}" for path in paths], sudo=sudo, deadline=deadline)


def apply(program: str, order: ApplyOrder, *, sudo: bool, deadline: float) -> RemoteCommand:
    words = [
        f"tx={_match(_TX, order.tx, 'transaction')}",
        *_token(order.run, order.counter),
        f"machine={_match(_MACHINE, order.machine_id, 'machine id')}",
        f"guard={_count(order.guard)}",
        f"keep={_count(order.keep)}",
        f"unit={_name(order.unit)}",
        f"healthz={_count(order.healthz_port)}",
        *(["unread=1"] if order.log_unread else []),
        *([f"pulls={order.pulls.value}"] if order.pulls else []),
        *(["measure=1"] if order.measured is not None else []),
    ]
    lines = [_file(number, file) for number, file in enumerate(order.files, start=1)]
    lines += [f"unit {_name(unit)}" for unit in order.units]
    lines += [f"hangup {_name(unit)}" for unit in order.hangups]
    lines += [f"argument {_encoded(argument.encode())}" for argument in order.arguments]
    lines += [f"path {_path(path)}" for path in order.measured or ()]
    return _command(program, "apply", words, lines, sudo=sudo, deadline=deadline)


def confirm(program: str, *, tx: str, run: str, counter: int, keep: int, sudo: bool, deadline: float) -> RemoteCommand:
    words = [f"tx={_match(_TX, tx, 'transaction')}", *_token(run, counter), f"keep={_count(keep)}"]
    return _command(program, "confirm", words, (), sudo=sudo, deadline=deadline)


def revert(
    program: str,
    *,
    tx: str,
    run: str,
    counter: int,
    force: bool = False,
    evidence: bool = False,
    sudo: bool,
    deadline: float,
) -> RemoteCommand:
    """``evidence``: the answer has the kubelet's last log lines before the revert."""
    words = [f"tx={_match(_TX, tx, 'transaction')}", *_token(run, counter), *(["force=1"] if force else [])]
    words += ["evidence=1"] if evidence else []
    return _command(program, "revert", words, (), sudo=sudo, deadline=deadline)


def cleanup(program: str, *, run: str, counter: int, sudo: bool, deadline: float) -> RemoteCommand:
    return _command(program, "cleanup", _token(run, counter), (), sudo=sudo, deadline=deadline)


def forget(program: str, *, run: str, counter: int, sudo: bool, deadline: float) -> RemoteCommand:
    """Remove ``/var/lib/rollout`` with everything that a rollback needs, including the fencing token."""
    return _command(program, "forget", _token(run, counter), (), sudo=sudo, deadline=deadline)


def freeze(program: str, order: NodeFreeze, *, sudo: bool, deadline: float) -> RemoteCommand:
    """Until an unfreeze with a newer token, the node refuses every apply."""
    return _command(program, "freeze", *_freezing(order), sudo=sudo, deadline=deadline)


def unfreeze(program: str, order: NodeFreeze, *, sudo: bool, deadline: float) -> RemoteCommand:
    return _command(program, "unfreeze", *_freezing(order), sudo=sudo, deadline=deadline)


def _freezing(order: NodeFreeze) -> tuple[list[str], tuple[str, str]]:
    words = _token(order.name, order.counter)
    return words, (f"who {encoded(order.who[:MOST_WHO])}", f"why {encoded(order.reason[:MOST_WHY])}")


def _command(
    program: str, verb: str, words: Iterable[str], lines: Iterable[str], *, sudo: bool, deadline: float
) -> RemoteCommand:
    request = AgentRequest(
        program, " ".join([verb, *map(_word, words)]), "".join(f"{line}\n" for line in lines).encode()
    )
    return of_request(request, sudo=sudo, deadline=deadline)


def of_request(request: AgentRequest, *, sudo: bool, deadline: float) -> RemoteCommand:
    """The command that carries a request to a node."""
    line, alone = conversation.boot(request.program), conversation.alone(request)
    if sudo:
        return RemoteCommand(quiet(line), alone, deadline, bare=line, request=request)
    return RemoteCommand(line, alone, deadline, request=request)


def _file(number: int, file: FileOrder) -> str:
    if hashlib.sha256(file.content).hexdigest() != _match(_DIGEST, file.after, "digest"):
        raise ValueError(f"{file.path}: the digest is not that of the bytes")
    before = _match(_DIGEST, file.before, "digest") if file.before else ABSENT
    mode = _match(_MODE, file.mode, "mode")
    return f"file {number} {_path(file.path)} {before} {file.after} {mode} {_encoded(file.content)}"


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii") or "-"


def _token(run: str, counter: int) -> list[str]:
    return [f"run={_name(run)}", f"counter={_count(counter)}"]


def _match(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"not a {what} the agent takes: {printable(text, 200)!r}")
    return text


def _word(text: str) -> str:
    return _match(_WORD, text, "word")


def _name(text: str) -> str:
    return _match(_NAME, text, "name")


def _path(text: str) -> str:
    parts = _match(_WORD, text, "path").split("/")
    if parts[0] or len(parts) < 3 or any(part in ("", ".", "..") for part in parts[1:]):
        raise ValueError(f"not an absolute, plain path: {text!r}")
    return text


def _count(number: int) -> str:
    if not 0 <= number < 10**15:
        raise ValueError(f"not a number the agent takes: {number}")
    return str(number)
