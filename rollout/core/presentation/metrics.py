"""The newest run of each cluster as metrics for Prometheus, in its text format.

Labels are few: the cluster, and a state or a scope. The run's name is in ``rollout_run_info`` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollout.core.presentation.owned_text import ComparedNodes
from rollout.core.presentation.summary import exit_code, owed_nodes
from rollout.core.presentation.summary_text import Attendance
from rollout.core.run.budgets import nearest
from rollout.core.run.state import NodeState, Phase, RunState


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """``began`` and ``last``: when it began and its last event, seconds since the epoch. ``compared``: the last comparison of its
    cluster with the owned settings; ``None``: there is none.
    """

    state: RunState
    controller: Attendance
    began: float
    last: float
    compared: ComparedNodes | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cluster with a newest run that this version cannot read."""

    cluster: str


HELP = {
    "rollout_run_info": "The newest run of the cluster; always 1.",
    "rollout_run_began_timestamp_seconds": "When the run began.",
    "rollout_run_last_event_timestamp_seconds": "When the last event of the run was written.",
    "rollout_run_active": "1 while the run has not ended.",
    "rollout_run_paused": "1 while the run is paused, or on hold after a wave.",
    "rollout_run_halted": "1 after a gate, a budget or an operator has halted the run.",
    "rollout_run_exit_code": "The exit code of a run that has ended.",
    "rollout_controller_alive": "1 while a controller works on the run; only while it has not ended.",
    "rollout_controller_heartbeat_age_seconds": "Seconds since the last heartbeat of the controller.",
    "rollout_wave": "The number of the present wave, from 1.",
    "rollout_waves": "The number of waves.",
    "rollout_nodes": "Nodes of the run by state.",
    "rollout_nodes_pending_recovery": "Nodes where a change or a revert is still to be done.",
    "rollout_budget_left": "How many more failed nodes halt the run, in the nearest place of the scope.",
    "rollout_nodes_without_owned_setting": "Nodes that lacked an owned setting when `rollout verify` last compared the cluster.",
    "rollout_nodes_not_compared_with_owned_settings": "Nodes that `rollout verify` could not compare with the owned settings then.",
    "rollout_owned_settings_api_not_compared": "1 if `rollout verify` did not see then which nodes only the API server lists.",
    "rollout_owned_settings_compared_timestamp_seconds": "When `rollout verify` last compared the cluster with its owned settings.",
    "rollout_run_unreadable": "1 if another version of rollout wrote the newest run of the cluster.",
}
"""Every metric, all of them gauges."""


def metrics_text(runs: Sequence[MeasuredRun | Unreadable]) -> str:
    """The text format: samples of one metric together, below its help and type."""
    together: dict[str, list[str]] = {name: [] for name in HELP}
    for run in runs:
        for name, labels, value in _samples(run):
            together[name].append(f"{name}{{{_labels(labels)}}} {value:.10g}\n")
    return "".join(
        f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{''.join(samples)}"
        for name, samples in together.items()
        if samples
    )


_Sample = tuple[str, dict[str, str], float]


def _samples(found: MeasuredRun | Unreadable) -> Iterator[_Sample]:
    if isinstance(found, Unreadable):
        yield "rollout_run_unreadable", {"cluster": found.cluster}, 1
        return
    state = found.state
    cluster = {"cluster": state.order.cluster}
    active = state.phase is not Phase.ENDED
    run = {**cluster, "run": state.order.run, "goal": state.order.goal.value, "phase": state.phase.value}
    yield "rollout_run_info", run, 1
    yield "rollout_run_began_timestamp_seconds", cluster, found.began
    yield "rollout_run_last_event_timestamp_seconds", cluster, found.last
    yield "rollout_run_active", cluster, active
    yield "rollout_run_paused", cluster, active and state.paused is not None
    yield "rollout_run_halted", cluster, state.halt is not None
    if (code := exit_code(state)) is not None:
        yield "rollout_run_exit_code", cluster, code
    if active:
        yield "rollout_controller_alive", cluster, found.controller.alive
    if active and found.controller.silent is not None:
        yield "rollout_controller_heartbeat_age_seconds", cluster, found.controller.silent
    counts = dict.fromkeys(NodeState, 0)
    for record in state.nodes.values():
        counts[record.state] += 1
    yield "rollout_wave", cluster, min(state.wave + 1, len(state.order.waves))
    yield "rollout_waves", cluster, len(state.order.waves)
    for kind, count in counts.items():
        yield "rollout_nodes", {**cluster, "state": kind.value}, count
    yield "rollout_nodes_pending_recovery", cluster, len(owed_nodes(state))
    for distance in nearest(state.order, state.nodes, state.wave):
        yield "rollout_budget_left", {**cluster, "scope": distance.scope.value}, distance.left
    if found.compared is not None:
        yield "rollout_nodes_without_owned_setting", cluster, found.compared.lacking
        yield "rollout_nodes_not_compared_with_owned_settings", cluster, found.compared.unread
        yield "rollout_owned_settings_api_not_compared", cluster, bool(found.compared.unlisted)
        yield "rollout_owned_settings_compared_timestamp_seconds", cluster, found.compared.at


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
