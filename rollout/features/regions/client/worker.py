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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock, Thread

from rollout import __version__
from rollout.adapters.agent_program import agent_program
from rollout.adapters.private_files import read_password
from rollout.app.ports import Nodes, Target
from rollout.core.model.report import AgentRequest, RemoteAnswer
from rollout.errors import RolloutError
from rollout.features.regions.client.mailbox import Mailbox
from rollout.features.regions.client.messages import (
    CallAnswer,
    VerbCall,
    WorkerIdentity,
    decode_exchange,
    decode_names,
    encode_answer,
    encode_identity,
    encode_reply,
    lost,
)
from rollout.features.regions.client.steady import steady
from rollout.kubelet.agent import agent_call

SSH_CONFIG = "ROLLOUT_SSH_CONFIG"
SUDO_PASSWORD_FILE = "ROLLOUT_SUDO_PASSWORD_FILE"  # noqa: S105 - the name of a variable

MOST_NONCES = 200_000
"""Calls that a process remembers. An older call has expired long ago."""

MOST_MAILBOXES = 100
"""Controllers with answers that a process keeps: those that asked last."""

RESTARTING = ("apply", "revert")
LEAST_SECONDS = 10.0


@dataclass(slots=True)
class RegionStation:
    """One worker process: its connections, and the calls that it has carried out."""

    nodes: Nodes
    process: str = field(default_factory=lambda: secrets.token_hex(8))
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    targets: dict[str, Target] = field(default_factory=dict)
    mailboxes: OrderedDict[str, Mailbox] = field(default_factory=OrderedDict)  # by controller
    lock: Lock = field(default_factory=Lock)
    clock: Callable[[], float] = steady  # by which calls expire

    def exchange(self, data: bytes) -> bytes:
        """Begin the calls of an exchange, each at most once, and wait for the first answer of any call of its controller."""
        asked = decode_exchange(data)
        if asked.process != self.process:  # this process knows none of the calls
            return encode_reply(self.process, self.clock(), ())
        mailbox = self._mailbox(asked.controller)
        for call in asked.calls:
            if self.is_new(call.nonce):
                Thread(target=self._carry, args=(call, mailbox), daemon=True).start()
        taken = mailbox.take(asked.number, asked.received, asked.seconds)
        return encode_reply(self.process, self.clock(), taken)

    def _mailbox(self, controller: str) -> Mailbox:
        with self.lock:
            mailbox = self.mailboxes.setdefault(controller, Mailbox())
            self.mailboxes.move_to_end(controller)
            if len(self.mailboxes) > MOST_MAILBOXES:
                self.mailboxes.popitem(last=False)
            return mailbox

    def is_new(self, nonce: str) -> bool:
        """Whether no call with this nonce has arrived before. From now on it has."""
        with self.lock:
            if nonce in self.seen:
                return False
            self.seen[nonce] = None
            if len(self.seen) > MOST_NONCES:
                self.seen.popitem(last=False)
            return True

    def _carry(self, call: VerbCall, mailbox: Mailbox) -> None:
        began = time.monotonic()
        answer = self._answer(call)
        mailbox.put(call.nonce, encode_answer(CallAnswer(call.nonce, answer, time.monotonic() - began)))

    def _answer(self, call: VerbCall) -> RemoteAnswer:
        left = call.expires - self.clock()
        if left < _least(call):
            self.release((call.target.name,))
            return lost("the call reached the worker after its deadline")
        self.release(call.released)
        with self.lock:
            self.targets[call.target.name] = call.target
        request = AgentRequest(_program(), call.words, call.payload)
        command = agent_call.of_request(request, sudo=call.sudo, deadline=min(call.deadline, left))
        answer = self.nodes.run(call.target, command)
        if self.clock() > call.expires:  # nobody waits for it, and another worker has the node now
            self.release((call.target.name,))
        return answer

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
    # Here, because a controller only names the functions of this module and needs no SSH.
    from rollout.adapters.ssh import SshLimits, SshNodes, within_files

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


def exchange(data: bytes) -> bytes:
    """Carries calls and answers. A controller calls it, as the two functions below."""
    return station().exchange(data)


def release(data: bytes) -> bytes:
    """A controller has ended: its connections to nodes end too."""
    station().release(decode_names(data))
    return b""


def identify() -> bytes:
    """Tells the controller which worker this is."""
    try:
        process, trouble = station().process, ""
    except RolloutError as error:
        process, trouble = "", str(error)
    return encode_identity(WorkerIdentity(process, __version__, _own_agent(), steady(), trouble))
