"""A plan file between its review and its apply: its digest, what it writes, and what it must not write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.core.plans import plan_codec
from rollout.core.text.blobs import digest
from tests.story.conftest import Site, served

pytestmark = pytest.mark.process

NODES = ("small-001", "small-002")
CRON = "* * * * * root touch /tmp/owned\n"


@pytest.fixture
def planned(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """Two nodes, a plan for them in p.json, and the digest that was printed with it."""
    with served(tmp_path, "small-[001-002]") as site:
        done = site.rollout("plan", "--cluster", "small", "--limit", "small-[001-002]", "--out", "p.json")
        assert done.code == 0, done.err
        printed = [line.removeprefix("digest: ") for line in done.out.splitlines() if line.startswith("digest: ")]
        assert printed == [json.loads((site.folder / "p.json").read_bytes())["digest"]]
        yield site, printed[0]


def test_apply_shows_the_files_first_and_the_digest_accepts_only_this_plan(
    planned: tuple[Site, str],
) -> None:
    site, printed = planned
    before = site.everything(*NODES)
    for words in (("--digest", printed[:11] + "g"), ("--digest", "f" * 64), ("--digest", printed + "0")):
        refused = site.rollout("apply", "p.json", "--yes", *words)
        assert refused.code == 2, refused.all
    assert site.everything(*NODES) == before
    assert not any((site.node(name) / "var/lib/rollout").exists() for name in NODES)

    unsaid = site.rollout("apply", "p.json", "--digest", printed[:12].upper())
    assert (unsaid.code, "[not-confirmed]" in unsaid.err) == (2, True), "only the confirmation is missing"
    done = site.rollout("apply", "p.json", "--digest", printed[:12], "--yes")
    assert done.code == 0, done.all
    for said in (unsaid.out.splitlines(), done.out.splitlines()):
        assert said[0] == f"plan {printed}"
        paths = [line for line in said if line.startswith("  writes /")]
        assert "  writes /var/lib/kubelet/config.yaml  on 2 nodes" in paths
        assert "  writes /etc/default/kubelet  on 2 nodes" in paths
        assert "  restarts kubelet.service  on 2 nodes" in said


def test_a_resealed_plan_that_writes_elsewhere_touches_nothing(planned: tuple[Site, str]) -> None:
    site, _ = planned
    before = site.everything(*NODES)
    document = json.loads((site.folder / "p.json").read_bytes())
    document.pop("digest")
    document["blobs"][digest(CRON.encode())] = CRON
    entry = {"path": "/etc/cron.d/zz", "before": "", "after": digest(CRON.encode()), "mode": "644", "reasons": []}
    document["groups"][0]["change"]["files"].append(entry)
    (site.folder / "p.json").write_bytes(plan_codec._sealed(document)[1])  # noqa: SLF001
    for words in (("apply", "p.json", "--yes"), ("simulate", "p.json"), ("export", "kubeadm", "p.json")):
        done = site.rollout(*words)
        assert done.code == 2, done.all
        assert "writes /etc/cron.d/zz: it is not a home of a setting" in done.err
        assert "[plan-foreign-path]" in done.err
    assert site.everything(*NODES) == before
    assert not any((site.node(name) / "var/lib/rollout").exists() for name in NODES)
