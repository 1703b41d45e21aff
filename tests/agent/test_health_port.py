"""Only the kubelet's own socket answers for its health: any user of a node may listen on a free port."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.agent.agent_call import Measure
from tests.agent.node import NEW, OLD, PATIENCE, SHELLS, SOCKETS, Node, listening, order

pytestmark = pytest.mark.process

LOOPBACK, WILDCARD, OTHER = "0100007F", "00000000", "0500000A"  # 127.0.0.1, 0.0.0.0, 10.0.0.5
WILDCARD_6, LOOPBACK_6 = "0" * 32, "0" * 24 + "01000000"
OWN, FOREIGN = 4242, 777


def healthz(node: Node, port: int = 10248) -> str | None:
    measured = node.status(measure=Measure(healthz_port=port)).measurement
    assert measured is not None
    return measured.healthz


def table(node: Node, *rows: str) -> None:
    node.write("/proc/net/tcp", (SOCKETS + "".join(row for row in rows if len(row.split()[1]) < 20)).encode())
    node.write("/proc/net/tcp6", (SOCKETS + "".join(row for row in rows if len(row.split()[1]) > 20)).encode())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(LOOPBACK, OWN)], "ok"),
        ([(WILDCARD, OWN)], "ok"),
        ([(WILDCARD_6, OWN)], "ok"),
        ([(OTHER, OWN)], "ok"),
        ([(LOOPBACK_6, OWN)], "ok"),
        ([(LOOPBACK, FOREIGN)], "not-its-own"),
        ([(WILDCARD, FOREIGN)], "not-its-own"),
        ([(WILDCARD_6, FOREIGN)], "not-its-own"),
        ([(WILDCARD, OWN), (LOOPBACK, FOREIGN)], "not-its-own"),  # the exact address wins in the kernel
        ([(WILDCARD_6, OWN), (LOOPBACK, FOREIGN)], "not-its-own"),
        ([(LOOPBACK, OWN), (OTHER, FOREIGN)], "ok"),  # a pod of the node's network on another address
        ([(LOOPBACK, OWN), (WILDCARD_6, FOREIGN)], "ok"),
        ([], "refused"),
    ],
)
def test_the_listening_socket_is_the_kubelets(node: Node, rows: list[tuple[str, int]], said: str) -> None:
    table(node, *(listening(address, 10248, inode) for address, inode in rows))
    assert healthz(node) == said


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        (LOOPBACK, "127.0.0.1"),
        ("7F000001", "127.0.0.1"),  # on a machine with the highest byte first
        (OTHER, "10.0.0.5"),
        (WILDCARD, "127.0.0.1"),
        (WILDCARD_6, "127.0.0.1"),
        (LOOPBACK_6, "0000:0000:0000:0000:0000:0000:0000:0001"),
        ("B80D0120000000000000000005000000", "2001:0DB8:0000:0000:0000:0000:0000:0005"),
    ],
)
def test_the_address_is_that_of_its_own_socket(node: Node, address: str, asked: str) -> None:
    """Also with another healthzBindAddress."""
    (node.bin / "bash").write_text(
        '#!/bin/sh\necho "$4" >>"$ROLLOUT_ROOT/run/standin/asked"\nprintf "HTTP/1.0 200 OK"\n'
    )
    table(node, listening(address, 10248, OWN))
    assert healthz(node) == "ok"
    assert node.read("/run/standin/asked") == f"{asked}\n".encode()


def test_another_port_or_a_connection_is_no_listener(node: Node) -> None:
    connected = listening(LOOPBACK, 10248, OWN).replace(" 0A ", " 01 ")
    table(node, listening(LOOPBACK, 10249, OWN), connected)
    assert healthz(node) == "refused"


@pytest.mark.parametrize(
    ("bash", "curl", "said"),
    [
        ("echo bash: connect: Connection refused >&2; exit 1", "exit 52", "refused"),
        ("echo bash: /dev/tcp/127.0.0.1/10248: No such file or directory >&2; exit 1", "exit 7", "refused"),
        ("exit 1", "exit 52", "no-answer"),  # it took the connection and closed it
        ("exit 1", "exit 127", "no-answer"),
        ("exit 1", "printf 'ok\\n200'", "ok"),
        ("printf 'not HTTP'", "exit 1", "no-answer"),
        ("echo 'db: Connection refused'", "exit 1", "no-answer"),  # the listener itself said so
    ],
)
def test_only_a_refused_connection_is_refused(node: Node, bash: str, curl: str, said: str) -> None:
    """A request that fails in another way shows nothing of the port but that no answer came."""
    for tool, does in (("bash", bash), ("curl", curl)):
        (node.bin / tool).write_text(f"#!/bin/sh\n{does}\n")
    assert healthz(node) == said


@pytest.mark.parametrize("missing", ["/proc/net/tcp", "/proc/100/fd/3"])
def test_what_the_node_does_not_show_is_not_observed(node: Node, missing: str) -> None:
    node.at(missing).unlink()
    assert healthz(node) == "not-observed"


@pytest.mark.parametrize("fd", ["socket:[14242]", "socket:[42420]", "/tmp/socket:[4242] x"])
def test_a_number_that_only_contains_the_sockets_is_another(node: Node, fd: str) -> None:
    node.at("/proc/100/fd/3").unlink()
    node.at("/proc/100/fd/3").symlink_to(fd)
    assert healthz(node) == "not-its-own"


def test_a_kubelet_behind_a_wrapper_or_in_a_network_of_its_own_is_never_healthy(node: Node) -> None:
    table(node, listening(LOOPBACK, 10248, FOREIGN))
    report = node.apply(order(guard=10))
    assert "another process than 101, the main process of kubelet.service, listens on port 10248" in report.message
    assert node.files() == OLD
    snapshot = node.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.measurement.healthz == "not-its-own"


# ------------------------------------------------------------------------------------------------ with processes and sockets

ANSWERS = """
import os, socket, sys
if os.getuid() == 0 and sys.argv[1] == "user": os.setuid(65534)
sys.stdin.readline()
server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
print("listens", flush=True)
while True:
    client, _ = server.accept()
    client.recv(1000)
    if sys.argv[1] != "mute": client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nok")
    client.close()
"""


@contextmanager
def process(who: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """It listens and answers `ok` after a line of input."""
    words = [sys.executable, "-c", ANSWERS, who, str(port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def listen(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    assert child.stdout
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "listens\n"


def on_real_sockets(folder: Path, shell: str) -> Node:
    """A node with the real programs and the real table of this machine's sockets. What its kubelet holds open is still to be given."""
    node = Node.make(folder, shell)
    for tool in ("bash", "curl"):
        (node.bin / tool).unlink()
    node.at("/proc/net/tcp").unlink()
    node.at("/proc/net/tcp").symlink_to("/proc/net/tcp")
    node.at("/proc/100/fd/3").unlink()
    node.at("/proc/100/fd").rmdir()
    return node


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_user_who_listens_before_the_kubelet_does_is_not_the_kubelet(tmp_path: Path, shell: str, port: int) -> None:
    """Real sockets in the real table of this machine; the kubelet is a process of this test."""
    node = on_real_sockets(tmp_path, shell)
    with process("root", port) as kubelet:
        node.at("/proc/100/fd").symlink_to(f"/proc/{kubelet.pid}/fd")
        with process("user", port) as stranger:
            listen(stranger)
            assert healthz(node, port) == "not-its-own"
            report = node.apply(order(healthz_port=port, guard=10))
            assert f"listens on port {port}" in report.message
            assert node.files() == OLD
            stranger.kill()
            stranger.wait(PATIENCE)
        assert healthz(node, port) == "refused"
        listen(kubelet)
        assert healthz(node, port) == "ok"
        assert node.apply(order("t2", healthz_port=port)).healthy
        assert node.files() == NEW


@pytest.mark.parametrize("asked_by", ["bash", "curl"])
def test_a_kubelet_that_closes_the_connection_has_not_answered(tmp_path: Path, asked_by: str, port: int) -> None:
    """By each program alone: the other one fails."""
    node = on_real_sockets(tmp_path, "dash")
    other = {"bash": "curl", "curl": "bash"}[asked_by]
    (node.bin / other).write_text("#!/bin/sh\nexit 1\n")
    (node.bin / other).chmod(0o755)
    with process("mute", port) as kubelet:
        node.at("/proc/100/fd").symlink_to(f"/proc/{kubelet.pid}/fd")
        listen(kubelet)
        assert healthz(node, port) == "no-answer"
