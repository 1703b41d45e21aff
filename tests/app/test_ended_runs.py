"""A claim of a run that has ended, according to this journal, is taken over. Every other claim stays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout import __version__
from rollout.adapters.journal import SqlJournal
from rollout.app.following import EndedRuns, replay
from rollout.app.maintenance import held_by, set_free
from rollout.app.ports import Target
from rollout.app.reading import read_receipts
from rollout.app.runs import highest_counter, leased
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.presentation.summary import RunSummary, run_summary, summarize
from rollout.core.run.state import RULES, Ending, NodeState, Verb
from tests.app.agents import SILENT, Agents
from tests.app.site import NAMES, SMALL, WAY, Site

LOST = RemoteAnswer(
    None, b"", b"", started=True, reference="connection-lost", message="the bastion ended the connection"
)


@dataclass
class BehindABastion(Agents):
    """Requests arrive; while ``lost`` is set, their answers do not."""

    lost: bool = False
    out_of_reach: set[str] = field(default_factory=set)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        if target.name in self.out_of_reach:
            return SILENT
        said = super().run(target, command)
        return LOST if self.lost else said


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path), BehindABastion())


def turned_away(site: Site) -> BehindABastion:
    """A run with claims that arrived and answers that did not."""
    nodes = site.nodes
    assert isinstance(nodes, BehindABastion)
    nodes.lost = True
    end = site.apply()
    nodes.lost = False
    assert end.ending is Ending.PREFLIGHT
    assert {agent.claim for agent in nodes.agents.values()} == {"1 r1 live"}
    return nodes


def test_the_next_run_takes_over_claims_of_a_refused_run(site: Site) -> None:
    turned_away(site)
    end = site.apply()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}
    assert {agent.claim.split(" ")[1:] == ["r2", "ended"] for agent in site.nodes.agents.values()} == {True}


def test_a_refused_run_has_no_pending_recovery(site: Site) -> None:
    turned_away(site)
    assert summarize(replay(site.journal, "r1")).owed == ""


def test_its_claims_can_be_ended_without_another_run(site: Site) -> None:
    nodes = turned_away(site)
    reports = read_receipts(WAY, nodes)
    held = held_by(reports, "r1")
    assert sorted(held) == sorted(NAMES)
    assert [entry.still for entry in set_free(WAY, nodes, held, {"r1"}, "r1", 2)] == ["", "", ""]
    assert held_by(read_receipts(WAY, nodes), "r1") == {}


@pytest.mark.parametrize("state", ["armed", "reverting"])
def test_the_claim_stays_while_a_change_is_armed(site: Site, state: str) -> None:
    nodes = turned_away(site)
    nodes.agents["n2"].tx, nodes.agents["n2"].state = "r1-1", state
    end = site.apply()
    assert (end.ending, end.halt and end.halt.reference) == (Ending.CLAIMED, "claimed")


def test_a_run_of_another_journal_keeps_its_claim(site: Site, tmp_path: Path) -> None:
    nodes = turned_away(site)
    other = Site(SqlJournal(tmp_path / "other"), nodes, runs=6)
    assert other.apply().ending is Ending.CLAIMED


def test_a_run_that_has_not_ended_keeps_its_claim(site: Site) -> None:
    site.killed("n1", Verb.APPLY)
    assert not EndedRuns(site.journal, SMALL.cluster)("r1")
    assert not EndedRuns(site.journal, SMALL.cluster)("r9")
    site.resume("r1")
    assert EndedRuns(site.journal, SMALL.cluster)("r1")
    assert not EndedRuns(site.journal, "another")("r1")


def of_another_version(site: Site, summary: RunSummary | None) -> None:
    """A version with other rules did the work of ``r1``; it is stored as ``r0``."""
    header = site.journal.header("r1")
    order = json.dumps(json.loads(header.order) | {"run": "r0", "rules": RULES - 1})
    site.journal.begin(replace(header, run="r0", order=order))
    with leased(site.journal, SMALL.cluster, "r0"):
        site.journal.append("r0", site.journal.events("r1"), summary)


@pytest.mark.parametrize("kept", [True, False], ids=["a summary", "no summary"])
def test_a_run_of_another_version_has_ended_if_it_has_a_summary(site: Site, kept: bool) -> None:
    end = replace(run_summary(site.apply()), counter=17)
    of_another_version(site, end if kept else None)
    assert EndedRuns(site.journal, SMALL.cluster)("r0") == kept
    assert (highest_counter(site.journal, SMALL.cluster) == 17) == kept


def test_a_run_stores_its_summary_and_its_version(site: Site) -> None:
    end = site.apply()
    assert site.journal.summary("r1") == run_summary(end)
    assert site.journal.header("r1").version == __version__
