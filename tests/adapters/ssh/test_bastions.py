"""Nodes behind bastions: real OpenSSH servers that forward to the node's server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paramiko.pkey import PKey
from paramiko.server import ServerInterface
from paramiko.transport import Transport

from rollout.adapters.ssh.resolve import Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand
from rollout.errors import InputError, RemoteError
from tests.adapters.ssh import scripted as scripts
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.scripted import scripted
from tests.adapters.ssh.sshd import TRUE, Sshd, free_port, lasting, make_key, patient, public, require, target
from tests.adapters.ssh.test_troubles import refused
from tests.controllers import until

pytestmark = pytest.mark.process

AWAY = "Host n-away\n  ConnectTimeout 2\n"
"""Limits with a short wait for the node and a long one for its bastion."""

Bastion = Callable[..., Sshd]


@pytest.fixture
def bastion(tmp_path: Path) -> Iterator[Bastion]:
    """Starts bastions, each with the given options."""
    require()
    made: list[Sshd] = []

    def start(options: str = "") -> Sshd:
        folder = tmp_path / f"bastion{len(made)}"
        folder.mkdir()
        made.append(Sshd(folder, options))
        made[-1].start()
        return made[-1]

    yield start
    for server in made:
        server.stop()


def behind(node: Sshd, folder: Path, *bastions: Sshd, jump: str = "", more: str = "") -> Path:
    """An ssh_config that puts ``n*`` (``node``) behind ``b0``, ``b1`` … in this order."""
    stanzas = [
        f"Host b{number}\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.user_key}\n"
        f"  UserKnownHostsFile {server.known_hosts}\n  ProxyJump none\n"
        for number, server in enumerate(bastions)
    ]
    chain = jump or ",".join(f"b{number}" for number in range(len(bastions)))
    path = folder / "behind"
    path.write_text(
        f"{more}\n{''.join(stanzas)}Host n*\n  HostName 127.0.0.1\n  Port {node.port}\n  ProxyJump {chain}\n"
        f"  IdentityFile {node.user_key}\n  UserKnownHostsFile {node.known_hosts}\nHost *\n  IdentitiesOnly yes\n",
        encoding="utf-8",
    )
    return path


def test_a_node_behind_a_bastion(shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path) -> None:
    first = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, first))
    answer = nodes.run(target(), RemoteCommand("cat; echo $SSH_CONNECTION >&2; exit 3", b"input", 600))
    assert (answer.status, answer.stdout) == (3, b"input")
    assert first.accepted() == 1


def test_a_large_input_and_output_go_through(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    data = os.urandom(3_000_000)
    answer = make_nodes(behind(shared_sshd, tmp_path, bastion())).run(target(), RemoteCommand("cat", data, 600))
    assert answer.stdout == data


def test_a_chain_of_bastions(shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path) -> None:
    first, second = bastion(), bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, first, second))
    assert nodes.run(target(), TRUE).status == 0
    assert (first.accepted(), second.accepted()) == (1, 1)


def test_a_bastion_that_is_itself_behind_one(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    first, second = bastion(), bastion()
    more = "Host b1\n  ProxyJump b0\n"
    nodes = make_nodes(behind(shared_sshd, tmp_path, first, second, jump="b1", more=more))
    assert nodes.run(target(), TRUE).status == 0
    assert (first.accepted(), second.accepted()) == (1, 1)


def test_nodes_share_the_bastions_connection_until_it_is_full(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    one = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, one), limits=patient(tunnels=8))
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(24)))
    assert [answer.status for answer in answers] == [0] * 24
    assert one.accepted() == 3
    for number in range(24):
        nodes.release(target(f"n{number}"))
    assert nodes.run(target("n99"), TRUE).status == 0
    assert one.accepted() == 3


def test_no_free_tunnel_in_time_is_reported(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, bastion()), limits=patient(tunnels=1, bastion_connections=1))
    assert nodes.run(target("n1"), TRUE).status == 0
    answer = nodes.run(target("n2"), RemoteCommand("true", b"", 1))
    assert refused(answer) == "bastion-busy"
    nodes.release(target("n1"))
    assert nodes.run(target("n2"), TRUE).status == 0


def test_a_bastions_connection_that_died_is_reopened(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    one = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, one))
    assert nodes.run(target(), TRUE).status == 0
    end_sessions(one)
    assert nodes.run(target(), TRUE).status == 0
    assert nodes.run(target("n2"), TRUE).status == 0
    assert one.accepted() == 2


def test_a_bastion_that_stopped_responding_is_detected_and_dropped(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    """Its kernel still acknowledges our data. Only an answer of sshd shows that it is alive."""
    one = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, one, more=AWAY), limits=patient(bastion_probe=1))
    assert nodes.run(target("n1"), TRUE).status == 0
    frozen = _sessions(one)
    for process in frozen:
        os.kill(process, signal.SIGSTOP)
    try:
        assert refused(nodes.run(target("n-away"), TRUE)) == "bastion-unreachable"
        assert nodes.run(target("n2"), TRUE).status == 0
    finally:
        for process in frozen:
            os.kill(process, signal.SIGKILL)


def test_an_unreachable_node_is_not_the_bastions_fault(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    one = bastion()
    nodes = make_nodes(behind(shared_sshd, tmp_path, one, more=AWAY), limits=patient(bastion_probe=60))
    assert nodes.run(target("n1"), TRUE).status == 0
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.settimeout(0)
            filler.connect_ex(server.getsockname())
        answer = nodes.run(target("n-away", port=server.getsockname()[1]), TRUE)
        for filler in fillers:
            filler.close()
    assert refused(answer) == "connect-timeout"
    assert "bastion 127.0.0.1:" in answer.message
    assert nodes.run(target("n1"), TRUE).status == 0
    assert one.accepted() == 1


def test_a_tunnel_that_opens_too_late_is_closed(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, bastion(), more=AWAY), limits=patient(bastion_probe=60))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        with socket.create_connection(server.getsockname()):  # the backlog is full
            assert refused(nodes.run(target("n-away", port=server.getsockname()[1]), TRUE)) == "connect-timeout"
            server.settimeout(60)
            server.accept()[0].close()
        late, _ = server.accept()  # the bastion, which tried again
        with late:
            late.settimeout(60)
            assert late.recv(1) == b""
    assert nodes.run(target("n2"), TRUE).status == 0


class _Small(ServerInterface):
    """A bastion with connections that carry two tunnels each and then report a resource shortage."""

    def __init__(self) -> None:
        self.carried = 0

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: object) -> int:
        return 0

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        self.carried += 1
        return 0 if self.carried <= 2 else 4


def test_a_full_connection_to_a_bastion_is_followed_by_a_second_one(
    shared_sshd: Sshd, own_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    def serve(connection: socket.socket) -> None:
        transport = Transport(connection)
        transport.add_server_key(PKey.from_path(own_sshd.host_key))
        transport.start_server(server=_Small())
        while transport.is_active():
            channel = transport.accept(0.2)
            if channel is not None:
                for pump in scripts.joined(channel, shared_sshd.port):
                    pump.start()

    with scripted(serve) as small:
        own_sshd.port = small.port
        own_sshd.known_hosts.write_text(f"[127.0.0.1]:{small.port} {public(own_sshd.host_key)}\n", encoding="utf-8")
        nodes = make_nodes(behind(shared_sshd, tmp_path, own_sshd))
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(5)))
        assert [answer.reference for answer in answers] == [""] * 5
        assert small.count == 3
        nodes.close()


def test_why_the_bastion_does_not_reach_a_node(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, bastion()))
    assert refused(nodes.run(target(port=free_port()), TRUE)) == "connection-refused"
    config = behind(shared_sshd, tmp_path, bastion(), more="Host n5\n  HostName absent.invalid\n")
    assert refused(make_nodes(config).run(target("n5"), TRUE)) == "name-not-known"


def test_every_node_gets_its_own_reason(shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path) -> None:
    """paramiko stores one reason for all channels that are being opened."""
    shut = free_port()
    one = bastion(f"PermitOpen 127.0.0.1:{shared_sshd.port} 127.0.0.1:{shut}")
    nodes = make_nodes(behind(shared_sshd, tmp_path, one))
    ports = [shared_sshd.port, shut, free_port()]
    with ThreadPoolExecutor(24) as pool:
        jobs = [pool.submit(nodes.run, target(f"n{n}", port=ports[n % 3]), TRUE) for n in range(24)]
    said = [job.result().reference for job in jobs]
    assert said == ["", "connection-refused", "bastion-forbids"] * 8


def test_a_bastion_that_forbids_forwarding(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, bastion("AllowTcpForwarding no")))
    answer = nodes.run(target(), TRUE)
    assert refused(answer) == "bastion-forbids"
    assert "bastion 127.0.0.1:" in answer.message


def test_a_bastion_that_refuses_the_login(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    one = bastion()
    one.user_key = make_key(one.folder / "other")
    assert refused(make_nodes(behind(shared_sshd, tmp_path, one)).run(target(), TRUE)) == "bastion-refused"


def test_a_bastion_with_another_host_key(shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path) -> None:
    one = bastion()
    impostor = public(make_key(one.folder / "impostor"))
    one.known_hosts.write_text(f"[127.0.0.1]:{one.port} {impostor}\n", encoding="utf-8")
    nodes = make_nodes(behind(shared_sshd, tmp_path, one), accept_new=True)
    assert refused(nodes.run(target(), TRUE)) == "bastion-host-key-changed"
    assert one.accepted() == 0


def test_a_bastion_with_an_unknown_host_key(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    one = bastion()
    one.known_hosts.write_text("", encoding="utf-8")
    assert refused(make_nodes(behind(shared_sshd, tmp_path, one)).run(target(), TRUE)) == "bastion-host-key-unknown"


def test_a_node_behind_a_bastion_is_verified_too(
    own_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    own_sshd.start()
    own_sshd.known_hosts.write_text("", encoding="utf-8")
    assert refused(make_nodes(behind(own_sshd, tmp_path, bastion())).run(target(), TRUE)) == "host-key-unknown"
    assert own_sshd.accepted() == 0


def test_a_bastion_that_is_down(own_sshd: Sshd, shared_sshd: Sshd, make_nodes: Make, tmp_path: Path) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, own_sshd))
    answer = nodes.run(target(), TRUE)
    assert refused(answer) == "bastion-refused"
    assert f"bastion 127.0.0.1:{own_sshd.port}" in answer.message


def test_a_hanging_bastion_delays_no_node_behind_another(
    shared_sshd: Sshd, bastion: Bastion, own_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    good, over = bastion(), threading.Event()

    def hang(_connection: socket.socket) -> None:
        over.wait()

    with scripted(hang) as hung, ThreadPoolExecutor(20) as pool:
        own_sshd.port = hung.port
        config = behind(shared_sshd, tmp_path, good, own_sshd, jump="b0", more="Host n-hung-*\n  ProxyJump b1\n")
        nodes = make_nodes(config, limits=patient(handshakes=2))
        stuck = [pool.submit(nodes.run, target(f"n-hung-{n}"), TRUE) for n in range(12)]
        until(lambda: hung.count, 60, "it hangs")
        assert nodes.run(target("n1"), TRUE).status == 0
        assert not any(job.done() for job in stuck)
        over.set()


def test_a_hanging_bastion_costs_all_of_its_nodes_one_wait(
    own_sshd: Sshd, shared_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    with scripted(scripts.hang) as hung:
        own_sshd.port = hung.port
        config = behind(shared_sshd, tmp_path, own_sshd)
        nodes = make_nodes(config, limits=patient(banner=2, handshakes=2, bastion_rest=3600))
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(12)))
        assert {refused(answer) for answer in answers} == {"bastion-unreachable"}
        assert refused(nodes.run(target("n-late"), TRUE)) == "bastion-unreachable"
        assert hung.count == 1, "all of them waited for one connection, and later nodes for none"


def test_handshakes_through_one_bastion_are_limited_and_do_not_delay_others(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    """As many nodes as the bastion has handshake slots hang after their banner."""
    first, second = bastion(), bastion()
    config = behind(shared_sshd, tmp_path, first, second, jump="b0", more="Host n-b1-*\n  ProxyJump b1\n")
    nodes = make_nodes(config, limits=patient(handshakes=4, bastion_handshakes=2))
    with scripted(scripts.hang_after_banner) as hung, ThreadPoolExecutor(8) as pool:
        stuck = [pool.submit(nodes.run, target(f"n{n}", port=hung.port), TRUE) for n in range(6)]
        until(lambda: hung.count == 6, 60, "all of them have received only a banner")
        assert nodes.run(target("n-b1-1"), TRUE).status == 0
        assert not any(job.done() for job in stuck)
        nodes.close()


def test_the_commands_deadline_bounds_the_whole_path(
    own_sshd: Sshd, shared_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    with scripted(scripts.hang_after_banner) as hung:
        own_sshd.port = hung.port
        nodes = make_nodes(behind(shared_sshd, tmp_path, own_sshd))
        assert refused(nodes.run(target(), RemoteCommand("true", b"", 1))) == "bastion-unreachable"


def test_closing_ends_commands_behind_a_bastion(
    shared_sshd: Sshd, bastion: Bastion, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(behind(shared_sshd, tmp_path, bastion()))
    begun = tmp_path / "begun"
    with lasting(tmp_path) as for_ever, ThreadPoolExecutor(1) as pool:
        long = pool.submit(nodes.run, target(), RemoteCommand(f"touch {begun}; {for_ever}", b"", 600))
        until(begun.exists, 60, "it runs")
        nodes.close()
        assert long.result().reference == "connection-lost"
    assert refused(nodes.run(target(), TRUE)) == "closed"


def resolver(folder: Path, text: str) -> Resolver:
    (folder / "config").write_text(text, encoding="utf-8")
    return Resolver(SshConfig.read(folder / "config"))


def chain(found: Resolver, name: str) -> list[str]:
    """The bastions of a node, as ``user@host:port``, the first to connect to first."""
    endpoint, said = found.resolve(Target(name, name)), []
    while endpoint.via is not None:
        endpoint = endpoint.via
        said.append(f"{endpoint.user}@{endpoint.host}:{endpoint.port}")
    return said[::-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Host n1\n ProxyJump b\n", ["me@b:22"]),
        ("Host n1\n ProxyJump ops@b:2200\n", ["ops@b:2200"]),
        ("Host n1\n ProxyJump ssh://ops@b:2200\n", ["ops@b:2200"]),
        ("Host n1\n ProxyJump [fd00::1]:2200\n", ["me@fd00::1:2200"]),
        ("Host n1\n ProxyJump a,ops@b\n", ["me@a:22", "ops@b:22"]),
        ("Host n1\n HostName node.x\n ProxyJump bastion-%h\n", ["me@bastion-node.x:22"]),
        ("Host n1\n Port 2222\n ProxyJump %r@bastion-%n-%p\n", ["me@bastion-n1-2222:22"]),
        ("Host b\n HostName b.example\n User ops\n Port 99\nHost n1\n ProxyJump b\n", ["ops@b.example:99"]),
        ("Host b\n ProxyJump a\nHost n1\n ProxyJump b\n", ["me@a:22", "me@b:22"]),
        ("Host b\n ProxyJump a\nHost n1\n ProxyJump c,b\n", ["me@c:22", "me@b:22"]),
        ("Host n1\n ProxyJump none\nHost *\n ProxyJump b\n", []),
    ],
)
def test_valid_values_of_proxyjump(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert chain(resolver(tmp_path, f"{text}\nHost *\n User me\n"), "n1") == expected


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Host *\n ProxyJump b\n", "bastion-loop"),
        ("Host n1\n ProxyJump a\nHost a\n ProxyJump b\nHost b\n ProxyJump a\n", "bastion-loop"),
        ("Host n1\n ProxyJump b-%C\n", "ssh-option-not-supported"),
        ("Host n1\n ProxyJump b\nHost b\n ProxyCommand nc %h\n", "proxy-command-not-allowed"),
    ],
)
def test_values_of_proxyjump_that_cannot_be_resolved(tmp_path: Path, text: str, reference: str) -> None:
    with pytest.raises(RemoteError) as caught:
        resolver(tmp_path, text).resolve(Target("n1", "n1"))
    assert caught.value.reference == reference


@pytest.mark.parametrize("value", ["a,,b", "-oProxyCommand=x", "b:99999", "b:%p"])
def test_invalid_values_of_proxyjump(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError) as caught:
        resolver(tmp_path, f"Host n1\n ProxyJump {value}\n")
    assert caught.value.reference == "ssh-config-invalid"


def test_2000_nodes_behind_a_bastion_resolve_it_once(tmp_path: Path) -> None:
    found = resolver(tmp_path, "Host b\n ProxyJump none\nHost *\n ProxyJump ops@b\n")
    ways = {id(found.resolve(Target(f"n{n}", f"n{n}")).via) for n in range(2000)}
    assert len(ways) == 1


def _sessions(server: Sshd) -> list[int]:
    """The processes that serve its connections: all descendants of the listener."""
    listener = server.pid
    lines = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines()
    children: dict[int, list[int]] = {}
    for line in lines:
        pid, parent = map(int, line.split())
        children.setdefault(parent, []).append(pid)
    found, todo = [], [listener]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def end_sessions(server: Sshd) -> None:
    for process in _sessions(server):
        os.kill(process, signal.SIGKILL)
