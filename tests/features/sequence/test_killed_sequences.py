"""A controller of a sequence that is killed at any write of its journal: the same command finishes both clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.core.presentation.summary import RunSummary
from rollout.features.sequence.rules import Turn
from tests.app.site import NAMES, KilledError
from tests.features.sequence.test_sequences import FIRST, SECOND, Both

pytestmark = pytest.mark.drawn(8)

WRITES = 30


@dataclass
class Deadline:
    """The controller is killed at its write ``at`` (from 1), before or ``after`` it is durable."""

    at: int
    after: bool
    writes: int = 0

    def passes(self, write: Callable[[], None]) -> None:
        self.writes += 1
        if self.writes == self.at and not self.after:
            raise KilledError
        write()
        if self.writes == self.at:
            raise KilledError


class MortalJournal(SqlJournal):
    deadline: Deadline

    def begin(self, header: RunHeader) -> None:
        self.deadline.passes(lambda: super(MortalJournal, self).begin(header))

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        self.deadline.passes(lambda: super(MortalJournal, self).append(run, events, ended))


def both_of(folder: Path, deadline: Deadline) -> Both:
    journal = MortalJournal(folder)
    journal.deadline = deadline
    return Both(journal, folder)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, WRITES + 1))
def test_the_same_command_finishes_what_a_killed_controller_left(tmp_path: Path, at: int, *, after: bool) -> None:
    deadline = Deadline(at, after)
    both = both_of(tmp_path, deadline)
    with pytest.raises(KilledError):
        both.go()
    for site in both.sites.values():
        site.answers = []
    turn, found = both.go()
    assert (turn.turn, sum(state.failed for state in found.values())) == (Turn.END, 0)
    assert [header.cluster for header in both.journal.runs()] == [SECOND.cluster, FIRST.cluster], "one run each"
    agents = [site.nodes.agents[name] for site in both.sites.values() for name in NAMES]
    assert {(agent.state, agent.claim.split()[-1]) for agent in agents} == {("confirmed", "ended")}


def test_every_write_is_tried(tmp_path: Path) -> None:
    deadline = Deadline(0, after=False)
    both_of(tmp_path, deadline).go()
    assert deadline.writes == WRITES
