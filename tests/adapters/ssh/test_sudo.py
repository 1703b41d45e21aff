"""sudo with a password: a real sudo, a real sshd, a user made for the test (needs root)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.cli.plan import plan
from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.sudo import Secret, quiet
from tests.adapters.ssh.sshd import PATIENT, Sshd, lasting, target
from tests.adapters.ssh.sudoers import PASSWORD, User, sudoer
from tests.controllers import until
from tests.places import ROOT
from tests.processes import every_process

pytestmark = pytest.mark.process

WRONG = "not the password"


@pytest.fixture
def user() -> Iterator[User]:
    with sudoer() as made:
        yield made


@pytest.fixture
def server(own_sshd: Sshd, user: User) -> Sshd:
    user.lets_in(own_sshd)
    own_sshd.start()
    return own_sshd


@contextmanager
def knowing(server: Sshd, password: str | None = PASSWORD) -> Iterator[SshNodes]:
    secret = Secret(password) if password is not None else None
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT, sudo_password=secret)) as nodes:
        yield nodes


def as_root(line: str, stdin: bytes = b"", deadline: float = 600.0) -> RemoteCommand:
    bare = shlex.join(("sh", "-c", line))
    return RemoteCommand(quiet(bare), stdin, deadline, bare=bare)


def refused(answer: RemoteAnswer) -> str:
    assert (answer.status, answer.started, answer.stdout) == (None, False, b"")
    assert PASSWORD not in repr(answer)
    assert WRONG not in repr(answer)
    return answer.reference


def test_the_command_runs_as_root_and_reads_all_of_its_input(server: Sshd) -> None:
    """sudo reads its line from the same standard input. It must not consume a byte of the command's input."""
    data = os.urandom(200_000)
    with knowing(server) as nodes:
        answer = nodes.run(target(), as_root("id -u >&2; exec cat", data))
    assert (answer.status, answer.stdout == data, answer.stderr, answer.started) == (0, True, b"0\n", True)


def test_the_agents_program_runs(server: Sshd) -> None:
    command = agent_call.status(agent_program(), sudo=True, deadline=600)
    with knowing(server) as nodes:
        assert parse_report("n1", "status", nodes.run(target(), command), 0).outcome is Outcome.DONE


def test_the_exit_status_and_standard_error_are_the_commands(server: Sshd) -> None:
    with knowing(server) as nodes:
        answer = nodes.run(target(), as_root("echo out; echo err >&2; exit 7"))
    assert answer == RemoteAnswer(status=7, stdout=b"out\n", stderr=b"err\n", started=True)


def test_where_sudo_asks_nothing_no_password_is_sent(server: Sshd, user: User) -> None:
    user.sudoers("{user} ALL=(ALL) NOPASSWD: ALL")
    with knowing(server, WRONG) as nodes:
        answer = nodes.run(target(), as_root("exec cat", b"input"))
    assert (answer.status, answer.stdout, answer.stderr) == (0, b"input", b"")


@pytest.mark.parametrize("asks", [False, True])
def test_the_smallest_rule_of_the_page_is_enough(server: Sshd, user: User, asks: bool) -> None:
    page = (ROOT / "docs/ways-in.md").read_text()
    rules = (
        page.partition("## The smallest sudo rule")[2]
        .partition("```text\n")[2]
        .partition("```")[0]
        .replace("sre", "{user}")
    )
    assert "NOPASSWD" in rules
    user.sudoers(*(rules.replace(" NOPASSWD:", "") if asks else rules).splitlines())
    command = agent_call.status(agent_program(), sudo=True, deadline=600)
    with knowing(server, PASSWORD if asks else None) as nodes:
        assert parse_report("n1", "status", nodes.run(target(), command), 0).outcome is Outcome.DONE


def test_a_lecture_and_insults_before_the_question(server: Sshd, user: User) -> None:
    user.sudoers("Defaults:{user} lecture=always, insults", "{user} ALL=(ALL) ALL")
    with knowing(server) as nodes:
        answer = nodes.run(target(), as_root("exec cat", b"input"))
    assert (answer.status, answer.stdout, answer.stderr) == (0, b"input", b"")


def test_a_pty_between_sudo_and_the_command(server: Sshd, user: User) -> None:
    user.sudoers("Defaults:{user} use_pty", "{user} ALL=(ALL) ALL")
    data = os.urandom(200_000)
    with knowing(server) as nodes:
        assert nodes.run(target(), as_root("exec cat", data)).stdout == data


def test_without_a_password_nothing_waits_for_one(server: Sshd) -> None:
    command = agent_call.status(agent_program(), sudo=True, deadline=600)
    with knowing(server, None) as nodes:
        report = parse_report("n1", "status", nodes.run(target(), command), 0)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "no-sudo")
    assert "a password is required; `--ask-sudo-password` asks you for it" in report.message


@pytest.mark.parametrize("kind", ["LC_ALL=de_DE.UTF-8", "LANGUAGE=de"])
def test_a_users_language_is_no_language_of_sudo(server: Sshd, kind: str) -> None:
    """sudo is asked in the locale C, whatever the node's login sets: else its messages are not known."""
    server.stop()
    server.options += f"\nSetEnv {kind}"
    server.start()
    with knowing(server, None) as nodes:
        answer = nodes.run(target(), as_root("true"))
    assert answer.stderr.startswith(b"sudo: a password is required")


def test_a_wrong_password_is_tried_once(server: Sshd, user: User) -> None:
    """Wrong passwords lock accounts. sudo itself would ask three times, and every command would ask again."""
    log = user.home / "log"
    user.sudoers("Defaults:{user} logfile=" + str(log), "{user} ALL=(ALL) ALL")
    with knowing(server, WRONG) as nodes:
        assert refused(nodes.run(target(), as_root("true"))) == "sudo-password-wrong"
        assert refused(nodes.run(target(), as_root("true"))) == "sudo-password-wrong"
    until(log.exists, 60, "sudo has written its log")
    said = " ".join(log.read_text(encoding="utf-8").split())
    assert said.count("incorrect password") == said.count("1 incorrect password attempt") == 1


def test_a_wrong_password_is_not_sent_to_the_whole_fleet(server: Sshd) -> None:
    with knowing(server, WRONG) as nodes, ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), as_root("true")), range(12)))
    assert {refused(answer) for answer in answers} == {"sudo-password-wrong"}
    assert sum(answer.message.startswith("not sent: ") for answer in answers) == 10


def test_a_correct_password_is_sent_to_all_nodes(server: Sshd) -> None:
    with knowing(server) as nodes, ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), as_root("id -u; exec cat", b"%d" % n)), range(12)))
    assert [answer.stdout for answer in answers] == [b"0\n%d" % n for n in range(12)]


@pytest.mark.parametrize(
    ("lines", "reference"),
    [
        (("Defaults:{user} requiretty", "{user} ALL=(ALL) ALL"), "sudo-needs-tty"),
        ((), "sudo-not-allowed"),
        (("{user} ALL=(ALL) /bin/true",), "sudo-not-allowed"),
    ],
)
def test_reasons_for_which_sudo_refuses(server: Sshd, user: User, lines: tuple[str, ...], reference: str) -> None:
    user.sudoers(*lines)
    with knowing(server) as nodes:
        answer = nodes.run(target(), as_root("true"))
        assert refused(answer) == reference
        report = parse_report("n1", "status", answer, 0.0)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, reference)


def test_a_node_without_sudo(server: Sshd, user: User) -> None:
    server.stop()
    server.options += f"\nSetEnv PATH={user.home}/bin"
    (user.home / "bin").mkdir()
    for tool in ("env", "sh"):
        (user.home / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    server.start()
    with knowing(server) as nodes:
        assert refused(nodes.run(target(), as_root("true"))) == "no-sudo"


def test_a_shell_that_echoes_the_command_line_gets_no_password(server: Sshd, user: User) -> None:
    """The shell prints the whole command line, and then reads the input as commands."""
    with knowing(server) as nodes:
        begin = time.monotonic()
        assert nodes.run(target(), as_root("true")).status == 0
        plenty = 2 + 10 * (time.monotonic() - begin)
    evil = user.home / "shell"
    evil.write_text(f'#!/bin/sh\nprintf "%s\\n" "$2" >&2\ncat >{user.home}/stolen\n', encoding="utf-8")
    evil.chmod(0o755)
    subprocess.run(["usermod", "--shell", evil, user.name], check=True)
    subprocess.run(["chown", user.name, user.home], check=True)
    with knowing(server) as nodes:
        answer = nodes.run(target(), as_root("true", b"a payload", deadline=plenty))
    assert (refused(answer), answer.stderr) == ("deadline", b"")
    assert (user.home / "stolen").read_bytes() == b""


def test_the_password_is_in_no_process_list_and_no_environment(server: Sshd, user: User, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with every_process() as seen, knowing(server) as nodes, ThreadPoolExecutor(1) as pool:
        with lasting(tmp_path) as while_we_look:
            command = pool.submit(nodes.run, target(), as_root(f"touch {begun}; {while_we_look}"))
            until(begun.exists, 120, "sudo has started it")
            until(lambda: any(b"rollout %%" in line for line in tuple(seen)), 120, "the process of sudo was found")
        assert command.result().status == 0
    assert not any(PASSWORD.encode() in line for line in seen)


# ------------------------------------------------------------------------------------------------- without root


@pytest.mark.parametrize("reference", ["sudo-password-wrong", "sudo-not-allowed", "no-sudo"])
def test_a_node_with_a_sudo_refusal_is_refused_not_unreachable(reference: str) -> None:
    report = parse_report("n1", "apply", RemoteAnswer(None, b"", b"", started=False, reference=reference), 0.0)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, reference)


def test_the_option_reaches_the_nodes(
    server: Sshd, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``rollout plan`` on the command line; this machine has no kubelet, and that is the only error."""
    log = user.home / "log"
    user.sudoers("Defaults:{user} logfile=" + str(log), "{user} ALL=(ALL) ALL")
    for folder in ("playbooks", "templates"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "c.yaml").write_text(
        f"cluster: c\napiServer: v1.23.17\nssh: {{user: {user.name}}}\nnodes: {{n1: }}\n", encoding="utf-8"
    )
    password = tmp_path / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    password.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        plan,
        [
            "--cluster",
            "c",
            "--playbook",
            "image-pulls",
            "--ssh-config",
            str(server.ssh_config),
            "--sudo-password-file",
            str(password),
        ],
    )
    assert PASSWORD not in result.output
    assert "sudo" not in result.output
    assert " ".join(log.read_text(encoding="utf-8").split()).count("COMMAND=") == 1
