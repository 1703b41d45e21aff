"""Two controllers with one journal: the first stands still while it writes its ConfigMap, and the second rolls its run back meanwhile."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.runs import start_apply
from rollout.core.model.config_map import ConfigMapOutcome
from rollout.core.presentation.summary import exit_code
from rollout.errors import StateError
from tests.adapters.journal.conftest import Change, Place
from tests.app.fake_config_maps import KUBELET, FakeConfigMaps
from tests.app.site import ACCESS, SMALL
from tests.app.test_config_maps import CHANGE, Here


def test_a_controller_that_lost_its_lease_between_read_and_write_writes_nothing(
    place: Place, journal: SqlJournal, change: Change
) -> None:
    """The journal has the lease of the rollback, and then none: neither lets the first write again after its conflict."""
    found = FakeConfigMaps()
    first = Here(journal, config_maps=found)
    codes: list[int | None] = []

    def roll_back() -> None:
        found.before_write = lambda: None
        change("UPDATE leases SET owner='gone:b.1:1:1', heartbeat=NOW-31")  # as another machine sees one that is frozen
        with closing(SqlJournal(place)) as others:
            second = Here(others, nodes=first.nodes, config_maps=found, runs=1)
            codes.append(exit_code(second.roll_back("r1")))

    found.before_write = roll_back
    with pytest.raises(StateError) as lost:
        start_apply(replace(SMALL, config_map=CHANGE), ACCESS, first.tools())
    assert lost.value.reference == "lease-lost"
    assert (codes, found.text, found.writes) == ([0], KUBELET, [])
    assert replay(journal, "r2").config_map.outcome is ConfigMapOutcome.WRITTEN
    assert replay(journal, "r1").config_map.outcome is None, "it has no lease to record its answer under"
