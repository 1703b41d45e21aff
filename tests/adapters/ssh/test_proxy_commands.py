"""Real programs as ``ProxyCommand``, before a real OpenSSH server. None of their processes is left, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.core.model.report import RemoteCommand
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.sshd import PATIENT, TRUE, Sshd, lasting, patient, target
from tests.adapters.ssh.test_bastions import Bastion, bastion  # noqa: F401 - a fixture
from tests.adapters.ssh.test_troubles import refused
from tests.controllers import until

pytestmark = [pytest.mark.process, pytest.mark.drawn(6)]

RELAY = f"""#!{sys.executable} -IS
import os, select, socket, sys
line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for ready in select.select([0, line], [], [])[0]:
        data = os.read(0, 65536) if ready == 0 else line.recv(65536)
        if not data:
            sys.exit(0)
        line.sendall(data) if ready == 0 else os.write(1, data)
"""
"""As ``nc``: it ends with its input or with the connection."""

Proxy = Callable[[str], Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".config" / "rollout").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    """The path of a program that a test writes. Each of its processes notes its number; at the end none is left."""
    path = tmp_path / "program"
    yield path
    until(lambda: not processes(path), 30, "no process of the program is left")


def processes(path: Path) -> list[int]:
    """All that run the program or were started by it: they have its path in their environment or arguments."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    str(path).encode() in (entry / "cmdline").read_bytes()
                    and (entry / "stat").read_text().split(") ")[1][0] != "Z"
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def written_program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def through(server: Sshd, home: Path, program: Path, more: str = "") -> Path:
    """An ssh_config that reaches ``n*`` through the program, which the user allows."""
    line = f"{program} %h %p"
    (home / ".config" / "rollout" / "config.toml").write_text(f"proxyCommands = ['{line}']\n", encoding="utf-8")
    server.write_ssh_config(f"{more}\nHost n*\n  ProxyCommand {line}\n")
    return server.ssh_config


@pytest.fixture
def server(own_sshd: Sshd) -> Sshd:
    own_sshd.start()
    return own_sshd


def test_many_commands_through_one_program(server: Sshd, home: Path, program: Path, make_nodes: Make) -> None:
    nodes = make_nodes(through(server, home, written_program(program, RELAY)))
    assert nodes.run(target(), TRUE).status == 0
    answer = nodes.run(target(), RemoteCommand("cat", b"x" * 300_000, 600))
    assert answer.stdout == b"x" * 300_000
    assert nodes.way(target()).via.startswith(f"the ProxyCommand {program}"[:100])
    assert len(processes(program)) == 1
    nodes.release(target())
    until(lambda: not processes(program), 30, "the program ends with its connection")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!/bin/sh\necho one >&2\nprintf 'the session \\033[31mexpired\\n' >&2\nexit 7\n", "ended with exit status 7: one; the session ?[31mexpired"),
        ("#!/bin/sh\nkill -KILL $$\n", "was ended by signal 9"),
        (f"#!{sys.executable} -IS\nimport sys\nsys.stderr.write('x' * 10_000_000 + '\\nlast\\n')\nsys.exit(1)\n", "ended with exit status 1: "),
        ("#!/bin/sh\necho hello\nexit 0\n", "it sent: hello; the ProxyCommand"),
        ("#!/nowhere/interpreter\n", "cannot start"),
    ],
    ids=["expired", "killed", "ten-megabytes", "prints", "no-interpreter"],
)  # fmt: skip
def test_a_program_that_fails_is_named_with_its_last_lines(
    server: Sshd, home: Path, program: Path, make_nodes: Make, text: str, says: str
) -> None:
    answer = make_nodes(through(server, home, written_program(program, text))).run(target(), TRUE)
    assert refused(answer) == "proxy-command-failed"
    assert says in answer.message
    assert str(program)[:40] in answer.message
    assert len(answer.message) < 1000
    assert answer.message.isprintable()


def test_text_before_the_banner_is_skipped(server: Sshd, home: Path, program: Path, make_nodes: Make) -> None:
    text = RELAY.replace("line = ", "os.write(1, b'Starting session with SessionId: sre-0abc\\r\\n')\nline = ")
    assert make_nodes(through(server, home, written_program(program, text))).run(target(), TRUE).status == 0


HANGS = """#!/bin/sh
trap '' TERM
sleep 7717 &
timeout 7717 sleep 7717 &
echo waiting for a login >&2
sleep 7717
"""
"""It reads nothing, ignores SIGTERM, and has children that keep its streams, one in a process group of its own."""


@pytest.mark.parametrize(("last", "how"), [("sleep 7717", "still runs"), ("exit 3", "ended with exit status 3")])
def test_a_program_that_hangs_is_ended_with_all_that_it_has_started(
    server: Sshd, home: Path, program: Path, make_nodes: Make, last: str, how: str
) -> None:
    text = HANGS.removesuffix("sleep 7717\n") + f"{last}\n"
    hanging = written_program(program, text.replace("sleep 7717", f"tail -f /dev/null {program}"))
    nodes = make_nodes(through(server, home, hanging), limits=patient(connect=0.5, banner=0.5))
    answer = nodes.run(target(), TRUE)
    assert refused(answer) == "proxy-command-failed"
    assert f"{how}: waiting for a login" in answer.message
    until(lambda: not processes(program), 30, "nothing of it is left")


def test_many_dials_at_once_that_hang(server: Sshd, home: Path, program: Path, make_nodes: Make) -> None:
    """Never more programs than the limit, none is given up for our own queue, and nothing is left."""
    hanging = written_program(program, f"#!/bin/sh\nexec tail -f /dev/null {program}\n")
    nodes = make_nodes(through(server, home, hanging), limits=patient(connect=0.2, banner=0.2, proxy_commands=8))
    most, over = 0, threading.Event()

    def count() -> None:
        nonlocal most
        while not over.wait(0.2):
            most = max(most, len(processes(program)))

    counting = threading.Thread(target=count)
    counting.start()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), RemoteCommand("true", b"", 2)), range(32)))
    over.set()
    counting.join()
    assert {refused(answer) for answer in answers} == {"proxy-command-failed"}
    assert 1 <= most <= 8


def test_an_idle_connection_makes_room_for_another(server: Sshd, home: Path, program: Path, make_nodes: Make) -> None:
    nodes = make_nodes(through(server, home, written_program(program, RELAY)), limits=patient(proxy_commands=1))
    for name in ("n1", "n2", "n1"):
        assert nodes.run(target(name), TRUE).status == 0
        until(lambda: len(processes(program)) <= 1, 30, "one program")


def test_a_program_that_ends_while_a_command_runs_is_named(
    server: Sshd, home: Path, program: Path, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(through(server, home, written_program(program, RELAY)))
    begun = tmp_path / "begun"
    with lasting(tmp_path) as for_ever, ThreadPoolExecutor(1) as pool:
        long = pool.submit(nodes.run, target(), RemoteCommand(f"touch {begun}; {for_ever}", b"", 600))
        until(begun.exists, 60, "it runs")
        os.kill(processes(program)[0], signal.SIGKILL)
        answer = long.result()
    assert (answer.started, answer.reference) == (True, "connection-lost")
    assert "was ended by signal 9" in answer.message
    assert nodes.run(target(), TRUE).status == 0


CONTROLLER = """
import sys
from pathlib import Path
from rollout.adapters.ssh import SshNodes
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand
nodes = SshNodes(ssh_config=Path(sys.argv[1]))
print("begins", flush=True)
nodes.run(Target("n1", "n1"), RemoteCommand("sleep 600", b"", 600))
"""


@pytest.mark.parametrize("kind", ["in-use", "hangs"])
def test_nothing_is_left_after_kill_9_of_the_controller(server: Sshd, home: Path, program: Path, kind: str) -> None:
    text = RELAY if kind == "in-use" else HANGS.replace("sleep 7717", f"tail -f /dev/null {program}")
    config = through(server, home, written_program(program, text))
    with subprocess.Popen([sys.executable, "-c", CONTROLLER, config], stdout=subprocess.PIPE) as controller:
        ready = (lambda: server.accepted() == 1) if kind == "in-use" else (lambda: len(processes(program)) >= 2)
        until(ready, 60, "it has begun")
        controller.kill()
        controller.wait(60)
    until(lambda: not processes(program), 30, "nothing is left")


def test_a_bastion_that_is_reached_through_a_program(
    shared_sshd: Sshd,
    bastion: Bastion,  # noqa: F811
    home: Path,
    program: Path,
    make_nodes: Make,
) -> None:
    one = bastion()
    config = through(one, home, written_program(program, RELAY))
    text = config.read_text(encoding="utf-8").replace("Host n*", "Host b")
    config.write_text(
        f"{text}\nHost n*\n  HostName 127.0.0.1\n  Port {shared_sshd.port}\n  ProxyCommand /usr/bin/ssh -q -W %h:%p b\n"
        f"  IdentityFile {shared_sshd.user_key}\n  UserKnownHostsFile {shared_sshd.known_hosts}\n",
        encoding="utf-8",
    )
    config.write_text(config.read_text(encoding="utf-8").replace("Host *\n", "Host b\n"), encoding="utf-8")
    nodes = make_nodes(config)
    assert [nodes.run(target(f"n{number}"), TRUE).status for number in range(3)] == [0, 0, 0]
    assert one.accepted() == 1
    assert len(processes(program)) == 1


def test_one_that_is_not_allowed_never_starts(
    server: Sshd, home: Path, program: Path, make_nodes: Callable[..., SshNodes], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    config = through(server, home, written_program(program, f"#!/bin/sh\ntouch {made}\n"))
    (home / ".config" / "rollout" / "config.toml").unlink()
    answer = make_nodes(config, limits=PATIENT).run(target(), TRUE)
    assert refused(answer) == "proxy-command-not-allowed"
    assert not made.exists()


def test_the_limits_of_a_machine() -> None:
    """Three descriptors each fit into the spare ones."""
    assert SshLimits().proxy_commands * 3 <= 200
