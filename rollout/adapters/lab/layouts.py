"""What lies on a node's disk, by layout: kubeadm from deb or rpm packages, or plain unit and flags."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rollout.adapters.lab.spec import NodeSpec

_CONFIG = """\
# Written by kubeadm at join; changed by hand since (see OPS-1881).
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 2m0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 5m0s
    cacheUnauthorizedTTL: 30s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
cpuManagerReconcilePeriod: 0s
# thresholds from the disk incident, keep in step with the monitoring
evictionHard:
  imagefs.available: "10%"
  memory.available: 500Mi
  nodefs.available: "10%"
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMinimumGCAge: 0s
maxPods: 110   # one /24 a node
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
registryBurst: 10
registryPullQPS: 5
rotateCertificates: true
runtimeRequestTimeout: 0s
serializeImagePulls: true
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""

_UNIT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/home/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={exec}
Restart=always
StartLimitInterval=0
RestartSec={restart}

[Install]
WantedBy=multi-user.target
"""

_DROP_IN = """\
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort. Preferably, the user should use
# the .NodeRegistration.KubeletExtraArgs object in the configuration files instead. KUBELET_EXTRA_ARGS should be sourced from this file.
EnvironmentFile=-{environment}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

_DAEMON = """\
[Unit]
Description={title}
After=network.target

[Service]
Type=notify
ExecStart=/usr/bin/{program}
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""

_RUNTIMES: Mapping[str, Mapping[str, str]] = {
    "dockershim": {
        "docker": "Docker version 20.10.24, build 297e128",
        "containerd": "containerd github.com/containerd/containerd v1.6.20 2806fc1057397dbaeefbea0e4e17bddfbd388f38",
    },
    "cri-dockerd": {
        "docker": "Docker version 23.0.6, build ef23cbc",
        "containerd": "containerd github.com/containerd/containerd v1.6.21 3dce8eb055cbb6872793272b4f20ed16117344f8",
        "cri-dockerd": "cri-dockerd 0.3.4 (e88b1605)",
    },
    "containerd": {
        "containerd": "containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58",
    },
}

_SERVICES = {"docker": "docker.service", "containerd": "containerd.service", "cri-dockerd": "cri-docker.service"}


def files(node: NodeSpec, restart_sec: float) -> Mapping[str, str]:
    """Path → text for a node of this kind; equal kinds share one result."""
    return _files(node.layout, node.runtime, node.minor, f"{restart_sec:g}")


def programs(node: NodeSpec) -> Mapping[str, str]:
    """The programs in the node's /usr/bin and what each prints when asked for its version."""
    return {"kubelet": f"Kubernetes v{node.version}", **_RUNTIMES.get(node.runtime, {})}


@cache
def _files(layout: str, runtime: str, minor: int, restart: str) -> Mapping[str, str]:
    found = {"/etc/kubernetes/kubelet.conf": "# client certificate: not in the lab\n"}
    for program in _RUNTIMES.get(runtime, {}):
        found[f"/usr/lib/systemd/system/{_SERVICES[program]}"] = _DAEMON.format(title=program, program=program)
    flags = _runtime_flags(runtime, minor)
    if layout == "plain":
        command = " \\\n  ".join(
            [
                "/usr/bin/kubelet",
                "--config=/etc/kubernetes/kubelet-config.yaml",
                "--kubeconfig=/etc/kubernetes/kubelet.conf",
                *flags,
                *_deadline(runtime),
                "--v=2",
            ]
        )
        found["/etc/systemd/system/kubelet.service"] = _UNIT.format(exec=command, restart=restart)
        found["/etc/kubernetes/kubelet-config.yaml"] = _CONFIG
        return found
    environment = "/etc/sysconfig/kubelet" if layout == "kubeadm-rpm" else "/etc/default/kubelet"
    folder = "/usr/lib/systemd/system" if layout == "kubeadm-rpm" else "/etc/systemd/system"
    found["/usr/lib/systemd/system/kubelet.service"] = _UNIT.format(exec="/usr/bin/kubelet", restart=restart)
    found[f"{folder}/kubelet.service.d/10-kubeadm.conf"] = _DROP_IN.format(environment=environment)
    found["/var/lib/kubelet/kubeadm-flags.env"] = f'KUBELET_KUBEADM_ARGS="{" ".join(flags)}"\n'
    found["/var/lib/kubelet/config.yaml"] = _CONFIG
    found[environment] = f"KUBELET_EXTRA_ARGS={' '.join(_deadline(runtime))}\n"
    return found


def _deadline(runtime: str) -> tuple[str, ...]:
    """The bad setting of the incidents, where the kubelet has the flag."""
    return ("--image-pull-progress-deadline=1m0s",) if runtime == "dockershim" else ()


def _runtime_flags(runtime: str, minor: int) -> tuple[str, ...]:
    pause = ("--pod-infra-container-image=k8s.gcr.io/pause:3.2",) if minor < 35 else ()
    if runtime == "dockershim":
        return ("--network-plugin=cni", *pause)
    sockets = {"cri-dockerd": "/var/run/cri-dockerd.sock", "containerd": "/run/containerd/containerd.sock"}
    endpoint = f"--container-runtime-endpoint=unix://{sockets.get(runtime, '/var/run/crio/crio.sock')}"
    return (*(("--container-runtime=remote",) if minor < 27 else ()), endpoint, *pause)
