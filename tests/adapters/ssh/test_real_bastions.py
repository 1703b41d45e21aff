"""Many nodes behind real OpenSSH bastions. These end a connection at the first message for a closed tunnel."""

from __future__ import annotations

import getpass
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paramiko.common import MSG_CHANNEL_DATA
from paramiko.message import Message
from paramiko.pkey import PKey
from paramiko.transport import Transport

from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.nodes import SshNodes
from rollout.adapters.ssh.transport import CarrierTransport
from rollout.adapters.ssh.wire import connect
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.scripted import hang, scripted
from tests.adapters.ssh.sshd import TRUE, Sshd, lasting, patient, target
from tests.adapters.ssh.test_bastions import Bastion, bastion, behind, end_sessions  # noqa: F401 - a fixture
from tests.adapters.ssh.test_troubles import refused
from tests.controllers import PATIENCE, until

pytestmark = [pytest.mark.process, pytest.mark.drawn(4)]

NODES = 24
ROUNDS = 3
SMALL = "MaxSessions 0\nMaxStartups 2:100:2\n"
"""A bastion that only forwards, and accepts very few unauthenticated connections."""


@pytest.fixture
def _unlucky(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sending thread is interrupted here, as on a busy machine, and others send meanwhile."""
    send = Transport._send_user_message  # type: ignore[attr-defined]  # noqa: SLF001 - between paramiko's check and its send

    def late(self: Transport, message: Message) -> None:
        if message.asbytes()[0] == MSG_CHANNEL_DATA:
            threading.Event().wait(0.005)
        send(self, message)

    monkeypatch.setattr(Transport, "_send_user_message", late)


def _once(nodes: SshNodes, name: str) -> RemoteAnswer:
    answer = nodes.run(target(name), RemoteCommand("cat", b"x" * 20_000, 600))
    nodes.release(target(name))
    return answer


@pytest.mark.usefixtures("_unlucky")
@pytest.mark.parametrize(
    ("hops", "options"), [(1, ""), (2, SMALL), (1, "RekeyLimit 256K\n")], ids=["one", "two-small", "rekeying"]
)
def test_no_node_is_lost_while_connections_of_others_end(
    shared_sshd: Sshd,
    bastion: Bastion,  # noqa: F811
    make_nodes: Make,
    tmp_path: Path,
    hops: int,
    options: str,
) -> None:
    """Connections of some nodes end while those of others begin and run."""
    bastions = [bastion(options) for _ in range(hops)]
    nodes = make_nodes(behind(shared_sshd, tmp_path, *bastions), limits=patient(tries=1))
    with ThreadPoolExecutor(NODES) as pool:
        answers = list(pool.map(lambda n: _once(nodes, f"n{n % NODES}"), range(NODES * ROUNDS)))
    assert {(answer.reference, answer.message, answer.status) for answer in answers} == {("", "", 0)}
    assert [one.accepted() for one in bastions] == [1] * hops
    for one in bastions:
        assert "nonexistent channel" not in (one.folder / "log").read_text(encoding="utf-8")


def test_a_lost_bastion_is_named_and_the_next_command_uses_a_new_connection(
    shared_sshd: Sshd,
    bastion: Bastion,  # noqa: F811
    make_nodes: Make,
    tmp_path: Path,
) -> None:
    one = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, one))
    begun = tmp_path / "begun"
    with lasting(tmp_path) as for_ever, ThreadPoolExecutor(1) as pool:
        long = pool.submit(nodes.run, target(), RemoteCommand(f"touch {begun}; {for_ever}", b"", 600))
        until(begun.exists, 60, "it runs")
        end_sessions(one)
        answer = long.result()
    assert (answer.started, answer.reference) == (True, "connection-lost")
    assert f"bastion 127.0.0.1:{one.port} lost its connection" in answer.message
    assert nodes.run(target(), TRUE).status == 0


@pytest.mark.parametrize("hops", [1, 2])
def test_a_bastion_lost_during_a_handshake_is_retried_and_named(
    shared_sshd: Sshd,
    bastion: Bastion,  # noqa: F811
    make_nodes: Make,
    tmp_path: Path,
    hops: int,
) -> None:
    """The node sends only its banner. Its first bastion loses the connection each time."""
    bastions = [bastion() for _ in range(hops)]
    nodes = make_nodes(behind(shared_sshd, tmp_path, *bastions))
    greeted = []

    def greets(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        greeted.append(connection.recv(4096))
        hang(connection)

    with scripted(greets) as greeting, ThreadPoolExecutor(1) as pool:
        job = pool.submit(nodes.run, target(port=greeting.port), TRUE)
        for count in (1, 2):
            until(lambda: len(greeted) == count or job.done(), 60, "the handshake has begun")  # noqa: B023 - called at once
            end_sessions(bastions[0])
        answer = job.result()
    assert refused(answer) == "bastion-unreachable"
    assert answer.message == f"bastion 127.0.0.1:{bastions[0].port} lost its connection"
    assert nodes.run(target(), TRUE).status == 0


def test_openssh_ends_the_connection_at_a_late_message(own_sshd: Sshd) -> None:
    """The reason why the order matters."""
    own_sshd.start()
    wire = connect("127.0.0.1", own_sshd.port, socket.AF_INET, Deadline(60))
    carrier = CarrierTransport(wire)
    carrier.start_client(timeout=PATIENCE)
    carrier.auth_publickey(getpass.getuser(), PKey.from_path(own_sshd.user_key))
    assert not carrier.lost
    carrier.closer.send(carrier, Message(bytes([MSG_CHANNEL_DATA, 0, 0, 0, 20, 0, 0, 0, 0])))
    carrier.closer.start()
    carrier.join(60)
    carrier.closer.stop(60)
    assert carrier.lost
    assert "nonexistent channel 20" in carrier.farewell
