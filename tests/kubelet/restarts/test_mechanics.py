"""What a daemon-reload and a restart do to running containers: refused, accepted with a wave of its own, or not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollout.app.plan import build_plan
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Change, Plan, Standing
from rollout.core.model.playbook import Policy
from rollout.core.model.pods import ContainerRequest, PlacedPod
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Process, Service, Snapshot, UnitState
from rollout.core.model.surroundings import Listing, UnitProcesses
from rollout.core.plans.history import Around
from rollout.core.plans.plan_text import plan_text
from rollout.kubelet.restarts.mechanics import NodeAtWork, harms
from tests.kubelet.nodes import (
    CONFIG_TEXT,
    CRI_DOCKER,
    POLICY,
    SURROUNDINGS,
    fleet,
    inventory,
    kubeadm,
    plain,
    settings,
    with_unit,
)
from tests.kubelet.rancher_nodes import rke2

FOUND = inventory(3, per_rack=3)
NAMES = tuple(FOUND.nodes)
GPUS = replace(SURROUNDINGS, devices=Listing(("/dev/nvidia0", "/dev/nvidiactl")))
STATIC = f"{CONFIG_TEXT}cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
ACCEPTED = replace(POLICY, accepted={"gpu-lost-at-reload": ""})
REFERENCE = "gpu-lost-at-reload"
FLAG = {"__pod_infra_container_image": "pause:3.9"}
"""A setting that is a flag only: in a plain unit it needs our drop-in, and a daemon-reload."""


def live(name: str, **resources: str) -> LiveNode:
    room = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110", **resources}
    pairs = tuple(room.items())
    return LiveNode(
        name=name, uid=name, created="", addresses=(), labels={}, unschedulable=False, taints=(), kubelet_version="v1.30.4",
        runtime="", os_image="", ready="True", capacity=pairs, allocatable=pairs,
    )  # fmt: skip


def pod(name: str, *, on: str = NAMES[0], **requests: str) -> PlacedPod:
    return PlacedPod(on, name, "2026-11-20T10:00:00Z", (ContainerRequest(tuple(requests.items())),))


def planned(
    snapshots: Mapping[str, Snapshot],
    wanted: Mapping[str, Value] = FLAG,
    *,
    policy: Policy = POLICY,
    around: Around | None = None,
    found: Inventory = FOUND,
) -> Plan:
    nodes = {name: replace(each, node=name, machine_id=name) for name, each in snapshots.items()}
    asked = settings((), **wanted)
    around = around or Around()
    return build_plan(
        found, policy, fleet(found, dict(nodes)), dict.fromkeys(nodes, asked), tuple(nodes), "", around=around
    )


def one(here: Snapshot, wanted: Mapping[str, Value] = FLAG, **how: object) -> Plan:
    return planned({NAMES[0]: here}, wanted, **how)  # type: ignore[arg-type]


def told(made: Plan, reference: str = REFERENCE) -> str:
    return "\n".join(each.text for each in made.consequences if each.reference == reference)


def on_plain_unit(version: str = "1.30.4", config: str = CONFIG_TEXT, **seen: object) -> Snapshot:
    around = replace(SURROUNDINGS, **seen)  # type: ignore[arg-type]
    return replace(plain(version=version, runtime="containerd", config=config), surroundings=around)


def with_gpus(version: str = "1.30.4", config: str = CONFIG_TEXT) -> Snapshot:
    return on_plain_unit(version, config, devices=GPUS.devices)


def test_a_reload_on_a_node_with_gpus_is_refused_with_what_to_do_otherwise() -> None:
    (left,) = one(with_gpus()).left
    assert (left.standing, left.reference) == (Standing.REFUSED, REFERENCE)
    assert left.reason == (
        "a daemon-reload can take GPUs from running containers until they are recreated (nvidia-container-toolkit#48): the"
        " node has /dev/nvidia*. 90-rollout.conf needs the reload; a kubelet field, or a"
        " flag in an environment file, does not. Or evict the pods with GPUs first, or recreate them afterwards."
        " `accept: [gpu-lost-at-reload]` in the playbook allows it"
    )
    assert left.reason in plan_text(one(with_gpus())), "a terminal shows all of it"


def test_an_accepted_reload_is_a_side_effect_and_its_nodes_have_a_wave_of_their_own_after_all_workers() -> None:
    nodes = {NAMES[0]: with_gpus(), NAMES[1]: with_gpus(), NAMES[2]: on_plain_unit()}
    made = planned(nodes, policy=ACCEPTED)
    assert made.left == ()
    assert [(wave.name, wave.nodes) for wave in made.waves] == [
        ("canary", (NAMES[2],)),
        ("devices at risk, canary", (NAMES[0],)),
        ("devices at risk", (NAMES[1],)),
    ]
    assert "can take GPUs from running containers until they are recreated" in told(made)
    assert "[gpu-lost-at-reload]" in plan_text(made)


def test_a_form_without_a_reload_asks_for_nothing() -> None:
    """The same flag has its home in the environment file of kubeadm's layout, and a field is in the configuration."""
    by_file = replace(kubeadm(version="1.30.4", runtime="containerd"), surroundings=GPUS)
    for here, wanted in ((by_file, FLAG), (with_gpus(), {"serializeImagePulls": False})):
        made = one(here, wanted)
        assert made.left == ()
        assert told(made) == told(made, "daemon-reload") == ""
        assert made.waves[0].name == "canary"


def test_a_reload_is_told_with_its_file_also_on_nodes_without_devices() -> None:
    made = one(on_plain_unit())
    assert told(made) == ""
    assert told(made, "daemon-reload") == (
        "systemctl daemon-reload: systemd reads all unit files again, because"
        " /etc/systemd/system/kubelet.service.d/90-rollout.conf changes; so does a revert"
    )


def test_a_node_that_does_not_show_its_devices_is_not_known_and_not_refused() -> None:
    for devices in (None, Listing((), whole=False)):
        made = one(on_plain_unit(devices=devices))
        assert made.left == ()
        assert told(made).startswith(
            "a daemon-reload can take GPUs from running containers; whether the node has GPUs is not known"
        )
        assert made.waves[0].name == "canary"


@pytest.mark.parametrize(
    ("resources", "requests", "evidence"),
    [
        ({"nvidia.com/gpu": "8"}, {}, "nvidia.com/gpu"),
        ({"nvidia.com/mig-1g.5gb": "7", "rdma/hca": "1"}, {}, "nvidia.com/mig-1g.5gb"),
        ({}, {"nvidia.com/gpu": "1"}, "nvidia.com/gpu"),
        ({"nvidia.com/gpu": "0"}, {}, ""),
        ({"vpc.amazonaws.com/pod-eni": "9"}, {"vpc.amazonaws.com/pod-eni": "1"}, ""),
        ({"kubernetes.io/batch-cpu": "4000"}, {"cpu": "1"}, ""),
    ],
)
def test_devices_are_seen_by_the_api_server_too(
    resources: dict[str, str], requests: dict[str, str], evidence: str
) -> None:
    around = Around(live=(live(NAMES[0], **resources),), pods=(pod("ml/a", **requests),), pods_not_asked="")
    left = one(on_plain_unit(), around=around).left
    assert [entry.reason.partition("#48): ")[2].partition(". ")[0] for entry in left] == (
        [f"the node has {evidence}"] if evidence else []
    )


@pytest.mark.parametrize(
    "name",
    [
        "devices.kubevirt.io/kvm",
        "smarter-devices/fuse",
        "intel.com/sriov_netdevice",
        "rdma/hca",
        "amd.com/gpu",
        "x.org/nvidia.com",
    ],
)
def test_another_extended_resource_is_said_and_not_refused(name: str) -> None:
    """Most device plugins name their devices to the runtime, which then has rules for them."""
    by_capacity = Around(live=(live(NAMES[0], **{name: "2"}),), pods=(), pods_not_asked="")
    by_pod = replace(by_capacity, live=(live(NAMES[0]),), pods=(pod("vm/a", **{name: "1"}),))
    for around in (by_capacity, by_pod):
        made = one(on_plain_unit(), around=around)
        assert made.left == ()
        assert told(made) == (
            "a daemon-reload can take devices that the runtime does not know from running containers: the node has"
            f" {name}, and it is not known whether the runtime knows the device"
        )
        assert made.waves[0].name == "canary", "no wave of its own"


def test_other_devices_beside_gpus_are_no_evidence_of_the_refusal() -> None:
    around = Around(live=(live(NAMES[0], **{"rdma/hca": "1"}),), pods=(), pods_not_asked="")
    (left,) = one(with_gpus(), around=around).left
    assert "the node has /dev/nvidia*. " in left.reason
    assert "rdma" not in left.reason
    assert "the node has rdma/hca, and it is not known" in told(one(with_gpus(), policy=ACCEPTED, around=around))


def test_accepted_pods_with_devices_are_named() -> None:
    there = (pod("ml/a", **{"nvidia.com/gpu": "1"}), pod("web/b", cpu="1"), pod("ml/c", **{"nvidia.com/gpu": "2"}))
    around = Around(live=(live(NAMES[0], **{"nvidia.com/gpu": "8"}),), pods=there, pods_not_asked="")
    text = told(one(with_gpus(), policy=ACCEPTED, around=around))
    assert "2 pods have devices now: ml/a, ml/c. After the change look into each" in text
    alone = replace(around, pods=there[:2])
    assert "1 pod has a device now: ml/a." in told(one(with_gpus(), policy=ACCEPTED, around=alone))


@pytest.mark.parametrize(
    ("version", "cgroups", "config", "harm"),
    [
        ("1.30.4", ("/kubepods",), CONFIG_TEXT, ""),
        ("1.30.4", ("/kubepods.slice",), CONFIG_TEXT.replace("systemd", "cgroupfs"), "a daemon-reload can take"),
        ("1.27.4", (), CONFIG_TEXT.replace("systemd", "cgroupfs"), ""),
        ("1.30.4", (), CONFIG_TEXT.replace("systemd", "cgroupfs"), "a daemon-reload, if systemd manages control groups (not known), can take"),
        ("1.30.4", (), CONFIG_TEXT, "a daemon-reload can take"),
    ],
)  # fmt: skip
def test_without_the_systemd_driver_a_reload_takes_nothing(
    version: str, cgroups: tuple[str, ...], config: str, harm: str
) -> None:
    """The control groups of pods show the driver; from 1.28 on the kubelet may have it from its runtime."""
    here = replace(with_gpus(version, config), surroundings=replace(GPUS, cgroups=Listing(cgroups)))
    left = one(here).left
    known = "kubepods.slice or /sys/fs/cgroup/kubepods then shows what manages control groups"
    assert all((known in each.reason) is ("not known" in harm) for each in left)
    assert [harm in entry.reason for entry in left] == ([True] if harm else [])


OLD_RUNTIMES = (
    "a restart with the static CPU manager, if runc is older than its PR 2994 or crun than its PR 1614 (not known),"
)


def test_a_restart_with_the_static_cpu_manager_is_said_on_a_node_with_gpus_and_never_refused() -> None:
    """Versions of runc and crun decide it, which the node does not show; current ones leave device rules alone."""
    wanted = {"serializeImagePulls": False}
    made = one(with_gpus(config=STATIC), wanted)
    assert made.left == ()
    assert told(made) == f"{OLD_RUNTIMES} can take GPUs from running containers: the node has /dev/nvidia*"
    assert made.waves[0].name == "canary", "no wave of its own"
    assert told(one(on_plain_unit(config=STATIC), wanted)) == ""
    assert told(one(on_plain_unit(config=STATIC, devices=None), wanted)) == (
        f"{OLD_RUNTIMES} can take GPUs from running containers; whether the node has GPUs is not known"
    )


def test_of_both_causes_the_reload_alone_is_refused() -> None:
    (left,) = one(with_gpus(config=STATIC)).left
    assert left.reason.startswith("a daemon-reload can take GPUs")
    assert "static CPU manager" not in left.reason
    accepted = told(one(with_gpus(config=STATIC), policy=ACCEPTED))
    assert accepted.splitlines()[0].startswith("a daemon-reload can take GPUs")
    assert accepted.splitlines()[1].startswith(OLD_RUNTIMES)


def test_a_defect_that_was_looked_for_on_the_node_is_not_said_in_general_too() -> None:
    """Without its pods, both rows of the table are all that is known."""
    around = Around(live=(live(NAMES[0], **{"nvidia.com/gpu": "8"}),), pods=(), pods_not_asked="")
    computed = one(with_gpus(), policy=ACCEPTED, around=around)
    alone = one(on_plain_unit(devices=None), {"serializeImagePulls": False})
    for name in ("nvidia-devices-lost-at-reload", "kubelet-init-devices-rejected"):
        assert name not in plan_text(computed, whole=True)
    assert "kubelet-init-devices-rejected may apply" in told(alone, "known-defects-kept")


# Containers in the control group of a runtime's unit.


def over_cri_dockerd(mode: str | None, *inside: UnitProcesses, known: bool = True) -> Snapshot:
    here = kubeadm(version="1.30.4", runtime="cri-dockerd")
    old = here.measurement.services[CRI_DOCKER]
    properties = {**old.unit.properties, **({} if mode is None else {"KillMode": mode})}
    service = Service(UnitState(CRI_DOCKER, properties), Process(900, old.process.command_line if old.process else ()))
    measured = replace(here.measurement, services={CRI_DOCKER: service})
    return replace(here, measurement=measured, surroundings=replace(SURROUNDINGS, processes=inside if known else None))


DEADLINE = {"imagePullProgressDeadline": "5m"}
DAEMON = UnitProcesses(CRI_DOCKER, "cri-dockerd", 1)
SHIMS = UnitProcesses(CRI_DOCKER, "containerd-shim", 30)


@pytest.mark.parametrize("mode", ["control-group", "mixed"])
@pytest.mark.parametrize("name", ["containerd-shim", "conmon", "conmonrs"])
def test_a_restart_that_would_kill_shims_is_refused(mode: str, name: str) -> None:
    (left,) = one(over_cri_dockerd(mode, DAEMON, replace(SHIMS, name=name)), DEADLINE).left
    assert left.reference == "containers-killed"
    assert left.reason == (
        f"a restart of cri-docker.service ends running containers: their {name} processes are in its control group, and"
        f" KillMode={mode} kills all of it. Set KillMode=process in a drop-in of the unit first, or drain the node by hand."
        " `accept: [containers-killed]` in the playbook allows it"
    )


@pytest.mark.parametrize(
    "here",
    [
        over_cri_dockerd("process", DAEMON, SHIMS),
        over_cri_dockerd("none", DAEMON, SHIMS),
        over_cri_dockerd("control-group", DAEMON, UnitProcesses("containerd.service", "containerd-shim", 30)),
        over_cri_dockerd("control-group", DAEMON, UnitProcesses(CRI_DOCKER, "other", 2)),
        over_cri_dockerd("process", known=False),
    ],
)
def test_a_restart_that_leaves_every_shim_alone_is_not_refused_and_nothing_is_said(here: Snapshot) -> None:
    made = one(here, DEADLINE)
    assert made.left == ()
    assert told(made, "containers-killed") == ""


@pytest.mark.parametrize(
    ("here", "lacking"),
    [
        (over_cri_dockerd("control-group", known=False), "which processes are in its control group is not known"),
        (
            over_cri_dockerd("mixed", replace(DAEMON, count=2000)),
            "which processes are in its control group is not known",
        ),
        (over_cri_dockerd(None, DAEMON, SHIMS), "its KillMode is not known"),
        (over_cri_dockerd(None), "which processes are in its control group is not known"),
    ],
)
def test_what_a_restart_would_kill_is_not_known(here: Snapshot, lacking: str) -> None:
    made = one(here, DEADLINE)
    assert made.left == ()
    assert told(made, "containers-killed").startswith(
        f"a restart of cri-docker.service: {lacking}. With KillMode=control-group"
    )


def test_a_change_of_the_kubelet_alone_restarts_no_runtime() -> None:
    made = one(over_cri_dockerd("control-group", DAEMON, SHIMS), {"serializeImagePulls": False})
    assert (made.left, told(made, "containers-killed")) == ((), "")


@pytest.mark.parametrize(("mode", "told"), [("control-group", "control-group"), ("mixed", "mixed"), ("", "unknown")])
def test_a_restart_of_rke2_that_would_kill_its_shims_is_refused(mode: str, told: str) -> None:
    (left,) = one(with_unit(rke2(), KillMode=mode), {"maxParallelImagePulls": 5}).left
    assert left.reference == "containers-killed"
    assert left.reason.startswith(
        f"a restart of rke2-agent.service ends running containers: their shims are processes of that unit, and its KillMode is {told}."
        " Set KillMode=process in a drop-in"
    )
    policy = replace(POLICY, accepted={"containers-killed": "drained by hand"})
    assert one(with_unit(rke2(), KillMode=mode), {"maxParallelImagePulls": 5}, policy=policy).left == ()
    assert one(rke2(), {"maxParallelImagePulls": 5}).left == ()


def test_accepted_it_is_a_side_effect() -> None:
    policy = replace(POLICY, accepted={"containers-killed": "drained by hand"})
    made = one(over_cri_dockerd("mixed", DAEMON, SHIMS), DEADLINE, policy=policy)
    assert made.left == ()
    assert told(made, "containers-killed").endswith("KillMode=mixed kills all of it (accepted: drained by hand)")


# Units as their makers ship them.


def harms_of(unit: str, mode: str, *names: str, restarted: str = "") -> list[str]:
    """What a restart of ``restarted`` does where these processes are in the control group of ``unit``."""
    plain_node = kubeadm(version="1.34.4", runtime="containerd")
    service = Service(UnitState(unit, {"KillMode": mode}), Process(1, (names[0],)))
    inside = tuple(UnitProcesses(unit, name, 1) for name in names)
    measured = replace(plain_node.measurement, services={unit: service})
    here = replace(plain_node, measurement=measured, surroundings=replace(SURROUNDINGS, processes=inside))
    return [each.verdict for each in harms(NodeAtWork(here, Change(units=(restarted or unit,)), None))]


@pytest.mark.parametrize(
    ("unit", "mode", "names", "verdicts"),
    [
        # systemctl status of an rke2-server: the kubelet, containerd and each shim are in its group, and its unit keeps them
        ("rke2-server.service", "process", ("rke2", "containerd", "kubelet", "containerd-shim"), []),
        # bottlerocket PR 652: containerd.service with KillMode=mixed
        ("containerd.service", "mixed", ("containerd", "containerd-shim"), ["refused"]),
        # contrib/systemd/crio.service has no KillMode, and conmon has scopes of its own
        ("crio.service", "control-group", ("crio",), []),
        # cri-o#2745, #2479: with the cgroupfs manager conmon stays in crio.service
        ("crio.service", "control-group", ("crio", "conmon"), ["refused"]),
        # containerd's own unit (containerd.service): KillMode=process, Delegate=yes
        ("containerd.service", "process", ("containerd", "containerd-shim"), []),
        # docker.service since moby PR 23636
        ("docker.service", "process", ("dockerd", "docker-proxy"), []),
    ],
)
def test_units_as_their_makers_ship_them(unit: str, mode: str, names: tuple[str, ...], verdicts: list[str]) -> None:
    assert harms_of(unit, mode, *names) == verdicts


def test_a_unit_that_the_agent_did_not_read_is_not_known() -> None:
    assert harms_of(
        "containerd.service", "process", "containerd", restarted="snap.microk8s.daemon-containerd.service"
    ) == ["unknown"]
