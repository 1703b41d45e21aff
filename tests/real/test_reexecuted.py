"""systemd executes itself again while a change is armed: whatever the outcome, a cleanup that reports nothing left has left nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from tests.real.agent_calls import DROP_IN, OnNode

pytestmark = pytest.mark.root

NEW = {DROP_IN: b'[Service]\nEnvironment="GUARDED=1"\n'}
AGAIN = "/usr/bin/systemctl daemon-reexec --no-block >/dev/null 2>&1 &"


@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_is_left_where_systemd_keeps_transient_units(on_node: OnNode, when: str) -> None:
    node = on_node.node
    tool = Path(node.root, "usr/local/bin/systemd-run")
    first, last = (AGAIN, "") if when == "before" else ("", AGAIN)
    tool.write_text(f'#!/bin/sh\n{first}\n/usr/bin/systemd-run "$@"\nstatus=$?\n{last}\nexit $status\n')
    tool.chmod(0o755)
    try:
        for number in range(3):
            tx = f"tx-{when}-{number}"
            report = on_node.apply(tx, NEW, guard=120)
            if report.outcome is not Outcome.REFUSED:
                assert on_node.revert(tx).outcome is Outcome.DONE
            assert on_node.read(DROP_IN) is None
            assert on_node.cleanup().leftovers == ()
            assert node.exec("sh", "-c", "ls /run/systemd/transient /run/systemd/system | grep rollout || :") == ""
            assert on_node.claim_anew().outcome is Outcome.DONE
    finally:
        tool.unlink()
