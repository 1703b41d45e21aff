"""The question of a sequence to the late gates of a cluster's run: a real journal, and a gate that runs a command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.backends import Backends
from rollout.app.following import late_findings, replay
from rollout.app.ports import Ran
from rollout.app.runs import start_apply
from rollout.composition.wiring import Session
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.playbook import LateWatch
from rollout.core.run.state import Ending
from rollout.features.late_watch.asking import watching
from rollout.features.late_watch.command import ask_once
from rollout.gates import table
from rollout.gates.command.query import CommandQuery
from tests.app.site import ACCESS, SMALL, Site

pytestmark = pytest.mark.process


class Passing(Site):
    """The gates of the run itself pass."""

    def run(self, *_words: object) -> Ran:
        return Ran(0)


@dataclass
class LateGate:
    """A done run with a late gate, which passes while ``healthy`` exists."""

    folder: Path
    journal: SqlJournal

    def __post_init__(self) -> None:
        self.healthy = self.folder / "healthy"
        self.healthy.touch()
        command = Gate(CommandQuery(("/usr/bin/test", "-e", str(self.healthy))), GateScope.WAVE, "healthy")
        plan = replace(SMALL, gates=(*SMALL.gates, command), late=LateWatch(3600.0), passes=2)
        tools = replace(Passing(self.journal, at=time.time()).tools(), backends=Backends(askers=table.askers(None)))
        assert start_apply(plan, ACCESS, tools).ending is Ending.DONE

    def passes(self) -> bool:
        session = Session(self.folder / "state", None, accept_new=False, output="text", folder=self.folder)
        return ask_once(session, self.journal, "r1")

    def words(self) -> list[str]:
        return [note.text.split(": ")[1] for note in self.journal.notes(SMALL.cluster)]


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LateGate]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventories").mkdir()
    (tmp_path / f"inventories/{SMALL.cluster}.yaml").write_text(
        f"cluster: {SMALL.cluster}\napiServer: v1.23.17\nnodes: {{'n[1-3]': }}\n"
    )
    (tmp_path / "state").mkdir()
    journal = SqlJournal(tmp_path / "state")
    yield LateGate(tmp_path, journal)
    journal.close()


def test_each_question_asks_the_gates_and_its_answer_is_their_newest_verdict(late: LateGate) -> None:
    assert late.passes()
    late.healthy.unlink()
    assert not late.passes()
    late.healthy.touch()
    assert late.passes()
    assert late.words() == ["passed", "failed", "passed"]


def test_late_harm_is_acted_on_once_and_never_passes_again(late: LateGate) -> None:
    late.healthy.unlink()
    assert (late.passes(), late.passes()) == (False, False)
    assert late.words() == ["failed", "failed", "harm", "ended"]
    late.healthy.touch()
    assert not late.passes()
    found = late_findings(late.journal, replay(late.journal, "r1"))
    assert found.harm is not None


def test_the_process_that_watches_the_run_has_asked(late: LateGate, tmp_path: Path) -> None:
    """A sequence then takes its newest verdict, and asks nothing itself."""
    assert late.passes()
    late.healthy.unlink()
    other = SqlJournal(tmp_path / "state")
    other._leases.me = "elsewhere:b.1:1:1"  # noqa: SLF001 - two machines in one process
    with watching(other, "r1"):
        assert late.passes()
    other.close()
    assert late.words() == ["passed"]
    assert not late.passes()
