"""The agent's verbs as commands for a node: exact strings, nothing unquoted, nothing outside a small alphabet (see ``protocol``)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from enum import StrEnum

from rollout.core.model.freeze import MOST_WHO, MOST_WHY, NodeFreeze, encoded
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import AgentRequest, RemoteCommand
from rollout.core.text.terminal import printable
from rollout.kubelet.agent import conversation
from rollout.kubelet.agent.protocol import ARGUMENTS, PAYLOADS, VERBS, WordKind
from rollout.kubelet.agent.sudo import quiet

ABSENT = "absent"


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


class PullsFound(StrEnum):
    """What an apply does about image pulls under way on its node."""

    REFUSE = "refuse"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class ApplyOrder:
    """One node's transaction, complete. ``guard`` is in seconds, ``keep`` is how many transactions stay on the node.

    ``unit`` is the kubelet's unit; its health counts whether it is restarted or not. ``pulls``: whether image pulls under
    way refuse the order, or are named and cancelled; ``None``: not looked at.
    ``measured``: the files to measure with the kubelet once it has restarted and is healthy; ``None``: nothing is measured.
    """

    tx: str
    run: str
    counter: int
    machine_id: str
    guard: int
    keep: int
    unit: str
    change: Change
    pulls: PullsFound | None = None
    measured: tuple[str, ...] | None = None


def snapshot(program: str, *, unit: str, sudo: bool, deadline: float, healthz_port: int = 10248) -> RemoteCommand:
    return _command(program, "snapshot", {"unit": unit, "healthz": healthz_port}, sudo=sudo, deadline=deadline)


def status(
    program: str,
    *,
    tx: str = "",
    claim: Claim | None = None,
    void: bool = False,
    measure: Measure | None = None,
    strays: bool = False,
    roles: bool = False,
    sudo: bool,
    deadline: float,
) -> RemoteCommand:
    """``void`` (with a claim): if the node has no such transaction, it refuses a later apply of it.

    ``strays``: the answer names the files of ours outside ``/var/lib/rollout``, as a cleanup's does.
    ``roles``: also what shows that it is of the control plane.
    """
    words: dict[str, Value] = {"tx": tx, "strays": strays, "roles": roles}
    if claim:
        words |= {"claim": True, "run": claim.run, "counter": claim.counter, "force": claim.force}
        words |= {"void": void and bool(tx)}
    payload: list[Words] = []
    if measure:
        words |= {"measure": True, "unit": measure.unit, "healthz": measure.healthz_port}
        payload += [("path", path) for path in measure.paths]
        payload += [("command", gate.name, gate.seconds, _encoded(gate.line.encode())) for gate in measure.commands]
    return _command(program, "status", words, payload, sudo=sudo, deadline=deadline)


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
    payload = [("path", path) for path in paths]
    return _command(program, "verify", {"unit": unit, "healthz": healthz_port}, payload, sudo=sudo, deadline=deadline)


def apply(program: str, order: ApplyOrder, *, sudo: bool, deadline: float) -> RemoteCommand:
    change = order.change
    words: dict[str, Value] = {
        "tx": order.tx,
        "run": order.run,
        "counter": order.counter,
        "machine": order.machine_id,
        "guard": order.guard,
        "keep": order.keep,
        "unit": order.unit,
        "healthz": change.healthz_port,
        "unread": change.log_unread,
        "pulls": order.pulls.value if order.pulls else "",
        "measure": order.measured is not None,
    }
    payload: list[Words] = [_file(number, file) for number, file in enumerate(change.files, start=1)]
    payload += [("unit", unit) for unit in change.units]
    payload += [("hangup", unit) for unit in change.hangups]
    payload += [("argument", _encoded(argument.encode())) for argument in change.arguments]
    payload += [("path", path) for path in order.measured or ()]
    return _command(program, "apply", words, payload, sudo=sudo, deadline=deadline)


def confirm(program: str, *, tx: str, run: str, counter: int, keep: int, sudo: bool, deadline: float) -> RemoteCommand:
    words: dict[str, Value] = {"tx": tx, "run": run, "counter": counter, "keep": keep}
    return _command(program, "confirm", words, sudo=sudo, deadline=deadline)


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
    words: dict[str, Value] = {"tx": tx, "run": run, "counter": counter, "force": force, "evidence": evidence}
    return _command(program, "revert", words, sudo=sudo, deadline=deadline)


def cleanup(program: str, *, run: str, counter: int, sudo: bool, deadline: float) -> RemoteCommand:
    return _command(program, "cleanup", {"run": run, "counter": counter}, sudo=sudo, deadline=deadline)


def forget(program: str, *, run: str, counter: int, sudo: bool, deadline: float) -> RemoteCommand:
    """Remove ``/var/lib/rollout`` with everything that a rollback needs, including the fencing token."""
    return _command(program, "forget", {"run": run, "counter": counter}, sudo=sudo, deadline=deadline)


def freeze(program: str, order: NodeFreeze, *, sudo: bool, deadline: float) -> RemoteCommand:
    """Until an unfreeze with a newer token, the node refuses every apply."""
    return _frozen(program, "freeze", order, sudo=sudo, deadline=deadline)


def unfreeze(program: str, order: NodeFreeze, *, sudo: bool, deadline: float) -> RemoteCommand:
    return _frozen(program, "unfreeze", order, sudo=sudo, deadline=deadline)


def _frozen(program: str, verb: str, order: NodeFreeze, *, sudo: bool, deadline: float) -> RemoteCommand:
    payload = (("who", encoded(order.who[:MOST_WHO])), ("why", encoded(order.reason[:MOST_WHY])))
    return _command(program, verb, {"run": order.name, "counter": order.counter}, payload, sudo=sudo, deadline=deadline)


Value = str | int | bool
"""Of an argument; an empty text and ``False`` are left out, and ``True`` is sent as 1."""
Words = tuple[str | int, ...]
"""Of a payload line, the first of them its kind."""


def _command(
    program: str,
    verb: str,
    arguments: Mapping[str, Value],
    payload: Iterable[Words] = (),
    *,
    sudo: bool,
    deadline: float,
) -> RemoteCommand:
    """Raises ``ValueError`` for a word that is not of its kind in the protocol."""
    form = VERBS[verb]
    words = [verb]
    for key, value in arguments.items():
        if value is not False and (value != "" or key in form.needs):
            words.append(f"{key}={_word(ARGUMENTS[key].kind, int(value) if value is True else value)}")
    lines = []
    for word, *fields in payload:
        kinds = PAYLOADS[str(word)].fields
        lines.append(
            " ".join((str(word), *(_word(kind, field) for (_, kind), field in zip(kinds, fields, strict=True))))
        )
    request = AgentRequest(program, " ".join(words), "".join(f"{line}\n" for line in lines).encode())
    return of_request(request, sudo=sudo, deadline=deadline)


def _word(kind: WordKind, value: str | int) -> str:
    text = str(value)
    if not kind.pattern.fullmatch(text):
        raise ValueError(f"not {kind.what}: {printable(text, 200)!r}")
    return text


def of_request(request: AgentRequest, *, sudo: bool, deadline: float) -> RemoteCommand:
    """The command that carries a request to a node."""
    line, alone = conversation.boot(request.program), conversation.alone(request)
    if sudo:
        return RemoteCommand(quiet(line), alone, deadline, bare=line, request=request)
    return RemoteCommand(line, alone, deadline, request=request)


def _file(number: int, file: FileChange) -> Words:
    """The agent compares ``digest_before`` right before it writes."""
    return "file", number, file.path, file.digest_before or ABSENT, file.digest_after, file.mode, _encoded(file.after)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii") or "-"
