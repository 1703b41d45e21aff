"""Nodes of RKE2 and k3s as snapshots: the unit, its configuration files, and what its kubelet was started with."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.snapshot import FileState, Snapshot, UnitState
from tests.kubelet import nodes
from tests.kubelet.nodes import absent, regular

UNIT = "rke2-agent.service"
FRAGMENT = "/usr/local/lib/systemd/system/rke2-agent.service"
MAIN = "/etc/rancher/rke2/config.yaml"
OURS = "/etc/rancher/rke2/config.yaml.d/99-rollout.yaml"
SITE = "/etc/rancher/rke2/config.yaml.d/50-site.yaml"
AGENT = "/var/lib/rancher/rke2/agent"
FOLDER = f"{AGENT}/etc/kubelet.conf.d"
DEFAULTS = f"{FOLDER}/00-rke2-defaults.conf"
DROP_IN = f"{FOLDER}/99-rollout.conf"
ENDPOINT = "unix:///run/k3s/containerd/containerd.sock"
UNIT_TEXT = """\
[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-/usr/local/lib/systemd/system/%N.env
KillMode=process
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/rke2 agent{more}
"""
DEFAULTS_TEXT = f"""\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.43.0.10
containerRuntimeEndpoint: {ENDPOINT}
evictionHard:
  imagefs.available: 5%
  nodefs.available: 5%
serializeImagePulls: false
staticPodPath: {AGENT}/pod-manifests
"""
NEW_WORDS = (
    "--volume-plugin-dir=/var/lib/kubelet/volumeplugins",
    "--file-check-frequency=5s",
    "--sync-frequency=30s",
    "--cloud-provider=external",
    f"--config-dir={FOLDER}",
    "--hostname-override=tess-node-0001",
    f"--kubeconfig={AGENT}/kubelet.kubeconfig",
    "--node-ip=192.0.2.7",
    "--node-labels=",
    "--read-only-port=0",
)
OLD_WORDS = (
    "--volume-plugin-dir=/var/lib/kubelet/volumeplugins",
    "--file-check-frequency=5s",
    "--sync-frequency=30s",
    f"--container-runtime-endpoint={ENDPOINT}",
    "--eviction-hard=imagefs.available<5%,nodefs.available<5%",
    f"--kubeconfig={AGENT}/kubelet.kubeconfig",
    "--read-only-port=0",
    "--serialize-image-pulls=false",
)


def rke2(
    version: str = "1.33.4+rke2r1",
    configs: dict[str, str] | None = None,
    words: tuple[str, ...] = (),
    *,
    more: str = "",
    drop_ins: dict[str, str] | None = None,
    env: str | None = None,
) -> Snapshot:
    """An agent node: its configuration files and what its kubelet was started with beyond RKE2's own arguments."""
    new = int(version.split(".")[1]) >= 32
    held = {MAIN: "server: https://192.0.2.1:9345\ntoken: K10-secret\n", **(configs or {})}
    usual = {"00-rke2-defaults.conf": DEFAULTS_TEXT, **(drop_ins or {})}
    environment = "/etc/default/rke2-agent"
    files = [
        regular(FRAGMENT, UNIT_TEXT.format(more=more)),
        *(absent(path) for path in ("/etc/sysconfig/rke2-agent", "/usr/local/lib/systemd/system/rke2-agent.env")),
        absent(environment) if env is None else regular(environment, env),
        *(regular(path, text) for path, text in held.items()),
        *(() if OURS in held else (absent(OURS),)),
        absent(nodes.CONFIG),
        *([FileState(FOLDER, "directory"), *(regular(f"{FOLDER}/{name}", text) for name, text in usual.items())] if new else []),
    ]  # fmt: skip
    names = {word.partition("=")[0] for word in words}
    own = [word for word in (NEW_WORDS if new else OLD_WORDS) if word.partition("=")[0] not in names]
    command = " ".join(["/var/lib/rancher/rke2/data/v1/bin/kubelet", *own, *words])
    made = nodes.snapshot("tess-node-0001", version, command, files, runtime="containerd")
    unit = made.measurement.unit
    assert unit is not None
    named = UnitState(UNIT, {**unit.properties, "FragmentPath": FRAGMENT, "KillMode": "process", "RestartUSec": "5s"})
    return replace(made, measurement=replace(made.measurement, unit=named))


def k3s(*words: str, program: str = "kubelet") -> Snapshot:
    """The same with k3s' names; its kubelet is a part of the main process."""
    found = rke2()
    named = {
        path.replace("rke2", "k3s"): replace(state, path=path.replace("rke2", "k3s"))
        for path, state in found.files.items()
    }
    text = UNIT_TEXT.format(more="").replace("rke2", "k3s")
    fragment = FRAGMENT.replace("rke2", "k3s")
    named[fragment] = regular(fragment, text)
    unit = found.measurement.unit
    assert unit is not None
    changed = UnitState("k3s-agent.service", {**unit.properties, "FragmentPath": fragment})
    found = replace(found, files=named, measurement=replace(found.measurement, unit=changed))
    own = [
        word.replace("rke2", "k3s") for word in NEW_WORDS if word.startswith(("--config-dir", "--kubeconfig", "--node"))
    ]
    return nodes.with_command(found, program, *own, *words)
