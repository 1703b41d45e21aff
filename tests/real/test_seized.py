"""An apply that hangs is stopped and killed by the guard; whoever started it must learn of its end, not hang on for it."""

from __future__ import annotations

import threading

import pytest

from tests.controllers import until
from tests.real.agent_calls import CONFIG_PATH, OnNode, eventually, receipt

pytestmark = pytest.mark.real_node

GUARD = 6


def test_sudo_which_stops_when_its_command_is_stopped_goes_on_and_ends_with_it(on_node: OnNode) -> None:
    answers: list[object] = []
    new = (on_node.read(CONFIG_PATH) or "").replace("maxPods: 110", "maxPods: 120").encode()
    order = on_node.order("seized", {CONFIG_PATH: new}, guard=GUARD)
    on_node.node.hold("*/next/finished *")
    apply = threading.Thread(target=lambda: answers.append(on_node.send(order)))
    apply.start()
    until(on_node.node.holds, 30, "it hangs right before its end")
    eventually(lambda: receipt(on_node, "seized").state == "reverted", 60)
    on_node.node.let_go()
    apply.join(8)
    assert answers, "its session has ended with it"
    stopped = "ps -eo stat=,args= | grep '^T' || :"
    assert on_node.node.exec("sh", "-c", stopped) == "", "nothing of it stands still on the node"
