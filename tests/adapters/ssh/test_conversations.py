"""Conversations with the real agent, and with enemies of it, through a real OpenSSH server."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshNodes
from rollout.app.isolation import keep_nothing, run_verb
from rollout.core.model.report import AgentRequest, Outcome, RemoteAnswer, RemoteCommand, Report
from rollout.kubelet.agent import agent_call, conversation
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.agent_call import Claim, Measure
from rollout.kubelet.agent.sudo import Secret
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.sshd import PATIENT, Sshd, lasting, patient, target
from tests.adapters.ssh.sudoers import PASSWORD, User, sudoer
from tests.agent.node import NEW, PROGRAM, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

PATIENCE = 600.0
STATUS = agent_call.status(PROGRAM, sudo=False, deadline=PATIENCE)


@pytest.fixture
def node(own_sshd: Sshd, tmp_path: Path) -> Node:
    """Not served yet: its tools and its root are in the environment of the server's commands."""
    made = Node.make(tmp_path / "node", "dash")
    words = (f"{name}={value}" for name, value in made.env().items())
    own_sshd.options += f"\nSetEnv {' '.join(words)}"
    return made


def report(answer: RemoteAnswer, verb: str = "status") -> Report:
    return parse_report("n1", verb, answer, 0.0)


def sessions(server: Sshd) -> int:
    return (server.folder / "log").read_text(encoding="utf-8").count("Starting session")


def transaction(nodes: SshNodes, program: str = PROGRAM) -> None:
    """From the claim to the cleanup."""
    token = {"run": "run-1", "counter": 1, "sudo": False, "deadline": PATIENCE}
    for verb, command in {
        "status": agent_call.status(program, tx="t1", claim=Claim(1, "run-1"), sudo=False, deadline=PATIENCE),
        "apply": agent_call.apply(program, order(), sudo=False, deadline=PATIENCE),
        "measure": agent_call.status(program, tx="t1", measure=Measure(), sudo=False, deadline=PATIENCE),
        "confirm": agent_call.confirm(program, tx="t1", keep=3, **token),  # type: ignore[arg-type]  # the words of a verb
        "cleanup": agent_call.cleanup(program, **token),  # type: ignore[arg-type]
    }.items():
        told = report(nodes.run(target(), command), verb.replace("measure", "status"))
        assert (told.outcome, told.reference, told.healthy) == (Outcome.DONE, "", told.healthy or None), (verb, told)


@pytest.mark.parametrize("limit", ["MaxSessions 1", "MaxSessions 10"])
def test_a_transaction_takes_one_connection_and_one_session(
    own_sshd: Sshd, node: Node, make_nodes: Make, limit: str
) -> None:
    own_sshd.options = f"{limit}\n{own_sshd.options}"
    own_sshd.start()
    transaction(make_nodes(own_sshd.ssh_config))
    assert node.files() == NEW
    assert (own_sshd.accepted(), sessions(own_sshd)) == (1, 1)
    assert node.strays() == []


@pytest.mark.parametrize("shell", ["sh", "bash", "tcsh", "fish", "zsh"])
def test_every_login_shell(server: Sshd, user: User, shell: str) -> None:
    path = shutil.which(shell) or pytest.skip(f"NOT TESTED: {shell} is not installed")
    subprocess.run(["usermod", "--shell", path, user.name], check=True)
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT)) as nodes:
        assert [report(nodes.run(target(), STATUS)).outcome for _ in range(2)] == [Outcome.DONE, Outcome.DONE]
    assert sessions(server) == 1


def test_a_login_shell_that_prints_before_the_agent(server: Sshd, user: User) -> None:
    _shell(user, 'echo "Welcome"; echo end status; printf "no line end: "; exec /bin/sh "$@"')
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT)) as nodes:
        assert report(nodes.run(target(), STATUS)).outcome is Outcome.DONE


def test_a_login_shell_that_prints_later(server: Sshd, user: User, tmp_path: Path) -> None:
    """From then on nothing on this connection can be believed. The verb's end is unknown, and the next one has a new one.

    What it prints may stand within a whole answer: then the caller ends the connection.
    """
    _shell(user, f'if mkdir {user.home}/once; then (sleep 0.3; yes "end status") & fi; exec /bin/sh "$@"')
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT)) as nodes:
        outcomes = set[Outcome]()

        def lost_one() -> bool:
            outcomes.add(run_verb(nodes, target(), "status", STATUS, keep_nothing).outcome)
            return Outcome.LOST in outcomes

        until(lambda: lost_one() or sessions(server) > 1, 120, "another connection")
        last = run_verb(nodes, target(), "status", STATUS, keep_nothing)
    assert last.outcome is Outcome.DONE, (last.message, outcomes)
    assert outcomes <= {Outcome.DONE, Outcome.LOST}


def _outcome(nodes: SshNodes) -> Outcome:
    return report(nodes.run(target(), STATUS)).outcome


@pytest.mark.parametrize(
    ("forced", "deadline", "words"),
    [
        (
            "echo no shell for you; exit 1",
            PATIENCE,
            "no answer of the agent began; the node printed instead: no shell for you",
        ),
        ("exec cat", 3, "not finished after 3 s"),
        ("exit 0", PATIENCE, "exit status 0"),
    ],
)
def test_a_forced_command_is_reported(
    own_sshd: Sshd, make_nodes: Make, forced: str, deadline: float, words: str
) -> None:
    own_sshd.options = f"ForceCommand {forced}\n"
    own_sshd.start()
    told = report(make_nodes(own_sshd.ssh_config).run(target(), replace(STATUS, deadline=deadline)))
    assert told.outcome in (Outcome.LOST, Outcome.UNREACHED)
    assert words in told.message


def test_a_forced_command_that_runs_what_was_requested(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = 'ForceCommand exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert [_outcome(nodes) for _ in range(2)] == [Outcome.DONE] * 2
    assert sessions(own_sshd) == 1


def test_a_banner_is_no_answer(own_sshd: Sshd, make_nodes: Make, tmp_path: Path) -> None:
    """Not even one that looks like the beginning of a conversation."""
    begin = f"begin {conversation.prepared(PROGRAM).digest} gzip"
    (tmp_path / "banner").write_text(f"\x1b[31mAuthorized use only\n\n{begin}\n" + "refused x y\nend status\n" * 50)
    own_sshd.options = f"Banner {tmp_path}/banner\n"
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert [_outcome(nodes) for _ in range(2)] == [Outcome.DONE] * 2
    assert sessions(own_sshd) == 1


# ------------------------------------------------------------------------------------------------------------- sudo


@pytest.fixture
def user() -> Iterator[User]:
    with sudoer() as made:
        yield made


@pytest.fixture
def server(own_sshd: Sshd, user: User) -> Sshd:
    user.lets_in(own_sshd)
    own_sshd.start()
    return own_sshd


def _shell(user: User, text: str) -> None:
    path = user.home / "shell"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    subprocess.run(["chown", user.name, user.home], check=True)
    subprocess.run(["usermod", "--shell", path, user.name], check=True)


@pytest.mark.parametrize("more", ["", "Defaults:{user} use_pty", "Defaults:{user} lecture=always"])
def test_one_sudo_for_all_verbs(server: Sshd, user: User, more: str) -> None:
    log = user.home / "log"
    user.sudoers("Defaults:{user} logfile=" + str(log), *([more] if more else []), "{user} ALL=(ALL) ALL")
    command = agent_call.status(PROGRAM, sudo=True, deadline=PATIENCE)
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT, sudo_password=Secret(PASSWORD))) as nodes:
        assert [report(nodes.run(target(), command)).outcome for _ in range(3)] == [Outcome.DONE] * 3
    assert " ".join(log.read_text(encoding="utf-8").split()).count("COMMAND=") == 1


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_sudo_that_requires_a_terminal_is_reported(server: Sshd, user: User, password: str | None) -> None:
    user.sudoers("Defaults:{user} requiretty", "{user} ALL=(ALL) NOPASSWD: ALL")
    secret = Secret(password) if password else None
    command = agent_call.status(PROGRAM, sudo=True, deadline=PATIENCE)
    with closing(SshNodes(ssh_config=server.ssh_config, limits=PATIENT, sudo_password=secret)) as nodes:
        told = report(nodes.run(target(), command))
    assert told.outcome is not Outcome.DONE
    assert "tty" in told.message


# ----------------------------------------------------------------------------------------------------------- enemies


def enemy(script: str, deadline: float = PATIENCE) -> RemoteCommand:
    """A shell that begins as ours does, and then runs ``script``; ``$n`` is the nonce of the first request."""
    digest = conversation.prepared(PROGRAM).digest
    begin = f"echo; echo begin {digest}; read -r form size; dd bs=$size count=1 iflag=fullblock >/dev/null 2>&1"
    line = shlex.join(("sh", "-c", f"{begin}; read -r n rest; {script}"))
    return RemoteCommand(line, b"", deadline, request=AgentRequest(PROGRAM, "status"))


OTHER = "0" * 64
ENEMIES = {
    "another nonce": f"echo begin {OTHER}; echo end status; echo over {OTHER} 0; exec sleep 600",
    "no nonce": "echo end status; exec sleep 600",
    "its output comes early": "echo late words; echo begin $n; echo end status; echo over $n 0; exec sleep 600",
    "it ends before it": "exit 0",
    "it ends in the middle": "echo begin $n; echo end status; printf 'over %s' $n",
    "it is killed": "echo begin $n; echo end status; kill -9 $$",
    "without end": "echo begin $n; exec yes end status",
    "a line without end": "echo begin $n; exec cat /dev/zero",
}


@pytest.mark.parametrize("script", ENEMIES.values(), ids=ENEMIES)
def test_an_answer_in_doubt_is_lost_and_ends_the_connection(own_sshd: Sshd, make_nodes: Make, script: str) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    command = enemy(script)
    told = report(nodes.run(target(), command))
    assert (told.outcome, told.token, told.receipts) == (Outcome.LOST, None, ())
    assert _outcome(nodes) is Outcome.DONE
    assert own_sshd.accepted() == 2


def test_after_a_doubt_not_even_a_good_answer_counts(own_sshd: Sshd, make_nodes: Make) -> None:
    """It answers the wrong request, and then a probe and the next request as ours would."""
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config, limits=patient(trusted=0.0))
    good = "read -r n rest; echo begin $n; echo end status; echo over $n 0"
    mended = enemy(f"echo begin {OTHER}; {good}; {good}; exec sleep 600")
    assert [report(nodes.run(target(), mended)).outcome for _ in range(2)] == [Outcome.LOST] * 2
    assert own_sshd.accepted() == 2


def test_half_a_frame_is_lost_at_the_deadline(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    answer = nodes.run(
        target(), enemy("echo begin $n; echo end status; printf 'over %s' $n; exec sleep 600", deadline=2)
    )
    assert (answer.reference, answer.started, answer.stdout) == ("deadline", True, b"")
    assert _outcome(nodes) is Outcome.DONE


def test_a_late_answer_reaches_nobody(own_sshd: Sshd, make_nodes: Make, tmp_path: Path) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    with lasting(tmp_path) as for_ever:
        late = enemy(
            f"{for_ever}; echo begin $n; echo refused late x; echo end status; echo over $n 0; exec sleep 600", 2
        )
        assert nodes.run(target(), late).reference == "deadline"
    told = report(nodes.run(target(), STATUS))
    assert (told.outcome, told.reference) == (Outcome.DONE, "")


def test_output_after_an_answer_ends_the_connection_before_the_next_request(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    chatty = enemy(
        "echo begin $n; echo end status; echo over $n 0; echo; read -r n rest; touch $HOME/never; exec sleep 600"
    )
    assert report(nodes.run(target(), chatty)).outcome is Outcome.DONE
    assert _outcome(nodes) is Outcome.DONE
    assert own_sshd.accepted() == 2


# ------------------------------------------------------------------------------------------------ kept conversations


def _shells(server: Sshd) -> list[int]:
    """The processes of conversations under this server."""
    tree = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in tree.splitlines()]
    family, grown = {server.pid}, True
    while grown:
        more = {int(pid) for pid, parent, _ in rows if int(parent) in family} - family
        family, grown = family | more, bool(more)
    return [int(pid) for pid, _, words in rows if int(pid) in family and words.startswith("sh -c trap")]


def _each(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):  # it ended with the others
            os.kill(pid, number)


def test_a_shell_killed_between_two_requests_costs_the_node_nothing(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert _outcome(nodes) is Outcome.DONE
    _each(_shells(own_sshd), signal.SIGKILL)
    until(lambda: own_sshd.closed() == 1, 60, "it is dead, and our side has heard of it")
    assert _outcome(nodes) is Outcome.DONE
    assert own_sshd.accepted() == 2


def test_a_shell_killed_between_request_and_answer(
    own_sshd: Sshd, node: Node, make_nodes: Make, tmp_path: Path
) -> None:
    """The verb's end is unknown. It goes on, and the node is read over a new connection."""
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert _outcome(nodes) is Outcome.DONE
    tool = node.bin / "flock"
    with lasting(tmp_path) as for_ever:
        tool.write_text(f'#!/bin/sh\n{for_ever}\nexec /usr/bin/flock "$@"\n')
        tool.chmod(0o755)
        claim = agent_call.status(PROGRAM, claim=Claim(1, "run-1"), sudo=False, deadline=PATIENCE)
        with ThreadPoolExecutor(1) as pool:
            conversation = _shells(own_sshd)
            told = pool.submit(nodes.run, target(), claim)
            until(lambda: len(_shells(own_sshd)) > len(conversation), 60, "the verb runs")
            _each(conversation, signal.SIGKILL)
            assert told.result().started
            assert report(told.result()).outcome is Outcome.LOST
    until(lambda: report(nodes.run(target(), STATUS)).token.run == "run-1", 60, "the verb has ended")  # type: ignore[union-attr]
    assert own_sshd.accepted() == 2


def test_a_silent_conversation_is_found_before_a_request_is_sent(own_sshd: Sshd, make_nodes: Make) -> None:
    """As after a power cut or a firewall's timeout: no reset, no end of the connection."""
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config, limits=patient(channel=5.0, trusted=0.0))
    assert _outcome(nodes) is Outcome.DONE
    silent = _shells(own_sshd)
    _each(silent, signal.SIGSTOP)
    try:
        assert _outcome(nodes) is Outcome.DONE
    finally:
        _each(silent, signal.SIGKILL)
    assert own_sshd.accepted() == 2


def test_an_idle_conversation_is_probed_and_kept(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config, limits=patient(trusted=0.0))
    assert [_outcome(nodes) for _ in range(4)] == [Outcome.DONE] * 4
    assert (own_sshd.accepted(), sessions(own_sshd)) == (1, 1)


def test_an_idle_connection_is_closed_after_its_time_and_made_again(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config, limits=patient(idle=0.3))
    assert _outcome(nodes) is Outcome.DONE
    until(lambda: not _shells(own_sshd), 60, "the node's shell has ended")
    assert _outcome(nodes) is Outcome.DONE
    assert own_sshd.accepted() == 2


def test_two_verbs_at_once_follow_each_other(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: _outcome(nodes), range(8)))
    assert told == [Outcome.DONE] * 8
    assert (own_sshd.accepted(), sessions(own_sshd)) == (1, 1)


def test_another_program_gets_a_conversation_of_its_own(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    other = agent_call.status(f"{PROGRAM}# other\n", sudo=False, deadline=PATIENCE)
    assert [report(nodes.run(target(), command)).outcome for command in (STATUS, other, STATUS)] == [Outcome.DONE] * 3
    assert own_sshd.accepted() == 3


def test_a_node_that_cannot_unpack_gets_the_plain_program(own_sshd: Sshd, node: Node, make_nodes: Make) -> None:
    (node.bin / "gzip").unlink(missing_ok=True)
    few = node.root.parent / "few"
    few.mkdir()
    for tool in ("env", "cat", "dd", "sha256sum", "stat", "timeout", "sh"):
        (few / tool).symlink_to(shutil.which(tool) or tool)
    own_sshd.options = own_sshd.options.replace(f"PATH={node.env()['PATH']}", f"PATH={few}")
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert _outcome(nodes) is Outcome.DONE


def test_the_time_between_requests_does_not_count(own_sshd: Sshd, make_nodes: Make) -> None:
    """Each request has its own deadline."""
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    begin = time.monotonic()
    assert _outcome(nodes) is Outcome.DONE
    short = replace(STATUS, deadline=2 + 10 * (time.monotonic() - begin))
    assert [report(nodes.run(target(), short)).outcome for _ in range(3)] == [Outcome.DONE] * 3


@pytest.mark.parametrize(("soft", "hard", "sessions"), [(256, 4096, 2000), (256, 1000, 800), (3000, 3000, 2000)])
def test_sessions_fit_into_the_files_that_a_process_may_open(soft: int, hard: int, sessions: int) -> None:
    code = "from rollout.adapters.ssh import SshLimits, within_files; print(within_files(SshLimits()).sessions)"
    line = f"ulimit -Sn {soft} && ulimit -Hn {hard} && exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert int(done.stdout) == sessions
