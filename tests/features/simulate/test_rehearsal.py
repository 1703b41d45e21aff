"""A saved plan rehearsed offline: two thousand nodes in seconds, and the result matches the plan's text."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from time import process_time

import pytest
from click.testing import CliRunner

from rollout.adapters.clock import SystemZones
from rollout.adapters.files import FolderFiles
from rollout.adapters.node_sources import RealSources
from rollout.app.load import load_cluster
from rollout.app.plan import build_plan
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import RevertScope
from rollout.core.model.spans import joined
from rollout.core.plans import plan_codec
from rollout.core.plans.estimate import total
from rollout.core.run.state import NodeState
from rollout.core.text.nodesets import expand
from rollout.errors import InputError, Place
from rollout.features.change_windows.asking import WindowTimes
from rollout.features.change_windows.rules import ChangeCalendar, Freeze, Weekday, Window
from rollout.features.simulate.command import _names, simulate
from rollout.gates.prometheus.query import PrometheusQuery
from rollout.simulator.fault_words import faults_of
from rollout.simulator.forecast import Forecast, most_at_once
from rollout.simulator.rehearsal import PlanRehearsal
from tests.core.presentation.journals import plan_of
from tests.documents import only
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, mixed
from tests.places import ROOT


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(120, 20)


def rehearse(plan: Plan, *faults: str) -> Forecast:
    return PlanRehearsal(plan, faults_of(faults, _names(plan))).run()


def test_without_faults_it_takes_about_as_long_as_the_plan_says_and_keeps_every_limit(plan: Plan) -> None:
    found = rehearse(plan)
    assert found.ending == "done"
    assert found.counts == {NodeState.CONFIRMED: len(plan.nodes)}
    assert found.seconds == pytest.approx(total(plan), rel=0.5)
    assert all(peak.limit is None or 0 < peak.most <= peak.limit for peak in found.peaks)


@pytest.mark.no_cover
def test_the_whole_shipped_cluster_is_rehearsed_in_seconds(plan: Plan) -> None:
    """A node of 2,000 costs at most a few times as much as one of 120."""
    began = process_time()
    rehearse(plan, "rack02: 3% unhealthy at 10m")
    a_node = (process_time() - began) / len(plan.nodes)
    inventory = load_cluster(FolderFiles(ROOT), RealSources(""), "rno")
    fleet = mixed(inventory)
    whole = build_plan(
        inventory, POLICY, fleet, dict.fromkeys(inventory.nodes, IMAGE_PULLS), tuple(inventory.nodes), ""
    )
    began = process_time()
    found = rehearse(whole, "rack12: 3% unhealthy at 10m")
    assert (process_time() - began) / len(whole.nodes) < 8 * a_node
    assert len(whole.nodes) > 1900
    assert sum(found.counts.values()) == len(whole.nodes)
    racks = [peak for peak in found.peaks if peak.kind == "rack"]
    assert all(peak.limit is not None and peak.most <= peak.limit for peak in racks)


def test_unhealthy_nodes_halt_it_at_the_budget_and_are_reverted(plan: Plan) -> None:
    wave = plan.waves[-1].name
    begins = next(moment.at for moment in rehearse(plan).moments if f"wave {wave} begins" in moment.words)
    at = round(begins) + 10
    found = rehearse(replace(plan, on_failure=RevertScope.WAVE), f"rack02: 50% unhealthy at {at}s")
    assert found.halt is not None
    assert (found.ending, found.halt.wave, found.exit_code) == ("halted", wave, 3)
    assert "budget" in found.halt.message
    assert found.halt.after_seconds > at
    assert any(plan.nodes[name].rack == "rack02" for name in expand(found.reverted))


def test_a_killed_controller_is_followed_by_the_next_and_nothing_is_lost(plan: Plan) -> None:
    found = rehearse(plan, "controller: killed at 3m for 5m")
    assert found.ending == "done"
    assert found.seconds > rehearse(plan).seconds + 200
    assert any("resumes" in moment.words for moment in found.moments)


def test_an_unreachable_node_is_pending_recovery(plan: Plan) -> None:
    gone = plan.waves[-1].nodes[-1]
    found = rehearse(plan, f"{gone}: unreachable from 30s")
    assert found.owed == gone
    assert found.counts[NodeState.UNREACHABLE] == 1


def test_unreachable_gates_halt_it(plan: Plan) -> None:
    gate = Gate(PrometheusQuery("up", at_least=1.0), GateScope.WAVE, "pull errors")
    found = rehearse(replace(plan, gates=(*plan.gates, gate)), "prometheus: unreachable at 2m")
    assert found.halt is not None
    assert (found.ending, found.halt.reference) == ("halted", "wave-gate-unknown")


WRONG = [
    ("rack02 unhealthy", 17, "fault-without-place", ""),
    ("rack99: unhealthy", 1, "unknown-node", "did you mean `rack0"),
    ("rack02: unhealty", 9, "fault-unknown", "did you mean `unhealthy`?"),
    ("rack02: 3% unhealthy att 10m", 22, "fault-time", "did you mean `at`?"),
    ("rack02: 3% unhealthy at ten", 25, "fault-time", ""),
    ("rack02: 0% unhealthy", 9, "fault-share", ""),
    ("rack02:", 8, "fault-unknown", "the fault is missing"),
    ("controller: 2 killed", 12, "fault-share", ""),
    ("controller: unhealthy", 13, "fault-unknown", "killed, interrupted"),
    (": unhealthy", 1, "fault-without-place", ""),
]


@pytest.mark.parametrize(("said", "column", "reference", "words"), WRONG, ids=[said for said, *_ in WRONG])
def test_invalid_faults_are_reported_with_their_column(
    plan: Plan, said: str, column: int, reference: str, words: str
) -> None:
    with pytest.raises(InputError) as told:
        rehearse(plan, said)
    problem = told.value.problems[0]
    assert problem.place is not None
    assert (problem.place.column, problem.reference) == (column, reference)
    assert words in str(problem)


def test_all_invalid_faults_are_reported_at_once(plan: Plan) -> None:
    with pytest.raises(InputError) as told:
        rehearse(plan, "rack02: unhealty", "rack01: slow", "rack02: sick")
    assert [problem.place.file for problem in told.value.problems if problem.place] == ["--fault 1", "--fault 3"]


def test_a_share_is_spread_over_its_nodes_and_is_one_at_the_least(plan: Plan) -> None:
    rack = [node.name for node in plan.nodes.values() if node.rack == "rack02"]
    tenth = faults_of(["rack02: 10% dies at 1m"], _names(plan))
    assert len(tenth) == len(rack) // 10
    assert len(faults_of(["rack02: 1% dies"], _names(plan))) == 1
    assert len(faults_of(["rack02: 7 dies"], _names(plan))) == 7
    assert {fault.node for fault in tenth} <= set(rack)


def test_another_word_for_a_fault_means_the_same(plan: Plan) -> None:
    assert faults_of(("rack02: reboots for 9s",), _names(plan)) == faults_of(("rack02: reboot for 9s",), _names(plan))


def test_a_node_that_is_away_for_two_reasons_is_away_once() -> None:
    assert joined([(5.0, 9.0), (0.0, 2.0), (1.0, 3.0)]) == [(0.0, 3.0), (5.0, 9.0)]
    assert most_at_once([(0.0, 3.0), (2.0, 4.0), (3.0, 5.0)]) == (2, 2.0)
    assert most_at_once([]) == (0, 0.0)


def test_the_command_prints_text_or_json_and_exits_as_asked(plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / "p.plan.json"
    file.write_bytes(plan_codec.encode(plan))
    text = CliRunner().invoke(simulate, [str(file), "--fault", "rack02: broken"], standalone_mode=False)
    assert "halts after" in text.output
    assert text.return_value == 0
    told = CliRunner().invoke(
        simulate, [str(file), "--fault", "rack02: broken", "--exit-code", "-o", "json"], standalone_mode=False
    )
    found = only(told.output)
    assert (found["kind"], found["ending"], found["exitCode"], told.return_value) == ("Forecast", "halted", 3, 3)
    assert found["halt"]["wave"] in {wave.name for wave in plan.waves}


@pytest.mark.no_cover
def test_it_waits_for_the_change_windows_of_its_plan_in_their_zone(plan: Plan) -> None:
    """It begins on a Friday at 22:30 in Zurich; windows of Monday to Thursday last from 22:00 to 02:00, and Monday is frozen."""
    days = frozenset({Weekday.MONDAY, Weekday.TUESDAY, Weekday.WEDNESDAY, Weekday.THURSDAY})
    window, freeze = Window(days, 22 * 60, 26 * 60 % 1440), Freeze("2026-11-30", "2026-11-30", "invoices")
    calendar = ChangeCalendar(Place("rno.yaml", 1, 1), "Europe/Zurich", (window,), (freeze,))
    begins = datetime.fromisoformat("2026-11-27T22:30+01:00").timestamp()
    opens = datetime.fromisoformat("2026-12-01T00:00+01:00").timestamp()
    planned = replace(plan, conditions=(calendar,))
    found = PlanRehearsal(planned, (), start=begins, zones=SystemZones(), times=WindowTimes).run()
    assert found.ending == "done"
    (opened,) = (moment.at for moment in found.moments if moment.words == "run: its change window opens")
    assert opened == pytest.approx(opens - begins, abs=61.0)
    assert min(peak.at for peak in found.peaks if peak.most) >= opened
    assert found.seconds == pytest.approx(opened + rehearse(plan).seconds, rel=0.05)
