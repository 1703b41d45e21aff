"""Logs, names and mounts of a real systemd that the agent must not overlook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from rollout.core.model.report import Outcome
from tests.bed.node import CONFIG, FLAGS
from tests.real.agent_calls import CONFIG_PATH, FLAGS_PATH, GUARDS, OnNode, eventually

pytestmark = pytest.mark.root

FOLDER = "/etc/systemd/system/kubelet.service.d"


@contextmanager
def with_drop_in(hand: OnNode, name: str, *lines: str) -> Iterator[None]:
    """The kubelet runs with one more drop-in."""
    node, path = hand.node, f"{FOLDER}/{name}"
    node.exec("sh", "-c", 'printf "%s\\n" "$@" >"$0"', path, "[Service]", *lines)
    restart = "systemctl daemon-reload && systemctl restart kubelet"
    node.exec("sh", "-c", restart)
    eventually(partial(_answers, hand))
    try:
        yield
    finally:
        node.exec("rm", path)
        node.exec("sh", "-c", restart)
        eventually(partial(_answers, hand))


def _answers(hand: OnNode) -> bool:
    return hand.snapshot().measurement.healthz == "ok"


def lenient(hand: OnNode) -> int | None:
    return hand.snapshot().measurement.lenient


@pytest.mark.parametrize("how", ["file", "append", "truncate"])
def test_a_log_that_systemd_writes_to_a_file_is_read(on_node: OnNode, how: str) -> None:
    log = f"/var/log/kubelet.{how}"
    with with_drop_in(on_node, "20-log.conf", f"StandardOutput={how}:{log}", "StandardError=inherit"):
        assert lenient(on_node) == 0
        report = on_node.apply(f"tx-{how}", {CONFIG_PATH: f"{CONFIG}noSuchField: 1\n".encode()})
        assert "1 lines of lenient decoding" in report.message
        assert on_node.read(CONFIG_PATH) == CONFIG
        assert lenient(on_node) == 0, "with append, the previous process's line is still in the file"
    on_node.node.exec("rm", log)


def test_a_discarded_log_is_unknown(on_node: OnNode) -> None:
    with with_drop_in(on_node, "20-log.conf", "StandardOutput=null", "StandardError=null"):
        assert lenient(on_node) is None


@pytest.mark.parametrize("name", ["10 odd.conf", "10-größe.conf"])
def test_a_drop_in_with_an_odd_name_is_reported(on_node: OnNode, name: str) -> None:
    facts = on_node.snapshot().facts
    assert "odd-names" not in facts
    assert facts["systemd"].startswith("systemd 2")
    with with_drop_in(on_node, name, "Environment=ODD=1"):
        assert "odd-names" in on_node.snapshot().facts


def test_files_in_memory_are_refused_before_arming(on_node: OnNode) -> None:
    """After a power cut the receipt would be confirmed, and the new files would be lost."""
    node, folder = on_node.node, FLAGS_PATH.rpartition("/")[0]
    line = 'cp -a "$0" /run/flags && mount -t tmpfs tmpfs "$0" && cp -a /run/flags/. "$0" && rm -r /run/flags'
    node.exec("sh", "-c", line, folder)
    try:
        report = on_node.apply("tx-memory", {FLAGS_PATH: FLAGS.replace("3.2", "3.3").encode()})
        assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-as-persistent")
        assert f"{folder} is on tmpfs" in report.message
        assert on_node.read(FLAGS_PATH) == FLAGS
    finally:
        node.exec("umount", folder)
    assert on_node.cleanup().leftovers == ()


ANSWERS = (
    "use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 10248, Listen => 9) or die; "
    'while (1) { my $c = $s->accept or next; print $c "HTTP/1.0 200 OK\\r\\n\\r\\nok"; close $c }'
)


def test_a_user_who_listens_on_the_health_port_before_the_kubelet_is_not_healthy(on_node: OnNode) -> None:
    node = on_node.node
    node.exec("systemctl", "stop", "kubelet")
    node.exec("systemd-run", "-q", "--unit=stranger", "-p", "User=nobody", "perl", "-e", ANSWERS)
    eventually(lambda: on_node.snapshot().measurement.healthz == "not-observed")  # there is no kubelet yet
    try:
        node.exec("systemctl", "start", "kubelet")
        eventually(lambda: on_node.snapshot().measurement.healthz == "not-its-own")
        for guard in GUARDS[1:]:  # it asks as long as its guard lets it
            report = on_node.apply(f"tx-foreign-{guard}", {CONFIG_PATH: f"{CONFIG}maxPods: 90\n".encode()}, guard=guard)
            if "another process than" in report.message:
                break
        assert "another process than" in report.message
        assert on_node.read(CONFIG_PATH) == CONFIG
    finally:
        node.exec("systemctl", "stop", "stranger")
    eventually(partial(_answers, on_node))
