"""How many connections of strangers are kept, and that they take no place of those that have shown a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from rollout.web.lobby import ACCEPTED_AT_ONCE, MOST_KNOWN, MOST_STRANGERS, Lobby, Visitor


@dataclass(eq=False)
class Stranger:
    """What the lobby uses of a connection."""

    ended: bool = False
    transport: Stranger = field(init=False)

    def __post_init__(self) -> None:
        self.transport = self

    def abort(self) -> None:
        self.ended = True


def come(lobby: Lobby, many: int) -> list[Stranger]:
    found = [Stranger() for _ in range(many)]
    for each in found:
        lobby.enter(cast("Visitor", each))
    return found


def test_the_oldest_strangers_are_ended_and_no_one_that_was_let_in() -> None:
    lobby = Lobby()
    (operator,) = come(lobby, 1)
    assert lobby.let_in(cast("Visitor", operator))
    strangers = come(lobby, MOST_STRANGERS + 3)
    assert [each.ended for each in strangers[:4]] == [True, True, True, False]
    assert not any(each.ended for each in [operator, *strangers[3:]])
    lobby.dismiss(cast("Visitor", operator))
    assert not operator.ended, "its time is not limited"


def test_a_connection_survives_what_the_loop_accepts_with_it_on_both_addresses() -> None:
    assert MOST_STRANGERS > 2 * ACCEPTED_AT_ONCE


def test_those_that_were_let_in_are_bounded_too_and_leave_room() -> None:
    lobby = Lobby()
    known = come(lobby, MOST_KNOWN + 1)
    let_in = [lobby.let_in(cast("Visitor", each)) for each in known]
    assert let_in == [True] * MOST_KNOWN + [False]
    assert lobby.let_in(cast("Visitor", known[0])), "its next request"
    lobby.leave(cast("Visitor", known[0]))
    assert lobby.let_in(cast("Visitor", known[-1]))
