"""What travels to a region's worker and back: plain data as JSON bytes. No program, no secret and no code travel.

A call names the worker process that it is for, has a nonce, and expires: so a call that Dask repeats, moves to a
restarted worker or delivers late is not carried out a second time.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
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

    ``process``: the worker process that it is for. ``expires``: seconds since the epoch, when the controller stops
    waiting. ``deadline``: seconds for the verb. ``released``: nodes with connections that are no longer needed.
    """

    process: str
    nonce: str
    expires: float
    target: Target
    words: str
    payload: bytes
    sudo: bool
    deadline: float
    released: tuple[str, ...] = ()


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


def encode_call(call: VerbCall) -> bytes:
    return _dump({**asdict(call), "payload": base64.b64encode(call.payload).decode("ascii")})


def decode_call(data: bytes) -> VerbCall:
    """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything but a call."""
    said = json_text.parse(data)
    target = Target(**said.pop("target"))
    payload = base64.b64decode(said.pop("payload"), validate=True)
    return VerbCall(**{**said, "released": tuple(said["released"])}, target=target, payload=payload)


def encode_answer(answer: RemoteAnswer, took: float = 0.0) -> bytes:
    """``took``: seconds that the worker needed."""
    texts = {name: base64.b64encode(getattr(answer, name)).decode("ascii") for name in ("stdout", "stderr")}
    return _dump({**asdict(answer), **texts, "took": took})


def decode_answer(data: bytes) -> tuple[RemoteAnswer, float]:
    """The answer, and the seconds that the worker needed. Errors as ``decode_call``."""
    said = json_text.parse(data)
    took = float(said.pop("took"))
    texts = {name: base64.b64decode(said[name], validate=True) for name in ("stdout", "stderr")}
    return RemoteAnswer(**{**said, **texts}), took


def encode_identity(identity: WorkerIdentity) -> bytes:
    return _dump(asdict(identity))


def decode_identity(data: bytes) -> WorkerIdentity:
    """Errors as ``decode_call``."""
    return WorkerIdentity(**json_text.parse(data))


def encode_names(names: Iterable[str]) -> bytes:
    return json.dumps(sorted(names)).encode("ascii")


def decode_names(data: bytes) -> tuple[str, ...]:
    """Errors as ``decode_call``."""
    return tuple(map(str, json_text.parse(data)))


def lost(message: str) -> RemoteAnswer:
    """An answer that did not arrive. The node is unknown until it is read."""
    return RemoteAnswer(None, b"", b"", started=True, reference=LOST, message=message)


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii")
