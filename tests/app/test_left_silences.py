"""The silences that a killed controller has left in Alertmanager, from the journal alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app import following
from rollout.app.backends import Backends
from rollout.app.following import replay, silences_left
from rollout.app.ports import Worker
from rollout.app.runs import Tools, start_apply
from rollout.cli.main import run
from rollout.core.presentation.left_silences import LeftSilence, left_silences_lines
from rollout.core.run.commands import Command, OpenWave
from rollout.core.run.state import Ending, Phase, RunState, Verb
from rollout.core.text.terminal import wall
from rollout.errors import RemoteError
from tests.app.site import ACCESS, SMALL, KilledError, Site
from tests.app.test_wave_gates import SILENCING, Around, alerts
from tests.documents import only
from tests.gates.askers import askers

URL = "http://alerts.example:9093"
PLAN = replace(SMALL, gates=(*SMALL.gates, alerts(replace(SILENCING, url=URL))))
SECONDS = SILENCING.silence


@dataclass
class Silencing(Site):
    """Its plan silences each wave's nodes.

    ``unheard``: it is killed after the silences are set and before they are journaled.
    """

    around: Around = field(default_factory=Around)
    unheard: bool = False

    def submit(self, worker: Worker, command: Command) -> None:
        super().submit(worker, command)
        if self.unheard and isinstance(command, OpenWave):
            raise KilledError

    def tools(self) -> Tools:
        return replace(super().tools(), backends=Backends(askers=askers(self.around), wait=self.around.clock.wait))

    def apply(self) -> RunState:
        return start_apply(PLAN, ACCESS, self.tools())


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    return SqlJournal(tmp_path / "state")


def lines(left: Sequence[LeftSilence], now: float) -> list[str]:
    return list(left_silences_lines(left, "r1", now))


def test_a_silence_lasts_as_long_as_its_gate_says_from_when_it_was_set(journal: SqlJournal) -> None:
    site = Silencing(journal)
    state = site.killed("n1", Verb.CONFIRM)
    assert state.phase is not Phase.ENDED
    assert list(site.around.standing_now) == ["s1"]
    (left,) = silences_left(journal, "r1", site.at)
    assert (left.identity, left.url, left.wave) == ("s1", URL, "canary")
    assert site.at < left.until < site.at + SECONDS, "it was set before now"
    assert silences_left(journal, "r1", left.until - 1.0) == (left,)
    assert silences_left(journal, "r1", left.until) == (), "Alertmanager has ended it"
    (said,) = lines([left], left.until - 200.0)
    assert said.startswith(f"  alerts of wave canary stay silenced until {wall(left.until)} (3 min 20 s from now): ")
    assert said.endswith(f"silence s1 at {URL}; a resumed run lifts it at its end")


def test_a_silence_that_was_not_journaled_is_reported_as_possible(journal: SqlJournal) -> None:
    site = Silencing(journal, unheard=True)
    with pytest.raises(KilledError):
        site.apply()
    assert replay(journal, "r1").silences == ()
    assert list(site.around.standing_now) == ["s1"]
    (left,) = silences_left(journal, "r1", site.at)
    assert (left.identity, left.wave) == ("", "canary")
    assert left.until > site.at + SECONDS, "at the latest"
    said = " ".join(lines([left], site.at))
    assert "alerts of wave canary may stay silenced until " in said
    assert "with the comment `rollout r1, wave canary`" in said
    assert site.around.standing_now["s1"].comment.startswith("rollout r1, wave canary")


def test_a_resumed_run_that_dies_has_left_the_silences_of_both_controllers(journal: SqlJournal) -> None:
    site = Silencing(journal, unheard=True)
    with pytest.raises(KilledError):
        site.apply()
    site.answers, site.unheard, site.dies_at = [], False, ("n1", Verb.CONFIRM)
    with pytest.raises(KilledError):
        site.resume("r1")
    assert sorted(site.around.standing_now) == ["s1", "s2"]
    assert {each.identity for each in silences_left(journal, "r1", site.at)} == {"", "s2"}


def test_a_resumed_run_that_opens_no_wave_lifts_what_the_dead_controller_may_have_set(journal: SqlJournal) -> None:
    """Its baseline fails now, so the wave sets no silence that the journal would know."""
    site = Silencing(journal, unheard=True)
    with pytest.raises(KilledError):
        site.apply()
    site.answers, site.unheard = [], False
    site.around.alerts = RemoteError("not-reached", "away")
    state = site.resume("r1")
    assert (state.phase, state.ending) == (Phase.ENDED, Ending.HALTED)
    assert (site.around.standing_now, state.leftovers) == ({}, ())


def test_what_a_dead_controller_may_have_set_stays_a_leftover_if_it_cannot_be_looked_up(journal: SqlJournal) -> None:
    site = Silencing(journal, unheard=True)
    with pytest.raises(KilledError):
        site.apply()
    site.answers, site.unheard = [], False
    site.around.alerts = site.around.hides = RemoteError("not-reached", "away")
    state = site.resume("r1")
    assert state.phase is Phase.ENDED
    assert state.leftovers == (
        f"it is not known whether more silences of this run are left at {URL}; they will expire: away",
    )


def test_an_ended_run_has_lifted_its_silences(journal: SqlJournal) -> None:
    site = Silencing(journal)
    assert site.apply().phase is Phase.ENDED
    assert site.around.standing_now == {}
    assert silences_left(journal, "r1", site.at) == ()


def test_a_run_without_silences_has_left_none_and_is_not_replayed_for_it(
    journal: SqlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(journal)
    site.killed("n1", Verb.CONFIRM)
    monkeypatch.setattr(following, "decode_events", None)
    assert silences_left(journal, "r1", site.at) == ()


def test_status_and_report_show_the_silence_of_a_dead_controller_until_it_expires(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal's times are first far in the future (the silence has not expired), then far in the past."""
    for run_id, at, told in (("r1", 4e9, True), ("r2", 1000.0, False)):
        folder = tmp_path / run_id
        site = Silencing(SqlJournal(folder), at=at, runs=int(run_id[1:]) - 1)
        site.killed("n1", Verb.CONFIRM)
        assert run(["status", "--state", str(folder)]) == 0
        assert ("alerts of wave canary stay silenced until 2096-" in capsys.readouterr().out) is told
        assert run(["status", "-o", "json", "--state", str(folder)]) == 0
        document = only(capsys.readouterr().out)
        assert [each["identity"] for each in document["silences"]] == (["s1"] if told else [])
        assert run(["report", "--state", str(folder)]) == 0
        assert ("alerts of wave canary stay silenced until 2096-" in capsys.readouterr().out) is told
        page = tmp_path / f"{run_id}.html"
        assert run(["report", "--html", str(page), "-o", "json", "--state", str(folder)]) == 0
        assert only(capsys.readouterr().out)["silences"] == document["silences"]
        assert ("alerts of wave canary stay silenced until 2096-" in page.read_text()) is told
