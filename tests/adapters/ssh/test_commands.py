"""Commands on a real OpenSSH server: output, input, status, deadlines, reuse, concurrency."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.sshd import Sshd, lasting, patient, target
from tests.controllers import until

pytestmark = pytest.mark.process


def command(line: str, stdin: bytes = b"", deadline: float = 600.0) -> RemoteCommand:
    return RemoteCommand(line=line, stdin=stdin, deadline=deadline)


def unhurried(nodes: SshNodes) -> float:
    """A deadline of which a short command needs only a small part on this machine. ``n1`` is then connected."""
    took = []
    for _ in range(4):
        begin = time.monotonic()
        nodes.run(target(), command("true"))
        took.append(time.monotonic() - begin)
    return 1 + 10 * max(took[1:])


def test_output_and_status_are_returned(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("echo out; echo err >&2; exit 7"))
    assert answer == RemoteAnswer(status=7, stdout=b"out\n", stderr=b"err\n", started=True)


def test_a_large_input_is_read_while_output_flows_back(nodes: SshNodes) -> None:
    data = os.urandom(1024 * 1024)
    assert nodes.run(target(), command("cat", data)).stdout == data


def test_input_larger_than_every_window_does_not_deadlock(nodes: SshNodes) -> None:
    data = os.urandom(1024 * 1024) * 8
    answer = nodes.run(target(), command("tee /dev/stderr | sha256sum", data))
    assert answer.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert answer.truncated
    assert len(answer.stderr) == SshLimits().stderr


def test_a_command_need_not_read_its_input(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("exec <&-; exit 3", b"x" * 3_000_000))
    assert (answer.status, answer.reference) == (3, "")


def test_output_past_the_cap_is_cut_and_reported(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("head -c 6000000 /dev/zero"))
    assert (answer.status, len(answer.stdout), answer.truncated) == (0, SshLimits().stdout, True)


def test_endless_output_is_given_up(shared_sshd: Sshd, make_nodes: Make) -> None:
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(stdout=1024, flood=1_000_000))
    answer = nodes.run(target(), command("cat /dev/zero"))
    assert (answer.status, answer.started, answer.reference, answer.truncated) == (None, True, "output-flood", True)
    assert nodes.run(target(), command("echo again")).stdout == b"again\n"


def test_the_deadline_holds_while_the_node_does_not_respond(nodes: SshNodes, tmp_path: Path) -> None:
    deadline = unhurried(nodes)
    with lasting(tmp_path) as for_ever:
        begin = time.monotonic()
        answer = nodes.run(target(), command(f"echo begun; {for_ever}", deadline=deadline))
        assert time.monotonic() - begin > deadline - 0.1
    assert (answer.status, answer.started, answer.reference, answer.stdout) == (None, True, "deadline", b"begun\n")


def test_the_deadline_holds_while_output_streams(shared_sshd: Sshd, make_nodes: Make) -> None:
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(flood=1 << 60))
    assert nodes.run(target(), command("cat /dev/zero", deadline=unhurried(nodes))).reference == "deadline"


def test_a_signal_is_no_status(nodes: SshNodes) -> None:
    answer = nodes.run(target(), command("kill -KILL $$"))
    assert (answer.status, answer.started, answer.reference) == (None, True, "no-status")


def test_a_lost_connection_is_an_unknown_end(nodes: SshNodes, tmp_path: Path) -> None:
    with lasting(tmp_path) as for_ever:
        answer = nodes.run(target(), command(f"echo begun; kill -KILL $PPID; {for_ever}"))
    assert (answer.status, answer.started, answer.reference) == (None, True, "connection-lost")
    assert nodes.run(target(), command("echo again")).stdout == b"again\n"


def test_output_held_open_by_a_child_does_not_hide_the_status(
    shared_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(held=1.0))
    with lasting(tmp_path) as for_ever:
        answer = nodes.run(target(), command(f"{for_ever} & echo done; exit 4"))
    assert (answer.status, answer.stdout, answer.reference) == (4, b"done\n", "output-held-open")


def test_a_connection_is_kept_until_it_is_released(shared_sshd: Sshd, nodes: SshNodes) -> None:
    before = shared_sshd.accepted()
    parents = {nodes.run(target(), command("echo $PPID")).stdout for _ in range(3)}
    assert len(parents) == 1
    nodes.release(target())
    assert nodes.run(target(), command("echo $PPID")).stdout not in parents
    assert shared_sshd.accepted() - before == 2


def test_a_kept_connection_that_died_is_opened_again(nodes: SshNodes) -> None:
    first = nodes.run(target(), command("echo $PPID")).stdout
    os.kill(int(first), 9)
    second = nodes.run(target(), command("echo $PPID"))
    assert second.status == 0
    assert second.stdout != first


def test_a_kept_connection_that_stopped_responding_is_reopened(shared_sshd: Sshd, make_nodes: Make) -> None:
    """Like after a power cut: no reset and no end of the connection."""
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(channel=5.0))
    silent = int(nodes.run(target(), command("echo $PPID")).stdout)
    os.kill(silent, 19)
    try:
        answer = nodes.run(target(), command("echo $PPID"))
    finally:
        os.kill(silent, 9)
    assert answer.status == 0
    assert int(answer.stdout) != silent


def test_a_round_trip_is_measured_over_the_kept_connection(shared_sshd: Sshd, nodes: SshNodes) -> None:
    parent = nodes.run(target(), command("echo $PPID")).stdout
    before = shared_sshd.accepted()
    trips = [nodes.round_trip(target(), times, 600.0) for times in (1, 3)]
    assert min(trips) > 0
    assert nodes.run(target(), command("echo $PPID")).stdout == parent
    assert shared_sshd.accepted() == before


def test_a_node_that_does_not_answer_has_no_round_trip(nodes: SshNodes) -> None:
    silent = int(nodes.run(target(), command("echo $PPID")).stdout)
    os.kill(silent, 19)
    try:
        with pytest.raises(RemoteError) as raised:
            nodes.round_trip(target(), 3, 0.1)
    finally:
        os.kill(silent, 9)
    assert raised.value.reference == "no-answer"


def test_forty_nodes_at_once(shared_sshd: Sshd, make_nodes: Make) -> None:
    nodes = make_nodes(shared_sshd.ssh_config)
    before = shared_sshd.accepted()
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), command(f"cat; exit {n}", b"%d" % n)), range(40)))
    assert [(answer.status, answer.stdout) for answer in answers] == [(n, b"%d" % n) for n in range(40)]
    assert shared_sshd.accepted() - before == 40


def test_commands_on_one_node_share_its_connection(shared_sshd: Sshd, nodes: SshNodes) -> None:
    before = shared_sshd.accepted()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(), command(f"echo {n}")), range(8)))
    assert [answer.stdout for answer in answers] == [b"%d\n" % n for n in range(8)]
    assert shared_sshd.accepted() - before == 1


def test_sessions_are_bounded_and_the_longest_idle_one_is_closed(shared_sshd: Sshd, make_nodes: Make) -> None:
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(sessions=2))
    first = nodes.run(target("n1"), command("echo $PPID")).stdout
    second = nodes.run(target("n2"), command("echo $PPID")).stdout
    assert nodes.run(target("n3"), command("true")).status == 0
    assert nodes.run(target("n2"), command("echo $PPID")).stdout == second
    assert nodes.run(target("n1"), command("echo $PPID")).stdout != first


def test_no_free_session_in_time_is_reported(shared_sshd: Sshd, make_nodes: Make, tmp_path: Path) -> None:
    nodes = make_nodes(shared_sshd.ssh_config, limits=patient(sessions=1))
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as pool:
        with lasting(tmp_path) as while_we_look:
            long = pool.submit(nodes.run, target("n1"), command(f"touch {begun}; {while_we_look}"))
            until(begun.exists, 60, "the only session is taken")
            answer = nodes.run(target("n2"), command("true", deadline=0.5))
        assert (answer.started, answer.reference) == (False, "busy")
        assert long.result().status == 0


def test_closing_ends_running_commands_and_refuses_new_ones(
    shared_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    nodes = make_nodes(shared_sshd.ssh_config)
    begun = tmp_path / "begun"
    with lasting(tmp_path) as for_ever, ThreadPoolExecutor(1) as pool:
        long = pool.submit(nodes.run, target(), command(f"touch {begun}; {for_ever}"))
        until(begun.exists, 60, "it runs")
        nodes.close()
        assert long.result().reference == "connection-lost"
    answer = nodes.run(target(), command("true"))
    assert (answer.started, answer.reference) == (False, "closed")


def test_the_stack_size_of_other_threads_is_unchanged(nodes: SshNodes) -> None:
    before = threading.stack_size()
    nodes.run(target(), command("true"))
    assert threading.stack_size() == before
