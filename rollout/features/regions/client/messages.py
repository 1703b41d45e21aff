"""What travels to a region's worker and back: plain data as JSON bytes. No program, no secret and no code travel.

Calls and answers travel in exchanges. An exchange names the worker process that it is for. Each call has a nonce, and
expires: so a call that Dask repeats, moves to a restarted worker or delivers late is not carried out a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer
from rollout.core.text import json_text

Message = TypeVar("Message")

LOST = "worker-lost"
"""Reference of an answer that did not arrive: the verb may have been carried out."""


@dataclass(frozen=True, slots=True)
class VerbCall:
    """One verb of the agent for one node. ``words``: the verb and its arguments; ``payload``: its input.

    ``expires``: when the controller stops waiting, by the steady clock of the process that has the call: ``WorkerExchanges`` converts it.
    ``deadline``: seconds for the verb.
    ``released``: nodes with connections that are no longer needed.
    """

    nonce: str
    expires: float
    target: Target
    words: str
    payload: bytes
    sudo: bool
    deadline: float
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """New calls for a worker process, and the question for answers. ``seconds``: the longest wait for the first answer.

    ``controller``: a random name, the same for all exchanges of a controller with this process. ``number``: they are
    numbered from 1; a newer exchange ends the wait of an older one. ``received``: nonces of answers that arrived.
    """

    process: str
    controller: str
    number: int
    received: tuple[str, ...]
    seconds: float
    calls: tuple[VerbCall, ...] = ()


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The answer to the call with this nonce. ``took``: seconds that the worker needed for it."""

    nonce: str
    answer: RemoteAnswer
    took: float


@dataclass(frozen=True, slots=True)
class ExchangeReply:
    """What an exchange returned: the process that carried it out, and the answers to calls of this controller.

    ``clock``: the steady clock of the worker when it replied.
    """

    process: str
    clock: float
    answers: tuple[CallAnswer, ...]


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Nodes with connections that are no longer needed."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """A worker process. ``version``: of rollout; ``agent``: digest of its agent program; ``clock``: its steady clock.

    ``trouble``: why it cannot reach nodes; ``""``: it can.
    """

    process: str
    version: str
    agent: str
    clock: float
    trouble: str = ""


def encode_exchange(exchange: Exchange) -> bytes:
    return _encode(exchange)


def decode_exchange(data: bytes) -> Exchange:
    """Raises ``ValueError`` for anything but an exchange."""
    return _decode(Exchange, data)


def encode_answer(answer: CallAnswer) -> bytes:
    return _encode(answer)


def encode_reply(process: str, clock: float, answers: Iterable[bytes]) -> bytes:
    """What an exchange returns: the process that carried it out, its steady clock, and encoded answers."""
    head = json.dumps({"process": process, "clock": clock})[:-1].encode("ascii")
    return b'%s, "answers": [%s]}' % (head, b", ".join(answers))


def decode_reply(data: bytes) -> ExchangeReply:
    """Raises ``ValueError`` for anything but a reply."""
    return _decode(ExchangeReply, data)


def encode_identity(identity: WorkerIdentity) -> bytes:
    return _encode(identity)


def decode_identity(data: bytes) -> WorkerIdentity:
    """Raises ``ValueError`` for anything but an identity."""
    return _decode(WorkerIdentity, data)


def encode_names(names: Iterable[str]) -> bytes:
    return _encode(NodeNames(tuple(sorted(names))))


def decode_names(data: bytes) -> tuple[str, ...]:
    """Raises ``ValueError`` for anything but names."""
    return _decode(NodeNames, data).names


def lost(message: str) -> RemoteAnswer:
    """An answer that did not arrive. The node is unknown until it is read."""
    return RemoteAnswer(None, b"", b"", started=True, reference=LOST, message=message)


def _encode(value: object) -> bytes:
    return json.dumps(json_text.encode(value)).encode("ascii")


def _decode(kind: type[Message], data: bytes) -> Message:
    found: Message = json_text.decode(kind, json_text.parse(data))
    return found
