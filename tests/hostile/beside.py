"""A hostile node beside honest ones, through the whole planner: the honest ones are planned exactly as without it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rollout.app.isolation import Keep
from rollout.app.plan import build_plan
from rollout.app.plan_file import check_preflight
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import ExcludedNode, Plan
from rollout.core.model.pods import ContainerRequest, PlacedPod
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FileState, Process, Snapshot, Unread
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.history import Around
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import plan_text
from rollout.core.text import documents
from tests.hostile.property import LONGEST_LINE
from tests.kubelet import nodes
from tests.kubelet.nodes import CONFIG_TEXT, POLICY, fleet, inventory, kubeadm

FOUND = inventory(5, per_rack=2)
ENEMY, *HONEST = FOUND.nodes
ONE_OF_EACH = dict(
    zip(
        HONEST,
        (
            kubeadm(HONEST[0]),
            nodes.plain(HONEST[1], "1.29.3", "containerd"),
            nodes.with_unit(kubeadm(HONEST[2]), LoadState="masked"),
            kubeadm(HONEST[3], config=CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false")),
        ),
        strict=True,
    )
)
"""Two that are changed in different ways, one that is refused, one that is already as wanted, or nearly."""

CAPACITY = (("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110"))
AROUND = Around(
    live=tuple(
        LiveNode(
            name=name, uid="u", created="", addresses=(), labels={}, unschedulable=False, taints=(), kubelet_version="v1.30.4",
            runtime="containerd://1.7.24", os_image="", ready="True", capacity=CAPACITY, allocatable=CAPACITY,
        )
        for name in FOUND.nodes
    ),
    pods=tuple(
        PlacedPod(name, f"default/{name}", "2026-11-20T10:00:00Z", (ContainerRequest((("cpu", "1"), ("memory", "1Gi"))),))
        for name in FOUND.nodes
    ),
)  # fmt: skip
"""What an API server says of them: with it the plan computes what each change takes from the pods of a node."""

Asked = tuple[tuple[str, Setting], ...]


def told_beside(snapshot: Snapshot | Unread, settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """What a plan of all nodes shows of the enemy; fails if the enemy changes anything for another node."""
    enemy = replace(snapshot, node=ENEMY)
    taken = fleet(FOUND, {ENEMY: enemy, **ONE_OF_EACH})
    assert snapshot_codec.decode(snapshot_codec.encode(taken), "s.json") == taken
    traces: list[str] = []
    made = _planned(tuple(settings.items()), taken.nodes, traces)
    assert not traces, traces[0]
    assert dict(_shares(made)) == _shares_without(tuple(settings.items())), "another node is planned differently"
    assert plan_codec.decode(plan_codec.encode(made), "p.json") == made
    check_preflight(made)
    json.dumps(documents.values(PlanDocument("p.json", made)), allow_nan=False).encode()
    return *_shown(made), *_said_of_enemy(made)


def kept_in(traces: list[str]) -> Keep:
    """Keeps the trace of every failure inside rollout: there must be none."""

    def keep(_node: str, trace: str) -> str:
        traces.append(trace)
        return ""

    return keep


def spoken(snapshot: Snapshot) -> bytes:
    """A snapshot as the output of an agent."""
    facts = {
        "machine-id": snapshot.machine_id,
        "boot-id": snapshot.boot_id,
        "kubelet-version": f"Kubernetes v{snapshot.kubelet_version}",
        **{f"runtime-{name}": said for name, said in snapshot.runtimes.items()},
        **snapshot.facts,
    }
    lines = [f"fact {name} {said}" for name, said in facts.items()]
    measured = snapshot.measurement
    if measured.unit is not None:
        lines += [f"unit {measured.unit.name} {name} {said}" for name, said in measured.unit.properties.items()]
    if measured.process is not None:
        lines.append(f"process {_process(measured.process)}")
    lines += [f"healthz {measured.healthz}", f"lenient {measured.lenient}", "token 3 r ended"]
    for state in snapshot.files.values():
        lines += _file(state)
    return "\n".join([*lines, "end snapshot", ""]).encode()


def _process(process: Process) -> str:
    return f"{process.pid} {base64.b64encode(''.join(f'{w}{chr(0)}' for w in process.command_line).encode()).decode()}"


def _file(state: FileState) -> list[str]:
    if state.kind != "regular" or state.content is None:
        return [f"file {state.kind} - - - - {state.path} -"]
    listed = f"file regular {state.mode} {state.owner} {state.size} {state.digest} {state.path} +"
    return [listed, f"content {base64.b64encode(state.content).decode()}"]


def _planned(asked: Asked, known: Mapping[str, Snapshot | Unread], traces: list[str]) -> Plan:
    selection = tuple(name for name in FOUND.nodes if name in known)
    mine = dict(asked)
    wanted = dict.fromkeys(FOUND.nodes, mine)
    return build_plan(FOUND, POLICY, fleet(FOUND, known), wanted, selection, "", around=AROUND, trace=kept_in(traces))


_WITHOUT: dict[str, Mapping[str, object]] = {}
"""Settings → the shares of the honest nodes in a plan without the enemy."""


def _shares_without(asked: Asked) -> Mapping[str, object]:
    key = repr(asked)
    if key not in _WITHOUT:
        _WITHOUT[key] = dict(_shares(_planned(asked, ONE_OF_EACH, [])))
    return _WITHOUT[key]


def _shares(plan: Plan) -> Iterator[tuple[str, object]]:
    """Each honest node, with everything that the plan contains of it except its place among the others."""
    changes = {group.name: group for group in plan.groups}
    left: Mapping[str, ExcludedNode] = {entry.name: entry for entry in plan.left}
    for name in HONEST:
        remarks = {(remark.reference, remark.text) for remark in plan.remarks if name in remark.nodes}
        if name in left:
            yield name, (left[name], remarks)
            continue
        node = plan.nodes[name]
        group = changes[node.group]
        said = {
            (each.reference, each.text)
            for each in plan.consequences
            if each.group == node.group and name in (each.nodes or (name,))
        }
        yield name, (replace(node, group="", wave=0), group.change, group.label, said, remarks)


def _shown(plan: Plan) -> Iterator[str]:
    """The plan as text, in parts: a diff shows every byte of a changed line, however long it is."""
    text = plan_text(plan)
    yield from (text[at : at + LONGEST_LINE] for at in range(0, len(text), LONGEST_LINE))


def _said_of_enemy(plan: Plan) -> Iterator[str]:
    for entry in plan.left:
        if entry.name == ENEMY:
            yield entry.reference
            yield entry.reason
    for group in plan.groups:
        if plan.nodes.get(ENEMY) and plan.nodes[ENEMY].group == group.name:
            yield from group.change.notes
            yield from group.change.arguments
            yield from (why for file in group.change.files for why in file.reasons)
