"""What a run is verified by: its confirmed nodes, their journals before and after it, and the values in force."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.run.state import Verb
from rollout.errors import RemoteError, UsageError
from rollout.features.diagnose.asking.from_cluster import FromApi
from rollout.features.diagnose.asking.remedy_verification import (
    Readings,
    RunToVerify,
    in_force,
    run_to_verify,
    verified_document,
    verify_run,
)
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.node_journals import NodeJournal, unread_journal
from rollout.features.diagnose.rules.reading import FileReading
from rollout.features.diagnose.rules.remedies import Effect
from tests.app.site import ACCESS, NAMES, SMALL, KilledError, Site
from tests.kubelet.nodes import kubeadm

RUN = RunToVerify(
    "r1",
    "rno",
    1000.0,
    {"n1": 2000.0, "n2": 2000.0},
    frozenset({"serializeImagePulls"}),
    {"n1": {"serializeImagePulls": "false"}, "n2": {"serializeImagePulls": "false"}},
)


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    return SqlJournal(tmp_path)


def read_whole(node: str) -> NodeJournal:
    return NodeJournal(node, Facts(), FileReading(node))


def readings(*after: NodeJournal, in_force: Mapping[str, bool | None]) -> Readings:
    return Readings((), after, FromApi(), in_force, 2000.0 + 3600.0)


def test_a_run_is_verified_on_the_nodes_that_it_confirmed(journal: SqlJournal) -> None:
    end = start_apply(SMALL, ACCESS, Site(journal).tools())
    found = run_to_verify(journal, "r1")
    assert found.cluster == SMALL.cluster
    assert found.confirmed == {name: end.nodes[name].since for name in NAMES}
    assert found.fields.keys() == set(NAMES)


def test_a_run_without_a_plan_is_refused(journal: SqlJournal) -> None:
    site = Site(journal)
    start_apply(SMALL, ACCESS, site.tools())
    site.roll_back("r1")
    with pytest.raises(UsageError) as refused:
        run_to_verify(journal, "r2")
    assert refused.value.reference == "no-plan"


def test_a_run_that_confirmed_nothing_is_refused(journal: SqlJournal) -> None:
    site = Site(journal, dies_at=("n1", Verb.APPLY))
    with pytest.raises(KilledError):
        start_apply(SMALL, ACCESS, site.tools())
    with pytest.raises(UsageError) as refused:
        run_to_verify(journal, "r1")
    assert refused.value.reference == "nothing-confirmed"


def test_a_node_that_was_not_read_is_named_and_an_hour_in_force_is_no_proof() -> None:
    verified = verify_run(RUN, readings(read_whole("n1"), unread_journal("n2", "no answer"), in_force={"n1": True}))
    assert verified.silent == ("n2",)
    (remedy,) = verified.remedies
    assert (remedy.setting, remedy.effect) == ("serializeImagePulls", Effect.NOT_YET)
    shown = verified_document(verified)
    assert (shown.run, shown.nodes, shown.not_read) == ("r1", "n[1-2]", "n2")


@pytest.mark.parametrize(
    ("configz", "wanted"),
    [
        ({"serializeImagePulls": False}, True),
        ({"serializeImagePulls": True}, False),
        (RemoteError("no-answer", "it did not answer"), None),
        (None, None),
    ],
    ids=["as wanted", "another value", "no answer", "no kubeconfig"],
)
def test_configz_shows_whether_a_value_is_in_force(configz: Any, wanted: bool | None) -> None:
    def ask(_node: str, _seconds: float) -> Mapping[str, Any]:
        if isinstance(configz, Exception):
            raise configz
        return dict(configz)

    node: Snapshot = kubeadm("n1")
    fleet = FleetSnapshot("rno", "d", "2026-11-20T16:00:00Z", {"n1": node})
    assert in_force(RUN, fleet, None if configz is None else ask) == {"n1": wanted}


def test_of_a_node_without_such_a_field_the_files_decide() -> None:
    fleet = FleetSnapshot("rno", "d", "2026-11-20T16:00:00Z", {"n9": kubeadm("n9")})
    assert in_force(RUN, fleet, None) == {"n9": True}
