"""A kubelet reports an ignored field only in its log. The log is read at its destination; an unreadable log is not healthy."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState, Snapshot
from rollout.kubelet.agent.agent_call import Measure
from tests.agent.node import BOOTED_FOR, CONFIG, NEW, OLD, Node, order

pytestmark = pytest.mark.process

IGNORES = '"Using lenient decoding as strict decoding failed" err="unknown field"'


@pytest.fixture
def elsewhere(node: Node) -> Node:
    """The kubelet's lines are not in the journal. It started a hundred seconds ago."""
    node.standin("elsewhere")
    node.kubelet_started(100)
    return node


def measured(node: Node) -> int | None:
    report = node.status(measure=Measure(healthz_port=10248))
    assert report.measurement is not None
    return report.measurement.lenient


def klog(text: str, pid: int = 100, ago: float = 0.0) -> str:
    file = "codec.go:102" if text == IGNORES else "server.go:188"
    when = time.strftime("%m%d %H:%M:%S", time.localtime(time.time() - ago))
    return f"I{when}.000000 {pid:7} {file}] {text}\n"


def json_line(text: str, ago: float, caller: str = "app/server.go:188") -> str:
    return f'{{"ts":{(time.time() - ago) * 1000:.4f},"caller":"{caller}","msg":"{text}","v":0}}\n'


def to_stderr(node: Node, text: str) -> None:
    node.write("/var/log/kubelet.log", text.encode())
    (node.at("/proc/100/fd")).mkdir(exist_ok=True)
    node.at("/proc/100/fd/2").symlink_to(node.at("/var/log/kubelet.log"))


def to_log_file(node: Node, text: str) -> None:
    node.write("/proc/100/cmdline", b"kubelet\0--logtostderr=false\0--log-file=/var/log/k.log\0")
    node.write("/var/log/k.log", text.encode())


def to_log_dir(node: Node, text: str) -> None:
    node.write("/proc/100/cmdline", b"kubelet\0--logtostderr=false\0--log-dir\0/var/log/k\0")
    node.write("/var/log/k/kubelet.n.root.log.INFO.1", text.encode())
    node.at("/var/log/k/kubelet.INFO").symlink_to("kubelet.n.root.log.INFO.1")


def dated(node: Node, now: str, zone: str = "UTC0") -> None:
    """The node's calendar is moved: it is ``now``, as ``2026-01-05T10:00:00Z``."""
    moved = round(datetime.fromisoformat(now).timestamp() - time.time())
    date = node.bin / "date"
    date.write_text(
        f"""#!/bin/sh
export TZ={zone}
case $1,$2 in -d,@*) second=${{2#@}} && shift 2 && exec {shutil.which("date")} -d "@$((second + {moved}))" "$@" ;; esac
exec {shutil.which("date")} "$@"
"""
    )
    date.chmod(0o755)


@pytest.mark.parametrize(
    ("now", "zone", "age", "written", "count"),
    [
        ("2026-01-05T10:00:00+00:00", "UTC0", 16 * 86400, "0105 09:59:00", 1),
        ("2026-01-05T10:00:00+00:00", "UTC0", 16 * 86400, "1225 10:00:00", 1),
        ("2026-01-05T10:00:00+00:00", "UTC0", 16 * 86400, "1219 10:00:00", None),
        ("2026-01-05T10:00:00+00:00", "UTC0", 16 * 86400, "0601 10:00:00", None),
        ("2026-01-01T00:00:30+00:00", "UTC0", 100, "0101 00:00:10", 1),
        ("2026-06-01T10:00:00+00:00", "UTC0", 400 * 86400, "0105 10:00:00", 1),
        ("2026-10-25T01:10:00+00:00", "CET-1CEST,M3.5.0,M10.5.0/3", 1200, "1025 02:09:00", 1),
        ("2026-10-25T01:10:00+00:00", "CET-1CEST,M3.5.0,M10.5.0/3", 1200, "1025 00:30:00", None),
        ("2026-10-24T01:10:00+00:00", "CET-1CEST,M3.5.0,M10.5.0/3", 1200, "1024 02:20:00", None),
    ],
)
def test_a_line_counts_by_its_time_without_a_year_as_far_as_that_decides(
    elsewhere: Node, now: str, zone: str, age: int, written: str, count: int | None
) -> None:
    """Over New Year a later line has an earlier date, and at the end of summer time an hour comes twice."""
    elsewhere.show(500 * 86400)
    elsewhere.kubelet_started(age)
    dated(elsewhere, now, zone)
    to_stderr(elsewhere, f"I{written}.000000     100 codec.go:102] {IGNORES}\n")
    assert measured(elsewhere) == count


A_PRINT, A_JSON_LINE = "Starting the node agent\n", json_line("Started", 1.0)
WAYS = pytest.mark.parametrize("sent", [to_stderr, to_log_file, to_log_dir])


@WAYS
def test_a_process_of_the_same_number_before_it_is_another_one(
    elsewhere: Node, sent: Callable[[Node, str], None]
) -> None:
    """A file outlives a boot. Had its lines counted, the ones of the running process would not."""
    version = '"Kubelet version" kubeletVersion="v1.33.4"'
    sent(elsewhere, klog(version, ago=3600.0) + klog(IGNORES) + klog(version))
    assert measured(elsewhere) == 1
    sent_before = klog(IGNORES, ago=3600.0) + klog(version, ago=3600.0)
    for path in ("/var/log/kubelet.log", "/var/log/k.log", "/var/log/k/kubelet.n.root.log.INFO.1"):
        if elsewhere.at(path).exists():
            elsewhere.write(path, sent_before.encode())
    assert measured(elsewhere) is None


@WAYS
def test_it_is_read_from_a_file(elsewhere: Node, sent: Callable[[Node, str], None]) -> None:
    sent(
        elsewhere,
        klog(IGNORES, pid=99) + klog("Flag --x has been deprecated") + klog(IGNORES) + klog("Started kubelet"),
    )
    assert measured(elsewhere) == 1, "the line of the previous process does not count"


@WAYS
def test_a_log_file_without_such_lines_counts_zero(elsewhere: Node, sent: Callable[[Node, str], None]) -> None:
    sent(elsewhere, klog(IGNORES, pid=99) + klog("Started kubelet"))
    assert measured(elsewhere) == 0


@WAYS
def test_a_log_file_of_an_older_process_does_not_count(elsewhere: Node, sent: Callable[[Node, str], None]) -> None:
    sent(elsewhere, klog("Started kubelet", pid=99))
    assert measured(elsewhere) is None


@pytest.mark.parametrize(("ago", "count"), [(10_000.0, None), (1.0, 1)])
def test_json_lines_are_told_apart_by_their_time(elsewhere: Node, ago: float, count: int | None) -> None:
    to_stderr(elsewhere, json_line("Using lenient decoding as strict decoding failed", ago, "codec/codec.go:102"))
    assert measured(elsewhere) == count


@pytest.mark.parametrize("line", [A_PRINT, A_JSON_LINE], ids=["a print", "a JSON line"])
def test_text_in_the_journal_is_no_log_if_the_log_is_discarded(elsewhere: Node, line: str) -> None:
    """Its standard error is /dev/null. The warning is text there, even if later lines are JSON on standard output."""
    elsewhere.standin("journal", f"[    9901.000000] node kubelet[100]: {line}")
    assert measured(elsewhere) == 0
    elsewhere.at("/proc/100/fd/2").symlink_to("/dev/null")
    assert measured(elsewhere) is None
    snapshot = elsewhere.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.measurement.lenient is None


def test_a_snapshot_without_a_line_reports_an_unknown_count(elsewhere: Node) -> None:
    snapshot = elsewhere.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.measurement.lenient is None


def applied(node: Node, *, log_unread: bool = False) -> Report:
    ordered = order()
    return node.apply(replace(ordered, change=replace(ordered.change, log_unread=log_unread)))


def test_a_log_that_comes_late_is_waited_for_while_the_guard_gives_time(node: Node) -> None:
    """Of 60 nodes without a free processor, five healthy ones were reverted after 20 s without a line."""
    node.standin("elsewhere", f"{BOOTED_FOR + 25:.0f}\n")
    assert applied(node).healthy
    assert BOOTED_FOR + 25 <= node.now() < BOOTED_FOR + 60


@pytest.mark.parametrize("runtime", [False, True])
def test_a_kubelet_without_a_readable_log_is_not_healthy(node: Node, runtime: bool) -> None:
    node.standin("elsewhere")
    if runtime:
        node.serve("containerd.service", "containerd")
    report = applied(node)
    assert node.receipt()["state"] == "reverted"
    assert "not a line of its log can be read" in report.message
    assert node.files() == OLD
    assert node.now() < BOOTED_FOR + 60, "the agent waits for it, but not for long"


@pytest.mark.parametrize("line", [A_PRINT, A_JSON_LINE], ids=["a print", "a JSON line"])
def test_a_kubelet_with_a_discarded_log_is_not_healthy(node: Node, line: str) -> None:
    node.standin("elsewhere")
    node.standin("journal", f"[       1.000000] node kubelet[101]: {line}")
    node.at("/proc/100/fd/2").symlink_to("/dev/null")  # it is another process after its restart
    applied(node)
    assert node.files() == OLD


def test_an_unreadable_log_is_healthy_if_the_playbook_accepts_it(node: Node) -> None:
    node.standin("elsewhere")
    assert applied(node, log_unread=True).healthy
    assert node.files() == NEW


def test_an_ignored_field_is_found_in_the_file_after_the_restart(node: Node) -> None:
    node.standin("elsewhere")
    words = ("kubelet", "--config=/var/lib/kubelet/config.yaml", "--logtostderr=false", "--log-file=/var/log/k.log", "")
    node.write("/proc/100/cmdline", "\0".join(words).encode())
    node.write("/var/log/k.log", (klog(IGNORES, pid=101) + klog("Started kubelet", pid=101)).encode())
    report = applied(node)
    assert "1 lines of lenient decoding" in report.message
    assert node.files() == OLD


NOTED_LATE = """\
case ${verb-show} in show) started=$((started * 1000000)) stopped=$((started - 3000000)) logged=$((started / 1000000 - 2)) ;; esac
"""
"""Of systemd, without a free processor for two seconds: the kubelet has logged before its start is noted."""


@pytest.mark.parametrize(("config", "count"), [(b"new config\n", 0), (b"LENIENT\n", 1)])
def test_what_a_kubelet_logged_before_systemd_noted_its_start_counts(node: Node, config: bytes, count: int) -> None:
    node.show(1_000)
    node.standin("unit", NOTED_LATE)
    node.write(CONFIG, config)
    assert measured(node) == count


def test_a_kubelet_that_logged_before_systemd_noted_its_start_keeps_its_change(node: Node) -> None:
    node.show(1_000)
    node.standin("unit", NOTED_LATE)
    receipt = node.apply(order()).receipt
    assert receipt is not None
    assert receipt.state is ReceiptState.ARMED


def test_what_another_process_logged_under_its_number_before_the_unit_ended_does_not_count(node: Node) -> None:
    node.show(1_000)
    node.standin("unit", NOTED_LATE.replace("- 2))", "- 4))"))
    node.write(CONFIG, b"LENIENT\n")
    assert measured(node) is None
