"""What a plan shows before the confirmation: its digest, and everything that happens to nodes."""

from __future__ import annotations

from dataclasses import replace

from rollout.app.plan import build_plan
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.apply_readiness import does_lines
from rollout.gates.command.query import CommandQuery
from tests.kubelet.nodes import CONFIG, CRI_DOCKER_DROP_IN, IMAGE_PULLS, POLICY, inventory, mixed


def small() -> Plan:
    found = inventory(10, per_rack=5)
    return build_plan(found, POLICY, mixed(found), dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "")


def test_every_file_and_unit_once_with_how_many_nodes_have_it() -> None:
    plan = small()
    first, *rest = does_lines(plan)
    assert first == f"plan {plan_codec.digest(plan)}"
    paths = {file.path for group in plan.groups for file in group.change.files}
    assert {line.split()[1] for line in rest if line.startswith("  writes ")} == paths
    assert rest[0] == f"  writes {CONFIG}  on {len(plan.nodes)} nodes"
    assert f"  writes {CRI_DOCKER_DROP_IN}  on 2 nodes" in rest
    assert f"  restarts kubelet.service  on {len(plan.nodes)} nodes" in rest
    assert "  restarts cri-docker.service  on 2 nodes" in rest


def test_commands_of_gates_run_on_nodes_and_are_shown() -> None:
    gates = (
        Gate(CommandQuery(("sh", "-c", "test -e /x y")), GateScope.NODE, "look"),
        Gate(CommandQuery(("ask-around", "\x1b[2Jall")), GateScope.WAVE, "ask"),
    )
    lines = does_lines(replace(small(), gates=gates))
    assert lines[-2:] == ("  runs on each node: sh -c 'test -e /x y'", "  runs here, for each wave: ask-around 'all'")


def test_a_signal_is_shown_apart_from_a_restart() -> None:
    plan = small()
    group = plan.groups[0]
    sent = replace(group, change=replace(group.change, hangups=("docker.service",)))
    held = sum(node.group == group.name for node in plan.nodes.values())
    lines = does_lines(replace(plan, groups=(sent, *plan.groups[1:])))
    assert f"  sends SIGHUP to docker.service  on {held} nodes" in lines
