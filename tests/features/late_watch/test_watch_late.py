"""A watch without a command line: what the operator sees, who is told, and that harm is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.app.backends import Backends
from rollout.app.ports import Journal
from rollout.app.revert import RunResult
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import LateWatch, OnLateHarm
from rollout.core.plans.required_back_ends import Needs
from rollout.core.presentation.notices import Notice, NoticeKind
from rollout.core.run.late_watch import GAP, LateStatus, LateWord
from rollout.core.run.state import RunState
from rollout.errors import StateError
from rollout.features.late_watch.asking import late_gates_pass, watch_late, watching
from tests.app.call import FakeCall, FakeOperator, OneByOne
from tests.app.site import SMALL
from tests.app.test_node_worker import OLD
from tests.app.test_wave_gates import AWAY, BELOW_TEN, Around, metric, samples
from tests.gates.askers import askers

WATCHED = replace(SMALL, gates=(*SMALL.gates, metric(BELOW_TEN)), passes=1)
SICK = samples(99.0)
TEN_MINUTES = LateWatch(600.0)


@dataclass
class LateCall(FakeCall):
    """A call after a done run. ``told``: to people who do not watch."""

    late: LateWatch | None = TEN_MINUTES
    around: Around = field(default_factory=Around)
    told: list[NoticeKind] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.applied(replace(WATCHED, late=self.late))

    @property
    def local(self) -> OneByOne:
        return self.engine

    zones = local

    @contextmanager
    def back_ends(self, inventory: Inventory, needs: Needs) -> Iterator[Backends]:
        assert inventory is self.listed
        yield Backends(askers=askers(self.around), wait=self.wait)

    @contextmanager
    def notices(self, journal: Journal) -> Iterator[tuple[LateCall]]:
        assert journal is self.journal()
        yield (self,)

    def tell(self, notice: Notice, state: RunState) -> None:
        assert state.order.run == "r1"
        self.told.append(notice.kind)

    def shows(self, answer: object) -> None:
        self.around.metrics = lambda _query: answer  # type: ignore[assignment,return-value] # samples, or why there are none

    def wait(self, seconds: float) -> None:
        self.engine.at += seconds


@dataclass
class LateOperator(FakeOperator):
    verdicts: list[LateWord | None] = field(default_factory=list)
    rollbacks: list[RunResult] = field(default_factory=list)
    away: list[StateError] = field(default_factory=list)

    def known(self, run: str, cluster: str, late: LateStatus) -> None:
        assert (run, cluster) == ("r1", SMALL.cluster)
        self.verdicts.append(late.verdict)

    def result(self, found: RunResult) -> int:
        self.rollbacks.append(found)
        return found.exit_code

    def journal_away(self, error: StateError) -> None:
        self.away.append(error)


def once(call: LateCall, operator: LateOperator) -> int:
    return watch_late(call, operator, "", None, call.wait)


def test_gates_that_pass_are_asked_until_the_time_is_over(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path), LateOperator()
    assert watch_late(call, operator, "r1", 250.0, call.wait) == 0
    assert set(operator.verdicts) == {LateWord.PASSED}
    assert (call.told, call.opened, operator.away) == ([], 0, [])
    assert [note.split(": ")[1] for note in call.notes()] == ["passed", "ended"]


def test_unknown_is_no_pass_and_people_are_told_when_it_begins(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path), LateOperator()
    call.shows(AWAY)
    assert (once(call, operator), once(call, operator)) == (4, 4)
    assert call.told == [NoticeKind.LATE_UNKNOWN]


def test_harm_is_told_to_people_and_ends_the_watch(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path), LateOperator()
    call.shows(SICK)
    assert watch_late(call, operator, "r1", 250.0, call.wait) == 3
    assert (call.told, operator.rollbacks) == ([NoticeKind.LATE_HARM], [])
    assert "late harm: 1 failure in a row" in call.notes()[-1]


def test_harm_rolls_the_run_back_if_its_playbook_says_so(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path, late=LateWatch(600.0, OnLateHarm.ROLLBACK)), LateOperator()
    call.shows(SICK)
    assert once(call, operator) == 3
    assert (call.told, call.content(), call.opened) == ([NoticeKind.LATE_HARM], {OLD}, 0)
    assert [found.exit_code for found in operator.rollbacks] == [0]
    assert call.notes()[-1].endswith("late harm; its rollback, run r2, ended with exit code 0")


def test_a_rollback_without_a_node_to_revert_is_no_run(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path, late=LateWatch(600.0, OnLateHarm.ROLLBACK)), LateOperator()
    call.shows(SICK)
    call.listed = replace(call.listed, nodes={})
    assert once(call, operator) == 3
    assert operator.rollbacks == []
    assert call.notes()[-1].endswith("late harm; no run rolled it back: no node is left to be reverted")


def test_a_run_without_a_watch_is_refused(tmp_path: Path) -> None:
    call = LateCall(tmp_path, late=None)
    with pytest.raises(StateError) as refused:
        once(call, LateOperator())
    assert refused.value.reference == "not-watched"


def test_the_gates_of_a_run_that_another_process_watches_are_not_measured(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path), LateOperator()
    journal = call.journal()
    assert late_gates_pass(call, operator, journal, "r1", call.wait)
    call.shows(SICK)
    other = FakeCall(tmp_path).journal()
    other._leases.me = "elsewhere:b.1:1:1"  # type: ignore[attr-defined] # noqa: SLF001 - two machines in one process
    with watching(other, "r1"):
        assert late_gates_pass(call, operator, journal, "r1", call.wait), "its newest verdict counts"
        with pytest.raises(StateError, match="is watched by another process"):
            once(call, operator)
    assert not late_gates_pass(call, operator, journal, "r1", call.wait)


def test_an_old_note_of_another_process_is_no_measurement(tmp_path: Path) -> None:
    """That process is alive by its lease, and may have been stopped since: the next cluster of a sequence would begin unmeasured."""
    call, operator = LateCall(tmp_path, late=LateWatch(7 * 86400.0)), LateOperator()
    assert late_gates_pass(call, operator, call.journal(), "r1", call.wait)
    other = FakeCall(tmp_path).journal()
    other._leases.me = "elsewhere:b.1:1:1"  # type: ignore[attr-defined] # noqa: SLF001 - two machines in one process
    with watching(other, "r1"):
        call.wait(GAP - 60.0)
        assert late_gates_pass(call, operator, call.journal(), "r1", call.wait)
        call.wait(120.0)
        assert not late_gates_pass(call, operator, call.journal(), "r1", call.wait)


def test_a_watch_that_ended_long_after_its_last_measurement_has_not_passed(tmp_path: Path) -> None:
    call, operator = LateCall(tmp_path, late=LateWatch(7 * 86400.0)), LateOperator()
    assert late_gates_pass(call, operator, call.journal(), "r1", call.wait)
    call.wait(8 * 86400.0)
    assert not late_gates_pass(call, operator, call.journal(), "r1", call.wait)
    assert "and its gates were not asked from " in call.notes()[-1]
    assert call.notes()[-1].endswith("before that the verdict was passed")
