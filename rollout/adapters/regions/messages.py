"""What travels to a region's worker and back: plain data as JSON bytes. No program, no secret and no code travel.

Calls and answers travel in exchanges. An exchange names the worker process that it is for. Each call has a nonce, and
expires: so a call that Dask repeats, moves to a restarted worker or delivers late is not carried out a second time.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer
from rollout.core.text import json_text

LOST = "worker-lost"
"""Reference of an answer that did not arrive: the verb may have been carried out."""


@dataclass(frozen=True, slots=True)
class VerbCall:
    """One verb of the agent for one node. ``words``: the verb and its arguments; ``payload``: its input.

    ``expires``: seconds since the epoch, when the controller stops waiting. ``deadline``: seconds for the verb.
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
    """``took``: seconds that the worker needed for the call."""

    answer: RemoteAnswer
    took: float


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """A worker process. ``version``: of rollout; ``agent``: digest of its agent program; ``clock``: seconds since the epoch.

    ``trouble``: why it cannot reach nodes; ``""``: it can.
    """

    process: str
    version: str
    agent: str
    clock: float
    trouble: str = ""


def encode_exchange(exchange: Exchange) -> bytes:
    calls = [{**asdict(call), "payload": base64.b64encode(call.payload).decode("ascii")} for call in exchange.calls]
    own = {name: getattr(exchange, name) for name in ("process", "controller", "number", "received", "seconds")}
    return _dump({**own, "calls": calls})


def decode_exchange(data: bytes) -> Exchange:
    """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything but an exchange."""
    said = json_text.parse(data)
    received, calls = tuple(said.pop("received")), tuple(_call(each) for each in said.pop("calls"))
    return Exchange(**said, received=received, calls=calls)


def _call(said: dict[str, Any]) -> VerbCall:
    target = Target(**said.pop("target"))
    payload = base64.b64decode(said.pop("payload"), validate=True)
    return VerbCall(**{**said, "released": tuple(said["released"])}, target=target, payload=payload)


def encode_answer(nonce: str, answer: RemoteAnswer, took: float = 0.0) -> bytes:
    """The answer of one call. ``took``: seconds that the worker needed."""
    texts = {name: base64.b64encode(getattr(answer, name)).decode("ascii") for name in ("stdout", "stderr")}
    return _dump({**asdict(answer), **texts, "nonce": nonce, "took": took})


def encode_reply(process: str, answers: Iterable[bytes]) -> bytes:
    """What an exchange returns: the process that carried it out, and encoded answers."""
    return b'{"process": %s, "answers": [%s]}' % (json.dumps(process).encode("ascii"), b", ".join(answers))


def decode_reply(data: bytes) -> tuple[str, Mapping[str, CallAnswer]]:
    """The process, and nonce → answer. Errors as ``decode_exchange``."""
    said = json_text.parse(data)
    return str(said["process"]), dict(_answer(each) for each in said["answers"])


def _answer(said: dict[str, Any]) -> tuple[str, CallAnswer]:
    nonce, took = str(said.pop("nonce")), float(said.pop("took"))
    texts = {name: base64.b64decode(said[name], validate=True) for name in ("stdout", "stderr")}
    return nonce, CallAnswer(RemoteAnswer(**{**said, **texts}), took)


def encode_identity(identity: WorkerIdentity) -> bytes:
    return _dump(asdict(identity))


def decode_identity(data: bytes) -> WorkerIdentity:
    """Errors as ``decode_exchange``."""
    return WorkerIdentity(**json_text.parse(data))


def encode_names(names: Iterable[str]) -> bytes:
    return json.dumps(sorted(names)).encode("ascii")


def decode_names(data: bytes) -> tuple[str, ...]:
    """Errors as ``decode_exchange``."""
    return tuple(map(str, json_text.parse(data)))


def lost(message: str) -> RemoteAnswer:
    """An answer that did not arrive. The node is unknown until it is read."""
    return RemoteAnswer(None, b"", b"", started=True, reference=LOST, message=message)


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii")
