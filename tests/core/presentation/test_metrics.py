"""Metrics of runs, and the alerts on them, as Prometheus' own tool reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.core.presentation.metrics import HELP, MeasuredRun, Unreadable, metrics_text
from rollout.core.presentation.owned_text import ComparedNodes
from rollout.core.presentation.summary_text import Attendance
from rollout.core.run.state import NodeState, RunState
from tests.core.presentation import journals
from tests.core.presentation.journals import BEGAN
from tests.places import ROOT

PROMTOOL = shutil.which("promtool")
RULES = ROOT / "docs/prometheus/rollout.rules.yaml"


def measured(state: RunState, *, alive: bool = True) -> MeasuredRun:
    return MeasuredRun(state, Attendance(alive=alive, host="desk", silent=3.5), BEGAN, state.now)


def under_way() -> RunState:
    return journals.stopped(lambda state: state.wave == 2)[1].state


def halted() -> RunState:
    state = journals.halted(240)[1].state
    return replace(state, order=replace(state.order, cluster='oth"er\\\n'))


def test_a_run_that_goes_on_has_its_controller_its_nodes_and_its_distance_to_halt() -> None:
    lines = metrics_text([measured(under_way(), alive=False)]).splitlines()
    assert 'rollout_run_active{cluster="rno"} 1' in lines
    assert 'rollout_controller_alive{cluster="rno"} 0' in lines
    assert 'rollout_controller_heartbeat_age_seconds{cluster="rno"} 3.5' in lines
    assert 'rollout_wave{cluster="rno"} 3' in lines
    assert f'rollout_run_began_timestamp_seconds{{cluster="rno"}} {BEGAN:.0f}' in lines
    states = [line for line in lines if line.startswith("rollout_nodes{")]
    assert len(states) == len(NodeState), "each state, also those with no node: an alert needs the zero"
    scopes = {found[1] for line in lines if (found := re.match(r'rollout_budget_left\{.*scope="(\w+)"', line))}
    assert scopes == {"wave", "rack", "fleet"}


def test_nodes_that_lack_an_owned_setting_are_counted_as_they_were_last_compared() -> None:
    compared = ComparedNodes(2000.0, 38, "n[1-2]", "n9")
    lines = metrics_text([replace(measured(under_way()), compared=compared)]).splitlines()
    assert 'rollout_nodes_without_owned_setting{cluster="rno"} 2' in lines
    assert 'rollout_nodes_not_compared_with_owned_settings{cluster="rno"} 1' in lines
    assert 'rollout_owned_settings_api_not_compared{cluster="rno"} 0' in lines
    away = metrics_text(
        [
            replace(
                measured(under_way()), compared=replace(compared, not_compared="~2000:0123456789ab", unlisted="refused")
            )
        ]
    )
    assert 'rollout_nodes_not_compared_with_owned_settings{cluster="rno"} 2000\n' in away
    assert 'rollout_owned_settings_api_not_compared{cluster="rno"} 1\n' in away
    assert 'rollout_owned_settings_compared_timestamp_seconds{cluster="rno"} 2000' in lines
    assert "rollout_nodes_without_owned_setting" not in metrics_text([measured(under_way())]), "nothing was compared"


def test_a_run_that_halted_has_its_exit_code_and_no_controller() -> None:
    text = metrics_text([measured(halted()), Unreadable("old")])
    assert 'rollout_run_exit_code{cluster="oth\\"er\\\\\\n"} 3\n' in text
    assert "rollout_run_halted" in text
    assert "rollout_controller_alive" not in text
    assert 'rollout_run_unreadable{cluster="old"} 1\n' in text


@pytest.mark.process
def test_promtool_reads_the_metrics() -> None:
    compared = replace(measured(under_way()), compared=ComparedNodes(2000.0, 38, "n[1-2]", ""))
    text = metrics_text([compared, measured(halted()), Unreadable("old")])
    assert {name for name in HELP if f"# TYPE {name} gauge\n" not in text} == set(), "each of them is here"
    tool("check", "metrics", text=text)


@pytest.mark.process
def test_promtool_reads_the_alerts_and_they_fire_when_they_should() -> None:
    tool("check", "rules", str(RULES))
    tool("test", "rules", str(Path(__file__).with_name("alerts.yaml")))


def test_alerts_ask_only_for_metrics_that_there_are() -> None:
    asked = set(re.findall(r"\brollout_\w+", RULES.read_text()))
    assert asked <= set(HELP)


def tool(*words: str, text: str = "") -> None:
    if PROMTOOL is None:
        pytest.skip("NOT TESTED: promtool is not installed (Debian: prometheus)")
    done = subprocess.run([PROMTOOL, *words], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
