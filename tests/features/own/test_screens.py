"""What status, metrics and the page show of owned settings, from a journal that comparisons have written."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from rollout.app.ports import Journal
from rollout.app.revert import revert_run
from rollout.cli.main import run
from rollout.composition.wiring import Session
from rollout.errors import StateError
from rollout.features.own import command as owned
from rollout.features.own.asking.owned import compare_owned, note_comparison
from tests.app.call import CLUSTER, FakeOperator
from tests.app.site import SMALL
from tests.features.own.kubelets import Fleet, owning
from tests.features.serve.serving import serving

LACKING = f'rollout_nodes_without_owned_setting{{cluster="{CLUSTER}"}}'


def compared(fleet: Fleet) -> None:
    _, found = compare_owned(fleet, CLUSTER, "")
    assert found is not None
    note_comparison(fleet, found)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """One of its four nodes has joined since."""
    (tmp_path / "state").mkdir()
    made = owning(tmp_path / "state", "n1", "n2", "n3")
    made.lists("n1", "n2", "n3", "n4")
    compared(made)
    return made


def test_status_and_metrics_tell_the_last_comparison_until_the_run_is_rolled_back(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*words: str) -> str:
        assert run([*words, "--state", str(fleet.folder)]) == 0
        return capsys.readouterr().out

    assert f"{LACKING} 1\n" in shown("show", "metrics")
    assert "owned settings of c (run r1): 3 nodes as wanted, 1 node without them: n4" in shown("status")
    fleet.lists("n1", "n2", "n3")
    compared(fleet)
    assert f"{LACKING} 0\n" in shown("show", "metrics")
    revert_run(fleet, FakeOperator(), "r1", "", SMALL.limits, force=False)
    assert LACKING not in shown("show", "metrics")
    assert "owned settings" not in shown("status", "r2")


def test_the_list_of_a_cluster_that_neither_journal_nor_inventory_has_is_refused(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = ["own", "--list", "--state", str(fleet.folder), "--cluster"]
    assert run([*listed, CLUSTER]) == 0
    assert "owned settings of run r1" in capsys.readouterr().out
    assert run([*listed, "nope"]) == 2
    assert "[unknown-cluster]" in capsys.readouterr().err


class Reader(Fleet):
    """May not write into the journal."""

    def journal(self) -> Journal:
        raise StateError("journal-unusable", "it is read-only")


def test_who_may_only_read_the_journal_reads_the_comparison_too(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(fleet.folder, machines=fleet.machines, texts=fleet.texts)
    reader.lists(*fleet.listed.nodes, "n5")
    notes = fleet.notes()
    _, found = owned.compared(cast("Session", reader), CLUSTER, "")
    assert found is not None
    assert found.lacking == ("n4", "n5")
    assert "the comparison was not recorded in the journal: it is read-only" in capsys.readouterr().err
    revert_run(fleet, FakeOperator(), "r1", "", SMALL.limits, force=False)
    assert owned.compared(cast("Session", reader), CLUSTER, "")[1] is None
    assert "was not recorded in the journal" in capsys.readouterr().err
    assert len(fleet.notes()) == len(notes)


def test_nodes_and_a_playbook_that_were_chosen_are_named_if_none_of_them_is_to_be_planned(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert owned.newcomers_planned(cast("Session", fleet), CLUSTER, "", "n[1-2]") is None
    assert (
        "nothing to plan: of the nodes of c within n[1-2] that no run has changed, none lacks an owned setting\n"
        in capsys.readouterr().out
    )
    assert owned.newcomers_planned(cast("Session", fleet), CLUSTER, "q", "") is None
    out = capsys.readouterr().out
    assert (
        "nothing to plan: of the nodes of c that no run has changed, none lacks an owned setting of playbook q\n" in out
    )


@pytest.mark.process
def test_the_first_page_tells_it_and_marks_it_as_bad(fleet: Fleet, tmp_path: Path) -> None:
    with serving(tmp_path) as page:
        assert (
            '<p class="bad">owned settings of c (run r1): 3 nodes as wanted, 1 node without them: n4'
            in page.ask("/").text
        )
        fleet.lists("n1", "n2", "n3")
        compared(fleet)
        assert "<p>owned settings of c (run r1): 3 nodes as wanted; as" in page.ask("/").text
        revert_run(fleet, FakeOperator(), "r1", "", SMALL.limits, force=False)
        assert "<p>owned settings" not in page.ask("/").text
