"""/run is full on a real node: no change is armed with half a guard, and a stopped guard is started again in the room that it kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from tests.bed.node import CONFIG
from tests.real.agent_calls import CONFIG_PATH, OnNode, eventually, receipt

pytestmark = [pytest.mark.root, pytest.mark.night]

NEW_CONFIG = CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode()
TX = "tx-full"
FILL = "dd if=/dev/zero of=/run/filler bs=4096 oflag=append conv=notrunc 2>/dev/null; :"


@contextmanager
def full_run(hand: OnNode) -> Iterator[None]:
    hand.node.exec("sh", "-c", FILL)
    try:
        yield
    finally:
        hand.node.exec("rm", "-f", "/run/filler")


def test_a_change_is_refused_while_run_is_full(on_node: OnNode) -> None:
    with full_run(on_node):
        report = on_node.apply(TX, {CONFIG_PATH: NEW_CONFIG}, guard=30)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "no-room"), report
    assert on_node.read(CONFIG_PATH) == CONFIG


def test_a_stopped_guard_is_started_again_though_run_is_full(on_node: OnNode) -> None:
    assert on_node.apply(TX, {CONFIG_PATH: NEW_CONFIG}, guard=60).healthy
    with full_run(on_node):
        on_node.node.exec("systemctl", "stop", f"rollout-guard-{TX}.timer", f"rollout-watch-{TX}.service")
        on_node.node.exec("sh", "-c", FILL)
        on_node.status(TX)
        shown = on_node.node.exec(
            "systemctl", "is-active", f"rollout-guard-{TX}.timer", f"rollout-watch-{TX}.service", check=False
        )
        assert set(shown.split()) <= {"active", "activating"}
        eventually(lambda: on_node.read(CONFIG_PATH) == CONFIG)
        eventually(lambda: receipt(on_node, TX).state is ReceiptState.REVERTED)
