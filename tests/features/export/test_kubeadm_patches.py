"""The patches with which kubeadm keeps a change."""

from __future__ import annotations

from dataclasses import replace

import yaml

from rollout.app.plan import build_plan
from rollout.core.model.plan import Plan
from rollout.core.model.settings import Value
from rollout.features.export.rules.settings import KubeadmPatch, kubeadm_document, kubeadm_lines, patches_in_force
from rollout.kubelet.configuration.yaml_document import read
from tests.documents import as_printed
from tests.kubelet.nodes import CONFIG_TEXT, POLICY, fleet, inventory, kubeadm, plain, settings

FOUND = inventory(3)
NAMES = tuple(FOUND.nodes)


def kubeadm_patches(plan: Plan) -> tuple[KubeadmPatch, ...]:
    return patches_in_force([(plan, tuple(plan.nodes))])


def plan(version: str = "1.33.4", **wanted: Value) -> Plan:
    nodes = {name: kubeadm(name, version, "containerd") for name in NAMES}
    return build_plan(FOUND, POLICY, fleet(FOUND, nodes), dict.fromkeys(NAMES, settings(skip=(), **wanted)), NAMES, "")


def test_fields_come_once_for_all_nodes_that_get_the_same() -> None:
    (patch,) = kubeadm_patches(
        plan(serializeImagePulls=False, maxParallelImagePulls=5, evictionHard={"memory.available": "5%"})
    )
    assert patch.nodes == NAMES
    assert yaml.safe_load(patch.text) == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "serializeImagePulls": False,
        "maxParallelImagePulls": 5,
        "evictionHard": {"memory.available": "5%"},
    }


def test_no_null_removes_what_the_configmap_has() -> None:
    """A kubelet shows no empty value, and a merge patch removes a field that is null: every gate, with the field of gates."""
    gates: dict[str, Value] = {"RotateKubeletServerCertificate": True}
    (patch,) = kubeadm_patches(plan(featureGates=gates, clusterDNS=[], readOnlyPort=0, maxPods=60))
    assert patch.fields == {"clusterDNS": [], "maxPods": 60}
    config = CONFIG_TEXT + "readOnlyPort: 10255\nfeatureGates: {NodeSwap: true}\n"
    found = kubeadm(NAMES[0], "1.33.4", "containerd", config=config)
    made = build_plan(
        FOUND,
        POLICY,
        fleet(FOUND, {NAMES[0]: found}),
        {NAMES[0]: settings(featureGates=gates, readOnlyPort=0)},
        NAMES[:1],
        "",
    )
    (patch,) = kubeadm_patches(made)
    assert patch.fields == {"readOnlyPort": 0}


def test_groups_that_differ_have_their_own_patches_largest_first() -> None:
    few, many = settings(maxPods=60), settings(maxPods=70)
    nodes = {name: kubeadm(name, "1.33.4", "containerd") for name in NAMES}
    made = build_plan(FOUND, POLICY, fleet(FOUND, nodes), {NAMES[0]: few, NAMES[1]: many, NAMES[2]: many}, NAMES, "")
    patches = kubeadm_patches(made)
    assert [(patch.fields["maxPods"], patch.nodes) for patch in patches] == [(70, NAMES[1:]), (60, NAMES[:1])]
    text = "\n".join(kubeadm_lines(patches))
    assert [document["maxPods"] for document in yaml.safe_load_all(text)] == [70, 60]
    assert "All nodes share one ConfigMap, and these patches differ" in text


def test_flags_are_named_with_their_place() -> None:
    nodes = {name: kubeadm(name, "1.20.15") for name in NAMES}
    wanted = settings(imagePullProgressDeadline="5m", serializeImagePulls=False)
    made = build_plan(FOUND, POLICY, fleet(FOUND, nodes), dict.fromkeys(NAMES, wanted), NAMES, "")
    (patch,) = kubeadm_patches(made)
    assert (list(patch.fields), patch.flags) == (["serializeImagePulls"], ("--image-pull-progress-deadline=5m",))
    said = "# A flag, not a field: --image-pull-progress-deadline=5m belongs in nodeRegistration.kubeletExtraArgs."
    assert said in kubeadm_lines([patch])
    assert as_printed(kubeadm_document([patch]))["patches"][0]["flags"] == ["--image-pull-progress-deadline=5m"]


def test_the_plan_warns_that_kubeadm_rewrites_its_own_file_only() -> None:
    remarks = {remark.reference: remark.nodes for remark in plan(maxPods=60).remarks}
    assert remarks["kubeadm-rewrites"] == NAMES
    nodes = {name: plain(name, "1.33.4", "containerd") for name in NAMES}
    by_hand = build_plan(FOUND, POLICY, fleet(FOUND, nodes), dict.fromkeys(NAMES, settings(maxPods=60)), NAMES, "")
    assert "kubeadm-rewrites" not in {remark.reference for remark in by_hand.remarks}


def test_kubeadm_needs_no_patch() -> None:
    assert list(kubeadm_lines(kubeadm_patches(replace(plan(maxPods=60), nodes={}, groups=())))) == [
        "# no change edits a file that kubeadm writes: kubeadm needs no patch"
    ]


WORDS = (
    "1e9",
    "5E3",
    "0o17",
    "08",
    "0777",
    "y",
    "N",
    "on",
    "+.5",
    "1:30",
    "2026-11-29",
    "é",
    "# no",
    "a: b",
    "'",
    '"',
    "two\nlines\n",
    "a\u0085b",
)


def test_a_text_stays_a_text_for_a_kubelet() -> None:
    """A kubelet reads ``1e9``, ``08`` and ``y`` as a number or as true, and refuses its file then."""
    fields: dict[str, Value] = {"systemReserved": {word: word for word in WORDS}, "clusterDNS": [*WORDS]}
    patch = KubeadmPatch(fields, (), ("n1",))
    assert {name: read(patch.text.encode()).value[name] for name in fields} == fields  # type: ignore[index,call-overload]
    assert yaml.safe_load(patch.text)["systemReserved"] == fields["systemReserved"]
