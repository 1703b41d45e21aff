"""Every failure to reach a node is an answer with its reference; nothing raises.

Whatever would hang without its limit, hangs.
"""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.wire import look_up
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError
from tests.adapters.ssh import scripted as scripts
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.scripted import Script, scripted
from tests.adapters.ssh.sshd import TRUE, Sshd, free_port, make_key, patient, public, target
from tests.controllers import until

pytestmark = pytest.mark.process


def refused(answer: RemoteAnswer) -> str:
    assert (answer.status, answer.started, answer.stdout) == (None, False, b"")
    assert answer.message.isprintable()
    assert answer.message.isascii()
    return answer.reference


def at(nodes: SshNodes, port: int) -> RemoteAnswer:
    return nodes.run(target(port=port), TRUE)


def test_connection_refused(nodes: SshNodes) -> None:
    assert refused(at(nodes, free_port())) == "connection-refused"


def test_connect_timeout(shared_sshd: Sshd, make_nodes: Make) -> None:
    """A full backlog answers no SYN, like a node without power."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.settimeout(0)
                filler.connect_ex(server.getsockname())
            nodes = make_nodes(shared_sshd.ssh_config, limits=patient(connect=1))
            assert refused(at(nodes, server.getsockname()[1])) == "connect-timeout"
        finally:
            for filler in fillers:
                filler.close()


@pytest.mark.parametrize("name", ["absent.invalid", "x" * 300, "bad name"])
def test_name_not_known(nodes: SshNodes, name: str) -> None:
    assert refused(nodes.run(target(address=name), TRUE)) == "name-not-known"


def test_a_name_that_never_resolves_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: given_up.wait() and [])
    with pytest.raises(RemoteError, match="in time"):
        look_up("slow.example", 22, 0, Deadline(0.2))
    given_up.set()


@pytest.mark.parametrize(
    ("script", "reference", "tries", "limits"),
    [
        (scripts.hang, "no-banner", 1, patient(banner=1)),
        (scripts.garbage, "no-banner", 1, patient()),
        (scripts.drop, "no-banner", 2, patient()),
        (scripts.drop_after_banner, "connection-lost", 1, patient()),
        (scripts.hang_after_banner, "handshake-timeout", 1, patient(handshake=1)),
        (scripts.giant_packet, "handshake-failed", 1, patient()),
        (scripts.no_ssh_2, "handshake-failed", 1, patient()),
    ],
)
def test_the_server_does_not_answer_with_ssh(
    shared_sshd: Sshd, make_nodes: Make, script: Script, reference: str, tries: int, limits: SshLimits
) -> None:
    """At most one limit can apply; all others are much longer."""
    with scripted(script) as server:
        nodes = make_nodes(shared_sshd.ssh_config, limits=limits)
        assert refused(at(nodes, server.port)) == reference
        assert server.count == tries


def test_a_dropped_connection_is_retried_once(shared_sshd: Sshd, own_sshd: Sshd, make_nodes: Make) -> None:
    with scripted(scripts.dropping_first(1, shared_sshd.port)) as server:
        shared_sshd_key = public(shared_sshd.host_key)
        own_sshd.known_hosts.write_text(f"127.0.0.1 {shared_sshd_key}\n", encoding="utf-8")
        own_sshd.user_key = shared_sshd.user_key
        own_sshd.write_ssh_config()
        nodes = make_nodes(own_sshd.ssh_config)
        assert at(nodes, server.port).status == 0
        assert server.count == 2
        nodes.close()


def test_hanging_nodes_do_not_delay_the_others(shared_sshd: Sshd, make_nodes: Make) -> None:
    """Twice as many nodes as there are handshake slots hang before their banner."""
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(handshakes=4))
    over = threading.Event()

    def hang(_connection: socket.socket) -> None:
        over.wait()

    with scripted(hang) as server, ThreadPoolExecutor(8) as pool:
        hung = [pool.submit(nodes.run, target(f"n{n}", port=server.port), TRUE) for n in range(8)]
        until(lambda: server.count == 8, 60, "all of them hang")
        assert nodes.run(target("n100"), TRUE).status == 0
        assert not any(job.done() for job in hung)
        over.set()


def test_the_commands_deadline_bounds_connecting_too(shared_sshd: Sshd, make_nodes: Make) -> None:
    nodes = make_nodes(shared_sshd.ssh_config)
    with scripted(scripts.hang) as server:
        assert refused(nodes.run(target(port=server.port), RemoteCommand("true", b"", 1))) == "no-banner"


def test_wrong_user_key(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.user_key = make_key(own_sshd.folder / "other")
    own_sshd.write_ssh_config()
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "auth-failed"


def test_a_key_with_a_passphrase_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.user_key = make_key(own_sshd.folder / "locked", passphrase="not in any log")  # noqa: S106
    own_sshd.write_ssh_config()
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "auth-failed"
    assert "needs a passphrase" in answer.message


def test_a_node_that_also_wants_a_password(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "PasswordAuthentication yes\nAuthenticationMethods publickey,password"
    own_sshd.start()
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "auth-failed"
    assert "password" in answer.message


def test_no_session_allowed(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "MaxSessions 0"
    own_sshd.start()
    assert refused(make_nodes(own_sshd.ssh_config).run(target(), TRUE)) == "no-channel"


def test_no_algorithm_in_common(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "Ciphers chacha20-poly1305@openssh.com"
    own_sshd.start()
    assert refused(make_nodes(own_sshd.ssh_config).run(target(), TRUE)) == "handshake-failed"


def test_host_key_unknown(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.known_hosts.write_text("", encoding="utf-8")
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "host-key-unknown"
    assert "SHA256:" in answer.message
    assert own_sshd.accepted() == 0


def test_host_key_changed(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    other = public(make_key(own_sshd.folder / "impostor"))
    own_sshd.known_hosts.write_text(f"[127.0.0.1]:{own_sshd.port} {other}\n", encoding="utf-8")
    assert refused(make_nodes(own_sshd.ssh_config, accept_new=True).run(target(), TRUE)) == "host-key-changed"
    assert own_sshd.accepted() == 0


def test_host_key_revoked(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    with own_sshd.known_hosts.open("a", encoding="utf-8") as file:
        file.write(f"@revoked * {public(own_sshd.host_key)}\n")
    assert refused(make_nodes(own_sshd.ssh_config, accept_new=True).run(target(), TRUE)) == "host-key-revoked"


def test_accept_new_records_a_host_once(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.known_hosts.write_text("# no newline at the end", encoding="utf-8")
    nodes = make_nodes(own_sshd.ssh_config, accept_new=True)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(8)))
    assert [answer.status for answer in answers] == [0] * 8
    assert own_sshd.known_hosts.read_text(encoding="utf-8").splitlines() == [
        "# no newline at the end",
        f"[127.0.0.1]:{own_sshd.port} {public(own_sshd.host_key)}",
    ]
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_a_host_known_by_another_type_of_key(own_sshd: Sshd, make_nodes: Make) -> None:
    """The server prefers ed25519. known_hosts (hashed, so unknown beforehand) has its ecdsa key."""
    ecdsa = make_key(own_sshd.folder / "host2", "ecdsa")
    own_sshd.options = f"HostKey {ecdsa}"
    own_sshd.start()
    own_sshd.known_hosts.write_text(f"[127.0.0.1]:{own_sshd.port} {public(ecdsa)}\n", encoding="utf-8")
    plain = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    _hash(own_sshd.known_hosts)
    hashed = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert (plain.status, hashed.status) == (0, 0)


def _hash(path: Path) -> None:
    import subprocess

    subprocess.run(["ssh-keygen", "-q", "-H", "-f", path], check=True, capture_output=True)
    assert path.read_text(encoding="utf-8").startswith("|1|")


@pytest.mark.parametrize(
    ("option", "reference"),
    [
        ("ProxyJump n1", "bastion-loop"),
        ("ProxyCommand nc %h %p", "proxy-command-not-allowed"),
        ("GSSAPIAuthentication yes", "gssapi-not-supported"),
        ("PKCS11Provider /usr/lib/opensc.so", "ssh-option-not-supported"),
        ("HostName %n", "ssh-config-invalid"),
    ],
)
def test_unsupported_settings_are_refused(own_sshd: Sshd, make_nodes: Make, option: str, reference: str) -> None:
    own_sshd.write_ssh_config(f"Host n*\n  {option}\nHost *")
    assert refused(make_nodes(own_sshd.ssh_config).run(target(), TRUE)) == reference
