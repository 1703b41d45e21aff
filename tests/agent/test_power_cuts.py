"""The power fails at every step, the disk keeps any part of the unsynced data, and the node boots: old files or new ones.

The real program's system calls are repeated on a model of a disk behind a page cache (``page_cache``). Each tree
that it may leave is written to a real disk, and the program's own ``boot`` runs there, if its unit survived.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from tests.agent.lives import Stories, Story
from tests.agent.node import CONFIG, DROPIN, FLAGS, NEW, OLD, PROGRAM, Node
from tests.agent.page_cache import Cut
from tests.sampling import dice, sample

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("lives"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

SHARE = 10
"""The number of trees that are booted; at night all of them."""

MIXED = 5
"""The same for trees with a part of a change: only these need the boot unit."""


@dataclass(frozen=True)
class After:
    """A tree that a cut may leave, and what was reported before it: ``confirmed``, ``reverted`` or nothing that must hold."""

    cut: Cut
    told: str
    where: str


def afterwards(story: Story) -> Iterator[After]:
    """Every tree once for each reported state."""
    disk, chance, told = story.disk(), dice("what a disk keeps"), ""
    seen: set[tuple[Cut, str]] = set()
    for number, step in enumerate(story.steps):
        if step.what == "begin":
            told = ""
        elif step.what == "say":
            found = re.search(rb"receipt tx=\S+ .*state=(confirmed|reverted)", step.content)
            told = found[1].decode() if found else told
        else:
            disk.do(step)
        for cut in disk.cuts(chance):
            if (cut, told) not in seen:
                seen.add((cut, told))
                yield After(cut, told, f"after step {number}: {str(step)[:100]}")


def is_mixed(after: After) -> bool:
    """Some targets are old, some are new."""
    files = {path: content for path, _, _, content in after.cut.tree}
    found = {path: files.get(path) for path in OLD}
    return found not in (OLD, NEW)


def wrong(story: Story, after: After, folder: Path) -> str:
    """Boots the tree: what is wrong with the node then, and where the power failed."""
    try:
        boot(story, after, folder)
    except AssertionError as error:
        return f"{after.where}: {error}"
    return ""


def boot(story: Story, after: After, folder: Path) -> None:
    folder.mkdir(parents=True)
    root = folder / "root"
    shutil.copytree(
        story.start, root, symlinks=True, ignore=lambda top, _: ("etc", "var") if Path(top) == story.start else ()
    )
    after.cut.lay(root, (str(story.node.root), str(root)))
    node = Node(root, story.node.shell, story.node.bin, PROGRAM)
    node.reboot()
    if _boots(node):
        tx = _guarded(node)
        assert node.trigger("boot", tx) == 0, after.where
    check(node, after)
    shutil.rmtree(folder)


def _boots(node: Node) -> bool:
    """systemd finds the boot unit: linked, whole, and with its program."""
    link = node.at("/etc/systemd/system/basic.target.wants/rollout-guard-boot.service")
    return link.is_symlink() and link.exists() and bool(_guarded(node)) and (node.tx(_guarded(node)) / "agent").exists()


def _guarded(node: Node) -> str:
    """The transaction of the program that the boot unit runs."""
    unit = node.at("/etc/systemd/system/rollout-guard-boot.service")
    found = re.search(r"ExecStart=/bin/sh \S+/tx/([^/]+)/agent boot\n", unit.read_text()) if unit.exists() else None
    return found[1] if found else ""


def check(node: Node, after: After) -> None:
    """Old files or new ones, as in the newest receipt, which is not behind the reports; then everything of rollout can be removed."""
    found = node.status()
    receipts, token = found.receipts, found.token
    run, counter = (token.run, token.counter) if token and token.counter else ("run-1", 1)
    newest = receipts[0].state.value if receipts else ""
    assert node.files() in (OLD, NEW), after.where
    if newest in ("confirmed", "reverted"):
        assert node.files() == (NEW if newest == "confirmed" else OLD), (after.where, newest)
    if newest in ("armed", "reverting"):
        assert node.files() == OLD, (after.where, newest)
        assert node.revert(receipts[0].tx, run, counter).outcome is Outcome.DONE, after.where
    assert not after.told or newest == after.told, (after.where, newest)
    cleaned = node.cleanup(run, counter)
    assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), (after.where, cleaned)
    assert [path for path in node.strays() if path != "var/lib/rollout"] == [], after.where


@pytest.mark.timeout(3600)  # at night
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one file system", "targets on others"])
def test_a_power_cut_at_any_step(stories: Stories, tmp_path: Path, elsewhere: bool) -> None:
    story = stories.of("dash", elsewhere=elsewhere)
    trees = list(afterwards(story))
    assert len(trees) > 1_000
    assert {path for path, *_ in trees[-1].cut.tree} >= {CONFIG, FLAGS, DROPIN}, "at the end the new files stay"
    mixed = [after for after in trees if is_mixed(after)]
    assert len(mixed) > 100
    chosen = [
        *sample(f"power cuts, elsewhere={elsewhere}", trees, SHARE),
        *sample(f"power cuts between two files, elsewhere={elsewhere}", mixed, MIXED),
    ]
    found = [wrong(story, after, tmp_path / str(number)) for number, after in enumerate(chosen)]
    assert [what for what in found if what] == []
