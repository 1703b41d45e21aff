"""Realistic nodes as snapshots: kubeadm from the deb and rpm packages, and units with everything in ExecStart.

Unit texts are those of the packages, and of the third incident's hand-made nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.plan import Change
from rollout.core.model.playbook import DEFAULT_BUDGETS, Limits, Policy, RevertScope, Templates, WaveKind, WaveRule
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.model.snapshot import (
    FileState,
    FleetSnapshot,
    Measurement,
    Process,
    Service,
    Snapshot,
    Token,
    UnitState,
    Unread,
    digest,
)
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings, Room, UnitProcesses
from rollout.gates.table import DEFAULT_GATES
from rollout.kubelet import versions
from rollout.kubelet.node import layout, packaged

CONFIG = packaged.CONFIG
DEB, RPM = "/etc/default/kubelet", "/etc/sysconfig/kubelet"
CONFIG_DIR = packaged.CONFIG_DIR
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

KUBEADM_TEXT = packaged.kubeadm_drop_in("{flags}", packaged.config_flags(drop_ins=False))

PLAIN_TEXT = """\
[Unit]
Description=kubelet

[Service]
ExecStart=/usr/local/bin/kubelet \\
  --config=/var/lib/kubelet/config.yaml \\
  --kubeconfig=/etc/kubernetes/kubelet.conf{more}
Restart=always
"""

CRI_DOCKER = "cri-docker.service"
CRI_DOCKER_FILE = f"/lib/systemd/system/{CRI_DOCKER}"
CRI_DOCKER_DROP_IN = f"/etc/systemd/system/{CRI_DOCKER}.d/90-rollout.conf"
CRI_DOCKERD = "/usr/bin/cri-dockerd --container-runtime-endpoint fd://"

SOCKETS = {
    "cri-dockerd": "unix:///run/cri-dockerd.sock",
    "containerd": "unix:///run/containerd/containerd.sock",
    "crio": "unix:///var/run/crio/crio.sock",
}

PRINTED = {
    "dockershim": ("docker", "Docker version 20.10.24, build 297e128"),
    "cri-dockerd": ("cri-dockerd", "cri-dockerd 0.3.4 (e88b1605)"),
    "containerd": (
        "containerd",
        "containerd github.com/containerd/containerd v1.6.36 88c3d9bc5b5a193f40b7c14fa996d23532d6f956",
    ),
    "crio": ("crio", "crio version 1.23.5"),
}
"""A node's runtime: the name in its snapshot, and the version as printed."""


def runtime_flags(runtime: str, version: str) -> str:
    """The flags that give a kubelet of this version its runtime: 1.27 removed --container-runtime."""
    if runtime == "dockershim":
        return "--network-plugin=cni"
    remote = "--container-runtime=remote " if versions.known(version).minor < 27 else ""
    return f"{remote}--container-runtime-endpoint={SOCKETS[runtime]}"


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
    pause = "--pod-infra-container-image=k8s.gcr.io/pause:3.2" if versions.known(version).minor < 35 else ""
    kubeadm_args = f"{runtime_flags(runtime, version)} {pause}".strip()
    command = packaged.kubeadm_command(packaged.config_flags(drop_ins=False), f"{kubeadm_args} {words}")
    files = [
        regular(FRAGMENT, packaged.kubelet_unit()),
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
    """A node with the whole command line in its unit."""
    rest = f"{runtime_flags(runtime, version)} {more}".strip()
    text = PLAIN_TEXT.format(more=f" \\\n  {rest}" if rest else "")
    command = f"/usr/local/bin/kubelet --config={CONFIG} --kubeconfig=/etc/kubernetes/kubelet.conf {rest}"
    files = [regular(FRAGMENT, text), regular(CONFIG, config), absent(DEB), absent(RPM), absent(DROP_IN)]
    return snapshot(name, version, command, files, runtime=runtime)


def flags_only(name: str = "tess-node-0001", version: str = "1.23.17", words: str = "--v=2") -> Snapshot:
    """A node with a kubelet without ``--config``; its unit contains all flags."""
    command = f"/usr/local/bin/kubelet --network-plugin=cni {words}"
    text = f"[Service]\nExecStart={command}\nRestart=always\n"
    files = [regular(FRAGMENT, text), absent(CONFIG), absent(DEB), absent(RPM), absent(DROP_IN)]
    return snapshot(name, version, command, files)


def with_config_dir(found: Snapshot, drop_ins: Mapping[str, str], **facts: str) -> Snapshot:
    """The same node with ``--config-dir`` from its environment file and these files (name → text) in the directory."""
    flag = f"--config-dir={CONFIG_DIR}"
    command = found.measurement.process.command_line if found.measurement.process else ()
    texts = {f"{CONFIG_DIR}/{name}": text for name, text in drop_ins.items()}
    states = [
        FileState(CONFIG_DIR, "directory"),
        regular(DEB, f"KUBELET_EXTRA_ARGS={flag}\n"),
        *(regular(path, text) for path, text in texts.items()),
    ]
    files = {**found.files, **{state.path: state for state in states}}
    return with_command(replace(found, files=files, facts={**found.facts, **facts}), *command, flag)


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
    services = {CRI_DOCKER: _cri_dockerd()} if runtime == "cri-dockerd" else {}
    if services:
        files = [*files, regular(CRI_DOCKER_FILE, f"[Service]\nExecStart={CRI_DOCKERD}\n"), absent(CRI_DOCKER_DROP_IN)]
    measurement = Measurement(
        unit=UnitState(layout.UNIT, properties),
        process=Process(1234, tuple(command.split())),
        healthz="ok",
        lenient=0,
        services=services,
    )
    return Snapshot(
        node=name,
        machine_id=digest(name.encode())[:32],
        boot_id="b" * 32,
        kubelet_version=version,
        runtimes=dict([PRINTED[runtime]]),
        measurement=measurement,
        files={state.path: state for state in files},
        token=Token(),
        facts={"state-dir-fs": "ext2/ext3", "room-kib": "1000000"},
    )


def _cri_dockerd(drop_ins: str = "", command: str = CRI_DOCKERD) -> Service:
    properties = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "FragmentPath": CRI_DOCKER_FILE,
        "DropInPaths": drop_ins,
    }
    return Service(UnitState(CRI_DOCKER, properties), Process(900, tuple(command.split())))


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
    return listing(*(f"tess-node-{at:04d}" for at in range(1, count + 1)), per_rack=per_rack)


def listing(*names: str, per_rack: int = 60) -> Inventory:
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


def applied(found: Snapshot, change: Change) -> Snapshot:
    """The node after the agent has done the change and systemd has started the kubelet from the files."""
    for file in change.files:
        content = file.after
        found = with_file(
            found, FileState(file.path, "regular", "644", "0:0", len(content), file.digest_after, content)
        )
        if file.path == DROP_IN:
            unit = found.measurement.unit
            held = unit.properties["DropInPaths"].split() if unit else []
            found = with_unit(found, DropInPaths=" ".join(dict.fromkeys([*held, DROP_IN])))
        if file.path == CRI_DOCKER_DROP_IN:
            command = content.decode().rpartition("ExecStart=")[2].strip()
            services = {CRI_DOCKER: _cri_dockerd(CRI_DOCKER_DROP_IN, command)}
            found = replace(found, measurement=replace(found.measurement, services=services))
    asked = layout.find(found)
    return with_command(found, asked.pieces[0].text, *asked.asked)


SURROUNDINGS = NodeSurroundings(
    cgroups=Listing(("/init.scope", "/kubepods.slice", "/system.slice", "/system.slice/system-getty.slice", "/user.slice")),
    sockets=Listing(("/run/containerd/containerd.sock", "/run/docker.sock")),
    devices=Listing(),
    manifests=(Manifests("/etc/kubernetes/manifests", Listing()),),
    sysctls={
        "vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1",
        "kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000",
    },
    swaps=(),
    rooms=(
        Room("kubelet", "/var/lib/kubelet", "ext2/ext3", 100_000_000, 60_000_000, 6_000_000, 5_900_000),
        Room("containerd.service", "/var/lib/containerd", "ext2/ext3", 100_000_000, 60_000_000, 6_000_000, 5_900_000),
    ),
    inhibit_delay=5.0,
    processes=(UnitProcesses("containerd.service", "containerd", 1), UnitProcesses("containerd.service", "containerd-shim", 30)),
)  # fmt: skip
"""Of a worker as kubeadm leaves it, with containerd and the systemd driver."""
