"""/run is full: no change is armed with half a guard, and an armed one gets its timer again.

A tmpfs is mounted at the node's /run/systemd, with each amount of room from none to enough.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from tests.agent.node import NEW, OLD, Node
from tests.sampling import sample

pytestmark = [pytest.mark.process, pytest.mark.root]  # root: mounting

PAGE = 4096
PAGES = 64
ENOUGH = 24
"""Pages that an apply may need in /run."""
UNITS = ("rollout-guard-t1.service", "rollout-guard-t1.timer", "rollout-watch-t1.service")


@contextmanager
def small_run(node: Node) -> Iterator[Path]:
    """The node's /run/systemd has 64 pages, and its systemd writes each transient unit into a file, as the real one does."""
    folder = node.at("/run/systemd")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={PAGES * PAGE}", "none", folder], check=True)
    try:
        (folder / "transient").mkdir()
        for tool, first in {
            "systemd-run": 'for word; do case $word in --unit=*) unit=${word#*=} ;; esac; done; echo "$*" >"$X/$unit" || exit 1',
            "systemctl": 'case $1 in stop) for unit; do rm -f "$X/${unit%.*}"; done ;; esac',
        }.items():
            real = (node.bin / tool).rename(node.bin / f"{tool}.real")
            (node.bin / tool).write_text(f'#!/bin/sh\nX={folder}/transient\n{first}\nexec {real} "$@"\n')
            (node.bin / tool).chmod(0o755)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path, *, leave: int = 0) -> None:
    """All pages but so many."""
    with (folder / "filler").open("wb", buffering=0) as filler:
        while subprocess.check_output(["stat", "-f", "-c", "%a", folder]).split() != [str(leave).encode()]:
            assert filler.write(bytes(PAGE))


def drop_ins(node: Node) -> dict[str, str]:
    found = {unit: node.at(f"/run/systemd/system/{unit}.d/~~~~~~~~-rollout.conf") for unit in UNITS}
    return {unit: path.read_text().strip() for unit, path in found.items() if path.exists()}


def is_whole(text: str) -> bool:
    return text.endswith("\nDescription=rollout: a guard with all settings of its own")


def test_with_each_amount_of_room_a_change_is_refused_or_its_guard_is_whole(node: Node) -> None:
    healthy = []
    for leave in [*sample(f"pages free under {node.shell}", range(1, ENOUGH), 5), 0, ENOUGH]:
        with small_run(Node.make(node.root.parent / str(leave), node.shell)) as folder:
            one = Node(folder.parent.parent, node.shell, folder.parent.parent.parent / "bin")
            fill(folder, leave=leave)
            report = one.apply()
            if report.outcome is Outcome.REFUSED:
                assert report.reference in ("no-room", "guard-not-proven"), report
                assert (one.files(), one.receipt(), one.tx().exists()) == (OLD, {}, False)
                assert list(folder.rglob("*rollout*")) == []
                continue
            assert report.healthy, report
            assert [is_whole(text) for text in drop_ins(one).values()] == [True] * 3, leave
            healthy.append(leave)
    assert healthy[-1:] == [ENOUGH]
    assert 0 not in healthy


def test_no_room_is_named(node: Node) -> None:
    with small_run(node) as folder:
        fill(folder)
        report = node.apply()
    assert (report.reference, "o space left" in report.message) == ("no-room", True), report


def test_a_stopped_guard_is_started_again_though_run_is_full(node: Node) -> None:
    """`systemctl isolate` has stopped it; each read of the node starts it again, as often as that is needed."""
    with small_run(node) as folder:
        assert node.apply().healthy
        before = drop_ins(node)
        assert [is_whole(text) for text in before.values()] == [True] * 3
        fill(folder)
        for _ in range(3):
            for unit in UNITS:
                node.at(f"/run/standin/{unit}").unlink(missing_ok=True)
                node.at(f"/run/systemd/transient/{unit.rpartition('.')[0]}").unlink(missing_ok=True)
            fill(folder)
            node.pass_time(3)
            node.status("t1")
            assert node.at("/run/standin/rollout-guard-t1.timer").exists()
            assert node.at("/run/standin/rollout-watch-t1.service").exists()
            now = drop_ins(node)
            assert [is_whole(text) for text in now.values()] == [True] * 3
            assert now[UNITS[0]] == before[UNITS[0]]
            assert now[UNITS[1]] != before[UNITS[1]], "its time is what is left"
        assert node.files() == NEW
        assert node.trigger("guard") == 0
        assert (node.files(), node.strays()) == (OLD, [])


def test_a_confirm_leaves_nothing_in_a_full_run(node: Node) -> None:
    with small_run(node) as folder:
        assert node.apply().healthy
        fill(folder)
        assert node.confirm().outcome is Outcome.DONE
        assert (node.cleanup().leftovers, node.strays(), node.files()) == ((), [], NEW)
