"""The floor of an emergency rollback: the agent's own verbs on every node, over one connection each, and nothing else.

``python -m benchmarks.agent_floor FOLDER TX RUN COUNTER ADDRESS:PORT…``: the same program and the same requests as an
emergency rollback with its proof (receipts, claim, revert, cleanup, proof), by a pool of threads. No ssh_config, no known
hosts, no journal, no limits, no report. Exits with 1 if a node failed. ``FOLDER`` has the user's key.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import paramiko

from benchmarks.floor import TOGETHER
from rollout.adapters.agent_program import agent_program
from rollout.core.model.proof import BOOT_UNIT
from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call, conversation

SECONDS = 300.0
Found = TypeVar("Found")


def requests(tx: str, run: str, counter: int) -> Iterator[RemoteCommand]:
    """What an emergency rollback asks of a node."""
    program, claim = agent_program(), agent_call.Claim(counter, run, force=True)
    yield agent_call.status(program, sudo=False, deadline=SECONDS)
    yield agent_call.status(program, tx=tx, claim=claim, sudo=False, deadline=SECONDS)
    yield agent_call.revert(program, tx=tx, run=run, counter=counter, sudo=False, deadline=SECONDS)
    yield agent_call.cleanup(program, run=run, counter=counter, sudo=False, deadline=SECONDS)
    yield agent_call.verify(program, unit="kubelet.service", paths=(BOOT_UNIT,), sudo=False, deadline=SECONDS)


def revert(place: str, key: paramiko.PKey, asked: tuple[RemoteCommand, ...]) -> str:
    """What failed on this node, or nothing. ``place``: its address and port."""
    address, _, port = place.partition(":")
    with paramiko.Transport((address, int(port))) as transport:
        transport.start_client(timeout=SECONDS)
        transport.auth_publickey("root", key)
        channel = transport.open_session()
        channel.exec_command(asked[0].line)
        greeting = _until(channel, partial(conversation.greeted, program=agent_program()))
        channel.sendall(conversation.opening(agent_program(), greeting.form))
        for command in asked:
            nonce = secrets.token_hex(32)
            if command.request is not None:
                channel.sendall(conversation.frame(command.request, nonce))
            answer = _until(channel, partial(conversation.answer, nonce=nonce))
            if answer.status:
                return f"{address}: {command.request and command.request.words}: exit {answer.status}"
    return ""


def _until(channel: paramiko.Channel, read: Callable[[bytes], Found | None]) -> Found:
    channel.settimeout(SECONDS)
    said = b""
    while (found := read(said)) is None:
        more = channel.recv(65536)
        if not more:
            raise OSError(f"the conversation ended: {said[-300:]!r}")
        said += more
    return found


def main() -> None:
    folder, tx, run, counter, *places = sys.argv[1:]
    key = paramiko.Ed25519Key.from_private_key_file(str(Path(folder) / "user"))
    asked = tuple(requests(tx, run, int(counter)))
    with ThreadPoolExecutor(TOGETHER) as pool:
        failed = [wrong for wrong in pool.map(lambda place: revert(place, key, asked), places) if wrong]
    sys.stderr.write("".join(f"{wrong}\n" for wrong in failed[:20]))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
