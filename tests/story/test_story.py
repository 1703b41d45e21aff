"""The whole use as a story: plan, apply, plan again (nothing to do), change one setting (only that), revert it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.controllers import PATIENCE
from tests.documents import printed
from tests.story.conftest import Site, fresh

pytestmark = pytest.mark.process

FEW = "small-[001-003,061-062]"
NAMES = ("small-001", "small-002", "small-003", "small-061", "small-062")


def plan(site: Site, *words: str) -> dict[str, object]:
    done = site.rollout("plan", "--cluster", "small", "--limit", FEW, "-o", "json", "--out", "p.json", *words)
    assert done.code == 0, done.err
    found: dict[str, object] = done.json()
    return found


def test_plan_apply_plan_again_change_one_setting_revert_it(site: Site) -> None:
    """The whole story with an interpreter started for each command."""
    site = fresh(site)
    before = site.everything(*NAMES)
    first = plan(site)
    assert site.everything(*NAMES) == before, "planning changes nothing"
    assert json.loads((site.folder / "p.json").read_text())["nodes"].keys() == set(NAMES)

    done = site.rollout("apply", "p.json", "--yes", "--reason", "as in the incident")
    assert (done.code, done.err) == (0, "")
    assert all(site.is_new(name) for name in NAMES)
    after_first = site.everything(*NAMES)

    again = plan(site, "--exit-code")
    assert json.loads((site.folder / "p.json").read_text())["nodes"] == {}
    assert again != first
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code == 0
    assert done.out.startswith("nothing to do, as the nodes were at ")

    plan(site, "--set", "imagePullProgressDeadline=7m")
    changes = json.loads((site.folder / "p.json").read_text())["groups"]
    paths = {file["path"] for group in changes for file in group["change"]["files"]}
    assert paths == {"/etc/default/kubelet"}, "one setting changed: only its file"
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.out
    assert "=7m" in site.flags("small-001")

    done = site.rollout("rollback", "--cluster", "small", "--emergency", "--limit", FEW, "--yes")
    assert done.code == 0, done.out + done.err
    assert site.everything(*NAMES) == after_first, "only one run is reverted"
    done = site.rollout("rollback", "--cluster", "small", "--emergency", "--limit", FEW, "--yes")
    assert done.code == 0
    assert site.everything(*NAMES) == after_first, "repeating it reverts nothing older"


def test_a_rollback_of_a_run_leaves_every_node_as_before(site: Site) -> None:
    before = site.everything(*NAMES)
    assert site.rollout("apply", "--cluster", "small", "--limit", FEW, "--yes").code == 0
    run = site.rollout("status", "-o", "json").json()["run"]
    one = site.rollout("rollback", run, "--limit", "small-002", "--yes")
    assert one.code == 0, one.out + one.err
    assert [site.is_new(name) for name in NAMES] == [True, False, True, True, True]
    rest = site.rollout("rollback", run, "--yes")
    assert rest.code == 0, rest.out + rest.err
    assert site.everything(*NAMES) == before
    assert {path.name for path in (site.node("small-001") / "var/lib/rollout").iterdir()} <= {
        "lock",
        "holder",
        "touched",
        "token",
        "tx",
    }


def test_a_plan_made_twice_from_one_snapshot_is_the_same_to_the_byte(site: Site) -> None:
    plan(site, "--save-snapshot", "s.json")
    first = (site.folder / "p.json").read_bytes()
    site.rollout("lab", "down", "--dir", str(site.lab))
    done = site.rollout("plan", "--cluster", "small", "--limit", FEW, "--snapshot", "s.json", "--out", "offline.json")
    assert done.code == 0, done.err
    assert (site.folder / "offline.json").read_bytes() == first


def test_progress_as_json_lines_ends_with_a_summary(site: Site) -> None:
    done = site.rollout("apply", "--cluster", "small", "--limit", "small-001", "--yes", "-o", "json")
    assert done.code == 0, done.err
    lines = printed(done.out)
    assert len(lines) == len(done.out.splitlines())
    assert (lines[-1]["kind"], lines[-1]["counts"]) == ("Summary", {"confirmed": 1})
    assert {line["kind"] for line in lines} >= {"Answered", "Ticked"}


def test_a_run_continues_when_its_output_is_closed(site: Site) -> None:
    """``rollout apply … | head -1``: the reader ends, the run continues."""
    command = site.command("apply", "--cluster", "small", "--limit", "small-001", "--yes")
    process = subprocess.Popen(command, cwd=site.folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("claimed"):
        assert process.poll() is None
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert site.is_new("small-001")
