"""Consequences of changes, as data: a node as it is now, the change, and what the plan answers. ``docs/kubelets.md`` names the table.

Each case is a node of its own in one fleet on the lab. ``words`` are in the plan's text about that node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a plan does with the node."""

    REFUSED = "refused"  # it is left alone
    SAID = "said"  # it is changed, and the plan says what happens
    UNKNOWN = "unknown"  # it is changed, and the plan says what would decide it
    PLAIN = "plain"  # it is changed, and nothing of it is said: the words are absent


@dataclass(frozen=True)
class Case:
    """``settings``: of the node. ``config``: lines of its kubelet's file; ``edited``: lines that the running kubelet has not read. ``files``: path → text; a path that ends in ``/`` is a folder.

    ``links``: path → target. ``gone``: paths that are removed. ``listens``: sockets that a process listens at.
    """

    verdict: Verdict
    words: tuple[str, ...]
    settings: Mapping[str, Any]
    config: str = ""
    edited: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    version: str = "v1.35.7"
    runtime: str = "containerd"


def _case(verdict: Verdict, *words: str, wants: Mapping[str, Any], **more: Any) -> Case:
    return Case(verdict, words, wants, **more)


CPU_STATE = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"
CGROUPS = "/sys/fs/cgroup"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
GIVEN = {CPU_STATE: '{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"uid":{"c":"2-5"}},"checksum":1}'}
MEMORY = (
    "memoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1774Mi}}]\n"
)
SWAP = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 2097148 0 -2\n"
LATER = "only pods that are created later get it; running pods keep what they have"
REFUSED, SAID, UNKNOWN, PLAIN = Verdict.REFUSED, Verdict.SAID, Verdict.UNKNOWN, Verdict.PLAIN


def _memory_state(mib: int) -> Mapping[str, str]:
    table = {"total": 8 << 30, "systemReserved": mib << 20, "allocatable": 0, "reserved": 0, "free": 0}
    numa = {"numberOfAssignments": 0, "memoryMap": {"memory": table}, "cells": [0]}
    text = json.dumps({"policyName": "Static", "machineState": {"0": numa}, "entries": {}, "checksum": 1})
    return {MEMORY_STATE: text}


_GROW_MEMORY = {
    "kubeReserved": {"memory": "2Gi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2798Mi"}}],
}

CASES: Mapping[str, Case] = {
    # State files of the kubelet's managers.
    "reserved CPUs grow into CPUs that pods have": _case(
        REFUSED,
        "cpu_manager_state has given away CPUs that would be reserved, so the kubelet would not start (kubernetes#110478)",
        wants={"reservedSystemCPUs": "0-3"}, config=STATIC, files=GIVEN,
    ),
    "reserved CPUs grow into CPUs that are shared": _case(
        PLAIN, "cpu_manager_state", wants={"reservedSystemCPUs": "0-1,6"}, config=STATIC, files=GIVEN,
    ),
    "reserved CPUs grow where the state was not read": _case(
        UNKNOWN, "cpu_manager_state was not", wants={"reservedSystemCPUs": "0-3"}, config=STATIC,
        files={CPU_STATE: '{"policyName":"static","defaultCpuSet":"0-1,x","entries":{"uid":{"c":"2-5"}},"checksum":1}'},
    ),
    "reserved CPU of the kubelet grows on a node with given CPUs": _case(
        UNKNOWN, "which CPUs the kubelet would reserve is not known",
        wants={"kubeReserved": {"cpu": "3"}}, config="cpuManagerPolicy: static\nkubeReserved: {cpu: '1'}\n", files=GIVEN,
    ),
    "strict CPU reservation with reserved CPUs in the shared pool": _case(
        REFUSED, "with strict-cpu-reservation cpu_manager_state may not have reserved CPUs in its shared pool",
        wants={"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}, config=STATIC, files=GIVEN,
    ),
    "an edit by hand made the CPU manager static over the state of none": _case(
        REFUSED, 'configured policy "static" differs from state checkpoint policy "none"',
        wants={"podPidsLimit": 100}, edited=STATIC,
        files={CPU_STATE: '{"policyName":"none","defaultCpuSet":"","checksum":1}'},
    ),
    "an edit by hand made the memory manager static over the state of None": _case(
        REFUSED, 'configured policy "Static" differs from state checkpoint policy "None"',
        wants={"podPidsLimit": 100}, edited=MEMORY,
        files={MEMORY_STATE: '{"policyName":"None","machineState":{},"entries":{},"checksum":1}'},
    ),
    "reserved memory with other sums than the state": _case(
        REFUSED, "memory_manager_state has other sums of reserved memory, so the kubelet would not start",
        wants=_GROW_MEMORY, config=MEMORY, files=_memory_state(1774),
    ),
    "reserved memory with the sums of the state": _case(
        PLAIN, "memory_manager_state", wants=_GROW_MEMORY, config=MEMORY, files=_memory_state(2798),
    ),
    "another length of user namespaces under pods that have some": _case(
        REFUSED, "the node has pods with user namespaces of another idsPerPod, so the kubelet would not start: drain it first",
        wants={"userNamespaces": {"idsPerPod": 131072}}, labels={"userNamespaces": "pods"},
    ),
    "another length of user namespaces under pods that have none": _case(
        PLAIN, "pods with user namespaces", wants={"userNamespaces": {"idsPerPod": 131072}},
    ),
    # Control groups.
    "kube-reserved is enforced in a group that is absent": _case(
        REFUSED, "the control group /kube.slice is not on the node, so the kubelet would not start",
        wants={"kubeReservedCgroup": "/kube.slice", "enforceNodeAllocatable": ["pods", "kube-reserved"]},
    ),
    "kube-reserved is enforced in a group that is there": _case(
        PLAIN, "control group",
        wants={"kubeReservedCgroup": "/kube.slice", "enforceNodeAllocatable": ["pods", "kube-reserved"]},
        files={f"{CGROUPS}/kube.slice/": ""},
    ),
    "system-reserved is enforced in a nested group that is absent": _case(
        REFUSED, "the control group /system.slice/system-reserved.slice is not on the node",
        wants={"systemReservedCgroup": "/system.slice/system-reserved.slice", "enforceNodeAllocatable": ["pods", "system-reserved"]},
    ),
    "a reserved group that is a service under the systemd driver": _case(
        REFUSED, "a path that ends in .service never exists and the kubelet does not start (kubernetes#110288)",
        wants={"kubeReservedCgroup": "/system.slice/kubelet.service", "enforceNodeAllocatable": ["pods", "kube-reserved"]},
    ),
    "a system group that is a service under the systemd driver": _case(
        REFUSED, "a path that ends in .service never exists",
        wants={"systemReservedCgroup": "/system.slice/sshd.service", "enforceNodeAllocatable": ["pods", "system-reserved"]},
    ),
    "a root of control groups that is absent": _case(
        REFUSED, "the control group /pods is not on the node, so the kubelet would not start", wants={"cgroupRoot": "/pods"},
    ),
    "another driver of control groups": _case(
        REFUSED, "running pods stay in the cgroups of the old driver", wants={"cgroupDriver": "cgroupfs"},
        version="v1.33.4",
    ),
    # The Node object.
    "the kubelet no longer registers its Node": _case(
        REFUSED, "registerNode: the kubelet no longer registers its Node; a deleted Node is not created again",
        wants={"registerNode": False},
    ),
    "taints of the Node": _case(
        REFUSED, "registerWithTaints: read only when the kubelet creates its Node object", "restarted for nothing",
        "[no-effect-on-node]", wants={"registerWithTaints": [{"key": "a", "effect": "NoSchedule"}]},
    ),
    "labels of the Node": _case(
        REFUSED, "--node-labels: read only when the kubelet creates its Node object", wants={"--node-labels": "disk=ssd"},
    ),
    "labels of the Node that the kubelet corrects": _case(
        SAID, "--node-labels: read only when", wants={"--node-labels": "topology.kubernetes.io/zone=z2"},
    ),
    "taints of the Node beside another change": _case(
        SAID, "registerWithTaints: read only when the kubelet creates its Node object",
        wants={"registerWithTaints": [{"key": "a", "effect": "NoSchedule"}], "maxOpenFiles": 500000},
    ),
    "the provider's id of the Node": _case(REFUSED, "providerID: read only when", wants={"providerID": "x://y"}),
    "another name of the node": _case(
        REFUSED, "the node registers as another Node", wants={"--hostname-override": "other"},
    ),
    "a lease that outlives the node controller's grace": _case(
        REFUSED, "later than the node controller's 50 s: the Node flaps between Ready and Unknown",
        wants={"nodeLeaseDurationSeconds": 300},
    ),
    "a lease beyond the grace of an older control plane": _case(
        REFUSED, "later than the node controller's 40 s", wants={"nodeLeaseDurationSeconds": 180}, version="v1.30.2",
    ),
    "a lease within the grace": _case(PLAIN, "flaps", wants={"nodeLeaseDurationSeconds": 180}),
    # Room.
    "a hard threshold of the disk above what is free": _case(
        REFUSED, "less than 100Ti is free for nodefs.available, so pods would be evicted at once",
        wants={"evictionHard": {"nodefs.available": "100Ti", "memory.available": "750Mi", "imagefs.available": "8%"}},
    ),
    "a hard threshold of the images' disk above what is free": _case(
        REFUSED, "less than 100Ti is free for imagefs.available",
        wants={"evictionHard": {"imagefs.available": "100Ti", "memory.available": "750Mi", "nodefs.available": "8%"}},
    ),
    "a soft threshold above what is free": _case(
        REFUSED, "so pods would be evicted after the grace period",
        wants={"evictionSoft": {"nodefs.available": "100Ti"}, "evictionSoftGracePeriod": {"nodefs.available": "1m"}},
    ),
    "a hard threshold of memory of which nothing is known": _case(
        UNKNOWN, "how much is free for memory.available is not known; below 90% pods are evicted",
        wants={"evictionHard": {"memory.available": "90%", "nodefs.available": "8%", "imagefs.available": "8%"}},
    ),
    "a hard threshold of all memory": _case(
        REFUSED, "memory.available is never above 100%, so all pods would be evicted",
        wants={"evictionHard": {"memory.available": "100%", "nodefs.available": "8%", "imagefs.available": "8%"}},
    ),
    "a lower hard threshold of memory": _case(
        PLAIN, "memory.available is", wants={"evictionHard": {"memory.available": "700Mi", "nodefs.available": "8%", "imagefs.available": "8%"}},
    ),
    "a soft threshold of process ids": _case(
        UNKNOWN, "how much is free for pid.available is not known",
        wants={"evictionSoft": {"pid.available": "50%"}, "evictionSoftGracePeriod": {"pid.available": "1m"}},
    ),
    "images are not deleted on a disk with room": _case(
        PLAIN, "the disk of images is at least",
        wants={"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 70},
        files={"/var/lib/containerd/.disk": "xfs 4096 26214400 20971520 0 0\n"},
    ),
    "inodes below a hard threshold": _case(
        REFUSED, "less than 5% is free for nodefs.inodesFree, so pods would be evicted at once",
        wants={"evictionHard": {"nodefs.inodesFree": "5%", "nodefs.available": "8%", "memory.available": "750Mi", "imagefs.available": "8%"}},
        files={"/var/lib/kubelet/.disk": "ext2/ext3 4096 26214400 20971520 1000000 20000\n"},
    ),
    "images are deleted on a disk that is full": _case(
        SAID, "the disk of images is at least 80 % full: unused images are deleted within 5 minutes, and pulled again",
        wants={"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 70},
        files={"/var/lib/containerd/.disk": "xfs 4096 26214400 4194304 0 0\n"},
    ),
    # Ends of a node.
    "a graceful shutdown that logind does not wait for": _case(
        SAID, "logind's InhibitDelayMaxSec is shorter", "a rollback does not undo: /etc/systemd/logind.conf.d/99-kubelet.conf",
        wants={"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "10s"},
    ),
    "a graceful shutdown by priority that logind does not wait for": _case(
        SAID, "shutdownGracePeriodByPodPriority: logind's InhibitDelayMaxSec is shorter",
        wants={"shutdownGracePeriodByPodPriority": [
            {"priority": 0, "shutdownGracePeriodSeconds": 4}, {"priority": 1000, "shutdownGracePeriodSeconds": 3},
        ]},
    ),
    "a graceful shutdown without logind": _case(
        UNKNOWN, "whether systemd-logind runs is not known",
        wants={"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "10s"},
        gone=("/run/systemd/units/invocation:systemd-logind.service",),
    ),
    # What the kubelet serves, and access to it.
    "serving certificates that nobody approves": _case(
        SAID, "logs, exec and metrics fail until someone approves each node's CSR", wants={"serverTLSBootstrap": True},
    ),
    "the kubelet serves nothing": _case(
        REFUSED, "the kubelet serves nothing: logs, exec and metrics fail", wants={"enableServer": False},
    ),
    "another port": _case(SAID, "scrapers and firewalls still use the old port", wants={"port": 10350}),
    "an address that the API server does not reach": _case(
        SAID, "logs, exec, metrics and /configz fail where the API server reaches the node at another address",
        wants={"address": "127.0.0.1"},
    ),
    "no health endpoint": _case(SAID, "our gate healthz has nothing to ask", wants={"healthzPort": 0}),
    "a health endpoint for everyone": _case(
        SAID, "/healthz is reachable from outside, without a login", wants={"healthzBindAddress": "0.0.0.0"},  # noqa: S104 (what the test is about)
    ),
    "no debugging handlers": _case(
        SAID, "our gate effectiveConfig has no /configz to ask", wants={"enableDebuggingHandlers": False},
    ),
    "anonymous access": _case(
        SAID, "everyone who reaches the kubelet's port counts as system:anonymous",
        wants={"authentication": {"anonymous": {"enabled": True}}},
    ),
    "authorization for everyone": _case(
        SAID, "everyone who is authenticated may run commands in every container",
        wants={"authorization": {"mode": "AlwaysAllow"}},
    ),
    "a port without a login": _case(
        SAID, "readable by everyone who reaches the port, without a login", wants={"readOnlyPort": 10255},
    ),
    "scrapers that log in by a token": _case(
        SAID, "tokens are no longer accepted: scrapers that use one get no metrics",
        wants={"authentication": {"webhook": {"enabled": False}}},
    ),
    "scrapers of the port without a login": _case(
        SAID, "scrapers of the read-only port get no answer any more", wants={"readOnlyPort": 0}, config="readOnlyPort: 10255\n",
    ),
    "a Node that shows changes late": _case(
        SAID, "the Node shows a change only that late", wants={"nodeStatusUpdateFrequency": "1m"},
    ),
    # Files and sockets.
    "a CA that is not there": _case(
        REFUSED, "/etc/other/ca.crt is not on the node, so the kubelet would not start",
        wants={"authentication": {"x509": {"clientCAFile": "/etc/other/ca.crt"}}},
    ),
    "a CA that is there": _case(
        PLAIN, "/etc/other/ca.crt is", wants={"authentication": {"x509": {"clientCAFile": "/etc/other/ca.crt"}}},
        files={"/etc/other/ca.crt": "x"},
    ),
    "a CA behind a link": _case(
        UNKNOWN, "whether /etc/other/ca.crt is on the node is not known",
        wants={"authentication": {"x509": {"clientCAFile": "/etc/other/ca.crt"}}}, links={"/etc/other/ca.crt": "nowhere"},
    ),
    "a CA by its flag": _case(
        REFUSED, "/etc/other/ca.crt is not on the node", wants={"--client-ca-file": "/etc/other/ca.crt"},
    ),
    "a serving certificate that is not there": _case(
        REFUSED, "tlsPrivateKeyFile: /etc/tls.key is not on the node, so the kubelet would not start",
        wants={"tlsCertFile": "/etc/tls.crt", "tlsPrivateKeyFile": "/etc/tls.key"}, files={"/etc/tls.crt": "x"},
    ),
    "an image service that nobody serves": _case(
        REFUSED, "a program that listens at /run/images.sock is not on the node, so the kubelet would not start",
        wants={"imageServiceEndpoint": "unix:///run/images.sock"},
    ),
    "an image service that is served": _case(
        PLAIN, "a program that listens", wants={"imageServiceEndpoint": "unix:///run/images.sock"},
        listens=("/run/images.sock",),
    ),
    "a kubeconfig that is not there": _case(
        REFUSED, "--kubeconfig: /etc/other/kubelet.conf is not on the node, so the kubelet would not start",
        wants={"--kubeconfig": "/etc/other/kubelet.conf"},
    ),
    "credentials of registries by a file that is not there": _case(
        REFUSED, "--image-credential-provider-config: /etc/credentials.yaml is not on the node",
        wants={"--image-credential-provider-config": "/etc/credentials.yaml", "--image-credential-provider-bin-dir": "/opt/bin"},
        files={"/opt/bin/": ""},
    ),
    "name servers of a file that is not there": _case(
        REFUSED, "/etc/other.conf is not on the node, so new pods would not start", wants={"resolvConf": "/etc/other.conf"},
    ),
    "another root of the kubelet": _case(
        REFUSED, "the kubelet starts with an empty folder", wants={"--root-dir": "/data/kubelet"},
    ),
    # The kernel and swap.
    "kernel settings that differ": _case(
        REFUSED, "vm.overcommit_memory is 0, not 1, so the kubelet would not start", wants={"protectKernelDefaults": True},
        files={"/proc/sys/vm/overcommit_memory": "0\n"},
    ),
    "kernel settings as the kubelet wants them": _case(
        PLAIN, "so the kubelet would not start", wants={"protectKernelDefaults": True},
    ),
    "swap on a node that may have none": _case(
        REFUSED, "swap is in use on the node, so the kubelet would not start", wants={"failSwapOn": True},
        config="failSwapOn: false\n", files={"/proc/swaps": SWAP},
    ),
    "cgroup v1 on a node that may not have it": _case(
        REFUSED, "the kubelet would not start", "cgroup v1", wants={"failCgroupV1": True}, version="v1.33.4",
        gone=(f"{CGROUPS}/cgroup.controllers",), files={f"{CGROUPS}/systemd/system.slice/": ""},
    ),
    "swap for pods on a node with none": _case(
        SAID, "no swap is in use on the node, so no pod gets any",
        wants={"memorySwap": {"swapBehavior": "LimitedSwap"}}, config="failSwapOn: false\n",
    ),
    # Only later pods.
    "how many pods keep a limit": _case(
        SAID, "2 running pods on 1 node keep the old podPidsLimit until they are recreated [pods-keep-values]",
        wants={"podPidsLimit": 700},
    ),
    "a limit of processes": _case(SAID, f"podPidsLimit: {LATER}", wants={"podPidsLimit": 500}),
    "a seccomp profile for all": _case(SAID, f"seccompDefault: {LATER}", wants={"seccompDefault": True}),
    "swap for pods": _case(
        SAID, f"memorySwap: {LATER}", wants={"memorySwap": {"swapBehavior": "LimitedSwap"}}, config="failSwapOn: false\n",
    ),
    "no CPU limits": _case(SAID, f"cpuCFSQuota: {LATER}", wants={"cpuCFSQuota": False}),
    "other name servers": _case(SAID, f"clusterDNS: {LATER}", wants={"clusterDNS": ["10.96.0.11"]}),
    "another folder of logs": _case(
        SAID, f"podLogsDir: {LATER}", "a rollback does not undo: logs in the new folder", wants={"podLogsDir": "/data/logs"},
    ),
    "smaller logs": _case(
        SAID, "a rollback does not undo: rotated logs that were deleted", wants={"containerLogMaxSize": "1Mi"},
    ),
    "fewer logs": _case(
        SAID, "a rollback does not undo: rotated logs that were deleted", wants={"containerLogMaxFiles": 2},
    ),
    # Running pods.
    "more CPU for the system than the node has": _case(
        REFUSED, "more cpu is reserved for the system, the kubelet and evictions than the node has, so the kubelet would not start",
        wants={"systemReserved": {"cpu": "33"}},
    ),
    "more memory for the system than the node has": _case(
        REFUSED, "more memory is reserved", wants={"kubeReserved": {"memory": "200Gi"}},
    ),
    "much memory for the system": _case(PLAIN, "is reserved", wants={"kubeReserved": {"memory": "100Gi"}}),
    "a stricter topology": _case(
        SAID, "a stricter value can make running pods fail re-admission", wants={"topologyManagerPolicy": "single-numa-node"},
    ),
    "fewer pods than run": _case(REFUSED, "OutOfpods", wants={"maxPods": 1}),
    "other static pods": _case(
        REFUSED, "static pods of the old folder are stopped", wants={"staticPodPath": "/etc/kubernetes/other"},
    ),
    "a kubelet that ends": _case(REFUSED, "the kubelet would not start: failed to run Kubelet: runonce failed", wants={"runOnce": True}, version="v1.30.2"),
}  # fmt: skip
