"""What a run with a kubeconfig sees without a word in the playbook: evictions, lost devices, flapping nodes; and roles that are seen.

The playbook names no gates. The lab's kubelets evict by their own evictionHard and renew their lease by their own
nodeLeaseDurationSeconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, until
from tests.story import conftest
from tests.story.conftest import INVENTORY, Site, served
from tests.story.test_faults import FEW, begun, few, nothing_left, plan, policy, where
from tests.story.test_gates import applied, endpoints
from tests.story.test_lab_faults import PLENTY, troubles

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

__all__ = ["few"]  # the fixture

PULLS = "  imagePullProgressDeadline: 5m\n  serializeImagePulls: false\n"
BY_DEFAULT = "on by default with a kubeconfig: nodeReady, podsKept, devicesKept, nodesSteady"


def with_kubeconfig(site: Site, settings: str = PULLS, more: str = "") -> None:
    """The playbook with these settings, and a kubeconfig in the inventory."""
    policy(site, f"settings:\n{PULLS}", f"settings:\n{settings}{more}")
    endpoints(site, kubeconfig=str(site.lab / "kubeconfig"))


def planned(site: Site, *names: str) -> str:
    done = site.rollout("plan", "--cluster", "small", "--limit", ",".join(names), "--out", "p.json")
    assert done.code == 0, done.out + done.err
    return done.out


def test_mass_evictions_halt_a_run(few: Site) -> None:
    """evictionHard of 90 % on nodes with 60 % free: the kubelets start, and evict what runs on them."""
    with_kubeconfig(few, "  evictionHard: {memory.available: 90%}\n", "accept: [evictionHard]\n")
    before = few.everything(*FEW)
    assert BY_DEFAULT in planned(few, *FEW)
    code, said = applied(few)
    assert code == 3, said
    assert {reference for _, reference in troubles(few).values()} == {"gate-podsKept"}
    message = where(few)["troubles"][0]["message"]
    assert "1 pod evicted: default/web-small-001 Failed (Evicted: The node was low on resource: memory." in message
    assert "MemoryPressure since the change: an eviction threshold is reached" in message
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)


def test_a_node_that_flaps_fails_although_it_is_ready_most_of_the_time(few: Site) -> None:
    """Its kubelet renews a lease of 300 s every 75 s, later than the node controller waits (case 36)."""
    with_kubeconfig(few, "  nodeLeaseDurationSeconds: 300\n", "accept: [nodeLeaseDurationSeconds]\n")
    before = few.everything("small-001")
    assert BY_DEFAULT in planned(few, "small-001")
    code, said = applied(few)
    assert code in (3, 4), said
    assert troubles(few) == {"small-001": ("reverted", "gate-nodeReady")}
    message = where(few)["troubles"][0]["message"]
    assert "its lease lasts 300 s (nodeLeaseDurationSeconds) and is renewed every 75 s" in message
    assert few.everything("small-001") == before
    nothing_left(few, "small-001")


@pytest.fixture
def with_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The same six nodes, with GPUs."""
    labels = "labels: {kubeletVersion: v1.20.15, containerRuntime: dockershim"
    gpus = f'{labels}, nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "4"'
    monkeypatch.setattr(conftest, "INVENTORY", INVENTORY.replace(labels, gpus))
    with served(tmp_path, "small-[001-003,061-063]") as made:
        yield made


def test_a_lost_gpu_is_seen_and_the_node_reverts(with_gpus: Site) -> None:
    site = with_gpus
    with_kubeconfig(site)
    policy(site, "budgets: {wave: 2, rack: 2, fleet: 2}", f"budgets: {PLENTY}")
    policy(site, "guard: 60s", "guard: 180s")  # its plugin has 60 s to register
    assert BY_DEFAULT in planned(site, *FEW)
    site.fault("small-002", "devices-lost")
    code, said = applied(site)
    assert code == 4, said
    assert troubles(site) == {"small-002": ("reverted", "gate-devicesKept")}
    assert "devices lost: nvidia.com/gpu capacity 4 → 0" in where(site)["troubles"][0]["message"]
    assert [site.is_new(name) for name in FEW] == [True, False, True, True, True, True]


def test_a_node_with_static_pods_of_the_control_plane_is_one_whatever_the_inventory_says(few: Site) -> None:
    manifests = few.node("small-002") / "etc/kubernetes/manifests"
    manifests.mkdir(parents=True, exist_ok=True)
    for name in ("etcd.yaml", "kube-apiserver.yaml"):
        (manifests / name).write_text("apiVersion: v1\nkind: Pod\n")
    seen = "of the control plane, although the inventory does not say so: it has etcd.yaml, kube-apiserver.yaml in /etc/kubernetes/manifests"
    said = planned(few, *FEW)
    assert seen in said
    assert "[control-plane-seen]" in said
    assert "skipped: 1 node  small-002" in said
    policy(few, "waves: [canary, rest]", "waves: [canary, rest]\ncontrolPlane: true")
    made = plan(few, ",".join(FEW))
    assert [(wave["name"], wave["nodes"], wave["at_once"]) for wave in made["waves"]][-1] == (
        "control plane",
        ["small-002"],
        1,
    )
    code, out = applied(few)
    assert code == 0, out
    assert few.is_new("small-002")
    back = few.rollout("rollback", where(few)["run"], "--yes")
    assert back.code == 0, back.out + back.err
    assert where(few)["waves"][-1]["name"] == "control plane"
    assert not any(few.is_new(name) for name in FEW)


def test_nodes_of_earlier_waves_that_are_not_ready_halt_a_run_before_its_next_wave(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [canary, {upTo: 50%, hold: true}, rest]")
    endpoints(few, kubeconfig=str(few.lab / "kubeconfig"))
    planned(few, *FEW)
    with begun(few, "apply", "p.json", "--yes") as run:
        until(lambda: "holds after wave 50 %" in few.rollout("status").out, PATIENCE, "half of them have the change")
        changed = [name for name in FEW if few.is_new(name)]
        few.fault(",".join(changed), "not-ready")
        assert few.rollout("continue", "--yes", "--reason", "on we go").code == 0
        assert run.wait(PATIENCE) == 3
    said = few.rollout("status").out
    assert "gate 'nodesSteady': 3 of 3 changed nodes were not always Ready: small-" in said
    assert "Ready is False" in said
    assert len(changed) == 3


def test_a_playbook_switches_a_default_gate_off_by_name_only(few: Site) -> None:
    policy(few, "soak: 600ms", "soak: 600ms\ngates: {without: [podsKept]}")
    endpoints(few, kubeconfig=str(few.lab / "kubeconfig"))
    said = planned(few, "small-001")
    assert "on by default with a kubeconfig: nodeReady, devicesKept, nodesSteady" in said
    assert "the playbook switches off gates that are on by default: podsKept [gates-without]" in said
    few.fault("small-001", "pod-rejected")
    code, out = applied(few)
    assert code == 0, out
