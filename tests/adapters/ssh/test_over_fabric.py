"""fabric over our connections: the answers of our own sessions, our bounds, and no connection of fabric's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.over_fabric import FabricSession
from rollout.adapters.ssh.session import SshSession
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.kubelet.agent.sudo import Secret, quiet
from tests.adapters.ssh.sshd import PATIENT, Sshd, lasting, make_key, patient, public, target
from tests.adapters.ssh.sudoers import PASSWORD, sudoer
from tests.controllers import until

pytestmark = pytest.mark.process

SESSIONS = {"ours": SshSession, "fabric": FabricSession}


def fabrics(ssh_config: Path, limits: SshLimits = PATIENT, password: Secret | None = None) -> SshNodes:
    return SshNodes(ssh_config=ssh_config, limits=limits, sudo_password=password, sessions=FabricSession)


@pytest.fixture
def nodes(shared_sshd: Sshd) -> Iterator[SshNodes]:
    before = set(threading.enumerate())
    with closing(fabrics(shared_sshd.ssh_config)) as made:
        yield made
    until(lambda: not set(threading.enumerate()) - before, 60, "no thread is left")


def command(line: str, deadline: float = 600.0) -> RemoteCommand:
    return RemoteCommand(line, b"", deadline)


@pytest.mark.parametrize("sessions", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("echo out; echo err >&2; exit 7", RemoteAnswer(7, b"out\n", b"err\n", started=True)),
        ("cat; echo the input has ended", RemoteAnswer(0, b"the input has ended\n", b"", started=True)),
        ("printf '\\377\\303'; printf '\\274\\000'", RemoteAnswer(0, b"\xff\xc3\xbc\x00", b"", started=True)),
        ("test -t 0 || test -t 1 || echo no terminal", RemoteAnswer(0, b"no terminal\n", b"", started=True)),
    ],
    ids=["status and output", "no input", "any bytes", "no terminal"],
)
def test_fabric_answers_as_our_own_sessions_do(
    shared_sshd: Sshd, sessions: type, line: str, answer: RemoteAnswer
) -> None:
    with closing(SshNodes(ssh_config=shared_sshd.ssh_config, limits=PATIENT, sessions=sessions)) as made:
        assert made.run(target(), command(line)) == answer


def test_commands_run_over_one_connection(shared_sshd: Sshd, nodes: SshNodes) -> None:
    before = shared_sshd.accepted()
    for _ in range(3):
        assert nodes.run(target(), command("true")).status == 0
    assert shared_sshd.accepted() == before + 1


def test_many_at_once_get_their_own_answers(nodes: SshNodes) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n % 4}"), command(f"echo {n}")).stdout, range(24)))
    assert answers == [f"{n}\n".encode() for n in range(24)]


def test_output_past_the_cap_is_cut_and_the_rest_is_only_counted(shared_sshd: Sshd) -> None:
    with closing(fabrics(shared_sshd.ssh_config, patient(stdout=1000, stderr=100))) as made:
        answer = made.run(target(), command("head -c 3000000 /dev/zero; head -c 500 /dev/zero >&2; exit 2"))
    assert (answer.status, len(answer.stdout), len(answer.stderr), answer.truncated) == (2, 1000, 100, True)


def test_endless_output_is_given_up_and_the_node_still_answers(shared_sshd: Sshd) -> None:
    with closing(fabrics(shared_sshd.ssh_config, patient(stdout=1000, flood=100_000))) as made:
        answer = made.run(target(), command("cat /dev/zero"))
        assert (answer.status, answer.reference, len(answer.stdout)) == (None, "output-flood", 1000)
        assert made.run(target(), command("echo again")).stdout == b"again\n"


def test_a_command_that_does_not_end_is_given_up_at_its_deadline_with_what_it_printed(
    nodes: SshNodes, tmp_path: Path
) -> None:
    assert nodes.run(target(), command("true")).status == 0, "connected"
    with lasting(tmp_path) as for_ever:
        answer = nodes.run(target(), command(f"echo begun; {for_ever}", deadline=10.0))
    assert (answer.status, answer.started, answer.reference, answer.stdout) == (None, True, "deadline", b"begun\n")


def test_a_child_that_holds_the_output_open_delays_for_a_while_only(shared_sshd: Sshd, tmp_path: Path) -> None:
    with lasting(tmp_path) as for_ever, closing(fabrics(shared_sshd.ssh_config, patient(held=0.5))) as made:
        answer = made.run(target(), command(f"{for_ever} & echo done; exit 4"))
    assert (answer.status, answer.reference, answer.stdout) == (4, "output-held-open", b"done\n")


def test_a_command_that_a_signal_ends_has_no_status(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("kill -9 $$"))
    assert (answer.status, answer.started, answer.reference) == (None, True, "no-status")


def test_a_connection_that_is_lost_meanwhile(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("kill -9 $PPID; exec cat"))
    assert (answer.status, answer.started) == (None, True)
    assert answer.reference in ("connection-lost", "no-status")


def test_nodes_behind_a_bastion_are_reached_through_it(own_sshd: Sshd) -> None:
    """The node and its bastion are one server here: it sees two logins for each connection to the node."""
    own_sshd.write_ssh_config(f"Host n*\n  ProxyJump hop\nHost hop\n  HostName 127.0.0.1\n  Port {own_sshd.port}")
    own_sshd.start()
    with closing(fabrics(own_sshd.ssh_config)) as made:
        assert made.run(target(), command("echo through; exit 5")) == RemoteAnswer(5, b"through\n", b"", started=True)
        assert own_sshd.accepted() == 2
        with made.shell(target("n2"), 600, "dumb", (80, 24)) as channel:
            channel.sendall(b"exit 6\n")
            assert channel.recv_exit_status() == 6
        assert own_sshd.accepted() == 3, "the connection to the bastion is shared"


# No connection of fabric's own, and no file that it reads.


def marked(server: Sshd, nodes: SshNodes) -> tuple[RemoteAnswer, bool]:
    """A command that would leave a mark, and whether it did."""
    mark = server.folder / "mark"
    mark.unlink(missing_ok=True)
    answer = nodes.run(target(), command(f"touch {mark}"))
    return answer, mark.exists()


@pytest.mark.parametrize("known", ["unknown", "changed"])
def test_a_host_that_is_not_the_known_one_is_refused_and_not_recorded(
    own_sshd: Sshd, tmp_path: Path, known: str
) -> None:
    own_sshd.start()
    with closing(fabrics(own_sshd.ssh_config)) as made:
        answer, left = marked(own_sshd, made)
        assert (answer.status, left) == (0, True), "with the right key it is let in"
    other = public(make_key(tmp_path / "other"))
    text = "" if known == "unknown" else f"[127.0.0.1]:{own_sshd.port} {other}\n"
    own_sshd.known_hosts.write_text(text)
    before = own_sshd.accepted()
    with closing(fabrics(own_sshd.ssh_config)) as made:
        answer, left = marked(own_sshd, made)
    assert (answer.reference, answer.started, left) == (f"host-key-{known}", False, False)
    assert own_sshd.known_hosts.read_text() == text
    assert own_sshd.accepted() == before


def test_fabric_does_not_connect_again_when_the_connection_is_gone(own_sshd: Sshd, tmp_path: Path) -> None:
    """Its own client would: with another ssh_config, and to any host key."""
    own_sshd.start()
    made = fabrics(own_sshd.ssh_config)
    with closing(made), made.shell(target(), 600, "dumb", (80, 24)) as channel:
        channel.get_transport().close()
        before = own_sshd.accepted()
        answer = FabricSession(channel, command(f"touch {tmp_path}/mark"), Deadline(60), PATIENT).run()
    assert (answer.status, answer.reference) == (None, "connection-lost")
    assert not (tmp_path / "mark").exists()
    assert own_sshd.accepted() == before


def test_fabric_reads_no_files_and_no_environment(
    shared_sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own files may be programs, and its variables may turn commands off."""
    (tmp_path / ".fabric.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host *\n  ProxyCommand false\n  ForwardAgent yes\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FABRIC_RUN_DRY", "1")
    monkeypatch.setenv("INVOKE_RUN_DRY", "1")
    with closing(fabrics(shared_sshd.ssh_config)) as made:
        assert made.run(target(), command("echo here")).stdout == b"here\n"
    assert not (tmp_path / "ran").exists()


# sudo with a password.


@pytest.mark.root
def test_sudo_gets_its_password_and_the_command_gets_none_of_it(own_sshd: Sshd) -> None:
    bare = "sh -c 'id -u; cat; echo err >&2; exit 3'"
    with sudoer() as user:
        user.lets_in(own_sshd)
        own_sshd.start()
        with closing(fabrics(own_sshd.ssh_config, password=Secret(PASSWORD))) as made:
            answer = made.run(target(), RemoteCommand(quiet(bare), b"", 600, bare=bare))
        assert answer == RemoteAnswer(3, b"0\n", b"err\n", started=True)
        with closing(fabrics(own_sshd.ssh_config, password=Secret("wrong"))) as made:
            answer = made.run(target(), RemoteCommand(quiet(bare), b"", 600, bare=bare))
        assert (answer.status, answer.started, answer.reference) == (None, False, "sudo-password-wrong")
        assert answer.stdout == b""
