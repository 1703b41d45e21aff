"""What kubelets of each minor refuse after validation, during their start."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rollout.kubelet import versions
from rollout.kubelet.configuration.outcome import File, Sources
from rollout.kubelet.configuration.startup import outcome

from .starts import CONFIG, HEAD, said, started


class Case(NamedTuple):
    """``fails`` and ``starts`` are minors; ``says`` is a part of the message of those that fail."""

    written: str
    says: str
    fails: tuple[int, ...]
    starts: tuple[int, ...]
    flags: tuple[str, ...] = ()


STATIC_CPUS = "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
FULL = "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
ACROSS = "cpuManagerPolicyOptions: {distribute-cpus-across-numa: 'true'}\n"
CLOSEST = "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
UNCORE = "cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: 'true'}\n"
ALPHA_TOPOLOGY = "featureGates: {TopologyManagerPolicyOptions: true}\n"
ALLOWLIST = "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ['{}']\n"
RESTRICTED = "topologyManagerPolicy: restricted\n"
STATIC_MEMORY = "memoryManagerPolicy: Static\nkubeReserved: {memory: 412Mi}\nsystemReserved: {memory: 512Mi}\n"

CASES = {
    "seccomp by default has a gate": Case("seccompDefault: true\n", "the SeccompDefault feature gate must be enabled", (22, 23, 24), (25, 27, 30)),
    "its gate may be off": Case("seccompDefault: true\nfeatureGates: {SeccompDefault: false}\n", "SeccompDefault feature gate", (22, 26), ()),
    "its gate may be on": Case("seccompDefault: true\nfeatureGates: {SeccompDefault: true}\n", "", (), (22, 24, 26)),
    "CPU options need a gate": Case(STATIC_CPUS + FULL, 'options map[full-pcpus-only:true] require feature gates', (22,), (23, 30, 36)),
    "CPU options need a policy": Case(FULL, "None policy: received unsupported options=map[full-pcpus-only:true]", (23, 30, 36), ()),
    "a CPU option may be alpha": Case(STATIC_CPUS + ACROSS, "CPU Manager Policy Alpha-level Options not enabled", (23, 32), (33, 36)),
    "an alpha option may be enabled": Case(STATIC_CPUS + ACROSS + "featureGates: {CPUManagerPolicyAlphaOptions: true}\n", "", (), (23, 32)),
    "a CPU option may be unknown": Case(STATIC_CPUS + "cpuManagerPolicyOptions: {fast: 'true'}\n", 'unknown CPU Manager Policy option: "fast"', (23, 36), ()),
    "a CPU option is a switch": Case(STATIC_CPUS + "cpuManagerPolicyOptions: {full-pcpus-only: 'much'}\n", 'bad value for option "full-pcpus-only"', (23, 36), ()),
    "CPU options may be in conflict": Case(
        STATIC_CPUS
        + "cpuManagerPolicyOptions: {distribute-cpus-across-numa: 'true', prefer-align-cpus-by-uncorecache: 'true'}\n",
        "can not be used at the same time", (34, 36), (),
    ),
    "topology options need a gate": Case(RESTRICTED + CLOSEST, "topology manager policy options map[prefer-closest-numa-nodes:true]", (26, 27), (28, 32)),
    "a topology option may be unknown": Case(RESTRICTED + "topologyManagerPolicyOptions: {near: 'true'}\n", 'unknown Topology Manager Policy option: "near"', (28, 36), ()),
    "topology options are checked without a policy too": Case("topologyManagerPolicyOptions: {near: 'true'}\n", "", (), (28, 36)),
    "topology options in the first minors": Case(ALPHA_TOPOLOGY + "topologyManagerPolicyOptions: {near: 'true'}\n", "unknown Topology Manager Policy option", (26, 27), ()),
    "their gate names its manager at first": Case(CLOSEST, 'require feature gates "TopologyManager", "TopologyManagerPolicyOptions" enabled', (26,), ()),
    "and not later": Case(CLOSEST, 'require feature gates "TopologyManagerPolicyOptions" enabled', (27,), ()),
    "a number of NUMA nodes": Case(RESTRICTED + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '8'}\n", "", (), (31, 35, 36)),
    "fewer NUMA nodes than by default": Case(
        RESTRICTED + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '7'}\n",
        'the minimum value of "max-allowable-numa-nodes" should not be less than 8', (31, 35, 36), (),
    ),
    "an invalid number of NUMA nodes": Case(
        RESTRICTED + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '0x10'}\n",
        'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "0x10": invalid syntax', (31, 35, 36), (),
    ),
    "a number of NUMA nodes that is too large": Case(
        RESTRICTED + f"topologyManagerPolicyOptions: {{max-allowable-numa-nodes: '{2**63}'}}\n", "value out of range", (31, 36), (),
    ),
    "the number of NUMA nodes in earlier minors": Case(
        RESTRICTED + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '8'}\n", "unknown Topology Manager Policy option", (28, 30), (),
    ),
    "a cache option becomes stable": Case(STATIC_CPUS + UNCORE + "featureGates: {CPUManagerPolicyBetaOptions: false}\n", "Beta-level Options not enabled", (34, 35), (36,)),
    "a cache option begins as alpha": Case(STATIC_CPUS + UNCORE, "Alpha-level Options not enabled", (32, 33), (34, 36)),
    "NUMA is beta up to the last minor": Case(STATIC_CPUS + ACROSS + "featureGates: {CPUManagerPolicyBetaOptions: false}\n", "Beta-level Options not enabled", (33, 36), ()),
    "static memory needs the reserved memory": Case(
        STATIC_MEMORY, 'the total amount "0" of type "memory" is not equal to the value "1Gi"', (22, 30, 36), (21,)
    ),
    "static memory with all that is reserved": Case(
        STATIC_MEMORY + "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n", "", (), (22, 30, 36)
    ),
    "a memory policy may be unknown": Case("memoryManagerPolicy: static\n", 'unknown policy: "static"', (22, 36), (21,)),
    "a memory policy of Windows": Case("memoryManagerPolicy: BestEffort\n", 'policy "BestEffort" is not available for platform "linux"', (32, 36), (21,)),
    "and of no system before": Case("memoryManagerPolicy: BestEffort\n", 'unknown policy: "BestEffort"', (22, 31), ()),
    "slashes in sysctls": Case("allowedUnsafeSysctls: [net/ipv4/x]\n", "are not known to be namespaced", (20, 22), (23, 30)),
    "a name of IPC that no kernel has": Case("allowedUnsafeSysctls: [kernel.shmall2]\n", 'the sysctls "kernel.shmall2" are not known to be namespaced', (29, 36), (20, 28)),
    "names of IPC": Case("allowedUnsafeSysctls: [kernel.shm*, kernel.msg*, kernel.sem, kernel.shm_rmid_forced]\n", "", (), (20, 28, 29, 36)),
    "a sysctl of the node": Case("allowedUnsafeSysctls: [vm.swappiness]\n", 'the sysctl "vm.swappiness" are', (20, 23, 28), ()),
    "is shown otherwise in later minors": Case("allowedUnsafeSysctls: ['kernel.*']\n", 'the sysctls "kernel." are', (29, 36), ()),
    "a pattern is shown whole": Case("allowedUnsafeSysctls: ['kernel.*']\n", 'the sysctls "kernel.*" are', (20, 28), ()),
    "what is no name of a sysctl": Case("allowedUnsafeSysctls: [net..a]\n", "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]", (23, 36), ()),
    "a share of memory that is none": Case("qosReserved: {memory: 101%}\n", 'failed to parse percentage "101%" for "memory" resource: percentage must be between 0 and 100', (27, 36), ()),
    "its error was shorter": Case("qosReserved: {memory: 101%}\n", "percentage must be between 0 and 100", (20, 26), ()),
    "an image without its registry": Case(ALLOWLIST.format("a"), "neither tag nor digest is accepted in an image reference: a", (35,), (36,)),
    "an image of a registry": Case(ALLOWLIST.format("docker.io/library/a") , "", (), (35, 36)),
    "an image in capitals": Case(ALLOWLIST.format("reg.io/A"), "failed to parse as an image name: repository name must be lowercase", (36,), ()),
    "an image in capitals for Docker": Case(ALLOWLIST.format("reg.io/A"), "failed to parse as an image name: invalid reference format: repository name (A) must be lowercase", (35,), ()),
    "an image with a tag": Case(ALLOWLIST.format("reg.io/a:1"), "neither tag nor digest is accepted", (35, 36), ()),
    "a slash is no image": Case(ALLOWLIST.format("/"), "failed to parse as an image name: invalid reference format", (35, 36), ()),
    "a digest that is none": Case(ALLOWLIST.format("a@sha256:0"), "failed to parse as an image name: invalid reference format", (35, 36), ()),
    "every registry": Case(ALLOWLIST.format("/*"), "at least registry hostname is required", (35, 36), ()),
    "a gate without those that it needs": Case(
        "", "failed to set feature gates from initial flags-based config: GracefulNodeShutdownBasedOnPodPriority is enabled",
        (35, 36), (34,), ("--feature-gates=GracefulNodeShutdown=false",),
    ),
    "an address in brackets": Case("clusterDNS: [fd00::]\n", "", (), (20, 30)),
    "processes in the root": Case("systemCgroups: /\ncgroupRoot: /\n", "system container cannot be root", (20, 30), ()),
    "two addresses of one family": Case("", "must contain either a single IP or a dual-stack pair", (21, 30), (), ("--node-ip=10.0.0.1,10.0.0.2",)),
    "two families": Case("", "dual-stack is disabled", (20,), (21, 30), ("--node-ip=10.0.0.1,fd00::1",)),
    "two families in a cloud": Case("", "dual-stack not supported", (24, 28), (29, 33), ("--cloud-provider=external", "--node-ip=10.0.0.1,fd00::1")),
    "a removed provider": Case("", "cloud provider", (27, 29), (26,), ("--cloud-provider=aws",)),
    "a provider that is removed later": Case("", "cloud provider", (29, 30, 31), (28,), ("--cloud-provider=vsphere",)),
    "a relative root": Case("", 'cannot find mount point for "rel/x"', (20, 36), (), ("--root-dir=rel//x",)),
    "no root": Case("", 'invalid root directory ""', (20, 36), (), ("--root-dir=",)),
    "another root": Case("", "", (), (20, 36), ("--root-dir=/var/lib/other",)),
    "a blank name": Case("", "empty hostname is invalid", (20, 36), (), ("--hostname-override= ",)),
    "an endpoint that is no socket": Case("", "only support unix socket endpoint", (20, 23), (), ("--container-runtime-endpoint=tcp://localhost:1",)),
    "images through no socket": Case("", "only support unix socket endpoint", (20, 26), (), ("--image-service-endpoint=tcp://localhost:1",)),
    "another protocol": Case("", 'protocol "http" not supported', (20, 36), (), ("--container-runtime-endpoint=http://localhost:1",)),
    "a socket without its scheme": Case("", "", (), (20, 36), ("--container-runtime-endpoint=/run/a.sock",)),
    "a runtime that is removed": Case("", 'unsupported CRI runtime: "docker"', (24, 26), (20, 23), ("--container-runtime=docker",)),
    "it is refused before any file is read": Case(
        "maxPods: -1\n", 'failed to validate kubelet flags: unsupported CRI runtime: "docker", only "remote" is currently supported',
        (24, 26), (), ("--container-runtime=docker",),
    ),
    "an empty endpoint is refused with the flags": Case(
        "", "failed to validate kubelet flags: the container runtime endpoint address was not specified or empty, use --container-runtime-endpoint to set",
        (26,), (), ("--container-runtime-endpoint=",),
    ),
    "no runtime": Case("", 'unsupported CRI runtime: ""', (20, 26), (), ("--container-runtime=",)),
    "a flag whose gate is off": Case("featureGates: {SeccompDefault: true}\n", "in order to use the --seccomp-default flag", (22, 24), (25, 28), ("--seccomp-default",)),
    "a flag whose gate is on": Case("", "", (), (22, 24), ("--seccomp-default", "--feature-gates=SeccompDefault=true")),
    "a share of more than all": Case("evictionHard: {imagefs.available: 101%}\n", "must be <= 100%: 101%", (23, 36), (20,)),
    "static memory without a threshold": Case(
        "memoryManagerPolicy: Static\nkubeReserved: {memory: 2Gi}\nevictionHard: {memory.available: 0%}\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 3Gi}}]\n", 'the total amount "3Gi" of type "memory"', (22, 36), (21,),
    ),
    "an empty map of topology options": Case("topologyManagerPolicyOptions: {}\n", "policy options map[] require feature gates", (26, 27), (28, 36)),
    "an empty map of CPU options": Case("cpuManagerPolicyOptions: {}\n", "policy options map[] require feature gates", (22,), (23, 36)),
    "no folder of credential providers": Case("", "plugin binary directory  did not exist", (24, 30, 36), (20, 23), ("--image-credential-provider-config=/a",)),
    "no file of credential providers": Case("", "credential provider config path is empty", (24, 30, 36), (20, 23), ("--image-credential-provider-bin-dir=/a",)),
    "both of them": Case("", "", (), (20, 24, 36), ("--image-credential-provider-bin-dir=/a", "--image-credential-provider-config=/b")),
    "a curve": Case("tlsCurvePreferences: [29, 4588]\n", "", (), (35, 36)),
    "an unknown curve": Case("tlsCurvePreferences: [29, 30]\n", "dependencies: curve preference 30 is not supported by the current Go version", (36,), (35,)),
    "a curve twice": Case("tlsCurvePreferences: [29, 29]\n", "duplicate curve preference 29", (36,), (35,)),
    "a number that no curve can have": Case("tlsCurvePreferences: [65536]\n", "curve preference 65536 is out of range (must be 1-65535)", (36,), (35,)),
    "an address with leading zeros": Case("address: 010.0.0.01\n", "", (), (20, 25, 36)),
    "the same in a flag": Case("", "", (), (20, 25, 36), ("--address=010.0.0.01", "--node-ip=010.0.0.1")),
    "an IPv4 address in IPv6 is one of IPv4": Case("", "must contain either a single IP", (24, 36), (), ("--node-ip=::ffff:10.0.0.1,10.0.0.2",)),
    "and pairs with one of IPv6": Case("", "", (), (24, 36), ("--node-ip=::ffff:10.0.0.1,fd00::1",)),
    "an address of three numbers": Case("address: 10.0.1\n", "listen tcp: lookup <nil>: no such host", (20, 36), ()),
    "a share in hexadecimal digits": Case("evictionHard: {memory.available: 0x1p3%, nodefs.available: 1_0%}\n", "", (), (20, 36)),
    "a share without digits": Case("evictionHard: {memory.available: e1%}\n", 'strconv.ParseFloat: parsing "e1": invalid syntax', (20, 36), ()),
    "a share that is no float32": Case("evictionMinimumReclaim: {memory.available: 1e39%}\n", 'parsing "1e39": value out of range', (20, 36), ()),
    "a taint without an effect": Case("registerWithTaints: [{key: a}]\n", "", (), (23, 36)),
    "a taint that is none": Case("registerWithTaints: [{key: a b, value: c, effect: NoExecute}]\n", "invalid taint: {a b c NoExecute <nil>}", (23, 36), ()),
    "an endpoint in the file that is no socket": Case("containerRuntimeEndpoint: tcp://localhost:1\n", "only support unix socket endpoint", (28, 36), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_whether_a_kubelet_starts(name: str) -> None:
    case = CASES[name]
    for minor in case.fails:
        found = started(f"1.{minor}.1", case.written, *case.flags)
        assert any(case.says in text for text in said(found)), (minor, found.messages)
    for minor in case.starts:
        found = started(f"1.{minor}.1", case.written, *case.flags)
        assert found.starts, (minor, found.messages)


@pytest.mark.parametrize(
    ("minor", "cgroup_v1", "starts"), [(29, True, True), (30, True, False), (30, False, True), (34, True, False)]
)
def test_limited_swap_needs_cgroup_v2(minor: int, cgroup_v1: bool, starts: bool) -> None:
    config = File(
        CONFIG, f"{HEAD}memorySwap: {{swapBehavior: LimitedSwap}}\nfeatureGates: {{NodeSwap: true}}\n".encode()
    )
    found = outcome(versions.known(f"1.{minor}.1"), Sources(config=config, cgroup_v1=cgroup_v1))
    assert found.starts is starts
    assert starts or "it is only supported with cgroupv2" in said(found)[0]


def test_the_gates_of_drop_ins_are_set_before_the_flags_override_them() -> None:
    """The defaults are set once more over the merged files (1.32), and panic over a gate that cannot be set."""
    flags, drop_in = ("--feature-gates=SidecarContainers=true",), "featureGates: {SidecarContainers: false}\n"
    found = started("1.36.1", "", *flags, drop_ins=(drop_in,))
    assert said(found)[0].startswith("panic: failed to merge global and in-flight KubeletConfiguration")
    assert "cannot set feature gate SidecarContainers to false, feature is locked to true" in said(found)[0]


@pytest.mark.parametrize(("version", "starts"), [("1.34.1", True), ("1.35.1", False), ("1.36.1", False)])
def test_a_gate_that_others_need_cannot_be_off_in_the_file_whatever_the_flags_set(version: str, starts: bool) -> None:
    gate = "GracefulNodeShutdown"
    found = started(version, f"featureGates: {{{gate}: false}}\n", f"--feature-gates={gate}=true")
    assert found.starts is starts
    wanted = f"GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [{gate}]"
    assert starts or any(wanted in text for text in said(found))


def test_an_empty_format_of_logs_is_text_only_in_a_file() -> None:
    for version in ("1.20.2", "1.24.1", "1.36.1"):
        assert started(version, "logging: {format: ''}\n").starts
        assert "nsupported log format" in said(started(version, "", "--logging-format="))[0]


def test_an_error_names_the_field_and_no_key_of_a_map() -> None:
    found = started("1.36.1", "kubeReserved: {cpu: 1}\n")
    assert (
        "cannot unmarshal number into Go struct field KubeletConfiguration.kubeReserved of type string"
        in said(found)[0]
    )
    limits = started("1.36.1", "reservedMemory: [{numaNode: 0, limits: {memory: true}}]\n")
    assert said(limits)[0].endswith(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )
