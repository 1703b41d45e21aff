"""A cluster in memory that owns settings: kubeadm nodes that answer in the agent's protocol, with the real planner, journal and runs."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rollout.app.apply import apply_plan
from rollout.app.planning import plan_and_apply
from rollout.app.ports import ApiSources, Nodes, Target
from rollout.core.model.inventory import Endpoints, Inventory, Node
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan
from rollout.core.model.pods import PlacedPod
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import Snapshot, digest
from rollout.core.presentation.nothing_to_do import NothingToDo
from rollout.core.run.state import Ending, RunState
from rollout.errors import AwayError, InputError, Problem
from rollout.features.own.asking.owned import own_run
from rollout.kubelet import versions
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.stacked_agents import StackedAgents, StackedNode
from tests.app.test_load import TEMPLATES
from tests.app.test_planning import Reader
from tests.kubelet.nodes import CONFIG, DEB, kubeadm

PLAYBOOK = """\
name: p
settings: {maxPods: 99}
waves: [canary, rest]
limits: {perRack: 100%, pace: 100}
soak: 0s
passes: 1
rehearsal: false
"""


@dataclass
class KubeadmNode(StackedNode):
    """``machine``: which machine has the name now."""

    name: str = ""
    machine: int = 0
    version: str = "1.20.15"

    def do(self, verb: str, words: Mapping[str, str], lines: Sequence[str]) -> Iterable[str]:
        if verb == "apply" and words["machine"] != self.machine_id:
            return (f"refused machine-id-changed /etc/machine-id has {self.machine_id}",)
        said = self._read() if verb == "snapshot" else super().do(verb, words, lines)
        return (self._process(line.split()[1]) if line.startswith("process ") else line for line in said)

    @property
    def machine_id(self) -> str:
        return digest(f"{self.name}/{self.machine}".encode())[:32]

    def _state(self, tx: str = "") -> Iterator[str]:
        yield from (line for line in super()._state(tx) if not line.startswith("fact machine-id"))
        yield f"fact machine-id {self.machine_id}"

    def _process(self, pid: str) -> str:
        """With the arguments that its environment file adds."""
        process = kubeadm(self.name, self.version, _runtime(self.version)).measurement.process
        assert process is not None
        added = re.search(r"^KUBELET_EXTRA_ARGS=(.*)$", self.files.get(DEB, b"").decode(), re.MULTILINE)
        words = (*process.command_line, *(added[1].strip('"').split() if added else ()))
        return f"process {pid} {_base64(b''.join(word.encode() + bytes(1) for word in words))}"

    def _read(self) -> Iterator[str]:
        """As the agent reports it, with what applies have written."""
        yield from self._state()
        found = kubeadm(self.name, self.version, _runtime(self.version))
        yield f"fact boot-id {found.boot_id}"
        yield f"fact kubelet-version Kubernetes v{self.version}"
        yield from (f"fact runtime-{name} {version}" for name, version in found.runtimes.items())
        yield from (f"fact {key} {value}" for key, value in found.facts.items())
        unit = found.measurement.unit
        assert unit is not None
        yield from (f"unit {unit.name} {key} {value}" for key, value in unit.properties.items())
        yield "process 1234"
        yield from ("healthz ok", "lenient 0")
        for path in dict.fromkeys((*found.files, *self.files)):
            content = self.at(path)
            if content is None:
                yield f"file absent - - - - {path} -"
            else:
                yield f"file regular 644 0:0 {len(content)} {digest(content)} {path} +"
                yield f"content {_base64(content)}"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _old_files(found: Snapshot) -> dict[str, bytes]:
    return {path: state.content for path, state in found.files.items() if state.content is not None}


def machine(name: str, number: int = 0, version: str = "1.20.15") -> KubeadmNode:
    """A machine as its image has it."""
    return KubeadmNode(
        _old_files(kubeadm(name, version, _runtime(version))), name=name, machine=number, version=version
    )


def _runtime(version: str) -> str:
    return "containerd" if versions.known(version).minor > 23 else "dockershim"


@dataclass
class Fleet(FakeCall):
    """``machines``: every node that can be reached. ``live``: the Nodes of the API server (``None``: no kubeconfig).

    ``api_away``: why it does not answer; ``""``: it does. ``remembers``: when the inventory's nodes were listed, if their source does not answer now.
    """

    machines: dict[str, KubeadmNode] = field(default_factory=dict)
    live: tuple[LiveNode, ...] | None = None
    remembers: str = ""
    api_away: str = ""
    contacts: Counter[str] = field(default_factory=Counter)
    verbs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.texts = self.texts or {"playbooks/p.yaml": PLAYBOOK, **TEMPLATES}
        self.agents = StackedAgents(self.machines)

    def nodes(self) -> Nodes:
        self.opened += 1
        return Connections(self)

    def inventory(self, cluster: str) -> Inventory:
        if self.remembers:
            raise InputError((Problem("no-answer", "no API server"),))
        return super().inventory(cluster)

    def inventory_or_remembered(self, cluster: str) -> Inventory:
        return replace(super().inventory(cluster), remembered=self.remembers)

    def sources(self) -> ApiSources:
        return _Api(self.live or (), self.api_away)

    def lists(self, *names: str, **others: Any) -> None:
        """The nodes that the inventory has from now on."""
        for name in names:
            self.machines.setdefault(name, machine(name))
        endpoints = Endpoints(kubeconfig="k" if self.live is not None else "")
        nodes = {name: Node(name, name, "r", "z") for name in names}
        self.listed = replace(
            Inventory(CLUSTER, "v1.23.17", nodes, {"all": frozenset(names)}, (), "d", endpoints=endpoints), **others
        )

    def changed(self, *overrides: str, limit: str = "", playbook: str = "p") -> RunState:
        """After a run."""
        ended = plan_and_apply(self, Reader(), CLUSTER, playbook, overrides, limit)
        assert not isinstance(ended, NothingToDo)
        assert ended.ending is Ending.DONE
        return ended

    def has(self, name: str, line: str = "maxPods: 99") -> bool:
        return line.encode() in self.machines[name].files[CONFIG]


def owning(folder: Path, *names: str) -> Fleet:
    """A cluster with these nodes that owns maxPods."""
    fleet = Fleet(folder)
    fleet.lists(*names)
    fleet.changed()
    own_run(fleet, "")
    fleet.contacts.clear()
    fleet.verbs.clear()
    return fleet


@dataclass
class Connections:
    """The port ``Nodes`` that counts: ``fleet.contacts`` has the connections to each node, ``fleet.verbs`` the requests."""

    fleet: Fleet
    open: set[str] = field(default_factory=set)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        assert command.request is not None
        with self.fleet.agents.lock:
            self.fleet.contacts[target.name] += target.name not in self.open
            self.open.add(target.name)
            self.fleet.verbs[target.name, command.request.words.split()[0]] += 1
        return self.fleet.agents.run(target, command)

    def release(self, target: Target) -> None:
        self.open.discard(target.name)

    def close(self) -> None:
        self.fleet.opened -= 1


def live(name: str, *, ready: str = "True", since: str = "1970-01-01T00:00:00Z", **others: Any) -> LiveNode:
    known = LiveNode(
        name, name, "1970-01-01T00:00:00Z", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="",
        os_image="", ready=ready, ready_since=since,
    )  # fmt: skip
    return replace(known, **others)


@dataclass(frozen=True)
class _Api:
    nodes: tuple[LiveNode, ...]
    away: str = ""

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        assert (kubeconfig, context) == ("k", "")
        if self.away:
            raise AwayError("not-reached", self.away)
        return self.nodes

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        return ()

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, object]:
        raise AssertionError(node)

    def ansible(self, path: str) -> str:
        raise AssertionError(path)

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise AssertionError(path)


def apply_newcomers(fleet: Fleet, plan: Plan) -> None:
    """As `rollout apply` does a saved plan."""
    with closing(fleet.nodes()) as nodes:
        ended = apply_plan(fleet, FakeOperator(), nodes, plan, fleet.listed, (), fresh=False)
    assert not isinstance(ended, NothingToDo)
    assert ended.ending is Ending.DONE
