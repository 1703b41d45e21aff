"""Only a list of the run's own fleet shows that a node left it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from rollout.app.roll_call import EVERY, RollCall
from rollout.errors import RemoteError
from tests.adapters.kubernetes.node_gates import Watch

RUN = tuple(f"n{number}" for number in range(1, 9))


@dataclass
class Listed:
    """The list of the day, and how often it was read."""

    names: Collection[str] | None
    read: int = 0

    def __call__(self) -> Collection[str]:
        self.read += 1
        if self.names is None:
            raise RemoteError("not-reached", "Connection refused")
        return self.names


def roll_call(listed: Callable[[], Collection[str]]) -> tuple[RollCall, Watch]:
    clock = Watch()
    return RollCall(listed, clock), clock


def test_a_node_that_its_fleets_list_lacks_has_left_and_the_list_is_said() -> None:
    call, _ = roll_call(Listed([*RUN[1:], "other"]))
    assert call("n1", RUN) == "the inventory no longer lists it: it lists 8 nodes, 7 of the 8 of the run"
    assert call("n2", RUN) == ""


def test_a_list_of_another_cluster_shows_nothing() -> None:
    for names in ([], ["other-1"], [*RUN[5:], "other-1"], None):
        call, _ = roll_call(Listed(names))
        assert call("n1", RUN) == "", names


def test_nodes_may_leave_one_after_another_until_few_are_left() -> None:
    listed = Listed(list(RUN))
    call, clock = roll_call(listed)
    for at in range(1, 7):
        listed.names = RUN[at:]
        clock.wait(EVERY)
        assert call(RUN[at - 1], RUN), at


def test_a_node_that_is_back_counts_again() -> None:
    listed = Listed(RUN[2:])
    call, clock = roll_call(listed)
    assert call("n1", RUN)
    assert call("n2", RUN)
    listed.names = RUN[4:]
    clock.wait(EVERY)
    assert call("n3", RUN), "4 of the 5 others"
    listed.names = RUN[:3]
    clock.wait(EVERY)
    assert [call(name, RUN) for name in RUN] == [""] * 8, "3 of 7"


def test_a_list_is_read_once_for_a_while() -> None:
    listed = Listed(RUN[1:])
    call, _ = roll_call(listed)
    for _ in range(3):
        call("n1", RUN)
    assert listed.read == 1
