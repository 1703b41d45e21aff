"""Every command of the documentation is run on a small fleet with the pages' names, and has the documented result.

At night all pages are run, else all except the long ones, of which one is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README
from tests.docs.reader import Reader
from tests.docs.reading import missing, steps
from tests.places import ROOT
from tests.sampling import sample
from tests.story.conftest import in_memory

INVENTORY = """\
cluster: rno
apiServer: v1.36.1
playbook: parallel-pulls
racks:
  rack01: tess-node-[0001-0006]
  rack02: tess-node-[0007-0012]
zones: {rno-a: "rack[01-02]"}
nodes:
  tess-node-[0001-0012]:
    labels: {kubeletVersion: v1.35.1, containerRuntime: containerd}
"""
HURRIED = {
    "soak: 60s": "soak: 400ms\npasses: 2\nguard: 60s",
    "  - perRack: 1\n": "",
    "perRack: 10%": "perRack: 50%",
    "perZone: 5%": "perZone: 50%",
    "wave: 5%": "wave: 2",
    "rack: 2": "rack: 3",
    "fleet: 2%": "fleet: 2",
}
MAKE_THEIR_PROJECT = ("README.md", "first-rollout.md", "project.md")
RUN_PAGES = sorted((page for page in PAGES if steps(page)), key=lambda page: -len(steps(page)))
"""The longest first, because pages run in parallel."""
LONG = [page for page in RUN_PAGES if page.name in ("run.md", "gates.md", "first-rollout.md")]
"""Pages that take half a minute."""
SHORT = [page for page in RUN_PAGES if page not in LONG and page != README]
DRAWN_PAGES = [README, *sample("long pages", LONG, 1), *sample("short pages", SHORT, 4)]
"""The README is always run. Of the other pages some are drawn; at night all are."""

pytestmark = pytest.mark.drawn(len(DRAWN_PAGES) + 2)  # the pages are drawn already


@pytest.fixture
def reader(tmp_path: Path, page: Path) -> Iterator[Reader]:
    """A reader in a folder with the shipped templates, a fast variant of the shipped playbook, and cluster rno.

    The lab already serves twelve nodes of rno. Pages that begin with their own lab start without one. Pages that
    make a project begin in an empty folder.
    """
    with in_memory(tmp_path) as folder:
        found = Reader(folder)
        if page.name not in MAKE_THEIR_PROJECT:
            furnish(found, page)
        try:
            yield found
        finally:
            found.leave()


def furnish(reader: Reader, page: Path) -> None:
    folder = reader.folder
    (folder / "playbooks").mkdir()
    text = (ROOT / "playbooks/parallel-pulls.yaml").read_text()
    for old, new in HURRIED.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "playbooks/parallel-pulls.yaml").write_text(text)
    (folder / "templates").symlink_to(ROOT / "templates")
    (folder / "inventories").mkdir()
    (folder / "inventories/rno.yaml").write_text(INVENTORY)
    reader.exported["ROLLOUT_SSH_CONFIG"] = ".rollout/lab/ssh_config"
    if not any("rollout lab up" in step.command for step in steps(page)):
        up = reader.shell("rollout lab up --cluster rno --restart-sec 0.3")
        assert up.returncode == 0, up.stderr


@pytest.mark.process
@pytest.mark.parametrize("page", DRAWN_PAGES, ids=lambda page: page.name)
def test_every_command_of_the_page_has_the_documented_result(page: Path, reader: Reader) -> None:
    for step in steps(page):
        began = time.monotonic()
        wrong = reader.take(step)
        print(f"{time.monotonic() - began:6.1f} s  {page.name}:{step.line}: {step.command or step.what}")  # noqa: T201 - shown when it fails
        assert not wrong, f"{page.name}:{step.line}: `{step.command or step.what}` {wrong}"


def test_a_page_is_read_into_its_steps(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n<!-- & sleep 5 -->\n```console\n$ rollout status  # exits with 3\nrun … halted\n\n$ true\n```\n<!-- kill -->\n"
    )
    assert [(s.what, s.command, s.code, s.says, s.line) for s in steps(page)] == [
        ("begin", "sleep 5", 0, (), 2),
        ("run", "rollout status", 3, ("run … halted",), 4),
        ("run", "true", 0, (), 7),
        ("kill", "", 0, (), 9),
    ]
    assert missing(("run … halted",), "x\n  run r1 on rno: halted, exit code 3\n") == ""
    assert missing(("b", "a"), "a\nb\n") == "a"


@pytest.mark.process
def test_exported_variables_stay_set(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ export SOME='a b'\n$ echo $SOME\na b\n```\n")
    reader = Reader(tmp_path)
    assert [reader.take(step) for step in steps(page)] == ["", ""]
