"""The journal of a node: its command, run by a real shell, and its answer on the clock of the events."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rollout.features.diagnose.rules.facts import API_CLOCK, Kind
from rollout.features.diagnose.rules.node_journals import (
    MOST_OF_NODE,
    journal_command,
    journal_of,
    log_command,
    log_files,
    summed,
    with_log,
)
from tests.features.diagnose.rules.logs import BEGIN, NODE, klog, lines
from tests.kubelet.nodes import kubeadm
from tests.kubelet.rancher_nodes import k3s, rke2

LATEST = datetime(2026, 11, 21, tzinfo=UTC)
DELETE = 'SyncLoop (DELETE, "api"): "web-1_shop(01473fb7)"'
END = b"\n-- journalctl ended 0\n"


def short_iso(line: str, clock: str, program: str = "kubelet[3033]") -> str:
    return f"2026-11-20T{clock} {NODE} {program}: {line}"


def read(text: str, most: int = 1 << 20) -> bytes:
    return text.encode()[-most:] + END


def shell(tmp_path: Path, journalctl: str, seconds: float = 7200, most: int = 1 << 20) -> tuple[bytes, str]:
    """The command on a machine with this ``journalctl``."""
    program = tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\n{journalctl}\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", journal_command(seconds, most=most)], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )  # fmt: skip
    return done.stdout, done.stderr.decode()


@pytest.mark.process
def test_the_command_prints_the_newest_lines_and_the_exit_status(tmp_path: Path) -> None:
    out, _ = shell(
        tmp_path, 'echo "$LC_ALL $*" >&2; yes "2026-11-20T09:00:00+0000 n kubelet: line" | head -n 1000', most=500
    )
    assert len(out) == 500
    journal = journal_of(NODE, out, "", LATEST, most=500)
    assert (journal.why, journal.reading.read) == ("", 11)
    assert journal.reading.notes == ("only the newest 0 KiB were read, since 2026-11-20T09:00:00+0000",)
    _, err = shell(tmp_path, 'echo "$LC_ALL $*" >&2', seconds=90)
    units = "-u kubelet -u k3s -u k3s-agent -u rke2-agent -u rke2-server -u containerd -u cri-docker -u crio -u docker"
    assert err == f"C -q --no-pager -o short-iso --since=-90s {units}\n"


@pytest.mark.process
def test_a_journal_that_cannot_be_read_has_its_reason(tmp_path: Path) -> None:
    out, err = shell(tmp_path, 'echo "No journal files were opened due to insufficient permissions." >&2; exit 1')
    why = "journalctl ended with status 1: No journal files were opened due to insufficient permissions."
    assert journal_of(NODE, out, err, LATEST).why == why
    assert journal_of(NODE, b"half a li", "", LATEST).why == "its end is missing"


def test_an_empty_journal_is_read() -> None:
    journal = journal_of(NODE, END, "", LATEST)
    assert (journal.why, journal.reading.notes) == ("", ("it has no line of this time",))


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [("17:00:00+0800", 8 * 3600), ("09:00:00+0000", 0), ("09:00:01Z", 0), ("03:15:00-0545", -5 * 3600 - 2700)],
)
def test_the_kubelets_local_time_gets_the_zone_of_the_journal(clock: str, seconds: float) -> None:
    """The node's clock shows 17:00, which is 09:00 UTC; the fraction is the kubelet's own."""
    text = lines(short_iso(klog(seconds + 0.25, DELETE), clock))
    (fact,) = journal_of(NODE, read(text), "", LATEST).facts.of(Kind.DELETED)
    assert (fact.clock, fact.node, fact.at) == (API_CLOCK, NODE, BEGIN.timestamp() + 0.25)


def test_a_runtimes_own_time_stays() -> None:
    line = 'time="2026-11-20T09:00:03.5Z" level=info msg="PullImage \\"web:1\\""'
    text = lines(short_iso(line, "17:00:03+0800", "containerd[9]"))
    (fact,) = journal_of(NODE, read(text), "", LATEST).facts.of(Kind.RUNTIME_STARTED)
    assert fact.at == BEGIN.timestamp() + 3.5


def test_many_journals_are_one_line() -> None:
    journals = [journal_of(f"n{number}", read("nothing that is a log\n"), "", LATEST) for number in range(5)]
    whole = summed("journals of n[0-4]", (journal.reading for journal in journals))
    assert (whole.read, whole.unread.lines, len(whole.unread.examples)) == (0, 5, 3)
    assert whole.unread.examples[0].file == "n0:journal"
    assert whole.notes == ("no line of it is of a form that is known (5 nodes)",)


def test_since_when_a_journal_has_every_pull() -> None:
    """From its first line on, if it has lines of a runtime that logs its pulls; from the oldest pull that was kept."""
    kubelet = short_iso(klog(0, DELETE), "09:00:00+0000")
    clocks = [f"09:{at // 60:02}:{at % 60:02}" for at in range(MOST_OF_NODE + 2)]
    pulls = [
        short_iso(
            f'time="2026-11-20T{clock}Z" level=info msg="PullImage \\"web:1\\""', f"{clock}+0000", "containerd[9]"
        )
        for clock in clocks
    ]
    journals = [kubelet], [kubelet, pulls[0]], [kubelet, *pulls]
    since = [journal_of(NODE, read(lines(*text)), "", LATEST).pulls_since for text in journals]
    assert since == [None, BEGIN.timestamp(), BEGIN.timestamp() + 2]


@pytest.mark.process
@pytest.mark.parametrize("zone", [0, 2])
def test_a_log_file_counts_by_the_nodes_zone_and_in_the_time_that_is_asked_for(tmp_path: Path, zone: int) -> None:
    log = tmp_path / "kubelet log"
    log.write_text(lines(klog(-7200 + zone * 3600, DELETE.replace("web-1", "old")), klog(zone * 3600, DELETE)))
    command, env = log_command(str(log)), {"PATH": "/usr/bin:/bin", "TZ": f"X-{zone}"}
    out = subprocess.run(["/bin/sh", "-c", command], env=env, capture_output=True, check=True).stdout
    at = BEGIN.timestamp()
    journal = with_log(journal_of(NODE, END, "", LATEST), str(log), out, LATEST, at - 60, at + 60)
    (fact,) = journal.facts.of(Kind.DELETED)
    assert (fact.node, fact.clock, fact.at, journal.reading.read) == (NODE, API_CLOCK, at, 2)


def test_a_log_file_that_is_not_there_is_a_note() -> None:
    journal = with_log(journal_of(NODE, END, "", LATEST), "/x.log", b"\n-- log ended 1 +0000\n", LATEST, 0.0, 1.0)
    assert (journal.why, journal.reading.notes[-1]) == ("", "/x.log could not be read")


def test_the_log_files_are_those_of_the_layout() -> None:
    moved = rke2(words=("--kubeconfig=/data/rke2/agent/kubelet.kubeconfig",))
    agent = "/var/lib/rancher/rke2/agent"
    assert log_files(rke2()) == (f"{agent}/logs/kubelet.log", f"{agent}/containerd/containerd.log")
    assert log_files(moved)[0] == "/data/rke2/agent/logs/kubelet.log"
    assert log_files(k3s()) == ("/var/lib/rancher/k3s/agent/containerd/containerd.log",)
    assert log_files(kubeadm()) == ()
