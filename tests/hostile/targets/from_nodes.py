"""Input from nodes: the agent's lines, sudo's output, host certificates, and the configuration files of kubelet and runtime."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any

from rollout.adapters.ssh.certificates import refusal
from rollout.adapters.ssh.known_hosts import KnownHosts
from rollout.app.verify import Known
from rollout.core.model.report import RemoteAnswer
from rollout.core.model.snapshot import FileState, Snapshot, digest
from rollout.core.model.ways_in import Way
from rollout.core.presentation.drift_text import drift_document, drift_lines
from rollout.core.run.events import newer_attempt
from rollout.core.text import documents
from rollout.core.text.terminal import printable
from rollout.features.doctor.asking import _stopped
from rollout.kubelet import versions
from rollout.kubelet.agent import agent_call, sudo
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot, parse_verification
from rollout.kubelet.configuration.outcome import File, Sources
from rollout.kubelet.configuration.startup import outcome
from rollout.kubelet.node import env_file
from rollout.kubelet.node.rancher_secrets import without_secrets
from rollout.kubelet.runtimes.description import Runtime
from tests.app.agents import Agents, access_to
from tests.app.verified import verify_fleet
from tests.hostile.beside import kept_in, spoken, told_beside
from tests.hostile.property import Target
from tests.kubelet import nodes, rancher_nodes
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, DEB, FRAGMENT, KUBEADM, KUBEADM_FLAGS, KUBEADM_TEXT
from tests.kubelet.runtimes import nodes as runtimes

_X = hashlib.sha256(b"x").hexdigest()
_RECEIPT = "tx=t1 run=r counter=1 state=confirmed cause=- left=0 finished=1"
_SNAPSHOT = f"""\
fact machine-id {"a" * 32}
fact boot-id 3f3a
fact kubelet-version Kubernetes v1.29.3
fact runtime-containerd containerd containerd.io 1.6.36 88c3
unit kubelet.service ActiveState active
process 17 {base64.b64encode(b"/usr/bin/kubelet" + bytes(1) + b"--v=2" + bytes(1)).decode()}
service containerd.service LoadState loaded
serving containerd.service 18 {base64.b64encode(b"containerd").decode()}
pulls docker.io/library/a:1 (unnamed)
healthz ok
lenient 0
token 3 r ended
receipt {_RECEIPT}
history {_RECEIPT}
file regular 644 0:0 1 {_X} /etc/x +
file absent - - - - /etc/y -
content {base64.b64encode(b"x").decode()}
command c 0 {base64.b64encode(b"said").decode()}
expected t1 confirmed 1 0 absent {_X} 644 0:0 /etc/x
stale edited 5 kubelet.service /etc/x
took 12
kubelet-root /var/lib/kubelet
cgroups whole /system.slice /kubepods.slice
sockets cut /run/a.sock
devices whole -
manifests /etc/kubernetes/manifests whole etcd.yaml
sysctl vm/overcommit_memory 1
swaps whole /dev/sda2:partition:1000:10
room kubelet /var/lib/kubelet ext2/ext3 100 50 10 5
inhibit-delay 5000000
processes containerd.service whole containerd:1 containerd-shim:30
kubelet t1 1 2
started 7
say done
failed not-durable the disk
left /etc/x
healthy yes fine
end snapshot
"""


def _shown(value: Any) -> Iterator[str]:
    """Every text in a value, except the contents of files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _shown(key)
            yield from _shown(inner)
    elif isinstance(value, tuple | list | frozenset):
        for inner in value:
            yield from _shown(inner)
    elif is_dataclass(value):
        for entry in fields(value):
            yield from _shown(getattr(value, entry.name))


def _answered(verb: str) -> Callable[[bytes], tuple[str, ...]]:
    def read(data: bytes) -> tuple[str, ...]:
        answer = RemoteAnswer(0, data.replace(b"end snapshot", b"end " + verb.encode()), data[-300:], started=True)
        if verb == "snapshot":
            found = parse_snapshot("n", answer)
            if isinstance(found, Snapshot) and found.surroundings is not None:
                near = found.surroundings
                for listed in (near.cgroups, near.sockets):
                    for name in listed.names if listed else ():
                        near.has_cgroup(name), near.has_socket(name)
            return tuple(_shown(found))
        if verb == "verify":
            return tuple(_shown(parse_verification("n", answer)))
        report = parse_report("n", verb, answer, 1.0)
        newer_attempt("r-1", report.receipts)
        return tuple(_shown(report))

    return read


def _done(verb: str) -> tuple[bytes, ...]:
    """What a node answers to a verb that changes something, with the last lines of its kubelet's log."""
    log = base64.b64encode(b"F1120 09:00:00.000000 1 server.go:1] token=CANARY\n").decode()
    text = f"token 3 r live\nreceipt {_RECEIPT}\nfailed not-durable the disk\nhealthy no exited\nlog {log}\nsay done\n"
    return (f"{text}end {verb}\n".encode(),)


def _not_logged_in(data: bytes) -> tuple[str, ...]:
    """What `doctor` says of a login that ended."""
    why = printable(data.decode("utf-8", "replace"))
    answers = (
        RemoteAnswer(1, data, data, started=True),
        RemoteAnswer(None, b"", b"", started=False, reference="auth-failed", message=why),
    )
    return tuple(
        _shown(tuple(each for answer in answers for each in _stopped("n1", Way("n1", "10.0.0.1", 22, "admin"), answer)))
    )


def _said_by_sudo(data: bytes) -> tuple[str, ...]:
    sudo.heard(data, "abc123")
    return sudo.refusal(data, "abc123", status=1, sent=b"sent" in data)


def _state(path: str, content: bytes) -> FileState:
    return FileState(path, "regular", "644", "0:0", len(content), digest(content), content)


def _planned(found: Snapshot, path: str, settings: Mapping[str, Any]) -> Callable[[bytes], tuple[str, ...]]:
    """The plan of a fleet with a node that has a file with these bytes; the kubelet reads no file of more than a few MiB."""
    return lambda data: told_beside(nodes.with_file(found, _state(path, data)), settings)


def _answering(data: bytes) -> tuple[str, ...]:
    """The plan of a fleet with a node that answers with these bytes."""
    answer = RemoteAnswer(0, data, data[-300:], started=True)
    return told_beside(parse_snapshot("n", answer), nodes.IMAGE_PULLS)


def _verified(data: bytes) -> tuple[str, ...]:
    """What `verify` reports of a node that answers with these bytes."""
    said = {("n1", "verify"): RemoteAnswer(0, data, data[-300:], started=True)}
    known = {"n1": Known("r", "a" * 32, 1.0, {CONFIG: _X})}
    traces: list[str] = []
    found, unread = verify_fleet(access_to("n1"), Agents(said), known, kept_in(traces))
    assert not traces, traces[0]
    json.dumps(documents.values(drift_document(found, unread)), allow_nan=False).encode()
    return tuple(drift_lines(found, unread))


def _configuration(data: bytes) -> tuple[str, ...]:
    version = versions.parse("1.31.2")
    assert version is not None
    found = outcome(version, Sources(config=File("config.yaml", data), drop_ins=(File("10.conf", data),)))
    # the kubelet's own texts are printed through `printable`: the reader only has to end
    assert all(message.reference for message in found.messages)
    return ()


def _flags(data: bytes) -> tuple[str, ...]:
    """The arguments of a kubelet's process."""
    version = versions.parse("1.31.2")
    assert version is not None
    found = outcome(version, Sources(flags=tuple(data.decode("utf-8", "replace").split("\n"))))
    assert all(message.reference for message in found.messages)
    return ()


def _sent_back(data: bytes) -> tuple[str, ...]:
    """Names of transactions and runs that a node reported, in a command for it."""
    word = data.decode("utf-8", "replace")
    agent_call.revert("", tx=word, run=word, counter=1, sudo=False, deadline=1.0)
    return ()


def _environment(data: bytes) -> tuple[str, ...]:
    text = data.decode("utf-8", "replace")
    try:
        env_file.values(text)
        again = env_file.assign(text, "KUBELET_EXTRA_ARGS", "--v=2 --node-labels=a=b")
    except ValueError:
        return ()
    assert env_file.values(again)["KUBELET_EXTRA_ARGS"] == "--v=2 --node-labels=a=b"
    return ()


def _certificate(data: bytes) -> tuple[str, ...]:
    return (refusal(data, _authorities(), ("n1",)),)


@cache
def _certificates() -> tuple[bytes, bytes]:
    """A host certificate and its authority's public key, from real keys."""
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key in ("ca", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        order = f"-s {folder}/ca -h -I x -n n1 -V always:forever {folder}/host.pub"
        subprocess.run(["ssh-keygen", "-q", *order.split()], check=True, capture_output=True)
        blob = base64.b64decode((folder / "host-cert.pub").read_text().split()[1])
        return blob, (folder / "ca.pub").read_bytes()


@cache
def _authorities() -> KnownHosts:
    return KnownHosts((f"@cert-authority * {_certificates()[1].decode()}",))


_CRIO = f"{runtimes.CRIO_DIR}/10.conf"
_CRIO_TEXT = '[crio]\n[crio.image]\npause_image = "x"\n[crio.runtime]\nlog_level = "info"\n'
_PULLS = nodes.IMAGE_PULLS
_STATIC_CPUS = replace(
    nodes.kubeadm(
        version="1.33.1",
        runtime="containerd",
        config=f"{CONFIG_TEXT}cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n",
    ),
    surroundings=nodes.SURROUNDINGS,
)
_CONTAINERD = runtimes.node(Runtime.CONTAINERD, "1.7.20", _state(runtimes.CONTAINERD, runtimes.V2.encode()))
_CRIO_NODE = runtimes.node(Runtime.CRIO, "1.29.0", _state(_CRIO, _CRIO_TEXT.encode()))
_DOCKER = runtimes.node(Runtime.DOCKERSHIM, "20.10.24", kubelet="1.23.17")
_DEADLINE = nodes.settings(imagePullProgressDeadline="5m", registryMaxParallelDownloads=3)
_RKE2 = rancher_nodes.OURS
_NAMING = rancher_nodes.rke2(configs={rancher_nodes.SITE: "kubelet-arg: config=/etc/x\n"})
_QPS = nodes.settings((), __registry_qps=9)


def _rke2_units() -> tuple[bytes, ...]:
    more = ("", " --kubelet-arg v=2", " --config=/etc/x")
    return tuple(rancher_nodes.UNIT_TEXT.format(more=each).encode() for each in more)


_UNIT = KUBEADM_TEXT.format(flags=DEB)

TARGETS = (
    *(
        Target(
            f"agent-{verb}", _answered(verb), lambda: (_SNAPSHOT.encode(), b"refused drifted /etc/x\nend snapshot\n")
        )
        for verb in ("snapshot", "verify", "status")
    ),
    *(
        Target(f"agent-{verb}", _answered(verb), partial(_done, verb))
        for verb in ("apply", "confirm", "revert", "cleanup")
    ),
    Target(
        "login",
        _not_logged_in,
        lambda: (b"This account is not available.\n", b"Permission denied"),
    ),
    Target(
        "fleet",
        _answering,
        lambda: (
            spoken(nodes.kubeadm()),
            spoken(nodes.plain()),
            spoken(
                nodes.with_config_dir(
                    nodes.kubeadm(version="1.31.2", runtime="containerd"), {"10-a.conf": "maxPods: 5\n"}
                )
            ),
        ),
    ),
    Target(
        "verify",
        _verified,
        lambda: (_SNAPSHOT.replace("end snapshot", "end verify").encode(),),
    ),
    Target(
        "sudo",
        _said_by_sudo,
        lambda: (b"[rollout % abc123]Sorry, try again.\nrollout abc123 ready\n", b"sudo: a terminal is required\n"),
    ),
    Target(
        "kubelet-config",
        _planned(nodes.kubeadm(), CONFIG, _PULLS),
        lambda: (CONFIG_TEXT.encode(), b"{}\n"),
        examples=60,
    ),
    Target(
        "cpu-manager-state",
        _planned(_STATIC_CPUS, "/var/lib/kubelet/cpu_manager_state", nodes.settings((), reservedSystemCPUs="0-3")),
        lambda: (
            b'{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"pod":{"c":"2-5"}},"checksum":1}',
            b"{}",
        ),
        examples=60,
    ),
    Target("kubelet-unit", _planned(nodes.kubeadm(), KUBEADM, _PULLS), lambda: (_UNIT.encode(),), examples=60),
    Target(
        "kubelet-fragment",
        _planned(nodes.plain(), FRAGMENT, _PULLS),
        lambda: (
            nodes.PLAIN_TEXT.format(more=" --v=2").encode(),
            b"[Service]\nExecStart=-/usr/bin/kubelet '${A}' $B\n",
            b"[Service]\nExecStart=/usr/bin/kubelet --config=" + b"{a:" * 2000 + b"\n",
            b"[Service]\nExecStart=/usr/bin/kubelet --config=/" + b"a" * 6000 + b"\n",
            b"[Service]\nExecStart=/usr/bin/kubelet --config=/c --config-dir=" + b"a" * 6000 + b"\n",
        ),
        examples=60,
    ),
    Target(
        "kubelet-environment",
        _planned(nodes.kubeadm(extra=""), DEB, _PULLS),
        lambda: (b"KUBELET_EXTRA_ARGS=\"--v=2 --node-labels=a=b\"\n# x\nA='b' \\\n c\n",),
        examples=60,
    ),
    Target(
        "kubeadm-flags",
        _planned(nodes.kubeadm(), KUBEADM_FLAGS, _PULLS),
        lambda: (b'KUBELET_KUBEADM_ARGS="--network-plugin=cni"\n',),
        examples=60,
    ),
    Target(
        "containerd",
        _planned(_CONTAINERD, runtimes.CONTAINERD, _DEADLINE),
        lambda: (runtimes.V2.encode(), runtimes.V3.encode()),
        examples=60,
    ),
    Target(
        "rke2-config",
        _planned(
            rancher_nodes.rke2("1.28.15+rke2r1", {_RKE2: "a: b\n"}), _RKE2, nodes.settings((), serializeImagePulls=True)
        ),
        lambda: (
            b"kubelet-arg:\n- max-pods=150\n- node-labels+=a=b\nserver: x\n",
            b"kubelet-arg+: --v=2\n",
            b"kubelet-arg: [" + b"v=2, " * 2000 + b"]\n",
        ),
        examples=60,
    ),
    Target(
        "rke2-named",
        lambda data: told_beside(without_secrets(nodes.with_file(_NAMING, _state("/etc/x", data))), _QPS),
        lambda: (b"kind: KubeletConfiguration\n", b"kind: EncryptionConfiguration\nresources: [{a: b}]\n"),
        examples=20,
    ),
    Target("rke2-unit", _planned(rancher_nodes.rke2(), rancher_nodes.FRAGMENT, _QPS), _rke2_units, examples=60),
    Target("crio", _planned(_CRIO_NODE, _CRIO, _DEADLINE), lambda: (_CRIO_TEXT.encode(),), examples=60),
    Target(
        "dockerd",
        _planned(_DOCKER, runtimes.DAEMON, _DEADLINE),
        lambda: (b'{"max-concurrent-downloads": 3, "log-opts": {"a": "b"}}\n',),
        examples=60,
    ),
    Target("environment", _environment, lambda: (b'A="b c"\nexport D=e\n; x\nKUBELET_EXTRA_ARGS=--v=1\\\n --x\n',)),
    Target(
        "configuration",
        _configuration,
        lambda: (CONFIG_TEXT.encode(), b"<<: {a: 1}\nb: &x !!int 3\nc: *x\n"),
        examples=60,
    ),
    Target("kubelet-flags", _flags, lambda: (b"--v=2\n--max-pods=x\n--node-labels=a=b", b"--no-such-flag=1\n-vv")),
    Target("words-for-the-agent", _sent_back, lambda: (b"r1-1", b"r1 $(id)"), (ValueError,)),
    Target("host-certificate", _certificate, lambda: (_certificates()[0],)),
)
