"""The pulls of a node since its change: a lower bound from the counter of its kubelet, over all its processes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rollout.app.backends import NoCluster
from rollout.app.pull_counts import PullCounts
from rollout.core.model.live import PullCounter
from rollout.errors import RemoteError


@dataclass
class Kubelets(NoCluster):
    """What the counter of the node's kubelet shows, in turn: ended and failed pulls; ``None``: it cannot be read."""

    shows: list[tuple[int, int] | None]

    def pull_counter(self, node: str, timeout: float) -> PullCounter:
        found = self.shows.pop(0)
        if found is None:
            raise RemoteError("http-503", "connection refused")
        return PullCounter(*found)


@pytest.mark.parametrize(
    ("shows", "restarted", "counts"),
    [
        ([(3, 0), (5, 0)], True, [3, 5]),
        ([(3, 1), (5, 3), (7, 3)], True, [2, 2, 4]),  # failed pulls do not count
        ([(5, 0), (2, 0), (4, 1)], True, [5, 7, 8]),  # the kubelet started again
        ([(5, 0), None, (6, 0)], True, [5, None, 6]),
        ([(5, 1), (5, 2), (6, 2)], True, [4, 4, 4]),  # a failure is written before its end: no new process
        ([(40, 2), (41, 2), (45, 3)], False, [0, 1, 4]),  # the process is older than the change
        ([(40, 0), (42, 0), (3, 0), (4, 0)], False, [0, 2, 5, 6]),
    ],
)
def test_what_is_counted(shows: list[tuple[int, int] | None], *, restarted: bool, counts: list[int | None]) -> None:
    found = PullCounts(Kubelets(list(shows)))
    assert [found.since_change("n1", restarted=restarted) for _ in shows] == counts


def test_a_change_begins_the_count_anew_and_nodes_are_apart() -> None:
    found = PullCounts(Kubelets([(5, 0), (9, 0), (1, 0), (9, 0)]))
    assert [found.since_change(node, restarted=True) for node in ("n1", "n2")] == [5, 9]
    found.forget("n1")
    assert [found.since_change(node, restarted=True) for node in ("n1", "n2")] == [1, 9]


def test_without_an_api_server_nothing_is_known() -> None:
    assert PullCounts(NoCluster()).since_change("n1", restarted=True) is None
