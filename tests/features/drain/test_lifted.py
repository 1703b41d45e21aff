"""What the journal records about cordons that were lifted after a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.runs import leased
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.presentation.summary import run_summary
from rollout.core.run.events import CordonsLifted
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import Phase
from rollout.features.drain.asking.cluster import DrainCluster
from rollout.features.drain.asking.cordons import Lifted, LiftedCordons, lift, write_down_lifted
from rollout.features.drain.rules import Cordon
from tests.app.site import SMALL, Site
from tests.app.test_live_inventories import live


def test_only_nodes_that_are_still_cordoned_are_left_out() -> None:
    lifted = Lifted(("n1",), (("n2", "forbidden"),))
    assert lifted.without(("n1", "n2", "n3")) == ("n1", "n3"), "the cordon of n3 was lifted by hand"


class Listed:
    """An API server with these Nodes: name → the run that cordoned it. ``lifted``: where its cordon was lifted."""

    def __init__(self, **cordons: str) -> None:
        self.cordons = cordons
        self.lifted: list[str] = []

    def nodes(self) -> tuple[LiveNode, ...]:
        return tuple(replace(live(name), cordoned_by=run) for name, run in self.cordons.items())

    def uncordon(self, node: str, run: str, _counter: int | None, _timeout: float) -> Cordon:
        assert self.cordons[node] == run
        self.lifted.append(node)
        return Cordon.NONE


RUN = ("n1", "n2", "n3")


def by(api: Listed, run: str = "r1") -> LiftedCordons:
    """Of three nodes; the journal has a cordon on n1 and n2."""

    @contextmanager
    def server(_inventory: Inventory) -> Iterator[DrainCluster]:
        yield cast("DrainCluster", api)

    inventory = Inventory("c", "v1.34.2", {}, {}, (), "d")
    return lift(server, inventory, RUN, run, ("n1", "n2") if run else (), of=RUN if run else ())


def test_an_api_server_without_most_of_the_nodes_shows_no_node_without_a_cordon() -> None:
    """It is that of another cluster, or has lost its Nodes. The cordons of the run may still be there."""
    for api in (Listed(), Listed(other="r9"), Listed(n1="r1", other="")):
        for run in ("r1", ""):
            found = by(api, run)
            assert not found.all_lifted
            assert str(found.why).endswith("it may be that of another cluster [most-nodes-unlisted]")
        assert "other" not in api.lifted
    assert any("(n[1-2]) were not checked" in line for line in by(Listed()).lines)


def test_a_node_that_left_took_its_cordon_with_it() -> None:
    found = by(Listed(n1="r1", n3=""))
    assert (found.all_lifted, found.lifted) == (True, Lifted(("n1",)))


def test_a_server_with_each_cordoned_node_is_believed() -> None:
    assert by(Listed(n1="r1", n2="")).all_lifted
    assert by(Listed(n1="", n2="r2")).lifted == Lifted()


def test_a_cordon_that_is_of_others_by_now_was_not_lifted() -> None:
    class Taken(Listed):
        def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
            super().uncordon(node, run, counter, timeout)
            return {"n1": Cordon.ANOTHER_RUN, "n2": Cordon.OTHERS}.get(node, Cordon.NONE)

    found = by(Taken(n1="r1", n2="r1", n3="r1"))
    assert (found.lifted.nodes, found.all_lifted) == (("n3",), True)
    assert found.lifted.without(RUN) == RUN, "the run has no cordon left"


def test_lifted_cordons_are_the_runs_last_event_with_operator_and_reason(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path)
    end = Site(journal).apply()
    with leased(journal, SMALL.cluster, "r1"):
        write_down_lifted(journal, end, (), 9e9, "ann@desk", "")
        write_down_lifted(journal, end, ("n1", "n2"), 1.0, "ann@desk", "OPS-7")
    events = [decode_event(text) for text in journal.events("r1")]
    assert events[-1] == CordonsLifted(end.now, ("n1", "n2"), "ann@desk", "OPS-7"), "this machine's clock is behind"
    assert not any(isinstance(event, CordonsLifted) for event in events[:-1]), (
        "nothing was lifted, so nothing is journaled"
    )
    after = replay(journal, "r1")
    assert after.phase is Phase.ENDED
    assert journal.summary("r1") == run_summary(after), "a summary counts only if it covers all events of its run"
