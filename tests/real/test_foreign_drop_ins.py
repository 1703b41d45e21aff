"""Drop-ins that others made: our guards revert an unconfirmed change all the same, or the change is refused before its first rename."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from tests.bed.drop_ins import KINDS, LATE, Place, foreign
from tests.bed.node import CONFIG
from tests.real.agent_calls import CONFIG_PATH, DROP_IN, OnNode, eventually, receipt
from tests.sampling import dice

pytestmark = [pytest.mark.root, pytest.mark.drawn(4)]

NEW = {
    CONFIG_PATH: CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode(),
    DROP_IN: b'[Service]\nEnvironment="GUARDED=1"\n',
}
BREAKING = ("ProtectSystem=full", "ProtectSystem=strict", "ReadOnlyPaths")
"""With these the guards of an earlier version could not write."""
GUARD = 10
"""Seconds."""


def _is_old(hand: OnNode) -> bool:
    return (hand.read(CONFIG_PATH), hand.read(DROP_IN)) == (CONFIG, None)


def _unconfirmed(hand: OnNode, trigger: str) -> Outcome:
    """Apply, confirm nothing, and let only this part of the guard act. Whatever the outcome, the node has its old files."""
    node, tx = hand.node, f"tx-{hand.counter}-{trigger}"
    report = hand.apply(tx, NEW, guard=120 if trigger == "boot" else GUARD)
    if report.outcome is Outcome.REFUSED:
        assert report.reference == "guard-not-proven", report
        assert "drop-ins of others: /etc/systemd/system/" in report.message
    else:
        if trigger == "watch":
            node.exec("systemctl", "stop", f"rollout-guard-{tx}.timer", check=False)
        elif trigger == "boot":
            node.powercut()
            node.heal()
            node.boot()
            node.wait()
        eventually(lambda: receipt(hand, tx).state.value == "reverted")
    assert _is_old(hand)
    return report.outcome


@pytest.mark.parametrize("trigger", ["guard", "watch", "boot"])
@pytest.mark.parametrize("kind", BREAKING)
def test_an_unconfirmed_change_is_reverted_under_a_drop_in_for_all_services(
    on_node: OnNode, trigger: str, kind: str
) -> None:
    with foreign(on_node.node, Place.SERVICES, KINDS[kind]):
        assert _unconfirmed(on_node, trigger) is Outcome.DONE


@pytest.mark.parametrize(("place", "kind"), [(place, kind) for place in Place for kind in place.kinds()])
def test_under_a_drawn_drop_in_the_node_gets_its_old_files_back_or_is_refused(
    on_node: OnNode, place: Place, kind: str
) -> None:
    found = place.kinds()[kind]
    triggers = ["guard", "watch", *(["boot"] if found.boots or place is Place.OURS else [])]
    with foreign(on_node.node, place, found):
        outcome = _unconfirmed(on_node, dice(f"trigger under {place} {kind}").choice(triggers))
        if place is Place.OURS:
            assert outcome is Outcome.DONE, "our units reset it"


@pytest.mark.parametrize("kind", BREAKING)
def test_a_drop_in_that_sorts_after_ours_is_named_and_nothing_is_renamed(on_node: OnNode, kind: str) -> None:
    node = on_node.node
    with foreign(node, Place.OURS, KINDS[kind], LATE) as path:
        node.exec("rm", "-f", "/run/bed-renames")
        report = on_node.apply("tx-late", NEW, guard=GUARD)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "guard-not-proven")
    assert path in report.message
    assert _is_old(on_node)
    renames = node.exec("sh", "-c", "cat /run/bed-renames")
    assert not [line for line in renames.splitlines() if line.endswith((CONFIG_PATH, DROP_IN))]
    assert on_node.cleanup().leftovers == ()
