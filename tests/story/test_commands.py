"""``exec`` and ``ssh`` on a real OpenSSH server that is six nodes: bounded, recorded, and never past a strange host key."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from tests.adapters.journal.test_contract import header
from tests.adapters.ssh.sshd import Sshd, make_key, public, require
from tests.controllers import PATIENCE, Done, at_work, finished, until
from tests.documents import printed

pytestmark = [pytest.mark.process, pytest.mark.drawn(20)]

INVENTORY = """\
cluster: real
apiServer: v1.36.1
ssh: {user: root, sudo: true}
racks:
  a: n[1-5]
  b: n6
nodes:
  n[1-6]:
    labels: {kubeletVersion: v1.35.1, containerRuntime: containerd}
"""


@dataclass(frozen=True)
class Real:
    """Six nodes, five of them in one rack, where the limit is one at a time."""

    folder: Path
    server: Sshd

    def words(self, *words: str) -> list[str]:
        name, *rest = words
        ours = ["--cluster", "real", "--ssh-config", str(self.server.ssh_config)]
        if name == "exec":
            ours += ["--yes"]
        return [sys.executable, "-m", "rollout.cli", name, *ours, *rest]

    def rollout(self, *words: str) -> Done:
        return finished(self.words(*words), self.folder)

    def notes(self) -> list[str]:
        with closing(SqlJournal(self.folder / ".rollout")) as journal:
            return [note.text for note in journal.notes("real")]


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    require()
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/real.yaml").write_text(INVENTORY)
    (tmp_path / "server").mkdir()
    server = Sshd(tmp_path / "server")
    server.start()
    yield Real(tmp_path, server)
    server.stop()


def test_the_results_are_folded_recorded_and_counted(real: Real) -> None:
    """The shell of the server is one and the same, so the command itself makes the nodes differ."""
    line = f"mkdir {real.folder}/first 2>/dev/null && {{ echo no >&2; exit 3; }}; echo yes"
    done = real.rollout("exec", "@a", "--timeout", "5m", "--reason", "OPS-7", "--", line)
    assert done.code == 4, done.all
    assert done.out.splitlines() == [
        "n[2-5] (4 nodes): exit status 0",
        "  yes",
        "n1 (1 node): exit status 3",
        "  stderr: no",
        "5 nodes: 4 with exit status 0, 1 with another exit status",
    ]
    began, ended = real.notes()
    assert f"command on n[1-5] (5 nodes), at most 300 s each: {json.dumps(line)}; reason: OPS-7" in began
    name = began.partition(":")[0]
    assert ended == f"{name} ended: exit status 0 on n[2-5] (4 nodes); exit status 3 on n1 (1 node)"


def test_a_run_at_work_on_the_cluster_is_named(real: Real) -> None:
    with closing(SqlJournal(real.folder / ".rollout")) as journal:
        journal.begin(replace(header(), cluster="real"))
        journal.acquire("real", "r1")
        done = real.rollout("exec", "n1", "--timeout", "5m", "--", "true")
    assert (done.code, done.err.strip()) == (
        0, "WARNING: run r1 is at work on real; its nodes in flight are not counted here",
    )  # fmt: skip


def test_several_words_are_a_program_with_arguments_and_json_is_a_line_for_each_node(real: Real) -> None:
    done = real.rollout(
        "exec", "n[1,6]", "--timeout", "5m", "-o", "json", "--", "printf", "%s|", "a b", "$HOME", "\x1b[2J"
    )
    assert done.code == 0, done.all
    found = printed(done.out)
    assert sorted(line["node"] for line in found) == ["n1", "n6"]
    assert {(line["exitStatus"], line["stdout"], line["stderr"], line["cut"]) for line in found} == {
        (0, "a b|$HOME|\x1b[2J|", "", False)
    }
    assert "\x1b" not in done.out


def test_five_nodes_of_a_rack_never_run_two_at_once(real: Real) -> None:
    """Counted where they run: each takes a folder, stays for a while, and finds it taken if it is not alone."""
    busy, twice = real.folder / "busy", real.folder / "twice"
    line = f"mkdir {busy} || echo x >>{twice}; sleep 0.2; rmdir {busy}"
    assert real.rollout("exec", "@a", "--timeout", "5m", "--", line).code == 0
    assert not twice.exists()


def test_two_racks_run_side_by_side_unless_in_flight_is_lowered(real: Real) -> None:
    """Each waits for the other: alone, the first one never ends."""
    line = f"echo x >>{real.folder}/begun; until [ $(wc -l <{real.folder}/begun) -ge 2 ]; do sleep 0.05; done"
    assert real.rollout("exec", "n[1,6]", "--timeout", "5m", "--", line).code == 0
    (real.folder / "begun").unlink()
    done = real.rollout("exec", "n[1,6]", "--timeout", "4s", "--in-flight", "1", "-o", "json", "--", line)
    first, _ = printed(done.out)
    assert (done.code, first["node"], first["reference"]) == (4, "n1", "deadline"), done.all


def test_a_node_that_does_not_end_is_given_up_at_its_deadline(real: Real) -> None:
    go = real.folder / "go"
    done = real.rollout("exec", "n1", "--timeout", "15s", "--", f"echo begun; until [ -e {go} ]; do sleep 0.1; done")
    go.touch()
    assert done.code == 4
    assert done.out.splitlines() == [
        "n1 (1 node): no answer: not finished after 15 s; it may still run on the node [deadline]",
        "  begun",
        "1 node: 0 with exit status 0, 1 without an answer",
    ]
    assert real.notes()[-1].endswith("ended: deadline on n1 (1 node)")


def test_output_beyond_the_bound_is_cut_and_marked(real: Real) -> None:
    done = real.rollout("exec", "n1", "--timeout", "5m", "--", "yes 0123456789 | head -c 200000")
    assert done.code == 0
    assert done.out.count("0123456789") == 64 * 1024 // 11
    assert "  … output cut: a node's output is kept up to 64 KiB" in done.out.splitlines()


@pytest.mark.parametrize("known", ["unknown", "changed"])
def test_a_node_with_another_host_key_runs_nothing(real: Real, known: str) -> None:
    other = public(make_key(real.folder / "other"))
    text = "" if known == "unknown" else f"[127.0.0.1]:{real.server.port} {other}\n"
    real.server.known_hosts.write_text(text)
    done = real.rollout("exec", "n[1-2]", "--timeout", "5m", "--", f"touch {real.folder}/mark")
    assert done.code == 4, done.all
    assert done.out.startswith("n[1-2] (2 nodes): no answer: ")
    assert f"[host-key-{known}]" in done.out
    assert not (real.folder / "mark").exists()
    assert real.server.known_hosts.read_text() == text
    assert real.server.accepted() == 0


def test_a_node_that_cannot_be_reached_has_its_reason(real: Real) -> None:
    real.server.stop()
    done = real.rollout("exec", "n[1-2]", "--timeout", "5m", "--", "true")
    assert done.code == 4
    assert "n[1-2] (2 nodes): no answer: connection refused" in done.out
    assert "[connection-refused]" in done.out


@pytest.mark.root
def test_sudo_is_the_nodes_own(real: Real) -> None:
    done = real.rollout("exec", "n1", "--sudo", "--timeout", "5m", "--", "id -u; echo ${SUDO_COMMAND:+sudo}")
    assert done.out.splitlines()[:3] == ["n1 (1 node): exit status 0", "  0", "  sudo"]
    assert " through sudo, " in real.notes()[0]
    done = real.rollout("exec", "n1", "--timeout", "5m", "--", "echo ${SUDO_COMMAND:-none}")
    assert done.out.splitlines()[1] == "  none"


def test_without_a_journal_nothing_is_run(real: Real) -> None:
    (real.folder / ".rollout").mkdir(mode=0o700)
    (real.folder / ".rollout/journal.db").write_bytes(b"this is no database " * 100)
    done = real.rollout("exec", "n1", "--", f"touch {real.folder}/mark")
    assert (done.code, done.out) == (5, ""), done.all
    assert "[journal-un" in done.err
    assert not (real.folder / "mark").exists()
    assert real.server.accepted() == 0


def test_a_command_that_nobody_confirmed_reaches_no_node_and_leaves_no_record(real: Real) -> None:
    done = finished([word for word in real.words("exec", "@a", "--", "uptime") if word != "--yes"], real.folder)
    assert (done.code, "`uptime` will run on 5 nodes of real" in done.err, "[not-confirmed]" in done.err) == (
        2,
        True,
        True,
    )
    assert real.notes() == []
    assert real.server.accepted() == 0


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (["n1", "--", ""], "no-command"),
        (["n1", "--timeout", "0s", "--", "true"], "bad-duration"),
        (["n1", "--timeout", "soon", "--", "true"], "bad-duration"),
        (["n1", "--timeout", "25h", "--", "true"], "bad-duration"),
        (["n9", "--", "true"], "unknown-node"),
        (["@c", "--", "true"], "unknown-group"),
        (["n1", "--in-flight", "101", "--", "true"], "in-flight"),
        (["n1"], "COMMAND"),
    ],
)
def test_a_mistake_reaches_no_node_and_leaves_no_record(real: Real, words: list[str], reference: str) -> None:
    done = real.rollout("exec", *words)
    assert done.code == 2, done.all
    assert reference in done.err
    assert not (real.folder / ".rollout").exists()
    assert real.server.accepted() == 0


# Ctrl-C.


def waiting(real: Real) -> str:
    """A command that ends when ``go`` is there."""
    return f"echo x >>{real.folder}/begun; until [ -e {real.folder}/go ]; do sleep 0.05; done"


def begun(real: Real) -> int:
    path = real.folder / "begun"
    return len(path.read_text().split()) if path.exists() else 0


def test_after_the_first_ctrl_c_no_more_start_and_those_in_flight_finish(real: Real) -> None:
    said = real.folder / "said"
    with at_work(real.words("exec", "@a", "--timeout", "10m", "--", waiting(real)), real.folder, said) as process:
        until(lambda: begun(real) == 1, PATIENCE, "the first node has begun")
        os.killpg(process.pid, signal.SIGINT)
        until(lambda: "stopping: finishing nodes in flight first" in said.read_text(), PATIENCE, "it was taken")
        (real.folder / "go").touch()
        assert process.wait(PATIENCE) == 130, said.read_text()
    assert begun(real) == 1
    assert "n1 (1 node): exit status 0" in said.read_text()
    assert "n[2-5] (4 nodes): not started [not-started]" in said.read_text()
    assert real.notes()[-1].endswith("ended: exit status 0 on n1 (1 node); not-started on n[2-5] (4 nodes)")


def test_the_second_ctrl_c_waits_for_nobody(real: Real) -> None:
    said = real.folder / "said"
    with at_work(real.words("exec", "@a", "--timeout", "10m", "--", waiting(real)), real.folder, said) as process:
        until(lambda: begun(real) == 1, PATIENCE, "the first node has begun")
        os.killpg(process.pid, signal.SIGINT)
        until(lambda: "stopping: finishing nodes in flight first" in said.read_text(), PATIENCE, "it was taken")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130, said.read_text()
    assert (
        "n1 (1 node): no answer: interrupted; the command may still run on the node [not-waited-for]"
        in said.read_text()
    )
    assert real.notes()[-1].endswith("ended: not-started on n[2-5] (4 nodes); not-waited-for on n1 (1 node)")
    (real.folder / "go").touch()


def test_results_that_cannot_be_recorded_are_shown_all_the_same(real: Real) -> None:
    said = real.folder / "said"
    with at_work(real.words("exec", "n1", "--timeout", "10m", "--", waiting(real)), real.folder, said) as process:
        until(lambda: begun(real) == 1, PATIENCE, "the node has begun")
        with closing(sqlite3.connect(real.folder / ".rollout/journal.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            (real.folder / "go").touch()
            assert process.wait(PATIENCE) == 5, said.read_text()
    assert "n1 (1 node): exit status 0" in said.read_text()
    assert "the note could not be recorded" in said.read_text()
    assert len(real.notes()) == 1, "the start is recorded"


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_reader_that_leaves_ends_nothing(real: Real, form: str) -> None:
    """As ``| head -1`` does: every node still runs the command, and the record is whole."""
    words = real.words("exec", "@a", "--timeout", "5m", "-o", form, "--", f"echo x >>{real.folder}/begun; exit 3")
    with subprocess.Popen(words, cwd=real.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == 4
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert begun(real) == 5
    assert real.notes()[-1].endswith("ended: exit status 3 on n[1-5] (5 nodes)")


# A shell.


class Person:
    """Somebody at a terminal who opened a shell on a node."""

    def __init__(self, real: Real, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(self._ours, (33, 101))
        self.before = self.modes()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}  # of another terminal
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *real.words("ssh", *words)],
            cwd=real.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.seen = b""

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def sees(self, text: str) -> None:
        wanted = text.encode()
        until(
            lambda: wanted in self._read() or self.process.poll() is not None, PATIENCE, f"{text!r} is on the terminal"
        )
        assert wanted in self._read(), self.seen

    def _read(self) -> bytes:
        try:
            while data := os.read(self._ours, 65536):
                self.seen += data
        except (BlockingIOError, OSError):  # nothing yet; or the other side is closed
            pass
        return self.seen

    def modes(self) -> object:
        return termios.tcgetattr(self._ours)

    def resizes(self, lines: int, columns: int) -> None:
        termios.tcsetwinsize(self._ours, (lines, columns))

    def leaves(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def person(real: Real) -> Iterator[Person]:
    made = Person(real, "n1")
    yield made
    made.leaves()


def test_a_shell_has_this_terminal_and_ends_with_its_exit_status(person: Person) -> None:
    person.types("echo $TERM-$((6*7)) $(stty size)\r")
    person.sees("xterm-256color-42 33 101")
    person.types("printf 'ü%s\\n' $((1+1))\r")
    person.sees("ü2")
    person.resizes(40, 120)
    person.types("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.05; done; echo resized-$((1+1))\r")
    person.sees("resized-2")
    person.types("exit 7\r")
    until(lambda: person.process.poll() is not None, PATIENCE, "it has ended")
    assert person.process.returncode == 7, person.seen


def test_ctrl_c_and_ctrl_z_go_to_the_node(person: Person) -> None:
    person.types("echo ready-$((1+1)); sleep 100000\r")
    person.sees("ready-2")
    person.types("\x03")
    person.sees("^C")
    person.types("echo still-$((1+2)) $?\r")
    person.sees("still-3 130")
    person.types("exit\r")
    until(lambda: person.process.poll() is not None, PATIENCE, "it has ended")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_session_and_restores_the_terminal(person: Person, number: signal.Signals) -> None:
    person.types("echo ready-$((1+1))\r")
    person.sees("ready-2")
    person.process.send_signal(number)
    until(lambda: person.process.poll() is not None, PATIENCE, "it has ended")
    assert person.process.returncode == 4
    assert person.modes() == person.before


def test_a_lost_connection_ends_the_session_with_its_reason(person: Person) -> None:
    person.types("echo ready-$((1+1)); kill -9 $PPID\r")
    person.sees("[connection-lost]")
    until(lambda: person.process.poll() is not None, PATIENCE, "it has ended")
    assert person.process.returncode == 4


@pytest.mark.parametrize("known", ["unknown", "changed"])
def test_no_shell_on_a_node_with_another_host_key(real: Real, known: str) -> None:
    other = public(make_key(real.folder / "other"))
    real.server.known_hosts.write_text("" if known == "unknown" else f"[127.0.0.1]:{real.server.port} {other}\n")
    person = Person(real, "n1")
    try:
        person.sees(f"[host-key-{known}]")
        until(lambda: person.process.poll() is not None, PATIENCE, "it has ended")
        assert (person.process.returncode, real.server.accepted()) == (4, 0)
    finally:
        person.leaves()


def test_without_a_terminal_there_is_no_shell(real: Real) -> None:
    done = real.rollout("ssh", "n1")
    assert done.code == 2
    assert (
        f"`rollout exec --ssh-config {real.server.ssh_config} n1 --cluster real -- COMMAND` needs no terminal"
        in done.err
    )
    assert "[no-terminal]" in done.err


def test_a_shell_is_on_one_node(real: Real) -> None:
    person = Person(real, "n[1-2]")
    try:
        person.sees("[not-one-node]")
        assert person.process.wait(PATIENCE) == 2
    finally:
        person.leaves()
