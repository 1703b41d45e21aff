"""Errors of the controller's machine, each in a network namespace or process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from paramiko.server import ServerInterface
from paramiko.transport import Transport

from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.scripted import scripted
from tests.adapters.ssh.sshd import TRUE, Sshd, patient, target
from tests.adapters.ssh.test_troubles import refused

pytestmark = pytest.mark.process

HEAD = """
import resource, socket
from pathlib import Path
from rollout.adapters.ssh import Resolver, SshNodes
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand

def say(host, port, before=lambda: None):
    resolver, target = Resolver.reading(Path({config!r})), Target("n1", host, None, port)
    resolver.resolve(target)
    nodes = SshNodes(resolver)
    before()
    answer = nodes.run(target, RemoteCommand("true", b"", 300))
    assert answer.started is False and answer.status is None
    print(answer.reference)
"""


def alone(config: Path, script: str, *wrapper: str) -> str:
    config.write_text("Host *\n  User nobody\n  UserKnownHostsFile /dev/null\n", encoding="utf-8")
    text = HEAD.format(config=str(config)) + script
    done = subprocess.run([*wrapper, sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def without_network() -> tuple[str, ...]:
    """The command prefix that gives a process its own network, with 127.0.0.1 only."""
    wrapper = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    try:
        done = subprocess.run([*wrapper, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("NOT TESTED: unshare (util-linux) is not here")
    if done.returncode:
        pytest.skip(f"NOT TESTED: no network namespace can be made here: {done.stderr.decode()}")
    return wrapper


def test_no_route_to_a_node(tmp_path: Path) -> None:
    assert alone(tmp_path / "config", "say('10.1.2.3', 22)", *without_network()) == "host-unreachable"


def test_no_local_port_left(tmp_path: Path) -> None:
    script = """
server = socket.create_server(("127.0.0.1", 22222), backlog=8)
Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40001")
held = [socket.create_connection(("127.0.0.1", 22222)) for _ in range(2)]
say("127.0.0.1", 22222)
"""
    assert alone(tmp_path / "config", script, *without_network()) == "no-local-port"


def test_too_many_files(tmp_path: Path) -> None:
    script = """
server = socket.create_server(("127.0.0.1", 0))

def fill():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            held.append(socket.socket())
    except OSError:
        pass

held = []
say("127.0.0.1", server.getsockname()[1], fill)
"""
    assert alone(tmp_path / "config", script) == "too-many-files"


def test_known_hosts_that_cannot_be_read(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.known_hosts.unlink()
    own_sshd.known_hosts.mkdir()
    answer = make_nodes(own_sshd.ssh_config, accept_new=True).run(target(), TRUE)
    assert refused(answer) == "known-hosts-unreadable"
    assert own_sshd.accepted() == 0


class _Slow(ServerInterface):
    """Refuses every login without an answer."""

    def __init__(self, over: threading.Event) -> None:
        self._over = over

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: object) -> int:
        self._over.wait()
        return 2


def test_a_node_that_does_not_answer_our_authentication(own_sshd: Sshd, make_nodes: Make) -> None:
    """Like a node with an unreachable directory server."""
    from paramiko.pkey import PKey

    over = threading.Event()

    def serve(connection: object) -> None:
        server = Transport(connection)  # type: ignore[arg-type]
        server.add_server_key(PKey.from_path(own_sshd.host_key))
        server.start_server(server=_Slow(over))
        server.join(60)

    with scripted(serve) as slow:
        own_sshd.known_hosts.write_text("", encoding="utf-8")
        nodes = make_nodes(own_sshd.ssh_config, limits=patient(auth=1), accept_new=True)
        assert refused(nodes.run(target(port=slow.port), TRUE)) == "auth-timeout"
        over.set()
        nodes.close()
