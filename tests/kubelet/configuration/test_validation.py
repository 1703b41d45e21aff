"""Validation, with the kubelet's own texts, and refusals during the start."""

from __future__ import annotations

import pytest

from rollout.kubelet import versions
from rollout.kubelet.configuration.feature_gates import known_gates, required
from rollout.kubelet.configuration.outcome import File, MessageLevel, Sources
from rollout.kubelet.configuration.startup import outcome

from .starts import CONFIG, HEAD, references, said, started

AHEAD = "failed to validate kubelet configuration, error: "
PANIC = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
WRONG = "invalid configuration: "


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("registryPullQPS: -1", "registryPullQPS (--registry-qps) -1 must not be a negative number"),
        ("registryBurst: -1", "registryBurst (--registry-burst) -1 must not be a negative number"),
        ("eventBurst: -1", "eventBurst (--event-burst) -1 must not be a negative number"),
        ("maxPods: -1", "maxPods (--max-pods) -1 must not be a negative number"),
        ("healthzPort: 65536", "healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive"),
        ("readOnlyPort: -1", "readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive"),
        ("oomScoreAdj: 1001", "oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"),
        ("imageGCHighThresholdPercent: 101",
         "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive"),
        ("imageGCLowThresholdPercent: 85",
         "imageGCLowThresholdPercent (--image-gc-low-threshold) 85 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85"),
        ("nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds must be greater than 0"),
        ("systemCgroups: /a", "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"),
        ("hairpinMode: x", 'option "x" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'),
    ],
)  # fmt: skip
def test_refused_by_every_minor(written: str, text: str) -> None:
    assert said(started("1.20.2", written)) == [WRONG + text]
    assert said(started("1.34.1", written)) == [AHEAD + WRONG + text]


@pytest.mark.parametrize(
    ("written", "version", "text"),
    [
        ("nodeStatusMaxImages: -2", "1.20.2", "nodeStatusMaxImages (--node-status-max-images) must be -1 or greater"),
        ("nodeStatusMaxImages: -2", "1.24.1", "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"),
        ("topologyManagerPolicy: x", "1.20.2", "topologyManagerPolicy non-allowable value: x"),
        ("topologyManagerPolicy: x", "1.31.1",
         'topologyManagerPolicy (--topology-manager-policy) "x" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]'),
        ("cpuCFSQuotaPeriod: 50ms", "1.20.2", "cpuCFSQuotaPeriod {50ms} requires feature gate CustomCPUCFSQuotaPeriod"),
        ("cpuCFSQuotaPeriod: 10us\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}", "1.26.1",
         "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {10µs} must be between 1ms and 1sec, inclusive"),
        ("shutdownGracePeriod: 30s", "1.20.2",
         "Specifying ShutdownGracePeriod or ShutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"),
        ("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 40s", "1.31.1",
         "shutdownGracePeriodCriticalPods {40s} must be <= shutdownGracePeriod {30s}"),
        ("shutdownGracePeriod: 500ms", "1.31.1", "shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec"),
        ("cgroupsPerQOS: false", "1.30.1",
         "enforceNodeAllocatable (--enforce-node-allocatable) is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"),
        ("cgroupsPerQOS: false", "1.31.1",
         'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in enforceNodeAllocatable (--enforce-node-allocatable)'),
        ("enforceNodeAllocatable: [kube-reserved]", "1.20.2",
         "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when 'kube-reserved' contained in enforceNodeAllocatable (--enforce-node-allocatable)"),
        ("enforceNodeAllocatable: [pods, pods]", "1.31.1",
         'duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)'),
        ("maxParallelImagePulls: 0", "1.27.1", "maxParallelImagePulls 0 must be a positive number"),
        ("maxParallelImagePulls: 2\nserializeImagePulls: true", "1.36.3",
         "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false"),
        ("imageMaximumGCAge: 1m", "1.31.1", "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s"),
        ("imageMinimumGCAge: -1m", "1.36.3", "imageMinimumGCAge -1m0s must not be negative"),
        ("containerLogMaxFiles: 1", "1.33.1", "containerLogMaxFiles must be greater than 1"),
        ("containerLogMonitorInterval: 2s", "1.30.1",
         "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"),
        ("podLogsDir: /var/log/pods/", "1.30.1", 'pod logs path "/var/log/pods/" must be normalized'),
        ("runOnce: true", "1.32.1", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"),
        ("memorySwap: {swapBehavior: UnlimitedSwap}", "1.30.1",
         'memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"'),
        ("imagePullCredentialsVerificationPolicy: AlwaysVerify", "1.33.1",
         "`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"),
        ("enableSystemLogQuery: true", "1.31.1", "NodeLogQuery feature gate is required for enableSystemLogHandler"),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 10s}", "1.32.1",
         "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"),
    ],
)  # fmt: skip
def test_refused_by_one_minor(written: str, version: str, text: str) -> None:
    ahead = AHEAD if version >= "1.24" else ""
    assert said(started(version, written)) == [ahead + WRONG + text]


@pytest.mark.parametrize(
    ("written", "version", "text"),
    [
        ("showHiddenMetricsForVersion: '1.30'", "1.35.1",
         "--show-hidden-metrics-for-version must be omitted or have the value '1.34'. Only the previous minor version is allowed"),
        ("showHiddenMetricsForVersion: '1.30'", "1.36.1",
         """invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the value '1.35'; only the previous minor version is allowed"""),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 9223372036854775807ns}", "1.36.1",
         WRONG + "CrashLoopBackOff.MaxContainerRestartPeriod (got: 9.223372036854776e+09 seconds) must be set between 1s and 300s"),
    ],
)  # fmt: skip
def test_the_whole_text_of_an_error(written: str, version: str, text: str) -> None:
    assert said(started(version, written)) == [AHEAD + text]


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("runtimeRequestTimeout: 0s", "1.20.2"),
        ("shutdownGracePeriod: -5s", "1.20.2"),
        ("shutdownGracePeriod: 30s", "1.22.1"),
        ("imageMinimumGCAge: -1m", "1.35.1"),
        ("maxParallelImagePulls: 2", "1.36.3"),
        ("enforceNodeAllocatable: []\ncgroupsPerQOS: false", "1.20.2"),
        ("enforceNodeAllocatable: [none]\ncgroupsPerQOS: false", "1.31.1"),
        ("memorySwap: {swapBehavior: LimitedSwap}", "1.30.1"),
        ("imagePullCredentialsVerificationPolicy: AlwaysVerify", "1.35.1"),
    ],
)
def test_accepted_by_one_minor(written: str, version: str) -> None:
    assert said(started(version, written)) == []


def test_all_mistakes_are_reported_with_their_places() -> None:
    found = started("1.20.2", "maxPods: -1\nregistryBurst: -1\n")
    assert [(message.place and message.place.line) for message in found.messages] == [3, 4]


def test_a_mistake_of_a_flag_has_no_place() -> None:
    found = started("1.20.2", "maxPods: 5\n", "--max-pods=-1")
    assert said(found) == [f"{WRONG}maxPods (--max-pods) -1 must not be a negative number"]
    (refused,) = (message for message in found.messages if message.level is MessageLevel.FATAL)
    assert (refused.place, refused.hint) == (None, "`--max-pods=-1` sets `maxPods`")


@pytest.mark.parametrize(
    ("minor", "cgroup_v1", "written", "starts"),
    [
        (34, True, "", True),
        (34, True, "failCgroupV1: true\n", False),
        (35, True, "", False),
        (35, True, "failCgroupV1: false\n", True),
        (35, False, "", True),
        (35, None, "", True),
    ],
)
def test_cgroup_v1_is_refused_by_default_from_1_35_on(
    minor: int, cgroup_v1: bool | None, written: str, starts: bool
) -> None:
    sources = Sources(config=File(CONFIG, (HEAD + written).encode()), cgroup_v1=cgroup_v1)
    assert outcome(versions.known(f"1.{minor}.1"), sources).starts is starts


NEEDY = [(name, required(name, 35)) for name in known_gates(35) if required(name, 35)]


@pytest.mark.parametrize(
    ("name", "needed"), [(name, needed[0]) for name, needed in NEEDY if not known_gates(35)[needed[0]].locked]
)
def test_a_gate_needs_others_from_1_35_on(name: str, needed: str) -> None:
    written = f"featureGates: {{{name}: true, {needed}: false}}\n"
    assert any(
        text.startswith(f"{PANIC}{name} is enabled, but depends on features")
        for text in said(started("1.35.1", written))
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("kubeReserved: {cpus: '1'}", 'cannot reserve "cpus" resource'),
        ("kubeReserved: {cpu: '-1'}", 'resource quantity for "cpu" cannot be negative: -1'),
        ("kubeReserved: {memory: 1GB}", "quantities must match the regular expression"),
        ("systemReserved: {memory: 1MiM}", "unable to parse quantity's suffix"),
        ("evictionHard: {memory: 1Gi}", "unsupported eviction signal memory"),
        ("evictionHard: {memory.available: '0'}", "eviction threshold memory.available must be positive: 0"),
        ("evictionHard: {memory.available: 5x%}", 'strconv.ParseFloat: parsing "5x": invalid syntax'),
        ("evictionHard: {memory.available: 150%}", "invalid Node Allocatable configuration"),
        ("evictionHard: {nodefs.available: 150%}", "invalid Node Allocatable configuration"),
        (
            "evictionSoft: {memory.available: 1Gi}",
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        ("evictionSoftGracePeriod: {memory.available: 1d}", 'time: unknown unit "d" in duration "1d"'),
        (
            "evictionMinimumReclaim: {memory.available: 0%}",
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
        ),
        ("qosReserved: {memory: '50'}", "percentage expected, got '50'"),
        ("cpuManagerPolicy: dynamic", 'unknown policy: "dynamic"'),
        ("cpuManagerPolicy: static", "unable to determine reserved CPU resources for static policy"),
        ("iptablesDropBit: 14", "iptables-masquerade-bit and iptables-drop-bit must be different"),
        ("syncFrequency: -1s", "invalid sync frequency -1000000000"),
        ("configMapAndSecretChangeDetectionStrategy: Poll", "unknown configmap and secret manager mode: Poll"),
        ("authorization: {mode: Always}", "unknown authorization mode Always"),
        ("tlsMinVersion: VersionTLS14", 'unknown tls version "VersionTLS14"'),
        ("tlsCipherSuites: [TLS_NONE]", "Cipher suite TLS_NONE not supported or doesn't exist"),
        ("tlsCipherSuites: [TLS_AES_128_GCM_SHA256]", "http2: TLSConfig.CipherSuites is missing an HTTP/2-required"),
        ("allowedUnsafeSysctls: [vm.swappiness]", 'the sysctl "vm.swappiness" are not known to be namespaced'),
        ("allowedUnsafeSysctls: ['net.*.x']", 'sysctl "net.*.x" must have at most 253 characters'),
        ("containerLogMaxSize: 1.5Mi", 'failed to parse container log max size "1.5Mi": invalid max log size'),
        ("containerLogMaxFiles: 1", "invalid MaxFiles 1, must be > 1"),
        ("runtimeRequestTimeout: -5s", "context deadline exceeded"),
        ("runtimeRequestTimeout: 100us", "context deadline exceeded"),
        ("reservedSystemCPUs: 5-3", "index out of range"),
        ("runOnce: true", "runonce failed"),
        ("address: here", "no such host"),
        ("readOnlyPort: 10250", "address already in use"),
    ],
)
def test_a_kubelet_1_20_stops_during_its_start(written: str, text: str) -> None:
    found = started("1.20.2", written, "--container-runtime=remote")
    assert references(found, MessageLevel.FATAL) == ["cannot-run"]
    assert text in said(found)[0]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("tlsMinVersion: x", 'unknown tls version "x"'),
        ("kubeReserved: {x: '1'}", 'failed to run Kubelet: cannot reserve "x" resource'),
        ("runtimeRequestTimeout: -1s", "failed to run Kubelet: context deadline exceeded"),
        ("syncFrequency: -1s", "failed to run Kubelet: failed to create kubelet: invalid sync frequency -1000000000"),
    ],
)
def test_an_error_begins_with_the_failed_step(written: str, text: str) -> None:
    assert said(started("1.20.2", written)) == [text]


@pytest.mark.parametrize(
    "written",
    [
        "evictionHard: {memory.available: 100%, nodefs.available: 0%}",
        "evictionHard: {memory.available: 1_0%}",
        "evictionHard: {pid.available: 150%}",
        "kubeReserved: {cpu: 100m, memory: 1.5Gi, ephemeral-storage: '1e9', pid: '1000'}",
        "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}",
        "makeIPTablesUtilChains: false\niptablesDropBit: 14",
        "tlsCipherSuites: [TLS_AES_128_GCM_SHA256]\ntlsMinVersion: VersionTLS13",
        "allowedUnsafeSysctls: ['net.core.*', kernel.sem, kernel.shmmax]",
        "healthzBindAddress: nonsense",
    ],
)
def test_a_kubelet_1_20_starts(written: str) -> None:
    assert started("1.20.2", written, "--container-runtime=remote").starts


def test_dockershim_has_no_log_manager() -> None:
    assert started("1.20.2", "containerLogMaxSize: much").starts
    assert not started("1.24.1", "containerLogMaxSize: much").starts


def test_an_empty_endpoint() -> None:
    flags = ("--container-runtime=remote", "--container-runtime-endpoint=")
    assert "code = Unavailable" in said(started("1.20.2", "", *flags))[0]


def test_an_allowlist_for_another_policy_is_refused_before_its_patterns_are_read() -> None:
    written = "preloadedImagesVerificationAllowlist: ['a*b']\n"
    assert len(said(started("1.35.1", written))) == 1
    wanted = "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
    assert "not a valid wildcard pattern" in said(started("1.35.1", wanted + written))[0]
