"""What earlier plans and the API server know of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from rollout.app.plan import NOTHING_KNOWN, build_plan
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import ExcludedNode, Plan, Remark, Standing
from rollout.core.model.playbook import Policy
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings
from rollout.core.plans.history import Around, seen_in
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import plan_text
from tests.app.test_live_inventories import live
from tests.documents import as_printed
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, fleet, inventory, kubeadm

FOUND = inventory(4)
N1, N2, N3, N4 = FOUND.nodes
NO_MACHINES: Mapping[str, str] = MappingProxyType({})
NO_SURROUNDINGS: Mapping[str, NodeSurroundings] = MappingProxyType({})


def planned(
    around: Around = NOTHING_KNOWN,
    found: Inventory = FOUND,
    policy: Policy = POLICY,
    machines: Mapping[str, str] = NO_MACHINES,
    boots: Mapping[str, str] = NO_MACHINES,
    selection: tuple[str, ...] = (),
    surroundings: Mapping[str, NodeSurroundings] = NO_SURROUNDINGS,
) -> Plan:
    nodes = {name: kubeadm(name) for name in found.nodes}
    changed = {
        name: replace(nodes[name], machine_id=machine, boot_id=boots.get(name, nodes[name].boot_id))
        for name, machine in machines.items()
    }
    around_it = {name: replace(nodes[name], surroundings=each) for name, each in surroundings.items()}
    snapshot = fleet(found, {**nodes, **changed, **around_it})
    wanted = dict.fromkeys(found.nodes, IMAGE_PULLS)
    return build_plan(found, policy, snapshot, wanted, selection or tuple(found.nodes), "", None, around)


def said(plan: Plan) -> tuple[Remark, ...]:
    """The remarks under test, without those that all of these plans have: on pods and on kubeadm."""
    return tuple(each for each in plan.remarks if each.reference not in ("kubeadm-rewrites", "pods-not-foreseen"))


def test_the_first_plan_of_a_cluster_calls_no_node_new() -> None:
    assert said(planned()) == ()
    assert seen_in([]) is None


def test_a_node_of_no_earlier_plan_is_new_and_one_that_was_left_alone_is_not() -> None:
    earlier = planned()
    left = replace(earlier, nodes={N1: earlier.nodes[N1]}, left=planned_left(earlier, N2, N3))
    assert said(planned(Around(seen_in([left])))) == (
        Remark("new-node", "new: in no plan of this cluster's last run", (N4,)),
    )
    (remark,) = said(planned(Around(seen_in([left, left]))))
    assert remark.text == "new: in no plan of this cluster's last 2 runs"


def planned_left(plan: Plan, *names: str) -> tuple[ExcludedNode, ...]:
    return tuple(ExcludedNode(name, plan.nodes[name].rack, Standing.AS_WANTED, "as-wanted", "") for name in names)


def test_another_machine_id_than_in_the_newest_plan_that_has_the_node() -> None:
    newest, oldest = planned(machines={N1: "a" * 32}), planned(machines={N1: "b" * 32})
    (remark,) = said(planned(Around(seen_in([newest, oldest])), machines={N1: "b" * 32}))
    assert (remark.reference, remark.nodes) == ("replaced-node", (N1,))
    assert remark.text.startswith("replaced: its machine-id differs from the last plan that changed it; ")
    assert said(planned(Around(seen_in([newest, oldest])), machines={N1: "a" * 32})) == ()


def test_names_of_one_machine_are_refused() -> None:
    """The first change would be drift for the second name, in the middle of the run."""
    plan = planned(machines={N1: "a" * 32, N3: "a" * 32})
    assert [(entry.name, entry.standing, entry.reference) for entry in plan.left] == [
        (N1, Standing.REFUSED, "one-machine"),
        (N3, Standing.REFUSED, "one-machine"),
    ]
    assert all("tess-node-[0001,0003] are names of one machine" in entry.reason for entry in plan.left)
    assert list(plan.nodes) == [N2, N4]
    assert said(plan) == ()
    assert N1 in planned(machines={N1: "a" * 32, N3: "a" * 32}, selection=(N1, N2)).nodes, "one name is chosen"


def test_machines_of_one_image_are_named_together() -> None:
    """Their boots differ, so they are not one machine."""
    plan = planned(machines={N1: "a" * 32, N3: "a" * 32}, boots={N1: "c" * 32})
    assert len(plan.nodes) == 4
    (remark,) = said(plan)
    assert (remark.reference, remark.nodes) == ("same-machine-id", (N1, N3))


def test_unknown_machine_ids_are_not_one_machine() -> None:
    plan = planned(machines=dict.fromkeys(FOUND.nodes, ""))
    assert {entry.reference for entry in plan.left} == {"machine-id-unknown"}


def test_cordoned_nodes_are_skipped_unless_the_playbook_includes_them() -> None:
    around = Around(live=tuple(live(name, cordoned=name == N2) for name in FOUND.nodes))
    plan = planned(around)
    assert [(entry.name, entry.standing, entry.reference) for entry in plan.left] == [
        (N2, Standing.SKIPPED, "cordoned")
    ]
    assert "3 nodes to change, 0 as wanted, 1 skipped, 0 refused, 0 unreachable" in plan_text(plan)
    assert not planned(around, policy=replace(POLICY, cordoned=True)).left


def test_the_control_plane_is_skipped_in_any_state_unless_the_playbook_includes_it() -> None:
    node = replace(FOUND.nodes[N4], labels={"node-role.kubernetes.io/control-plane": ""})
    found = replace(FOUND, nodes={**FOUND.nodes, N4: node})
    (left,) = planned(found=found).left
    assert (left.name, left.standing, left.reference) == (N4, Standing.SKIPPED, "control-plane")
    plan = planned(found=found, policy=replace(POLICY, control_plane=True))
    assert (plan.waves[-1].name, plan.waves[-1].nodes, plan.waves[-1].at_once) == ("control plane", (N4,), 1)
    assert "control plane: 1 node" in plan_text(plan)
    assert ", one at a time  " in plan_text(plan)


def test_a_node_with_static_pods_of_the_control_plane_is_of_it_whatever_the_inventory_says() -> None:
    etcd = NodeSurroundings(manifests=(Manifests("/etc/kubernetes/manifests", Listing(("etcd.yaml",))),))
    plan = planned(surroundings={N2: etcd})
    assert [(entry.name, entry.standing, entry.reference) for entry in plan.left] == [
        (N2, Standing.SKIPPED, "control-plane")
    ]
    (remark,) = said(plan)
    assert (remark.reference, remark.nodes) == ("control-plane-seen", (N2,))
    assert remark.text.startswith(
        "of the control plane, although the inventory does not say so: it has etcd.yaml in /etc/kubernetes/manifests; "
    )
    plan = planned(surroundings={N2: etcd}, policy=replace(POLICY, control_plane=True))
    assert (plan.waves[-1].name, plan.waves[-1].nodes, plan.waves[-1].at_once) == ("control plane", (N2,), 1)
    assert [remark.reference for remark in said(plan)] == ["control-plane-seen"]


def test_a_node_with_the_taint_of_the_control_plane_is_of_it_whatever_the_inventory_says() -> None:
    tainted = replace(live(N3), taints=("node-role.kubernetes.io/control-plane:NoSchedule",))
    around = Around(live=tuple(tainted if name == N3 else live(name) for name in FOUND.nodes))
    assert [(entry.name, entry.reference) for entry in planned(around).left] == [(N3, "control-plane")]
    plan = planned(around, policy=replace(POLICY, control_plane=True))
    assert (plan.waves[-1].name, plan.waves[-1].nodes) == ("control plane", (N3,))


def test_gates_that_the_playbook_switches_off_are_named() -> None:
    (remark,) = said(planned(policy=replace(POLICY, without=("podsKept", "healthz"))))
    assert (remark.reference, remark.text) == (
        "gates-without",
        "the playbook switches off gates that are on by default: podsKept, healthz",
    )


def test_nodes_that_only_the_inventory_or_only_the_api_has() -> None:
    plan = planned(Around(live=(live(N1), live(N2), live(N3), live("stranger"))))
    assert [(remark.reference, remark.nodes) for remark in said(plan)] == [
        ("not-in-api", (N4,)),
        ("not-in-inventory", ("stranger",)),
    ]
    assert as_printed(PlanDocument("p.json", plan))["remarks"][0]["nodes"] == N4


def test_another_cluster_s_api_server_is_one_remark() -> None:
    (remark,) = said(planned(Around(live=(live("a1"), live("b1")))))
    assert remark.text.startswith("the API server has none of the inventory's nodes, but 2 others")


def test_an_unasked_api_server_is_a_warning() -> None:
    plan = planned(Around(not_asked="no answer within 10 s [timeout]"))
    assert "Warnings\n  cordoned nodes are not known: no answer within 10 s [timeout] [api-not-asked]\n" in plan_text(
        plan
    )


def test_remarks_of_nodes_are_folded_and_bounded() -> None:
    plan = planned(Around(seen_in([planned()])))
    many = tuple(Remark(f"r{at}", f"text {at}\x1b[2J", (N1, N2)) for at in range(20))
    text = plan_text(replace(plan, remarks=many))
    assert "  2 nodes  tess-node-[0001-0002]: text 0 [r0]\n" in text
    assert "  … 8 more warnings: see them all with -o json\n" in text
    assert "\x1b" not in text


def test_another_configuration_manager_is_one_warning_for_all_its_nodes() -> None:
    nodes = {name: kubeadm(name) for name in FOUND.nodes}
    marked = {
        name: replace(found, facts={**found.facts, "manager-puppet": "puppet.service:active"})
        for name, found in nodes.items()
    }
    wanted = dict.fromkeys(FOUND.nodes, IMAGE_PULLS)
    plan = build_plan(FOUND, POLICY, fleet(FOUND, marked), wanted, tuple(FOUND.nodes), "")
    (remark,) = said(plan)
    assert (remark.reference, len(remark.nodes)) == ("may-be-undone-by-puppet", 4)
