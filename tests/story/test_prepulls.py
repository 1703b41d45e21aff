"""``prepull`` and ``diagnose probe`` on a lab: bounded, recorded, continued by the same call, without credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from tests.controllers import Done
from tests.story.conftest import Site, served

pytestmark = pytest.mark.process

NODES = "small-[001-003,061]"
IMAGES = ("registry.example/shop/web:1", "registry.example/shop/big:2")
KEPT = "var/lib/lab-images"


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path, NODES) as site:
        yield site


def prepull(site: Site, *words: str) -> Done:
    return site.rollout("prepull", "--cluster", "small", "--limit", NODES, "--yes", *words)


def notes(site: Site) -> list[str]:
    with closing(SqlJournal(site.folder / ".rollout")) as journal:
        return [note.text for note in journal.notes("small")]


def test_a_prepull_is_announced_recorded_and_continued(few: Site) -> None:
    (few.node("small-002") / KEPT).write_text(f"{IMAGES[0]}\n")
    asked = few.rollout("prepull", "--cluster", "small", "--limit", NODES, *IMAGES)
    assert (asked.code, "4 nodes of small will pull 2 images" in asked.err, "[not-confirmed]" in asked.err) == (
        2,
        True,
        True,
    )
    done = prepull(few, *IMAGES, "--reason", "OPS-9")
    assert done.code == 0, done.all
    assert done.out.splitlines() == [
        f"{NODES} (4 nodes) will pull 2 images. Images stay on the nodes: rollout does not remove them.",
        "8 pulls: 7 pulled, 1 on the node already",
    ]
    assert done.err.splitlines()[-1] == "8 of 8 pulls"
    began, ended = notes(few)
    assert began.endswith(f"2 images on {NODES} (4 nodes): {', '.join(IMAGES)}; reason: OPS-9")
    assert ended.endswith("ended: 8 pulls: 7 pulled, 1 on the node already")
    assert {(few.node(name) / KEPT).read_text() for name in ("small-001", "small-061")} == {
        "".join(f"{image}\n" for image in IMAGES)
    }
    again = prepull(few, *IMAGES)
    assert (again.code, again.out.splitlines()[-1]) == (0, "8 pulls: 8 on the node already")


def test_a_pull_that_fails_and_a_node_that_is_away_are_named(few: Site) -> None:
    few.fault("small-061", "refuse")
    done = prepull(few, "registry.example/no-such:1")
    assert done.code == 4
    assert "small-001  registry.example/no-such:1: failed after " in done.err
    assert "small-061: nothing pulled: " in done.out
    assert "[connection-refused]" in done.out
    assert done.out.splitlines()[-1] == "4 pulls: 3 failed, 1 unknown"


def test_a_probe_takes_a_few_nodes_and_tells_a_registry_that_hangs_from_one_that_does_not(few: Site) -> None:
    words = ("--cluster", "small", "--yes", "--nodes-per-kind", "1", "--timeout", "2s", "-o", "json")
    done = few.rollout("diagnose", "probe", *words, "hangs.example/shop/web:1", IMAGES[0])
    assert done.code == 4, done.all
    found = json.loads(done.out)
    told = [(pull["node"], pull["end"], pull["tool"], pull["throughCri"]) for pull in found["pulls"]]
    assert told == [
        ("small-001", "late", "docker", False), ("small-001", "pulled", "docker", False),
    ]  # fmt: skip
    (conclusion,) = found["conclusions"]
    assert conclusion.startswith("Pulls of images of hangs.example did not end, and those of registry.example did")


@pytest.mark.parametrize("image", ["https://ann:hunter2@registry.example/x", "ann:hunter2@registry.example/x", "-x"])
def test_what_is_no_reference_is_refused_and_not_repeated(few: Site, image: str) -> None:
    done = prepull(few, "--", image)
    assert done.code == 2
    assert "hunter2" not in done.all
    assert "[bad-image" in done.err
    assert not (few.folder / ".rollout").exists()
