"""Command lines: how words become flags, flags over the file, each kind of value, removed flags and later ones."""

from __future__ import annotations

import shlex

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.case import flagged, inside

WORDS: tuple[Case, ...] = tuple(
    flagged(f"words: {shlex.join(words)}".strip(), *words)
    for words in (
        (), ("--max-pods=5",), ("--max-pods", "5"), ("--max-pods",), ("-max-pods=5",), ("--max_pods=5",), ("--Max-Pods=5",), ("--max-pods=5", "--max-pods=6"),
        ("--max-pods=five", "--max-pods=6"), ("--max-pods=",), ("--max-pods= 5",), ("--max-pods=0x10",), ("--max-pods=017",), ("--max-pods=1_0",),
        ("--max-pods=0b11",), ("--max-pods=0o17",), ("--max-pods=5.0",), ("--max-pods=+5",), ("--max-pods=-5",), ("--max-pods=2147483648",), ("--max-pods=1e2",),
        ("--pod-max-pids=0x7fffffffffffffff",), ("--pod-max-pids=9223372036854775808",),
        ("--serialize-image-pulls",), ("--serialize-image-pulls=false",), ("--serialize-image-pulls", "false"), ("--serialize-image-pulls=maybe",),
        ("--serialize-image-pulls=F",), ("--serialize-image-pulls=0",), ("--serialize-image-pulls=no",), ("--serialize-image-pulls=",),
        ("--serialize-image-pulls=FALSE",), ("--serialize-image-pulls=fAlse",), ("--no-serialize-image-pulls",),
        ("--no-such-flag=1",), ("--no-such-flag",), ("--no-such-flag", "word"), ("strayword",), ("--max-pods=5", "strayword"), ("--", "--max-pods=5"), ("--",),
        ("-",), ("",), ("-x",), ("-h",), ("-v=2",), ("-v", "2"), ("-v2",), ("--v=2",), ("--v", "2"), ("--v=two",), ("--help",), ("--version",), ("--version=raw",), ("--version=false",),
        ("--help=false",), ("--=5",), ("--max-pods==5",), ("---max-pods=5",), ("-m=5",), ("--max-pod=5",), ("--maxPods=5",),
        ("--runtime-request-timeout=5m",), ("--runtime-request-timeout=5",), ("--runtime-request-timeout=0",), ("--runtime-request-timeout=-5m",),
        ("--runtime-request-timeout=",), ("--runtime-request-timeout=1d",), ("--runtime-request-timeout=.5m",),
        ("--image-pull-progress-deadline=5m",), ("--image-pull-progress-deadline=5",), ("--image-pull-progress-deadline=5min",),
        ("--image-pull-progress-deadline=0",), ("--image-pull-progress-deadline=-1m",), ("--image-pull-progress-deadline",),
        ("--cluster-dns=10.0.0.10",), ("--cluster-dns=10.0.0.10,10.0.0.11",), ("--cluster-dns=10.0.0.10", "--cluster-dns=10.0.0.11"), ("--cluster-dns=",),
        ('--cluster-dns="10.0.0.10","10.0.0.11"',), ('--cluster-dns="10.0.0.10',), ("--cluster-dns=10.0.0.10,",), ("--cluster-dns= 10.0.0.10",), ('--cluster-dns=a"b',),
        ("--enforce-node-allocatable=",), ("--enforce-node-allocatable=none",), ("--enforce-node-allocatable=pods,none",), ("--enforce-node-allocatable=all",),
        ("--allowed-unsafe-sysctls=kernel.msg*,net.core.somaxconn",), ("--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), ("--tls-cipher-suites=NONE",),
        ("--kube-reserved=cpu=100m,memory=100Mi",), ("--kube-reserved=cpu=100m", "--kube-reserved=memory=100Mi"), ("--kube-reserved=cpu",), ("--kube-reserved=",),
        ("--kube-reserved=cpu = 100m",), ("--kube-reserved=cpu=a=b",), ("--kube-reserved=gpu=1",), ("--kube-reserved=cpu=100m,cpu=200m",), ("--kube-reserved=,",),
        ("--system-reserved=memory=100Mi",), ("--system-reserved=cpu=lots",), ("--qos-reserved=memory=50%",),
        ("--eviction-hard=memory.available<200Mi",), ("--eviction-hard=",), ("--eviction-hard=memory.available=200Mi",), ("--eviction-hard=memory.available<5%,nodefs.available<5%",),
        ("--eviction-hard=memory.available<5%", "--eviction-hard=nodefs.available<5%"), ("--eviction-hard=memory.available<",), ("--eviction-hard=<5%",),
        ("--eviction-hard=memory.available < 5%",), ("--eviction-hard=memory<5%",), ("--eviction-hard=memory.available>5%",), ("--eviction-hard=memory.available<5%,",),
        ("--eviction-soft=memory.available<300Mi",), ("--eviction-soft=memory.available<300Mi", "--eviction-soft-grace-period=memory.available=1m"),
        ("--eviction-soft-grace-period=memory.available=soon",), ("--eviction-minimum-reclaim=memory.available=50Mi",), ("--eviction-minimum-reclaim=memory.available",),
        ("--eviction-max-pod-grace-period=60",), ("--eviction-pressure-transition-period=30s",), ("--experimental-allocatable-ignore-eviction",),
        ("--address=0.0.0.0",), ("--address=127.0.0.1",), ("--address=::",), ("--address=",), ("--address=localhost",), ("--address=1.2.3",), ("--healthz-bind-address=0.0.0.0",), ("--healthz-bind-address=here",),
        ("--manifest-url-header=X-A:b",), ("--manifest-url-header=X-A:b,X-C:d",), ("--manifest-url-header=X-A",), ("--manifest-url-header=X-A:b", "--manifest-url-header=X-A:c"), ("--manifest-url-header=",),
        ("--manifest-url-header=x-a:b",), ("--manifest-url=http://127.0.0.1:1/",),
        ("--register-with-taints=a=b:NoSchedule",), ("--register-with-taints=a",), ("--register-with-taints=a=b:Never",), ("--register-with-taints=",), ("--register-with-taints=a=b:NoSchedule,a=b:NoSchedule",),
        ("--node-labels=a=b",), ("--node-labels=a",), ("--node-labels=kubernetes.io/role=x",), ("--node-labels=node-role.kubernetes.io/x=",), ("--node-labels=node.kubernetes.io/x=y",),
        ("--node-labels=kubelet.kubernetes.io/x=y",), ("--node-labels=kubernetes.io/arch=amd64",), ("--node-labels=x.k8s.io/a=b",), ("--node-labels=topology.kubernetes.io/zone=a,b=c",), ("--node-labels=a=b,a=c",),
        ("--hairpin-mode=none",), ("--hairpin-mode=maybe",), ("--cpu-manager-policy=none",), ("--cpu-manager-policy=static",), ("--topology-manager-policy=best-effort",), ("--topology-manager-policy=x",),
        ("--container-log-max-files=1",), ("--container-log-max-size=5Mi",), ("--container-log-max-size=big",), ("--image-gc-high-threshold=70",), ("--image-gc-low-threshold=90",),
        ("--image-gc-high-threshold=90", "--image-gc-low-threshold=70"), ("--registry-qps=-1",), ("--registry-qps=0",), ("--registry-burst=0",), ("--event-qps=0",), ("--event-burst=-1",),
        ("--kube-api-qps=-1",), ("--kube-api-content-type=application/json",), ("--read-only-port=0",), ("--read-only-port=70000",), ("--port=0",), ("--port=10259",), ("--healthz-port=0",), ("--healthz-port=-1",),
        ("--fail-swap-on=false",), ("--cgroups-per-qos=false",), ("--cgroups-per-qos=false", "--enforce-node-allocatable="), ("--cgroup-driver=cgroupfs",), ("--cgroup-driver=other",), ("--oom-score-adj=-2000",),
        ("--protect-kernel-defaults",), ("--enable-debugging-handlers=false",), ("--enable-server=false",), ("--contention-profiling",), ("--cluster-domain=x y",), ("--resolv-conf=",), ("--pod-cidr=10.0.0.0/24",),
        ("--pods-per-core=10",), ("--node-status-max-images=-2",), ("--node-status-update-frequency=0",), ("--sync-frequency=1m30s",), ("--max-open-files=-1",), ("--make-iptables-util-chains=false",),
        ("--iptables-drop-bit=32",), ("--iptables-masquerade-bit=15",), ("--reserved-cpus=0",), ("--reserved-cpus=a",), ("--system-cgroups=/x",), ("--minimum-image-ttl-duration=1m",), ("--volume-stats-agg-period=-1m",),
        ("--streaming-connection-idle-timeout=0",), ("--tls-min-version=VersionTLS12",), ("--tls-min-version=1.2",), ("--kernel-memcg-notification",), ("--experimental-kernel-memcg-notification",),
        ("--rotate-server-certificates",), ("--rotate-certificates",), ("--logging-format=json",), ("--logging-format=xml",), ("--experimental-logging-sanitization",), ("--cpu-cfs-quota-period=10ms",), ("--cpu-cfs-quota=false",),
        ("--authorization-mode=Nonsense",), ("--authorization-mode=AlwaysAllow",), ("--authentication-token-webhook-cache-ttl=5m",), ("--authorization-webhook-cache-authorized-ttl=0",),
        ("--dynamic-config-dir=/var/lib/dynamic", "--feature-gates=DynamicKubeletConfig=false"), ("--non-masquerade-cidr=10.0.0.0/8",), ("--network-plugin=cni",), ("--seccomp-profile-root=/x",), ("--register-schedulable=false",),
        ("--keep-terminated-pod-volumes=false",), ("--pod-infra-container-image=x",), ("--minimum-container-ttl-duration=1m",), ("--maximum-dead-containers=5",), ("--really-crash-for-testing",), ("--chaos-chance=0",), ("--chaos-chance=x",),
        ("--container-runtime=Remote",), ("--container-runtime=rkt",), ("--container-runtime-endpoint=",), ("--config-dir=/etc/kubernetes/kubelet.conf.d",), ("--max-parallel-image-pulls=5",), ("--fail-cgroupv1=false",), ("--memory-manager-policy=None",),
        ("--allow-privileged=true",), ("--cadvisor-port=0",), ("--require-kubeconfig",), ("--enable-custom-metrics",), ("--runtime-cgroups=/x",), ("--lock-file=/run/lock-of-kubelet",), ("--exit-on-lock-contention",), ("--runonce",),
        ("--volume-plugin-dir=/var/lib/plugins",), ("--root-dir=/var/lib/other",), ("--hostname-override=other",), ("--node-ip=127.0.0.1",), ("--node-ip=nonsense",), ("--cloud-provider=nonsense",), ("--cloud-provider=external",), ("--provider-id=x",),
        ("--vmodule=kubelet=2",), ("--vmodule=nonsense",), ("--log-flush-frequency=1s",), ("--log-flush-frequency=1",), ("--stderrthreshold=2",), ("--stderrthreshold=nonsense",), ("--housekeeping-interval=10s",), ("--skip-headers=false",),
        ("--application-metrics-count-limit=10",), ("--housekeeping-interval=x",), ("--global-housekeeping-interval=1m",), ("--docker-tls=false",), ("--add-dir-header=x",), ("--image-credential-provider-config=/x",),
    )
)  # fmt: skip

OVER_THE_FILE: tuple[Case, ...] = (
    inside("over the file: a flag beats it", "maxPods: 5", "--max-pods=6"),
    inside("over the file: a flag with the default beats it", "maxPods: 5", "--max-pods=110"),
    inside("over the file: a flag beats a value that would fail", "maxPods: -5", "--max-pods=6"),
    inside("over the file: a flag cannot mend a decoding error", "maxPods: five", "--max-pods=6"),
    inside("over the file: a flag that would fail", "maxPods: 5", "--max-pods=-6"),
    inside("over the file: a flag given twice", "maxPods: 5", "--max-pods=6", "--max-pods=7"),
    inside("over the file: a list is replaced", "clusterDNS: [10.0.0.10, 10.0.0.11]", "--cluster-dns=10.0.0.12"),
    inside("over the file: a list is replaced by two", "clusterDNS: [10.0.0.10]", "--cluster-dns=10.0.0.12", "--cluster-dns=10.0.0.13"),
    inside("over the file: a list is emptied", "clusterDNS: [10.0.0.10]", "--cluster-dns="),
    inside("over the file: a map", "kubeReserved: {cpu: 100m, memory: 100Mi}", "--kube-reserved=cpu=200m"),
    inside("over the file: a map by two flags", "kubeReserved: {cpu: 100m}", "--kube-reserved=cpu=200m", "--kube-reserved=memory=100Mi"),
    inside("over the file: a map is emptied", "kubeReserved: {cpu: 100m}", "--kube-reserved="),
    inside("over the file: evictions are replaced", "evictionHard: {memory.available: 300Mi, nodefs.available: 5%}", "--eviction-hard=memory.available<200Mi"),
    inside("over the file: evictions by default", "evictionHard: {memory.available: 300Mi}"),
    inside("over the file: evictions are emptied", "evictionHard: {memory.available: 300Mi}", "--eviction-hard="),
    inside("over the file: headers", "staticPodURLHeader: {X-A: [b]}", "--manifest-url-header=X-C:d"),
    inside("over the file: a bool", "serializeImagePulls: false", "--serialize-image-pulls"),
    inside("over the file: a duration", "runtimeRequestTimeout: 5m", "--runtime-request-timeout=3m"),
    inside("over the file: a duration of zero", "runtimeRequestTimeout: 5m", "--runtime-request-timeout=0"),
    inside("over the file: a flag without a field", "maxPods: 5", "--node-labels=a=b"),
    inside("over the file: thresholds cross", "imageGCHighThresholdPercent: 60\nimageGCLowThresholdPercent: 50", "--image-gc-high-threshold=40"),
    inside("over the file: an address", "address: 127.0.0.1", "--address=0.0.0.0"),
    inside("over the file: logging", "logging: {format: text}", "--logging-format=text"),
    inside("over the file: a wrong flag after a wrong file", "maxPods: five", "--max-pods=six"),
    inside("over the file: an unknown flag and a wrong file", "maxPods: five", "--nope"),
    inside("over the file: a stray word and a wrong file", "maxPods: five", "stray"),
    inside("over the file: a wrong label and a wrong file", "maxPods: five", "--node-labels=kubernetes.io/x=y"),
    inside("over the file: enforced through the flag", "cgroupsPerQOS: false", "--enforce-node-allocatable="),
    inside("over the file: cgroups through the flag", "cgroupsPerQOS: false\nenforceNodeAllocatable: []", "--cgroups-per-qos=true"),
    inside("over the file: cert directory and TLS from the file", "tlsMinVersion: VersionTLS12", "--tls-min-version=VersionTLS11"),
    inside("over the file: sysctls", "allowedUnsafeSysctls: [kernel.msg*]", "--allowed-unsafe-sysctls=net.core.somaxconn"),
    flagged("over the file: config is empty", "--config="),
)  # fmt: skip

DEFAULTS: tuple[Case, ...] = (
    flagged("defaults: no file"),
    inside("defaults: an empty file", ""),
    inside("defaults: a file closes the doors that were open", "readOnlyPort: 0"),
    flagged("defaults: no file, the doors are not held open", "--anonymous-auth", "--authorization-mode=AlwaysAllow"),
)

FLAGS = (*WORDS, *OVER_THE_FILE, *DEFAULTS)
