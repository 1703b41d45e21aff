"""Feature gates: in the file and as flags; unknown, locked, of other minors, all at once."""

from __future__ import annotations

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.case import each, flagged, inside, named

IN_THE_FILE: tuple[Case, ...] = (
    *each("gate", "featureGates", (
        "{}", "null", "{GracefulNodeShutdown: true}", "{GracefulNodeShutdown: false}", "{NoSuchGate: true}", "{NoSuchGate: false}",
        "{gracefulnodeshutdown: true}", "{SupportPodPidsLimit: true}", "{SupportPodPidsLimit: false}", "{NodeLease: false}", "{NodeLease: true}",
        "{ExecProbeTimeout: false}", "{VolumeSubpath: false}", "{HyperVContainer: true}", "{AllAlpha: true}", "{AllAlpha: false}", "{AllBeta: false}",
        "{AllBeta: true}", "{AllAlpha: true, GracefulNodeShutdown: false}", '{GracefulNodeShutdown: "true"}', "{GracefulNodeShutdown: yes}",
        "{GracefulNodeShutdown: 1}", "{GracefulNodeShutdown: null}", "{GracefulNodeShutdown: on}", "{GracefulNodeShutdown: True}",
        "[GracefulNodeShutdown]", "GracefulNodeShutdown=true", "{DynamicKubeletConfig: true}", "{DynamicKubeletConfig: false}",
        "{MemoryManager: true}", "{KubeletInUserNamespace: true}", "{CRIContainerLogRotation: false}", "{DevicePlugins: false}",
        "{RotateKubeletClientCertificate: false}", "{RotateKubeletClientCertificate: true}", "{IPv6DualStack: true}",
        "{KubeletCredentialProviders: true}", "{CPUManager: false, TopologyManager: false}", "{ServerSideApply: false}",
        "{HPAScaleToZero: true}", "{LegacyNodeRoleBehavior: false}", "{CustomResourceValidation: true}", "{Nonsense: maybe}", '{"": true}',
        "{PodPriority: true}", "{VolumeScheduling: true}", "{Accelerators: true}", "{CSIMigration: false}", "{BlockVolume: true}",
        "{WindowsHostProcessContainers: true}", "{LocalStorageCapacityIsolation: false}", "{RuntimeClass: true, NoSuchGate: true}",
        "{NonPreemptingPriority: false, SizeMemoryBackedVolumes: true}", "{AppArmor: false}", "{APIPriorityAndFairness: false}",
    )),
    *named("gate", {
        "two unknown": "featureGates: {NoSuchGate: true, NorThis: false}",
        "unknown gate and unknown field": "featureGates: {NoSuchGate: true}\nnope: 1",
        "locked and unknown": "featureGates: {NodeLease: false, NoSuchGate: true}",
    }),
)  # fmt: skip

AS_FLAGS: tuple[Case, ...] = (
    flagged("gate flag: alone", "--feature-gates=GracefulNodeShutdown=true"),
    flagged("gate flag: two words", "--feature-gates", "GracefulNodeShutdown=true"),
    flagged("gate flag: two gates", "--feature-gates=GracefulNodeShutdown=true,CPUManager=false"),
    flagged("gate flag: spaces", "--feature-gates= GracefulNodeShutdown = true , CPUManager=false"),
    flagged("gate flag: unknown", "--feature-gates=NoSuchGate=true"),
    flagged("gate flag: locked", "--feature-gates=NodeLease=false"),
    flagged("gate flag: locked to what it is", "--feature-gates=NodeLease=true"),
    flagged("gate flag: no value", "--feature-gates=GracefulNodeShutdown"),
    flagged("gate flag: wrong value", "--feature-gates=GracefulNodeShutdown=maybe"),
    flagged("gate flag: 1 and T", "--feature-gates=GracefulNodeShutdown=1,CPUManager=T"),
    flagged("gate flag: yes", "--feature-gates=GracefulNodeShutdown=yes"),
    flagged("gate flag: empty", "--feature-gates="),
    flagged("gate flag: commas", "--feature-gates=,GracefulNodeShutdown=true,,"),
    flagged("gate flag: twice", "--feature-gates=GracefulNodeShutdown=true", "--feature-gates=CPUManager=false"),
    flagged("gate flag: twice the same gate", "--feature-gates=CPUManager=true", "--feature-gates=CPUManager=false"),
    flagged("gate flag: same gate twice in one", "--feature-gates=CPUManager=true,CPUManager=false"),
    flagged("gate flag: AllAlpha", "--feature-gates=AllAlpha=true"),
    flagged("gate flag: equals signs", "--feature-gates=GracefulNodeShutdown=true=false"),
    inside("gate flag: beside the file", "featureGates: {GracefulNodeShutdown: true}", "--feature-gates=CPUManager=false"),
    inside("gate flag: beats the file", "featureGates: {GracefulNodeShutdown: true, CPUManager: true}", "--feature-gates=GracefulNodeShutdown=false"),
    inside("gate flag: gives what the file needs", "shutdownGracePeriod: 30s", "--feature-gates=GracefulNodeShutdown=true"),
    inside("gate flag: takes what the file needs", "shutdownGracePeriod: 30s\nfeatureGates: {GracefulNodeShutdown: true}", "--feature-gates=GracefulNodeShutdown=false"),
    inside("gate flag: unknown in the file too", "featureGates: {NoSuchGate: true}", "--feature-gates=NoSuchGate=false"),
    inside("gate flag: file is empty", "maxPods: 5", "--feature-gates="),
    inside("gate flag: mends a locked gate of the file", "featureGates: {NodeLease: false}", "--feature-gates=NodeLease=true"),
    inside("gate flag: file says null", "featureGates: null", "--feature-gates=CPUManager=false"),
)  # fmt: skip

GATES = (*IN_THE_FILE, *AS_FLAGS)
