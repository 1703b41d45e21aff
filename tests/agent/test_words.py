"""The agent's calls and answers as values: nothing is sent unquoted, nothing is accepted unchecked."""

from __future__ import annotations

import base64
import hashlib
import shlex
import shutil
import subprocess
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import Outcome, RemoteAnswer, Report
from rollout.core.model.snapshot import Process, ReceiptState, Service, Snapshot, Stale, Token, UnitState, Unread
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings, Room, Swap, UnitProcesses
from rollout.core.model.transactions import Expected
from rollout.core.model.verification import Binary, Verification
from rollout.kubelet.agent import agent_call, conversation
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot, parse_verification
from rollout.kubelet.agent.agent_call import ApplyOrder
from rollout.kubelet.agent.agent_lines import READERS, answered
from tests.agent.node import SHELLS, order
from tests.cost import calls

pytestmark = pytest.mark.process

X = hashlib.sha256(b"x").hexdigest().encode()
RECEIPT = b"receipt tx=t1 run=r counter=1 state=armed cause=- left=59 finished=1\n"


def answer(stdout: bytes, *, status: int | None = 0, stderr: bytes = b"") -> RemoteAnswer:
    return RemoteAnswer(status, stdout, stderr, started=True)


def report(stdout: bytes, verb: str = "apply", *, status: int | None = 0, stderr: bytes = b"") -> Report:
    return parse_report("n1", verb, answer(stdout, status=status, stderr=stderr), 1.0)


# ------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize("shell", SHELLS)
def test_a_refusal_is_one_line_whatever_a_tool_reported(shell: str) -> None:
    said = "mkdir: a: No space left on device\nmkdir: b: No space left on device"
    words = (resources.files("rollout.agent") / "words.sh").read_text()
    script = f"NL='\n' verb=apply t_order=x spoken=''\n{words}\nlog() {{ :; }}\nrefuse no-room \"$1\"\n"
    command = ([shutil.which(shell) or shell] + ["sh"] * (shell == "busybox")) + ["-c", script, shell, said]
    found = report(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (found.outcome, found.reference) == (Outcome.REFUSED, "no-room")
    assert found.message == "mkdir: b: No space left on device"


def test_a_command_names_the_digest_of_what_is_sent() -> None:
    command = agent_call.apply("program\n", order(), sudo=True, deadline=30)
    digest = hashlib.sha256(b"program\n").hexdigest()
    assert shlex.split(command.line) == [
        "env",
        "LC_ALL=C",
        "sudo",
        "-n",
        "--",
        "sh",
        "-c",
        conversation.BOOT,
        "rollout",
        digest,
    ]
    assert command.request is not None
    assert command.request.words.startswith("apply tx=t1 run=run-1 counter=1 ")
    assert command.deadline == 30
    assert agent_call.cleanup("program\n", run="r", counter=1, sudo=False, deadline=1).line.startswith("sh -c ")


def test_the_payload_follows_the_program() -> None:
    command = agent_call.apply("program\n", order(new={"/etc/a": b""}, old={}), sudo=False, deadline=30)
    empty = hashlib.sha256(b"").hexdigest()
    argument = base64.b64encode(b"--config=/var/lib/kubelet/config.yaml").decode()
    assert command.request is not None
    size = len(command.request.payload)
    assert command.stdin.decode().splitlines() == [
        "plain 8",
        "program",
        f"{'0' * 64} {size} {command.request.words}",
        f"file 1 /etc/a absent {empty} 640 -",
        "unit kubelet.service",
        f"argument {argument}",
    ]


@given(content=st.binary(), argument=st.text(), gate=st.text())
def test_no_content_can_leave_the_payload(content: bytes, argument: str, gate: str) -> None:
    try:
        words = argument.encode(), gate.encode()
    except UnicodeEncodeError:
        return
    file = FileChange("/etc/a", None, content)
    what = ApplyOrder("t", "r", 1, "0" * 32, 60, 3, "kubelet.service", Change((file,), ("u",), arguments=(argument,)))
    text = agent_call.apply("p\n", what, sudo=False, deadline=1).stdin.decode("ascii")
    assert "'" not in text
    assert len(text.splitlines()) == 6
    measure = agent_call.Measure(commands=(agent_call.NodeCommand("g", 1, gate),))
    assert agent_call.status("p\n", measure=measure, sudo=False, deadline=1).stdin.count(b"\n") == 4
    assert len(words) == 2


@pytest.mark.parametrize(
    "path", ["etc/a", "/etc/../a", "/etc//a", "/etc/a/", "/etc/a b", "/etc/$(a)", "/etc/'a", "/etc/ä", "/a", "/etc/a\n"]
)
def test_a_path_outside_the_alphabet_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        agent_call.apply("p", order(new={path: b""}, old={}), sudo=False, deadline=1)


@given(
    word=st.text().filter(
        lambda text: not set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-")
    )
)
def test_a_name_outside_the_alphabet_is_an_error(word: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        agent_call.cleanup("p", run=word, counter=1, sudo=False, deadline=1)
    with pytest.raises(ValueError, match="not a"):
        agent_call.snapshot("p", unit=word, sudo=False, deadline=1)


@pytest.mark.parametrize(
    "changes", [{"tx": "a@b"}, {"tx": ".."}, {"machine_id": "x"}, {"counter": -1}, {"guard": 10**16}]
)
def test_an_invalid_order_is_an_error(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a"):
        agent_call.apply("p", order(**changes), sudo=False, deadline=1)  # type: ignore[arg-type]  # wrong on purpose


# ----------------------------------------------------------------------------------------------------------- answers


def test_a_whole_answer() -> None:
    text = b"healthy yes process 7\ntoken 3 r live\n" + RECEIPT + b"end apply\n"
    done = report(text)
    assert (done.outcome, done.healthy, done.message) == (Outcome.DONE, True, "process 7")
    assert done.token == Token(3, "r", live=True)
    assert done.receipt is not None
    assert (done.receipt.state, done.receipt.left, done.receipt.finished) == (ReceiptState.ARMED, 59.0, True)


def test_a_verification_is_whole_or_unread() -> None:
    text = (
        b"expected t1 reverted 1 0 absent "
        + b"0" * 64
        + b" - - /etc/a\nstale edited 5 kubelet.service /etc/b\nkubelet t1 9-1 9-2\nstarted 60\n"
    )
    found = parse_verification("n1", answer(text + b"end verify\n"))
    assert isinstance(found, Verification)
    assert found.expected == (Expected("/etc/a", "t1", ReceiptState.REVERTED),)
    assert (found.stale, found.binary, found.age) == (
        (Stale("/etc/b", "kubelet.service", edited=True, seconds=5),),
        Binary("t1", "9-1", "9-2"),
        60,
    )
    cut_off, refused = parse_verification("n1", answer(text)), b"refused bad-argument unit\nend verify\n"
    assert isinstance(cut_off, Unread)
    assert cut_off.reference == "answer-cut-off"
    assert parse_verification("n1", answer(refused)) == Unread("n1", "bad-argument", "unit")


def test_an_answer_without_an_end_reports_the_error_of_the_connection() -> None:
    late = RemoteAnswer(None, b"", b"", started=True, reference="deadline", message="not finished after 30 s")
    assert parse_snapshot("n1", late) == Unread("n1", "deadline", "not finished after 30 s")
    assert parse_verification("n1", late) == Unread("n1", "deadline", "not finished after 30 s")
    assert parse_snapshot("n1", answer(b"", status=None)) == Unread("n1", "answer-cut-off", "exit status unknown")


def test_the_content_of_several_files_comes_in_one_line() -> None:
    empty = hashlib.sha256(b"").hexdigest().encode()
    lines = [b"file regular 644 0:0 1 " + X + b" /etc/" + name + b" +" for name in (b"a", b"b")]
    lines[1:1] = [b"file absent - - - - /etc/n -", b"file regular 644 0:0 0 " + empty + b" /etc/e -"]
    got = parse_snapshot(
        "n1",
        answer(
            b"\n".join([*lines, b"content eHg=", lines[0].replace(b"/a", b"/c"), b"content eA==", b"end snapshot\n"])
        ),
    )
    assert isinstance(got, Snapshot), got
    assert {path: file.content for path, file in got.files.items()} == {
        "/etc/a": b"x",
        "/etc/n": None,
        "/etc/e": b"",
        "/etc/b": b"x",
        "/etc/c": b"x",
    }


def test_services_and_pulls() -> None:
    process = base64.b64encode(b"dockerd\0-H\0fd://\0").decode()
    text = f"service docker.service ActiveState active\nserving docker.service 7 {process}\npulls a/b:1 (unnamed)\n"
    units = "unit kubelet.service ActiveState active\nservice crio.service MainPID 0\n"
    measured = report(f"{units}{text}end status\n".encode(), "status").measurement
    assert measured is not None
    assert measured.services == {
        "crio.service": Service(UnitState("crio.service", {"MainPID": "0"})),
        "docker.service": Service(
            UnitState("docker.service", {"ActiveState": "active"}), Process(7, ("dockerd", "-H", "fd://"))
        ),
    }
    assert measured.pulls == ("a/b:1", "(unnamed)")
    assert [
        found.pulls
        for line in ("", "pulls -\n")
        if (found := report(f"{units}{line}end status\n".encode(), "status").measurement)
    ] == [None, ()]


def test_the_requested_receipt_is_not_the_history() -> None:
    done = report(RECEIPT.replace(b"receipt", b"history") + b"end status\n", "status")
    assert done.receipt is None
    assert [receipt.tx for receipt in done.receipts] == ["t1"]


def test_how_a_verb_ended() -> None:
    assert report(RECEIPT).outcome is Outcome.LOST
    assert report(RECEIPT + b"end apply", status=None).outcome is Outcome.LOST
    assert report(RECEIPT + b"end apply\n", status=None).outcome is Outcome.LOST
    assert report(b"", status=1, stderr=b"sh: oops\n").message == "sh: oops"
    refused = report(b"refused drifted /etc/a\nend apply\n")
    assert (refused.outcome, refused.reference, refused.message) == (Outcome.REFUSED, "drifted", "/etc/a")


@pytest.mark.parametrize(
    "stderr",
    [b"sudo: a password is required\n", b"sh: 1: sudo: not found\n", b"bash: sudo: command not found\n"],
)
def test_no_sudo(stderr: bytes) -> None:
    refused = report(b"", status=127, stderr=stderr)
    assert (refused.outcome, refused.reference) == (Outcome.REFUSED, "no-sudo")


def test_a_node_that_was_not_reached() -> None:
    unreached = RemoteAnswer(None, b"", b"", started=False, reference="connect-timeout", message="after 10 s")
    got = parse_report("n1", "apply", unreached, 10.0)
    assert (got.outcome, got.reference, got.message, got.seconds) == (
        Outcome.UNREACHED,
        "connect-timeout",
        "after 10 s",
        10.0,
    )
    assert parse_snapshot("n1", unreached) == Unread("n1", "connect-timeout", "after 10 s")


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"receipt tx=t1",
        b"receipt tx=t1 run=r counter=1 state=odd cause=- left=5 finished=1",
        b"receipt tx=t1 run=r counter=x state=armed cause=- left=5 finished=1",
        b"token 1 r maybe",
        b"healthy perhaps",
        b"process 1 ???",
        b"file regular 644 0:0 1 " + b"0" * 64 + b" /etc/a eA==",
        b"file regular 644 0:0 1 " + b"0" * 64 + b" /etc/a +\ncontent eA==",
        b"file regular 644 0:0 1 " + X + b" /etc/a +",
        b"file regular 644 0:0 1 " + X + b" /etc/a +\ncontent eHg=",
        b"file regular 644 0:0 1 " + X + b" /etc/a +\ncontent ???",
        b"content eA==",
        b"file odd - - - - /etc/a -",
        b"file absent - - - - etc/a -",
        b"command a b c",
        b"command a 1",
        b"command a 1 ???",
        b"service",
        b"serving docker.service 7",
        b"serving docker.service x ZA==",
        b"pulls",
        b"pulls a;b",
        b"pulls  a",
        b"expected t1 confirmed 1 0 absent " + b"0" * 64 + b" 644 0:0",
        b"expected t1 confirmed 1 0 absent - 644 0:0 /etc/a",
        b"expected t1 confirmed -1 0 absent " + b"0" * 64 + b" 644 0:0 /etc/a",
        b"expected t1 odd 1 0 absent " + b"0" * 64 + b" - - /etc/a",
        b"expected t1 confirmed 1 0 absent " + b"0" * 64 + b" 644 0:0 etc/a",
        b"expected t1 confirmed 1 0 absent absent - - /a\nexpected t1 reverted 1 0 absent absent - - /b",
        b"stale touched 5 u /etc/a",
        b"stale edited -5 u /etc/a",
        b"kubelet t1 9-1",
        b"started soon",
        b"kubelet-root relative",
        b"cgroups whole",
        b"cgroups most /a",
        b"cgroups whole  /a",
        b"sockets whole /a;b",
        b"devices whole" + b" /dev/nvidia0" * 257,
        b"manifests etc whole -",
        b"manifests /etc whole " + b"x" * 401,
        b"manifests /etc whole -\n" * 17,
        b"sysctl vm.overcommit_memory 1",
        b"sysctl vm/overcommit_memory one",
        b"".join(b"sysctl vm/a%b 1\n" % (b"_" * count) for count in range(17)),
        b"swaps whole /dev/sda:partition:1",
        b"swaps whole /dev/sda:partition:many:1",
        b"room kubelet /var ext4 1 2 3",
        b"room kubelet /var ext4 1 2 3 -4",
        b"room kubelet /var ext4 1 2 3 4\n" * 17,
        b"inhibit-delay infinity",
        b"processes containerd.service whole shim",
        b"processes containerd.service whole :",
        b"lenient " + b"9" * 40,
        b"fact " + b"x" * 300_000,
        b"end apply\nsay more",
        b"",
    ],
)
def test_an_answer_with_a_line_that_is_not_in_the_protocol_is_lost(line: bytes) -> None:
    got = report(line + b"\nend apply\n")
    assert (got.outcome, got.reference) == (Outcome.LOST, "bad-answer")


def test_output_of_a_login_shell_before_the_agents_is_no_answer() -> None:
    noise = b"Welcome to tess-node-0001\nend apply\nno newline at its end: "
    begin = b"\nbegin " + b"0" * 64 + b"\n"
    assert report(noise + begin + b"refused drifted x\nend apply\n").reference == "drifted"
    assert report(noise + b"refused drifted x\nend apply\n").reference == "bad-answer"


def test_an_answer_without_bounds_is_lost() -> None:
    assert report(b"say x\n" * 3_000 + b"end apply\n").reference == "bad-answer"
    assert (
        parse_report("n1", "apply", RemoteAnswer(0, b"end apply\n", b"", started=True, truncated=True), 1.0).outcome
        is Outcome.LOST
    )


def test_no_terminal_escape_survives() -> None:
    text = b"say \x1b]0;owned\x07 \xe2\x80\xae \r\x9b2J\nfact hostname \x1b[2Jx\nend snapshot\n"
    got = parse_snapshot("n1", answer(text))
    assert isinstance(got, Snapshot)
    assert got.facts["hostname"] == "?[2Jx"
    assert report(b"refused drifted \x1b[31m\nend apply\n").message == "?[31m"
    output = base64.b64encode(b"\x1b[2J" + b"x" * 300)
    measured = report(b"command g 1 " + output + b"\nend status\n", "status").measurement
    assert measured is not None
    assert measured.outputs == {"g": "?[2J" + "x" * 196}
    assert "\x1b" not in report(b"", status=1, stderr=b"\x1b[2J").message


def test_the_surroundings_of_a_kubelet() -> None:
    text = (
        b"kubelet-root /data/kubelet\ncgroups whole /b /a /a\nsockets cut /run/a.sock\ndevices whole -\n"
        b"manifests /etc/m whole etcd.yaml\nmanifests /etc/n whole -\nsysctl kernel/keys/root_maxkeys 5\n"
        b"swaps whole /dev/a:b:partition:10:1\nroom kubelet /data ext2/ext3 10 5 4 3\ninhibit-delay 2500000\n"
        b"processes containerd.service whole containerd:1\nprocesses crio.service cut conmon:2\nend snapshot\n"
    )
    got = parse_snapshot("n1", answer(text))
    assert isinstance(got, Snapshot), got
    assert got.surroundings == NodeSurroundings(
        kubelet_root="/data/kubelet",
        cgroups=Listing(("/a", "/b")),
        sockets=Listing(("/run/a.sock",), whole=False),
        devices=Listing(),
        manifests=(Manifests("/etc/m", Listing(("etcd.yaml",))), Manifests("/etc/n", Listing())),
        sysctls={"kernel.keys.root_maxkeys": "5"},
        swaps=(Swap("/dev/a:b", "partition", 10, 1),),
        rooms=(Room("kubelet", "/data", "ext2/ext3", 10, 5, 4, 3),),
        inhibit_delay=2.5,
        processes=(UnitProcesses("containerd.service", "containerd", 1), UnitProcesses("crio.service", "conmon", 2)),
    )
    before = parse_snapshot("n1", answer(b"end snapshot\n"))
    assert isinstance(before, Snapshot)
    assert before.surroundings is None


@given(st.binary(max_size=400))
def test_no_bytes_can_make_it_raise(noise: bytes) -> None:
    assert report(noise).node == "n1"
    assert parse_snapshot("n1", answer(noise + b"\nend snapshot\n")).node == "n1"


@given(st.lists(st.sampled_from(sorted(READERS)), max_size=8), st.text(max_size=40))
def test_no_line_can_make_it_raise(words: list[str], rest: str) -> None:
    noise = "".join(f"{word} {rest}\n" for word in words).encode("utf-8", "replace")
    assert parse_snapshot("n1", answer(noise)).node == "n1"


def test_a_kubelet_that_does_not_print_its_version() -> None:
    got = parse_snapshot("n1", answer(b"fact kubelet-version error: no\nend snapshot\n"))
    assert isinstance(got, Snapshot)
    assert got.kubelet_version == ""


# -------------------------------------------------------------------------------------------------------------- cost


def test_to_read_an_answer_compiles_no_pattern() -> None:
    """A pattern with the nonce in it costs a thousand calls, and each answer has another nonce."""

    def read(nonce: str) -> object:
        whole = f"begin {nonce}\n".encode() + RECEIPT + f"over {nonce} 0\n".encode()
        found = conversation.answer(whole, nonce)
        assert found is not None
        return answered(whole), found.status

    read("0" * 64)
    assert calls(lambda: read("1" * 64)) < 30


def test_a_verb_that_was_killed_has_no_answer() -> None:
    """Its shell still reports its end."""
    digest, nonce = b"a" * 64, b"0" * 64
    killed = parse_report("n1", "revert", answer(b"begin %b gzip\nover %b 137\n" % (digest, nonce), status=137), 0.0)
    assert (killed.outcome, killed.reference) == (Outcome.LOST, "answer-cut-off")
