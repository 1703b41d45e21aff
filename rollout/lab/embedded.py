"""RKE2 in the lab: its unit starts the kubelet as a child, with the arguments that its configuration files make.

The rules stand here once more, as its source has them, and not as a plan computes them: else a story would compare a
mistake with itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping

from rollout.core.text.yaml_source import read_yaml
from rollout.kubelet.runtimes.containerd.stand_in import EMBEDDED_ENDPOINT, EMBEDDED_LOG, EMBEDDED_STARTED
from rollout.lab.units import Tree

UNIT = "rke2-agent.service"
HOME = "/var/lib/rancher/rke2"
KUBELET = f"{HOME}/data/v1/bin/kubelet"
LOG = f"{HOME}/agent/logs/kubelet.log"
CONFIG = "/etc/rancher/rke2/config.yaml"
DROP_INS = f"{HOME}/agent/etc/kubelet.conf.d"
ENDPOINT = EMBEDDED_ENDPOINT
DROP_INS_SINCE = 32

_UNIT_FILE = """\
[Unit]
Description=Rancher Kubernetes Engine v2 (agent)

[Service]
Type=notify
EnvironmentFile=-/etc/default/rke2-agent
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec={pause}
ExecStart=/usr/bin/rke2 agent

[Install]
WantedBy=multi-user.target
"""
_DEFAULTS = f"""\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.43.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: {ENDPOINT}
evictionHard:
  imagefs.available: 5%
  nodefs.available: 5%
kind: KubeletConfiguration
serializeImagePulls: false
staticPodPath: {HOME}/agent/pod-manifests
"""


def files(minor: int, pause: str) -> Mapping[str, str]:
    """Path → text of an agent node."""
    found = {
        f"/usr/lib/systemd/system/{UNIT}": _UNIT_FILE.format(pause=pause),
        CONFIG: "# joined by hand (OPS-3120)\nserver: https://192.0.2.1:9345\nkubelet-arg:\n- max-pods=150 # one /24\n",
        f"{HOME}/agent/kubelet.kubeconfig": "# client certificate: not in the lab\n",
        f"{HOME}/agent/{EMBEDDED_LOG}": EMBEDDED_STARTED,
        LOG: "",
    }
    if minor >= DROP_INS_SINCE:
        found[f"{DROP_INS}/00-rke2-defaults.conf"] = _DEFAULTS
    return found


def arguments(tree: Tree, minor: int) -> tuple[str, ...]:
    """The command line of the kubelet that it starts, program first."""
    own = {"kubeconfig": f"{HOME}/agent/kubelet.kubeconfig", "node-labels": "", "read-only-port": "0"}
    if minor >= DROP_INS_SINCE:
        own["config-dir"] = DROP_INS
    else:
        own |= {"container-runtime-endpoint": ENDPOINT, "serialize-image-pulls": "false"}
        own |= {"container-runtime": "remote"} if minor < 27 else {}
    flags = {name: [value] for name, value in own.items()}
    for entry in _given(tree):
        name, _, value = entry.partition("=")
        if name in own and not name.endswith(("+", "-")):
            flags[name] = []
            del own[name]
        flags.setdefault(name.rstrip("+-"), []).append(value or "true")
    words = (f"--{name}={value}" for name in sorted(flags) for value in flags[name])
    return (KUBELET, "--file-check-frequency=5s", "--sync-frequency=30s", *words)


def _given(tree: Tree) -> list[str]:
    names = (name for name in sorted(tree.names(f"{CONFIG}.d")) if name.endswith((".yaml", ".yml")))
    given: list[str] = []
    for path in (CONFIG, *(f"{CONFIG}.d/{name}" for name in names)):
        root = read_yaml((tree.read(path) or b"").decode(), path).root
        for key, entry in (root.entries() if root else {}).items():
            value = entry.item.plain()
            entries = [str(each) for each in value] if isinstance(value, list) else [str(value)]
            if key.rstrip("+") == "kubelet-arg":
                given = [*given, *entries] if key.endswith("+") else entries
    return given


def logged(lines: tuple[str, ...], pid: int) -> Iterator[str]:
    """The kubelet's lines as its process writes them now."""
    head = f"{time.strftime('%m%d %H:%M:%S')}.000000 {pid:7}"
    yield from (re.sub(r"\A([IWEF])1120 09:00:00\.000000    4242", rf"\g<1>{head}", line) for line in lines)
