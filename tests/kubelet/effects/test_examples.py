"""The consequences that operators asked for, told by a plan: each on a node as the agent reports it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rollout.app.plan import build_plan
from rollout.core.model.plan import Plan
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.core.model.surroundings import Listing, Room, Swap
from rollout.core.plans.plan_text import plan_text
from tests.kubelet.nodes import (
    CONFIG_TEXT,
    POLICY,
    SURROUNDINGS,
    fleet,
    inventory,
    kubeadm,
    regular,
    settings,
    with_file,
)

CPU_STATE = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
STATE = '{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"pod":{"c":"2-5"}},"checksum":1}'
MEMORY = (
    "memoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\nevictionHard: {memory.available: 100Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]\n"
)


def node(config: str = "", version: str = "1.33.1", *files: FileState, **seen: Any) -> Snapshot:
    text = (
        CONFIG_TEXT
        if "evictionHard" not in config
        else CONFIG_TEXT.replace("evictionHard:\n  memory.available: 200Mi   # more than the default\n", "")
    )
    here = replace(
        kubeadm(version=version, runtime="containerd", config=text + config), surroundings=replace(SURROUNDINGS, **seen)
    )
    for state in files:
        here = with_file(here, state)
    return here


def planned(here: Snapshot, wanted: Mapping[str, Value], *accepted: str) -> Plan:
    found = inventory(1)
    (name,) = found.nodes
    asked = settings((), **wanted)
    policy = replace(POLICY, accepted=dict.fromkeys(accepted, ""))
    return build_plan(found, policy, fleet(found, {name: replace(here, node=name)}), {name: asked}, (name,), "")


def said(here: Snapshot, **wanted: Value) -> str:
    """The text of the plan; the node is changed."""
    made = planned(here, wanted)
    assert not made.left, made.left
    return plan_text(made, whole=True)


def refused(here: Snapshot, **wanted: Value) -> str:
    (left,) = planned(here, wanted).left
    return f"{left.reason} [{left.reference}]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("podPidsLimit", 500),
        ("seccompDefault", True),
        ("cpuCFSQuota", False),
        ("clusterDNS", ["10.96.0.11"]),
        ("podLogsDir", "/data/logs"),
        ("resolvConf", "/etc/other.conf"),
    ],
)
def test_what_only_later_pods_get(name: str, value: Value) -> None:
    assert f"note: {name}: only pods that are created later get it; running pods keep what they have" in said(
        node(), **{name: value}
    )


def test_several_of_them_are_one_note() -> None:
    text = said(node(), podPidsLimit=500, seccompDefault=True, cpuCFSQuota=False)
    assert text.count("note: ") == 1
    assert "note: cpuCFSQuota, podPidsLimit, seccompDefault: only pods that are created later get it" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("registerWithTaints", [{"key": "a", "effect": "NoSchedule"}]),
        ("--node-labels", "disk=ssd"),
        ("providerID", "x://y"),
    ],
)
def test_what_a_node_that_exists_keeps(name: str, value: Value) -> None:
    """No kubelet is restarted for nothing, and nothing counts as done that was not."""
    text = refused(node(), **{name: value})
    words = f"{name}: read only when the kubelet creates its Node object: a Node that exists keeps what it has"
    assert words in text
    assert text.endswith(
        f"`accept: [{name}]` in the playbook writes it for Nodes that are made later [no-effect-on-node]"
    )
    made = planned(node(), {name: value}, name)
    assert not made.left
    assert f"note: {words}" in plan_text(made, whole=True)
    beside = planned(node(), {name: value, "maxOpenFiles": 500_000})
    assert f"note: {words}" in plan_text(beside, whole=True), "the restart is for the other setting"


@pytest.mark.parametrize(
    ("name", "value"),
    [("--node-labels", "topology.kubernetes.io/zone=z2"), ("--node-labels", "a=b,node.kubernetes.io/instance-type=m5")],
)
def test_labels_that_a_kubelet_corrects_on_its_node(name: str, value: Value) -> None:
    assert not planned(node(), {name: value}).left


def test_a_kubelet_that_begins_to_register() -> None:
    assert not planned(node("registerNode: false\n"), {"registerNode": True}).left


def test_another_name_of_the_node() -> None:
    assert "the node registers as another Node" in refused(node(), **{"--hostname-override": "other"})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "registerNode",
            False,
            "registerNode: the kubelet no longer registers its Node; a deleted Node is not created again",
        ),
        ("enableServer", False, "enableServer: the kubelet serves nothing: logs, exec and metrics fail"),
        ("nodeLeaseDurationSeconds", 300, "the Node flaps between Ready and Unknown"),
    ],
)
def test_values_that_make_a_node_useless_are_refused_unless_accepted(name: str, value: Value, reason: str) -> None:
    text = refused(node(), **{name: value})
    assert reason in text
    assert text.endswith(f"`accept: [{name}]` in the playbook allows it [harmful-setting]")
    assert not planned(node(), {name: value}, name).left


def test_a_lease_within_the_node_controllers_grace_is_not_refused() -> None:
    assert "flaps" in refused(node(version="1.30.2"), nodeLeaseDurationSeconds=180)
    assert "flaps" not in said(node(), nodeLeaseDurationSeconds=180)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"serverTLSBootstrap": True}, "until someone approves each node's CSR"),
        ({"readOnlyPort": 10255}, "readable by everyone who reaches the port, without a login"),
        ({"healthzPort": 0}, "our gate healthz has nothing to ask"),
        ({"port": 10350}, "scrapers and firewalls still use the old port"),
        ({"enableDebuggingHandlers": False}, "our gate effectiveConfig has no /configz to ask"),
        ({"healthzBindAddress": "::"}, "/healthz is reachable from outside, without a login"),
        (
            {"authentication": {"anonymous": {"enabled": True}}},
            "everyone who reaches the kubelet's port counts as system:anonymous",
        ),
        (
            {"authorization": {"mode": "AlwaysAllow"}},
            "everyone who is authenticated may run commands in every container",
        ),
        (
            {"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "10s"},
            "a rollback does not undo: /etc/systemd/logind.conf.d/99-kubelet.conf",
        ),
        ({"containerLogMaxSize": "1Mi"}, "a rollback does not undo: rotated logs that were deleted"),
        (
            {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 70},
            "a disk that is fuller than this loses its unused images",
        ),
    ],
)
def test_what_is_said_of_a_value(wanted: Mapping[str, Value], words: str) -> None:
    assert words in said(node(), **wanted)


def test_a_reserved_cgroup_that_can_never_exist() -> None:
    text = refused(
        node(), kubeReservedCgroup="/system.slice/kubelet.service", enforceNodeAllocatable=["pods", "kube-reserved"]
    )
    assert "a path that ends in .service never exists and the kubelet does not start (kubernetes#110288)" in text


# What the node shows decides the rest.


def test_an_absent_cgroup_is_refused_and_one_that_is_there_is_not() -> None:
    wanted: dict[str, Value] = {
        "kubeReservedCgroup": "/kube.slice",
        "enforceNodeAllocatable": ["pods", "kube-reserved"],
    }
    assert (
        "kubeReservedCgroup: the control group /kube.slice is not on the node, so the kubelet would not start"
        in refused(node(), **wanted)
    )
    there = Listing((*SURROUNDINGS.cgroups.names, "/kube.slice")) if SURROUNDINGS.cgroups else Listing()
    assert "control group" not in said(node(cgroups=there), **wanted)
    assert "whether the control group /kube.slice is on the node is not known" in said(node(cgroups=None), **wanted)


def test_cpus_that_were_given_away_may_not_be_reserved() -> None:
    here = node(STATIC, "1.33.1", regular(CPU_STATE, STATE))
    assert "cpu_manager_state has given away CPUs that would be reserved, so the kubelet would not start" in refused(
        here, reservedSystemCPUs="0-3"
    )
    assert "cpu_manager_state" not in said(here, reservedSystemCPUs="0,6")
    assert "cpu_manager_state was not read" in said(node(STATIC), reservedSystemCPUs="0-3")


def test_strict_cpu_reservation_on_a_node_with_a_shared_pool_of_before() -> None:
    here = node(STATIC, "1.35.1", regular(CPU_STATE, STATE))
    assert "with strict-cpu-reservation cpu_manager_state may not have reserved CPUs" in refused(
        here, cpuManagerPolicyOptions={"strict-cpu-reservation": "true"}
    )


def test_memory_sums_that_differ_from_the_state_file() -> None:
    """The form is that of pkg/kubelet/cm/memorymanager/state: ``systemReserved`` of each NUMA node and kind, in bytes."""
    wanted: dict[str, Value] = {
        "kubeReserved": {"memory": "2Gi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2148Mi"}}],
    }
    as_now, as_wanted = (node(MEMORY, "1.33.1", regular(MEMORY_STATE, memory_state(mib))) for mib in (1124, 2148))
    assert "memory_manager_state has other sums of reserved memory" in refused(as_now, **wanted)
    assert "memory_manager_state" not in said(as_wanted, **wanted), "they are compared"
    assert "memory_manager_state was not read" in said(node(MEMORY), **wanted)


def memory_state(mib: int) -> str:
    table = {
        "total": 8 << 30,
        "systemReserved": mib << 20,
        "allocatable": (8 << 30) - (mib << 20),
        "reserved": 0,
        "free": 0,
    }
    none = dict.fromkeys(table, 0)
    numa = {"numberOfAssignments": 0, "memoryMap": {"memory": table, "hugepages-1Gi": none}, "cells": [0]}
    return json.dumps({"policyName": "Static", "machineState": {"0": numa}, "entries": {}, "checksum": 1})


@pytest.mark.parametrize(
    "machine", ['"x"', '{"0":{}}', '{"0":{"memoryMap":{"memory":{"systemReserved":"3Gi"}}}}', '{"0":{"memoryMap":[]}}']
)
def test_a_state_of_the_memory_manager_in_another_form_is_unknown(machine: str) -> None:
    here = node(MEMORY, "1.33.1", regular(MEMORY_STATE, f'{{"policyName":"Static","machineState":{machine}}}'))
    told = said(here, reservedMemory=[{"numaNode": 0, "limits": {"memory": "2148Mi"}}], kubeReserved={"memory": "2Gi"})
    assert "memory_manager_state was not understood" in told


@pytest.mark.parametrize(
    ("wanted", "seen", "words"),
    [
        (
            {"protectKernelDefaults": True},
            {"sysctls": {**SURROUNDINGS.sysctls, "kernel.panic": "0"}},
            "kernel.panic is 0, not 10, so the kubelet would not start",
        ),
        (
            {"failSwapOn": True},
            {"swaps": (Swap("/dev/sda2", "partition", 1000, 0),)},
            "swap is in use on the node, so the kubelet would not start",
        ),
        (
            {"imageServiceEndpoint": "unix:///run/none.sock"},
            {},
            "a program that listens at /run/none.sock is not on the node",
        ),
        ({"cgroupRoot": "/pods"}, {}, "the control group /pods is not on the node"),
        (
            {"evictionHard": {"nodefs.available": "70%"}},
            {},
            "less than 70% is free for nodefs.available, so pods would be evicted at once",
        ),
        ({"evictionHard": {"imagefs.available": "100Gi"}}, {}, "less than 100Gi is free for imagefs.available"),
    ],
)
def test_what_the_node_lacks_is_refused(wanted: dict[str, Value], seen: dict[str, Any], words: str) -> None:
    config = "failSwapOn: false\n" if "failSwapOn" in wanted else ""
    assert words in refused(node(config, **seen), **wanted)


@pytest.mark.parametrize(
    ("wanted", "seen", "words"),
    [
        ({"protectKernelDefaults": True}, {"sysctls": {}}, "could not be read; with another value"),
        ({"failSwapOn": True}, {"swaps": None}, "whether swap is in use is not known"),
        (
            {"imageServiceEndpoint": "unix:///run/none.sock"},
            {"sockets": None},
            "whether a program that listens at /run/none.sock is on the node is not known",
        ),
        (
            {"evictionHard": {"nodefs.available": "70%"}},
            {"rooms": ()},
            "how much is free for nodefs.available is not known",
        ),
        (
            {"evictionHard": {"memory.available": "90%"}},
            {},
            "how much is free for memory.available is not known; below 90% pods are evicted",
        ),
        (
            {"memorySwap": {"swapBehavior": "LimitedSwap"}},
            {"swaps": None},
            "whether swap is in use is not known; without swap no pod gets any",
        ),
        (
            {"userNamespaces": {"idsPerPod": 131072}},
            {},
            "whether the node has pods with user namespaces is not known; with one of another idsPerPod the kubelet would not start",
        ),
        ({"imageGCHighThresholdPercent": 90}, {"rooms": ()}, "how full the disk of images is, is not known"),
        ({"shutdownGracePeriod": "60s"}, {"inhibit_delay": None}, "whether systemd-logind runs is not known"),
        (
            {"tlsCertFile": "/etc/tls.crt", "tlsPrivateKeyFile": "/etc/tls.key"},
            {},
            "whether /etc/tls.crt is on the node is not known",
        ),
    ],
)
def test_what_was_not_observed_is_said_to_be_unknown(
    wanted: dict[str, Value], seen: dict[str, Any], words: str
) -> None:
    config = "failSwapOn: false\n" if {"failSwapOn", "memorySwap"} & wanted.keys() else ""
    text = said(node(config, **seen), **wanted)
    assert words in text
    assert "[needs-not-known]" in text


def test_a_disk_that_is_fuller_than_the_threshold() -> None:
    full = (Room("kubelet", "/var/lib/kubelet", "xfs", 1000, 100, 0, 0),)
    assert "the disk of images is at least 80 % full: unused images are deleted within 5 minutes" in said(
        node(rooms=full), imageGCHighThresholdPercent=80, imageGCLowThresholdPercent=70
    )


def test_a_node_that_an_older_agent_read_is_unknown_and_not_refused() -> None:
    here = replace(node(), surroundings=None)
    assert "[needs-not-known]" in said(here, evictionHard={"nodefs.available": "70%"})


def test_a_logind_that_bounds_the_shutdown() -> None:
    assert "logind's InhibitDelayMaxSec is shorter" in said(
        node(), shutdownGracePeriod="60s", shutdownGracePeriodCriticalPods="10s"
    )


def test_the_group_of_running_pods_is_compared_with_the_driver() -> None:
    made = planned(node(), {"cgroupDriver": "cgroupfs"}, "cgroupDriver")
    assert "the control groups of running pods were made by systemd" in plan_text(made, whole=True)


def test_two_thousand_nodes_have_one_line_for_each_consequence() -> None:
    found = inventory(200)
    nodes = {name: replace(node(), node=name, machine_id=name) for name in found.nodes}
    made = build_plan(
        found,
        POLICY,
        fleet(found, dict(nodes)),
        dict.fromkeys(found.nodes, settings(shutdownGracePeriod="60s", podPidsLimit=100)),
        tuple(found.nodes),
        "",
    )
    text = plan_text(made, whole=True)
    assert text.count("InhibitDelayMaxSec is shorter") == 1
    assert text.count("podPidsLimit: only pods that are created later") == 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("200Mi", "100Mi", False),
        ("200Mi", "300Mi", True),
        ("200Mi", "5%", True),
        ("5%", "4%", False),
        ("200Mi", "0%", False),
    ],
)
def test_only_a_threshold_of_memory_that_rises_may_evict(before: str, after: str, *, told: bool) -> None:
    here = node(f"evictionHard: {{memory.available: '{before}'}}\n")
    text = said(here, evictionHard={"memory.available": after})
    assert ("how much is free for memory.available" in text) is told


def test_a_shutdown_by_priority_needs_the_sum_of_its_seconds() -> None:
    def by(*seconds: int) -> Value:
        return [{"priority": at, "shutdownGracePeriodSeconds": each} for at, each in enumerate(seconds)]

    assert "InhibitDelayMaxSec is shorter" in said(node(), shutdownGracePeriodByPodPriority=by(3, 3))
    assert "InhibitDelayMaxSec is shorter" not in said(node(), shutdownGracePeriodByPodPriority=by(2, 3))
