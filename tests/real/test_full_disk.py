"""Nodes with a full disk: refused before anything is touched, or full after arming, when confirm and revert still work."""

from __future__ import annotations

import pytest

from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet

pytestmark = pytest.mark.root

ARMED = "*/new.1 *"  # nothing renamed yet
SICK = """\
#!/bin/sh
case "$*" in *deadline=5m*) exit 1 ;; esac
exec /usr/bin/kubelet.real "$@"
"""


def test_a_disk_may_be_full_before_and_after_a_node_is_armed(fleet: Fleet) -> None:
    fleet.playbook("[canary, rest]", "[rest]")
    fleet.one_rack()
    before = fleet.everything()
    going_on, cramped, going_back, full = fleet.nodes
    going_back.exec("mv", "/usr/bin/kubelet", "/usr/bin/kubelet.real")
    (going_back.root / "usr/bin/kubelet").write_text(SICK)
    (going_back.root / "usr/bin/kubelet").chmod(0o755)
    for node in (going_on, cramped, going_back):
        node.hold(ARMED)
    fleet.plan()
    full.disk.fill(leave=500)
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(lambda: all(node.holds() for node in (going_on, cramped, going_back)), PATIENCE, "all three are armed")
        for node in (going_on, cramped, going_back):
            assert fleet.receipt(node) == "armed -"
            node.disk.fill()
            assert node.exec("sh", "-c", "echo x 2>/dev/null >/var/lib/x; cat /var/lib/x; rm -f /var/lib/x") == "", (
                "really full"
            )
            node.let_go()
        code = process.wait(PATIENCE)
    assert code == 4, fleet.said()

    assert [fleet.is_new(node) for node in fleet.nodes] == [True, True, False, False], fleet.said()
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True, True, False, False]
    assert [fleet.receipt(node) for node in fleet.nodes] == ["confirmed -", "confirmed -", "reverted health", ""]
    assert fleet.standing(full) == "refused no-room"
    assert fleet.standing(going_back) == "reverted unhealthy"
    assert fleet.standing(cramped) == "", "its drop-in needs a folder, which was made before the disk was full"
    assert fleet.status()["counts"] == {"confirmed": 2, "refused": 1, "reverted": 1}
    fleet.nothing_left()

    back = fleet.rollout("rollback", fleet.status()["run"], "--yes")
    assert back.code == 0, back.all
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    fleet.nothing_left()
    going_back.exec("mv", "/usr/bin/kubelet.real", "/usr/bin/kubelet")
    assert fleet.everything() == before, "to the byte, on full disks"
