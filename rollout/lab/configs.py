"""The KubeletConfiguration that kubeadm left on a node, by Kubernetes minor."""

from __future__ import annotations

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

_RECENT = """\
# Written by kubeadm at join; the eviction thresholds are ours (OPS-2207).
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.112.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: "{endpoint}"
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {{}}
evictionHard:
  imagefs.available: 8%     # large models, large images
  memory.available: 750Mi
  nodefs.available: 8%
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {{}}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
serializeImagePulls: true   # as it came from the old cluster
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""

SITE = """\
# What this site wants of every node, whatever kubeadm writes.
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerLogMaxSize: 50Mi
evictionHard:
  nodefs.inodesFree: 5%
"""
"""A drop-in."""

_RECENT_FROM = 32  # crashLoopBackOff
ENDPOINT_FROM = 35
"""From this minor on kubeadm writes the runtime's socket into the file, not into its flags (gate NodeLocalCRISocket)."""


def config(minor: int, endpoint: str) -> str:
    """The file's text; ``endpoint`` is the runtime's socket, a URL."""
    if minor < _RECENT_FROM:
        return _CONFIG
    return _RECENT.format(endpoint=endpoint if minor >= ENDPOINT_FROM else "")
