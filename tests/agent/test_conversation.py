"""Many verbs in one shell: each in a process of its own; any byte that does not belong ends the conversation."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.core.model.report import AgentRequest, Outcome, RemoteAnswer, RemoteCommand, Report
from rollout.core.model.snapshot import ReceiptState
from rollout.kubelet.agent import agent_call, conversation
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.agent_call import Claim, Measure
from rollout.kubelet.agent.conversation import ProgramForm
from tests.agent.instrument import Moment, instrumented
from tests.agent.node import NEW, OLD, PATIENCE, PROGRAM, Node, order
from tests.controllers import until

pytestmark = [pytest.mark.process, pytest.mark.telling]

NONCE = "0" * 64
TOKEN = {"tx": "t1", "run": "run-1", "counter": 1, "sudo": False, "deadline": 60.0}


@dataclass
class Talk:
    """The shell of one conversation with a node, its program sent."""

    shell: subprocess.Popen[bytes]
    said: bytes = b""
    frames: int = 0

    def write(self, sent: bytes) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.write(sent)
        self.shell.stdin.flush()

    def begin(self, command: RemoteCommand) -> str:
        """Send a verb; its nonce."""
        assert command.request is not None
        self.frames += 1
        nonce = hashlib.sha256(b"%d" % self.frames).hexdigest()
        self.write(conversation.frame(command.request, nonce))
        return nonce

    def heard(self, nonce: str) -> conversation.Answer:
        assert self.shell.stdout is not None
        while (found := conversation.answer(self.said, nonce)) is None:
            more = os.read(self.shell.stdout.fileno(), 65536)
            assert more, "the conversation has ended"
            self.said += more
        self.said = found.rest
        return found

    def ask(self, command: RemoteCommand) -> Report:
        assert command.request is not None
        found = self.heard(self.begin(command))
        answer = RemoteAnswer(found.status, found.output, b"", started=True)
        return parse_report("n1", command.request.words.split()[0], answer, 0.0)

    def end(self) -> tuple[int, bytes]:
        """Its status and the rest of its output."""
        rest, _ = self.shell.communicate(timeout=PATIENCE)
        return self.shell.returncode, self.said + rest


@contextmanager
def talk(node: Node, program: str = PROGRAM, *, form: ProgramForm | None = None) -> Iterator[Talk]:
    """``form`` of the program that is sent; ``None``: the shortest one that the node takes."""
    words = [str(node.bin / "sh"), "-c", f"exec {conversation.boot(program)}"]
    shell = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=node.env(), cwd="/")
    made = Talk(shell)
    try:
        assert shell.stdout is not None
        while (greeting := conversation.greeted(made.said, program)) is None:
            made.said += os.read(shell.stdout.fileno(), 65536)
        made.said = b""
        made.write(conversation.opening(program, form or greeting.form))
        yield made
    finally:
        shell.kill()
        shell.communicate()


def confirm(program: str = PROGRAM) -> RemoteCommand:
    return agent_call.confirm(program, keep=3, **TOKEN)  # type: ignore[arg-type]  # the words of a verb


def revert(program: str = PROGRAM) -> RemoteCommand:
    return agent_call.revert(program, **TOKEN)  # type: ignore[arg-type]


def status(program: str = PROGRAM) -> RemoteCommand:
    return agent_call.status(program, tx="t1", sudo=False, deadline=60)


@pytest.mark.parametrize("form", [ProgramForm.GZIP, ProgramForm.PLAIN])
def test_a_whole_transaction_in_one_shell(node: Node, form: ProgramForm) -> None:
    with talk(node, form=form) as shell:
        claim = agent_call.status(PROGRAM, tx="t1", claim=Claim(1, "run-1"), sudo=False, deadline=60)
        assert shell.ask(claim).outcome is Outcome.DONE
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
        assert node.files() == NEW
        assert (node.tx() / "agent").read_text() == PROGRAM
        assert shell.ask(confirm()).outcome is Outcome.DONE
        assert shell.ask(revert()).outcome is Outcome.DONE
        assert node.files() == OLD
        found = shell.ask(status()).receipt
        assert found is not None
        assert found.state is ReceiptState.REVERTED
        cleaned = shell.ask(agent_call.cleanup(PROGRAM, run="run-1", counter=1, sudo=False, deadline=60))
        assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ())
        assert shell.end() == (0, b"")
    assert node.strays() == []


def test_nothing_of_one_verb_reaches_the_next(node: Node) -> None:
    """Neither its payload, nor its words, nor the lock."""
    with talk(node) as shell:
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
        assert not node.is_locked()
        assert shell.ask(agent_call.status(PROGRAM, sudo=False, deadline=60)).receipt is None
        no_words = RemoteCommand("", b"", 60, request=AgentRequest(PROGRAM, "confirm"))
        assert shell.ask(no_words).reference == "bad-argument"


def test_a_conversation_that_only_reads_writes_nothing(node: Node) -> None:
    with talk(node) as shell:
        assert shell.ask(status()).outcome is Outcome.DONE
        snapshot = agent_call.snapshot(PROGRAM, unit="kubelet.service", sudo=False, deadline=60)
        assert shell.ask(snapshot).outcome is Outcome.DONE
    assert not node.at("/var/lib/rollout").exists()
    assert node.strays() == []


def test_a_verb_is_the_holder_of_the_lock_and_not_the_conversation(node: Node) -> None:
    with talk(node) as shell:
        shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60))
        holder = int(node.at("/var/lib/rollout/holder").read_text().split()[0])
        assert holder != shell.shell.pid


def test_a_guard_that_seizes_the_lock_kills_the_verb_and_not_the_conversation(node: Node) -> None:
    """The verb is stopped while it holds the lock."""
    program = instrumented(PROGRAM)
    with talk(node) as shell:
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
    held = node.environment
    node.environment = {**held, **_under_the_lock(node, program).stop(node.root.parent)}
    with talk(node, program) as shell:
        node.environment = held
        nonce = shell.begin(revert(program))
        until(node.is_locked, PATIENCE, "the verb holds the lock")
        until(lambda: _one_is_stopped(shell.shell.pid), PATIENCE, "the verb is stopped")
        with node.at_work("guard") as guard:
            node.tire_who_waits()
            guard.wait(PATIENCE)
        found = shell.heard(nonce)
        assert found.status == 128 + signal.SIGKILL
        answer = RemoteAnswer(found.status, found.output, b"", started=True)
        assert parse_report("n1", "revert", answer, 0.0).outcome is Outcome.LOST
        shell.write(conversation.probe("n2"))
        assert shell.heard("n2").status == 0
    after = node.status("t1").receipt
    assert after is not None
    assert (after.state, after.cause) == (ReceiptState.REVERTED, "guard")
    assert node.files() == OLD


def _under_the_lock(node: Node, program: str) -> Moment:
    """The first step of a revert after it has the lock."""
    lines = program.splitlines()
    body = next(number for number, line in enumerate(lines) if line.startswith("requested_revert_locked()"))
    first = next(line for line in lines[body:] if line.startswith("_tick "))
    return Moment(first.split()[1], 1)


def _one_is_stopped(pid: int) -> bool:
    """Of its children and theirs."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return any(_condition(child) == "T" or _one_is_stopped(child) for child in children)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _condition(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


@pytest.mark.parametrize(
    "frame", [b"", b"\n", b"no frame\n", b"n -1 status\n", b"n 1x status\n", b"$(id) 0 status\n", b"n 0 status"]
)
def test_what_is_no_frame_ends_the_conversation_and_runs_nothing(node: Node, frame: bytes) -> None:
    with talk(node) as shell:
        shell.write(frame)
        assert shell.end() == (0, b"")


def test_a_payload_that_was_cut_off_runs_nothing(node: Node) -> None:
    request = agent_call.apply(PROGRAM, order(), sudo=False, deadline=60).request
    assert request is not None
    with talk(node) as shell:
        shell.write(conversation.frame(request, "n1")[:-1])
        assert shell.end() == (1, b"refused torn-program the request arrived incomplete\n")
    assert not node.at("/var/lib/rollout").exists()


@pytest.mark.parametrize("form", [ProgramForm.GZIP, ProgramForm.PLAIN])
def test_a_program_that_was_cut_or_changed_runs_nothing(node: Node, form: ProgramForm) -> None:
    whole = conversation.opening(PROGRAM, form)
    apply = agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)
    assert apply.request is not None
    frame = conversation.frame(apply.request, "n1")
    changed = whole[:3_000] + bytes([whole[3_000] ^ 1]) + whole[3_001:]
    for sent in (b"", b"x\n", whole[:7_000], changed + frame, b"gzip 5\nhello" + frame, b"kept 0\n" + frame):
        torn = RemoteCommand(apply.line, sent, 60)
        assert node.report("apply", torn).reference == "torn-program"
    assert not node.at("/var/lib/rollout").exists()


def greeting(node: Node, program: str = PROGRAM) -> ProgramForm | None:
    words = [str(node.bin / "sh"), "-c", conversation.boot(program)]
    done = subprocess.run(words, input=b"", env=node.env(), capture_output=True, check=False, timeout=PATIENCE)
    found = conversation.greeted(done.stdout, program)
    return found.form if found else None


def test_a_node_that_has_kept_the_program_is_not_sent_it_again(node: Node) -> None:
    assert greeting(node) is ProgramForm.GZIP
    with talk(node) as shell:
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
        assert shell.ask(confirm()).outcome is Outcome.DONE
    assert greeting(node) is ProgramForm.KEPT
    assert greeting(node, PROGRAM + "# another version\n") is ProgramForm.GZIP
    with talk(node, form=ProgramForm.KEPT) as shell:
        assert shell.ask(revert()).healthy
    assert node.files() == OLD


def test_a_node_that_has_kept_the_program_answers_the_frame_of_the_command_line_at_once(node: Node) -> None:
    def asked() -> bytes:
        """Its output; no input follows the command line."""
        claim = agent_call.status(PROGRAM, tx="t1", claim=Claim(2, "run-2", force=True), sudo=False, deadline=60)
        assert claim.request is not None
        line = conversation.with_frame(conversation.boot(PROGRAM), claim.request, NONCE)
        words = [str(node.bin / "sh"), "-c", f"exec {line}"]
        return subprocess.run(
            words, input=b"", env=node.env(), capture_output=True, check=False, timeout=PATIENCE
        ).stdout

    assert b"refused torn-program" in asked()
    assert not node.at("/var/lib/rollout").exists()
    with talk(node) as shell:
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
        assert shell.ask(confirm()).outcome is Outcome.DONE
    output = asked()
    greeting = conversation.greeted(output, PROGRAM)
    assert greeting is not None
    answer = conversation.answer(output[greeting.end :], NONCE)
    assert answer is not None
    found = parse_report("n1", "status", RemoteAnswer(answer.status, answer.output, b"", started=True), 0.0)
    assert (found.outcome, answer.rest) == (Outcome.DONE, b"")
    with talk(node) as shell:
        token = shell.ask(status()).token
    assert token is not None
    assert token.run == "run-2"


def test_a_request_with_a_payload_is_not_in_the_command_line() -> None:
    apply = agent_call.apply(PROGRAM, order(), sudo=False, deadline=60).request
    assert apply is not None
    assert conversation.with_frame("sh", apply, "n1") == "sh"


@pytest.mark.parametrize("damage", [b"", b"# another program\n", None])
def test_a_program_on_the_node_with_another_digest_does_not_run(node: Node, damage: bytes | None) -> None:
    with talk(node) as shell:
        assert shell.ask(agent_call.apply(PROGRAM, order(), sudo=False, deadline=60)).healthy
        assert shell.ask(confirm()).outcome is Outcome.DONE
    kept = node.tx() / "agent"
    kept.unlink()
    if damage is None:
        os.mkfifo(kept)
    else:
        kept.write_bytes(damage)
    assert greeting(node) is ProgramForm.GZIP
    asked = revert()
    assert asked.request is not None
    torn = RemoteCommand(asked.line, b"kept 0\n" + conversation.frame(asked.request, "n1"), 60)
    if damage is not None:
        assert node.report("revert", torn).reference == "torn-program"
    assert node.files() == NEW


def test_a_node_without_gzip_says_so(node: Node) -> None:
    if node.shell == "busybox":
        pytest.skip("NOT TESTED: this shell has its own gzip")
    tools = node.root.parent / "few"
    tools.mkdir()
    for name in ("dd", "cat", "sha256sum"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    (tools / "sh").symlink_to((node.bin / "sh").resolve())
    words = [str(node.bin / "sh"), "-c", conversation.boot(PROGRAM)]
    env = {**node.env(), "PATH": str(tools)}
    done = subprocess.run(words, input=b"", env=env, capture_output=True, check=False, timeout=PATIENCE)
    found = conversation.greeted(done.stdout, PROGRAM)
    assert found is not None
    assert found.form is ProgramForm.PLAIN


def test_a_frame_without_a_verb_is_only_answered(node: Node) -> None:
    with talk(node) as shell:
        shell.write(conversation.probe("n1"))
        assert shell.heard("n1").output == b""
        assert shell.end() == (0, b"")


def test_the_nodes_journal_has_a_line_for_each_verb(node: Node) -> None:
    with talk(node) as shell:
        shell.ask(status())
        shell.ask(agent_call.status(PROGRAM, measure=Measure("kubelet.service", 10248), sudo=False, deadline=60))
        shell.ask(confirm())
        shell.end()
    assert set(node.at("/run/standin/journal").read_text().splitlines()) == {
        "status tx=t1: done",
        "status measure=1 unit=kubelet.service healthz=10248: done",
        "confirm tx=t1 run=run-1 counter=1 keep=3: refused no-transaction t1",
    }


def test_a_journal_that_hangs_delays_no_answer(node: Node) -> None:
    hangs = node.at("/run/standin/hangs")
    hangs.touch()
    (node.bin / "logger").write_text(f"#!/bin/sh\nwhile [ -e {hangs} ]; do /usr/bin/sleep 0.02; done\n")
    with talk(node) as shell:
        assert shell.ask(status()).outcome is Outcome.DONE
        assert shell.ask(status()).outcome is Outcome.DONE
        hangs.unlink()
        assert shell.end() == (0, b"")


@pytest.mark.parametrize("kept", [True, False], ids=["its conversation", "another process of its number"])
def test_a_line_goes_only_to_the_conversation_of_the_verb(node: Node, tmp_path: Path, kept: bool) -> None:
    """A verb may outlive its conversation. The number of that process may then belong to another one."""
    file = tmp_path / "file"
    file.write_text("of another\n")
    program = tmp_path / "program"
    program.write_text(PROGRAM)  # it is longer than an argument may be
    script = f'exec 3>>"{file}"; . "{program}"\nread -r t_shell _ </proc/self/stat; born "$t_shell"; t_born={"$p_born" if kept else 1}; conversation_log line'
    subprocess.run([node.bin / "sh", "-c", script, "rollout"], check=True)
    assert file.read_text() == "of another\n" + ("line\n" if kept else "")


# ------------------------------------------------------------------------------------------------------------- bytes


def test_another_answer_is_no_answer() -> None:
    whole = b"begin n2\nend status\nover n2 0\n"
    assert conversation.answer(whole[:4], "n2") is None
    assert conversation.answer(whole[:-1], "n2") is None
    assert conversation.answer(whole, "n2") == conversation.Answer(b"begin n2\nend status\n", 0, b"")
    for noise in (b"begin n1\nend status\nover n1 0\n", b"late words\n", b"end status\nover n2 0\n", b"\n" + whole):
        with pytest.raises(ValueError, match="not an answer"):
            conversation.answer(noise, "n2")
    assert conversation.answer(b"begin n2\nover n1 0\nend status\n", "n2") is None


def test_an_answer_that_was_cut_in_a_line_has_its_end() -> None:
    assert conversation.answer(b"begin n\nheover n 137\n", "n") == conversation.Answer(b"begin n\nhe", 137, b"")
    assert conversation.answer(b"begin n\nover n 0\nmore", "n") == conversation.Answer(b"begin n\n", 0, b"more")
