"""What a Dask worker of a region runs: verbs of the agent over its own SSH. It imports nothing of Dask.

Keys, ssh_config, known_hosts and the sudo password are those of the worker's machine and user: ``ROLLOUT_SSH_CONFIG``
and ``ROLLOUT_SUDO_PASSWORD_FILE`` in its environment. The agent program is the one of its own rollout; the controller
checks that both have the same.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock

from rollout import __version__
from rollout.adapters.agent_program import agent_program
from rollout.adapters.private_files import read_password
from rollout.adapters.regions.messages import (
    VerbCall,
    WorkerIdentity,
    decode_call,
    decode_names,
    encode_answer,
    encode_identity,
    lost,
)
from rollout.adapters.ssh import SshLimits, SshNodes, within_files
from rollout.app.ports import Nodes, Target
from rollout.core.model.report import AgentRequest
from rollout.errors import RolloutError
from rollout.kubelet.agent import agent_call

SSH_CONFIG = "ROLLOUT_SSH_CONFIG"
SUDO_PASSWORD_FILE = "ROLLOUT_SUDO_PASSWORD_FILE"  # noqa: S105 - the name of a variable

MOST_NONCES = 200_000
"""Calls that a process remembers. An older call has expired long ago."""


RESTARTING = ("apply", "revert")
LEAST_SECONDS = 10.0


@dataclass(slots=True)
class RegionStation:
    """One worker process: its connections, and the calls that it has carried out."""

    nodes: Nodes
    process: str = field(default_factory=lambda: secrets.token_hex(8))
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    targets: dict[str, Target] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def carry(self, data: bytes) -> bytes:
        """Carry out a call, at most once. The answer, or that nothing is known of it."""
        began = time.monotonic()
        call = decode_call(data)
        if call.process != self.process:
            return encode_answer(lost("the worker was started again since the call was made"))
        left = call.expires - time.time()
        if left < _least(call):
            self.release((call.target.name,))
            return encode_answer(lost("the call reached the worker after its deadline"))
        with self.lock:
            if call.nonce in self.seen:
                return encode_answer(lost("the call was repeated; it is carried out once"))
            self.seen[call.nonce] = None
            if len(self.seen) > MOST_NONCES:
                self.seen.popitem(last=False)
        self.release(call.released)
        with self.lock:
            self.targets[call.target.name] = call.target
        request = AgentRequest(_program(), call.words, call.payload)
        command = agent_call.of_request(request, sudo=call.sudo, deadline=min(call.deadline, left))
        answer = self.nodes.run(call.target, command)
        if time.time() > call.expires:  # nobody waits for it, and another worker has the node now
            self.release((call.target.name,))
        return encode_answer(answer, time.monotonic() - began)

    def release(self, names: Iterable[str]) -> None:
        """End the connections to these nodes, as soon as no call uses them."""
        with self.lock:
            gone = [self.targets.pop(name) for name in names if name in self.targets]
        for target in gone:
            self.nodes.release(target)


def _least(call: VerbCall) -> float:
    """Seconds that must be left when a call arrives.

    A verb that restarts units needs its whole deadline: calls that were held up together must not exceed the pace.
    """
    restarts = call.words.split(" ", 1)[0] in RESTARTING
    return call.deadline if restarts else min(call.deadline, LEAST_SECONDS)


@cache
def _program() -> str:
    return agent_program()


@cache
def _own_agent() -> str:
    return sha256(_program().encode()).hexdigest()


@cache
def _station() -> RegionStation:
    config, password = os.environ.get(SSH_CONFIG, ""), os.environ.get(SUDO_PASSWORD_FILE, "")
    nodes = SshNodes(
        ssh_config=Path(config) if config else None,
        sudo_password=read_password(Path(password)) if password else None,
        limits=within_files(SshLimits()),
    )
    return RegionStation(nodes)


_MAKING = Lock()


def station() -> RegionStation:
    """This process's, made at the first call. Raises ``RolloutError`` for a wrong configuration of this machine."""
    with _MAKING:
        return _station()


def carry(data: bytes) -> bytes:
    """The task of a call."""
    return station().carry(data)


def release(data: bytes) -> bytes:
    """The task of a controller that has ended: its connections to nodes end too."""
    station().release(decode_names(data))
    return b""


def identify() -> bytes:
    """The task that tells the controller which worker this is."""
    try:
        process, trouble = station().process, ""
    except RolloutError as error:
        process, trouble = "", str(error)
    return encode_identity(WorkerIdentity(process, __version__, _own_agent(), time.time(), trouble))
