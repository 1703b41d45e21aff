"""Consequences that no plan can know, or that a playbook accepts: the node, or a gate, sees them, and the node is reverted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.story.conftest import Site
from tests.story.consequences.fleet import PLAYBOOK, made
from tests.story.consequences.table import Case, Verdict

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

CA, OTHER = "/etc/other/ca.crt", {"authentication": {"x509": {"clientCAFile": "/etc/other/ca.crt"}}}
CASES: Mapping[str, Case] = {
    "a CA behind a link that leads nowhere": Case(Verdict.UNKNOWN, (), OTHER, links={CA: "nowhere"}),
    "a CA behind a link": Case(Verdict.UNKNOWN, (), OTHER, links={CA: "real.crt"}, files={"/etc/other/real.crt": "x"}),
    "a lease that outlives the node controller's grace": Case(Verdict.REFUSED, (), {"nodeLeaseDurationSeconds": 300}),
    "a hard threshold of memory above what is free": Case(
        Verdict.UNKNOWN, (), {"evictionHard": {"memory.available": "90%", "nodefs.available": "8%"}}
    ),
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with made(tmp_path, CASES) as site:
        yield site


def playbook(site: Site, more: str) -> None:
    (site.folder / "playbooks/pulls.yaml").write_text(PLAYBOOK.replace("soak: 600ms\n", "") + more)


def test_a_file_that_turns_out_to_be_absent_reverts_its_node(site: Site) -> None:
    playbook(site, "soak: 600ms\nguard: 60s\n")
    planned = site.rollout("plan", "--cluster", "small", "--limit", "case-001", "--out", "p.json")
    assert "whether /etc/other/ca.crt is on the node is not known" in planned.out, planned.all
    before = site.config("case-001")
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code != 0, done.all
    assert "unable to load client CA file: open /etc/other/ca.crt: no such file or directory" in done.all
    assert site.config("case-001") == before
    assert site.is_well("case-001")

    reached = site.rollout("plan", "--cluster", "small", "--limit", "case-002", "--out", "q.json")
    assert reached.code == 0, reached.all
    done = site.rollout("apply", "q.json", "--yes")
    assert done.code == 0, done.all
    assert CA in site.config("case-002")


def test_an_accepted_lease_is_seen_by_the_gates_that_are_on_by_default(site: Site) -> None:
    """The kubelet runs and answers, and its Node flaps."""
    playbook(
        site,
        "soak: 8s\nguard: 60s\naccept: [{setting: nodeLeaseDurationSeconds, reason: a test of the gate}]\n",
    )
    assert site.rollout("plan", "--cluster", "small", "--limit", "case-003", "--out", "p.json").code == 0
    before = site.config("case-003")
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code != 0, done.all
    assert "gate-nodeReady" in done.all
    assert site.config("case-003") == before


def test_evictions_of_a_threshold_that_nothing_was_known_of(site: Site) -> None:
    playbook(site, "soak: 600ms\nguard: 60s\n")
    planned = site.rollout("plan", "--cluster", "small", "--limit", "case-004", "--out", "p.json")
    assert "how much is free for memory.available is not known; below 90% pods are evicted" in planned.out, planned.all
    before = site.config("case-004")
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code != 0, done.all
    assert "gate-podsKept" in done.all
    assert site.config("case-004") == before
