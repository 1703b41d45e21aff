"""The rules about what a change needs of its node: each looks only at changes of its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rollout.core.model.pods import PlacedPod
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import FileState
from rollout.core.model.surroundings import Listing, NodeSurroundings, Room, Swap
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.effects.needs import RULES, needs, rules_concerned
from tests.kubelet.nodes import SURROUNDINGS, absent, regular
from tests.sampling import examples

_AMOUNTS = st.sampled_from(["100Mi", "10%", "100%", "", 5, None])
_EVICTIONS = st.dictionaries(st.sampled_from(["memory.available", "nodefs.available", "imagefs.inodesFree"]), _AMOUNTS)
_RESERVED = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2Gi"]))
_PATHS = st.sampled_from(["", "/etc/ca.crt", "/var/lib/kubelet/pki/kubelet.crt", "/kube.slice"])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "authentication": st.fixed_dictionaries({"x509": st.fixed_dictionaries({"clientCAFile": _PATHS})}),
    "tlsCertFile": _PATHS,
    "resolvConf": _PATHS,
    "kubeReservedCgroup": _PATHS,
    "systemReservedCgroup": _PATHS,
    "cgroupRoot": _PATHS,
    "enforceNodeAllocatable": st.lists(st.sampled_from(["pods", "kube-reserved", "system-reserved"]), max_size=2),
    "cgroupDriver": st.sampled_from(["systemd", "cgroupfs"]),
    "imageServiceEndpoint": st.sampled_from(["", "unix:///run/containerd/containerd.sock", "unix:///run/x.sock"]),
    "protectKernelDefaults": st.booleans(),
    "failSwapOn": st.booleans(),
    "cpuManagerPolicy": st.sampled_from(["none", "static"]),
    "cpuManagerPolicyOptions": st.fixed_dictionaries({"strict-cpu-reservation": st.sampled_from(["true", "false"])}),
    "reservedSystemCPUs": st.sampled_from(["", "0-1", "0-3", "x"]),
    "memoryManagerPolicy": st.sampled_from(["None", "Static"]),
    "reservedMemory": st.sampled_from([None, [], [{"numaNode": 0, "limits": {"memory": "1Gi"}}]]),
    "kubeReserved": _RESERVED,
    "systemReserved": _RESERVED,
    "evictionHard": _EVICTIONS,
    "evictionSoft": _EVICTIONS,
    "imageGCHighThresholdPercent": st.sampled_from([30, 85, 100]),
    "shutdownGracePeriod": st.sampled_from(["0s", "30s"]),
    "shutdownGracePeriodByPodPriority": st.sampled_from([None, [{"priority": 0, "shutdownGracePeriodSeconds": 60}]]),
    "memorySwap": st.fixed_dictionaries({"swapBehavior": st.sampled_from(["NoSwap", "LimitedSwap"])}),
    "userNamespaces": st.fixed_dictionaries({"idsPerPod": st.sampled_from([65536, 131072])}),
}
FLAGS = st.dictionaries(st.sampled_from(["--kubeconfig", "--cloud-config"]), _PATHS.filter(bool))


@st.composite
def changes(draw: st.DrawFn) -> tuple[NodeValues, NodeValues]:
    """Values of a kubelet, and the same with a few others."""
    minor = draw(st.sampled_from([20, 30, 33, 36]))
    before = draw(st.fixed_dictionaries({}, optional=VALUES))
    altered = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=3))
    after = {**before, **{name: draw(VALUES[name]) for name in altered}}
    old, new = draw(FLAGS), draw(FLAGS)
    return NodeValues(minor, before, old, None, {}), NodeValues(
        minor, after, draw(st.sampled_from([old, new])), None, {}
    )


SEEN = st.one_of(
    st.none(),
    st.just(SURROUNDINGS),
    st.builds(
        lambda **other: replace(SURROUNDINGS, **other),
        cgroups=st.sampled_from([None, Listing(), Listing(("/kubepods.slice",)), Listing(("/kubepods",), whole=False)]),
        sockets=st.sampled_from([None, Listing()]),
        sysctls=st.sampled_from([{}, {"kernel.panic": "0"}]),
        swaps=st.sampled_from([None, (), (Swap("/dev/sda2", "partition", 1, 0),)]),
        rooms=st.sampled_from([(), (Room("kubelet", "/var/lib/kubelet", "xfs", 1000, 10, 1000, 10),)]),
        inhibit_delay=st.sampled_from([None, 1.0]),
    ),
)
STATE = regular("/var/lib/kubelet/cpu_manager_state", '{"policyName":"static","defaultCpuSet":"0-1"}')
MEMORY = regular("/var/lib/kubelet/memory_manager_state", '{"machineState":{"0":{"memoryMap":{}}}}')
FILES = st.lists(st.sampled_from([STATE, MEMORY, absent("/etc/ca.crt"), regular("/etc/ca.crt", "x")]), max_size=3)
PODS = st.sampled_from([None, (), (PlacedPod("n", "shop/a", "", (), own_users=True),)])


@hypothesis_settings(max_examples=examples(400), deadline=None)
@given(changes(), SEEN, FILES, PODS)
def test_a_rule_needs_nothing_where_none_of_its_settings_is_altered(
    values: tuple[NodeValues, NodeValues],
    seen: NodeSurroundings | None,
    states: list[FileState],
    pods: tuple[PlacedPod, ...] | None,
) -> None:
    files = {state.path: state for state in states}
    concerned = rules_concerned(*values)
    assert needs(concerned, *values, files, seen, pods) == needs(RULES, *values, files, seen, pods)


def test_a_change_of_other_settings_concerns_no_rule() -> None:
    hard: Value = {"memory.available": "1Gi"}
    before, after = ({"serializeImagePulls": serial, "evictionHard": hard} for serial in (True, False))
    assert rules_concerned(NodeValues(30, before, {}, None, {}), NodeValues(30, after, {}, None, {})) == ()
