"""The guard stops and kills an apply that hangs; its caller must see its end, and must not hang."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from rollout.core.model.report import RemoteAnswer
from tests.real.agent_calls import CONFIG_PATH, GUARDS, PATIENCE, OnNode, eventually, on_disk

pytestmark = pytest.mark.root


def test_sudo_which_stops_when_its_command_is_stopped_continues_and_ends_with_it(on_node: OnNode) -> None:
    answers: list[object] = []
    new = (on_node.read(CONFIG_PATH) or "").replace("maxPods: 110", "maxPods: 120").encode()
    on_node.node.hold("*/next/finished *")
    for guard in GUARDS:
        tx = f"seized-{guard}"
        order = on_node.order(tx, {CONFIG_PATH: new}, guard=guard)
        apply = threading.Thread(target=lambda order=order: answers.append(on_node.send(order)))
        apply.start()
        eventually(partial(_is_over, on_node, tx, apply))
        if on_node.node.holds():  # else the guard fired before it hung
            break
    on_node.node.let_go()
    apply.join(PATIENCE)
    assert not apply.is_alive(), "its session has ended with it"
    assert isinstance(answers[-1], RemoteAnswer)
    assert answers[-1].reference != "deadline", "by itself, not by its deadline"
    stopped = "ps -eo stat=,args= | grep '^T' || :"
    assert on_node.node.exec("sh", "-c", stopped) == "", "no process of it is stopped on the node"
    eventually(partial(_guard_has_ended, on_node))  # it has reverted, but it may still have the lock


def _is_over(hand: OnNode, tx: str, apply: threading.Thread) -> bool:
    """The guard has reverted it, or it was never armed."""
    return on_disk(hand.node, tx).get("state") == "reverted" or not apply.is_alive()


def _guard_has_ended(hand: OnNode) -> bool:
    units = "systemctl list-units --all --plain --no-legend 'rollout-guard-*' 'rollout-watch-*'"
    return hand.node.exec("sh", "-c", units) == ""
