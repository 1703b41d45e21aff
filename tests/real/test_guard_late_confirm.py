"""A confirm that is in the journal and reaches the node too late: the node refuses it and reverts, and the run records that."""

from __future__ import annotations

from functools import partial

import pytest

from tests.bed.node import Node
from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet

pytestmark = pytest.mark.root

LATE = """\
#!/bin/sh
# The node's sh for conversations: while /run/bed-late is there, a confirm waits before the agent gets it.
exec perl -e 'my $shell = open(my $to, "|-", "/bin/sh", @ARGV) or exit 1;
    $SIG{CHLD} = sub { waitpid($shell, 0); exit($? >> 8) };
    while (sysread(STDIN, my $frames, 65536)) {
        while ($frames =~ /^[0-9a-f]{64} [0-9]+ confirm /m && -e "/run/bed-late") {
            open(my $late, ">", "/run/bed-is-late");
            select(undef, undef, undef, 0.05);
        }
        syswrite($to, $frames);
    }
    $SIG{CHLD} = "DEFAULT"; close($to); exit($? >> 8);' -- "$@"
"""


def _is_late(node: Node) -> bool:
    return bool(node.exec("sh", "-c", "ls /run/bed-is-late 2>/dev/null || :"))


def _hold_confirms(node: Node) -> None:
    tool = node.root / "usr/local/bin/sh"
    tool.write_text(LATE)
    tool.chmod(0o755)
    node.exec("touch", "/run/bed-late")


def test_a_late_confirm_is_reported_and_recorded_as_reverted(fleet: Fleet) -> None:
    """On one node the guard was first. On another nothing of the guard is left, and the confirm itself reverts."""
    fleet.playbook("[canary, rest]", "[rest]")
    fleet.one_rack()
    before = fleet.everything()
    guarded, alone, *_ = fleet.nodes
    for node in (guarded, alone):
        _hold_confirms(node)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        for node in (guarded, alone):
            until(partial(_is_late, node), PATIENCE, "its confirm has arrived")
            assert fleet.is_new(node)
        units = "systemctl stop $(systemctl list-units --plain --no-legend 'rollout-guard-*.timer' 'rollout-watch-*' | cut -d' ' -f1)"
        alone.exec("sh", "-c", units)
        fleet.is_overdue(alone)
        fleet.fires(guarded)
        until(lambda: fleet.receipt(guarded) == "reverted guard", PATIENCE, "its guard has fired")
        assert fleet.is_new(alone), "it is not reverted yet"
        for node in (guarded, alone):
            node.exec("rm", "/run/bed-late")
        code = process.wait(PATIENCE)
    assert code == 4, fleet.said()
    assert [fleet.receipt(node) for node in (guarded, alone)] == ["reverted guard", "reverted guard"]
    assert [fleet.is_new(node) for node in fleet.nodes] == [False, False, True, True]
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False, False, True, True]
    assert fleet.status()["counts"] == {"confirmed": 2, "reverted": 2}, fleet.said()
    assert [fleet.standing(node) for node in (guarded, alone)] == ["reverted too-late"] * 2
    fleet.nothing_left()
    for node in (guarded, alone):
        (node.root / "usr/local/bin/sh").unlink()
    back = fleet.rollout("rollback", fleet.status()["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
