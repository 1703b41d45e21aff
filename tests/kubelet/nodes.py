"""Realistic nodes as snapshots: kubeadm from the deb and rpm packages, and units with everything in ExecStart.

Unit texts are those of kubernetes/release (10-kubeadm.conf) and of the third incident's hand-made nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.plan import Change
from rollout.core.model.playbook import (
    DEFAULT_BUDGETS,
    DEFAULT_GATES,
    Limits,
    Policy,
    RevertScope,
    Templates,
    WaveKind,
    WaveRule,
)
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.model.snapshot import (
    FileState,
    FleetSnapshot,
    Measurement,
    Process,
    Snapshot,
    Token,
    UnitState,
    Unread,
)
from rollout.core.text.blobs import digest
from rollout.kubelet import layout

CONFIG = "/var/lib/kubelet/config.yaml"
DEB, RPM = "/etc/default/kubelet", "/etc/sysconfig/kubelet"
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
FRAGMENT = "/lib/systemd/system/kubelet.service"
KUBEADM = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
KUBEADM_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"

CONFIG_TEXT = """\
apiVersion: kubelet.config.k8s.io/v1beta1
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
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
# pulls: see the runbook
evictionHard:
  memory.available: 200Mi   # more than the default
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: KubeletConfiguration
rotateCertificates: true
serializeImagePulls: true
staticPodPath: /etc/kubernetes/manifests
"""

FRAGMENT_TEXT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""

KUBEADM_TEXT = """\
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-{flags}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

PLAIN_TEXT = """\
[Unit]
Description=kubelet

[Service]
ExecStart=/usr/local/bin/kubelet \\
  --config=/var/lib/kubelet/config.yaml \\
  --kubeconfig=/etc/kubernetes/kubelet.conf{more}
Restart=always
"""

REMOTE = {
    "dockershim": "--network-plugin=cni",
    "cri-dockerd": "--container-runtime=remote --container-runtime-endpoint=unix:///run/cri-dockerd.sock",
    "containerd": "--container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    "crio": "--container-runtime=remote --container-runtime-endpoint=unix:///var/run/crio/crio.sock",
}

TEMPLATES = Templates(
    kubelet_config="{% for name in fields %}\n{{ name }}: {{ fields[name] | yaml }}\n{% endfor %}\n",
    kubelet_config_name="templates/kubelet-config.yaml.j2",
    flags_env='{{ variable }}={{ arguments | join(" ") }}\n',
    flags_env_name="templates/kubelet-flags.env.j2",
    drop_in="# Written by rollout for {{ unit }}.\n[Service]\nExecStart=\nExecStart={{ exec_start }}\n",
    drop_in_name="templates/kubelet-drop-in.conf.j2",
)

POLICY = Policy(
    name="image-pulls",
    settings={},
    templates=TEMPLATES,
    waves=(
        WaveRule(WaveKind.CANARY),
        WaveRule(WaveKind.PER_RACK, count=1),
        WaveRule(WaveKind.UP_TO, percent=5.0),
        WaveRule(WaveKind.UP_TO, percent=25.0),
        WaveRule(WaveKind.REST),
    ),
    limits=Limits(),
    budgets=DEFAULT_BUDGETS,
    gates=DEFAULT_GATES,
    on_failure=RevertScope.WAVE,
    soak=60.0,
    passes=3,
    guard=120.0,
    keep=3,
    digest="p" * 64,
)


def settings(skip: tuple[str, ...] = (), **values: Value) -> dict[str, Setting]:
    """``settings(serializeImagePulls=False, __registry_qps=3)``: leading underscores are dashes, others stay."""
    made: dict[str, Setting] = {}
    for key, value in values.items():
        name = "--" + key[2:].replace("_", "-") if key.startswith("__") else key
        policy = IfUnsupported.SKIP if name in skip else IfUnsupported.REFUSE
        made[name] = Setting(name, value, policy, source="playbook image-pulls")
    return made


IMAGE_PULLS = settings(
    skip=("maxParallelImagePulls", "imagePullProgressDeadline"),
    imagePullProgressDeadline="5m",
    serializeImagePulls=False,
    maxParallelImagePulls=5,
)


def regular(path: str, text: str, mode: str = "644") -> FileState:
    content = text.encode()
    return FileState(path, "regular", mode, "0:0", len(content), digest(content), content)


def absent(path: str) -> FileState:
    return FileState(path, "absent")


def node(name: str = "tess-node-0001", rack: str = "rack01") -> Node:
    return Node(name, f"{name}.rno.example", rack, "zone1")


def kubeadm(
    name: str = "tess-node-0001",
    version: str = "1.20.15",
    runtime: str = "dockershim",
    *,
    flags: str = DEB,
    extra: str | None = None,
    config: str = CONFIG_TEXT,
    words: str = "",
) -> Snapshot:
    """A kubeadm node. ``extra``: the environment file's text (``None``: absent); ``words``: what it adds to the command line."""
    kubeadm_args = f"{REMOTE[runtime]} --pod-infra-container-image=k8s.gcr.io/pause:3.2"
    command = (
        "/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "
        f"--kubeconfig=/etc/kubernetes/kubelet.conf --config={CONFIG} {kubeadm_args} {words}"
    )
    files = [
        regular(FRAGMENT, FRAGMENT_TEXT),
        regular(KUBEADM, KUBEADM_TEXT.format(flags=flags)),
        regular(KUBEADM_FLAGS, f'KUBELET_KUBEADM_ARGS="{kubeadm_args}"\n'),
        regular(CONFIG, config),
        *(regular(path, extra) if path == flags and extra is not None else absent(path) for path in (DEB, RPM)),
        absent(DROP_IN),
    ]
    return snapshot(name, version, command, files, drop_ins=KUBEADM, runtime=runtime)


def plain(
    name: str = "tess-node-0001",
    version: str = "1.20.15",
    runtime: str = "dockershim",
    *,
    more: str = "",
    config: str = CONFIG_TEXT,
) -> Snapshot:
    """A node whose unit holds the whole command line."""
    rest = f"{REMOTE[runtime]} {more}".strip()
    text = PLAIN_TEXT.format(more=f" \\\n  {rest}" if rest else "")
    command = f"/usr/local/bin/kubelet --config={CONFIG} --kubeconfig=/etc/kubernetes/kubelet.conf {rest}"
    files = [regular(FRAGMENT, text), regular(CONFIG, config), absent(DEB), absent(RPM), absent(DROP_IN)]
    return snapshot(name, version, command, files, runtime=runtime)


def snapshot(
    name: str, version: str, command: str, files: list[FileState], *, drop_ins: str = "", runtime: str = "dockershim"
) -> Snapshot:
    properties = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "MainPID": "1234",
        "NRestarts": "0",
        "FragmentPath": FRAGMENT,
        "DropInPaths": drop_ins,
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
        "RestartUSec": "10s",
        "TimeoutStopUSec": "1min 30s",
    }
    measurement = Measurement(
        unit=UnitState(layout.UNIT, properties),
        process=Process(1234, tuple(command.split())),
        healthz="ok",
        lenient=0,
    )
    return Snapshot(
        node=name,
        machine_id=digest(name.encode())[:32],
        boot_id="b" * 32,
        kubelet_version=version,
        runtimes={runtime: "1"},
        measurement=measurement,
        files={state.path: state for state in files},
        token=Token(),
        facts={"state-dir-fs": "ext2/ext3", "room-kib": "1000000"},
    )


def with_unit(found: Snapshot, **properties: str) -> Snapshot:
    """The same node with other properties of its unit."""
    unit = found.measurement.unit
    assert unit is not None
    changed = replace(unit, properties={**unit.properties, **properties})
    return replace(found, measurement=replace(found.measurement, unit=changed))


def with_command(found: Snapshot, *words: str) -> Snapshot:
    """The same node with another running command line."""
    return replace(found, measurement=replace(found.measurement, process=Process(1234, words)))


def with_file(found: Snapshot, state: FileState) -> Snapshot:
    return replace(found, files={**found.files, state.path: state})


def inventory(count: int = 2000, per_rack: int = 60) -> Inventory:
    names = [f"tess-node-{at:04d}" for at in range(1, count + 1)]
    found = {name: node(name, f"rack{at // per_rack + 1:02d}") for at, name in enumerate(names)}
    return Inventory("rno", "1.23.17", found, {}, (), "i" * 64)


def fleet(found: Inventory, snapshots: Mapping[str, Snapshot | Unread]) -> FleetSnapshot:
    return FleetSnapshot(found.cluster, found.digest, "2026-11-20T16:00:00Z", snapshots)


def mixed(found: Inventory) -> FleetSnapshot:
    """A fleet as in the incidents: kubelets 1.20 to 1.23 over three runtimes and layouts; every 400th is unreachable."""
    makers = (
        lambda name: kubeadm(name, "1.20.15", "dockershim"),
        lambda name: kubeadm(name, "1.21.14", "dockershim", flags=RPM, extra="KUBELET_EXTRA_ARGS=\n"),
        lambda name: plain(name, "1.22.17", "dockershim"),
        lambda name: kubeadm(name, "1.23.17", "containerd", extra="KUBELET_EXTRA_ARGS=--v=2\n", words="--v=2"),
        lambda name: kubeadm(name, "1.23.17", "cri-dockerd"),
    )
    nodes: dict[str, Snapshot | Unread] = {}
    for at, name in enumerate(found.nodes):
        nodes[name] = (
            Unread(name, "ssh-timeout", "no banner within 10 s") if at % 400 == 7 else makers[at % len(makers)](name)
        )
    return fleet(found, nodes)


def applied(found: Snapshot, change: Change, blobs: Mapping[str, bytes]) -> Snapshot:
    """The node after the agent has done the change and systemd has started the kubelet from the files."""
    for file in change.files:
        content = blobs[file.after]
        found = with_file(found, FileState(file.path, "regular", "644", "0:0", len(content), file.after, content))
        if file.path == DROP_IN:
            found = with_unit(found, DropInPaths=DROP_IN)
    asked = layout.find(found)
    return with_command(found, asked.pieces[0].text, *asked.asked)
