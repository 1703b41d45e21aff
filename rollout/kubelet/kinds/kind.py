"""Which kinds of nodes are possible, by the API server and the node labels of an inventory.

A node's labels may give its kubelet, its runtime and how its kubelet was installed (``kubeletVersion``,
``containerRuntime``, ``containerRuntimeVersion``, ``layout``); nodes read from the API server have the first three.
Without a label, every value is possible that the inventory's other nodes and Kubernetes' version skew allow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.inventory import Node
from rollout.kubelet import fields, versions
from rollout.kubelet.runtimes import known
from rollout.kubelet.runtimes.description import Runtime

# Kinds of nodes for people: all of them, or the common properties of some.


def kinds_told(some: Collection[NodeKind], every: Collection[NodeKind]) -> str:
    """``every kind of node``, or ``kubelets 1.22 and 1.23 over containerd (plain)``; properties of all are left out."""
    if set(some) == set(every):
        return "every kind of node"
    minors = sorted({kind.minor for kind in some})
    same = [kind for kind in every if kind.minor in minors]
    runtimes, installed = {kind.runtime for kind in some}, {kind.installed for kind in some}
    over = f" over {_listed(sorted(runtimes))}" if runtimes != {kind.runtime for kind in same} else ""
    how = f" ({_listed(sorted(installed))})" if installed != {kind.installed for kind in same} else ""
    return f"kubelet{'s' * (len(minors) > 1)} {_listed(f'1.{minor}' for minor in minors)}{over}{how}"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


_SKEW, _SKEW_BEFORE, _WIDER_SINCE = 3, 2, 28
"""How many minors a kubelet may be older than its API server (https://kubernetes.io/releases/version-skew-policy/)."""


class Installed(StrEnum):
    """How a kubelet was installed: what its unit reads, and from where."""

    DEB = "kubeadm-deb"
    RPM = "kubeadm-rpm"
    DROP_INS = "kubeadm-dropin"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, order=True)
class NodeKind:
    """One kind of node: its kubelet's version, its runtime, and how the kubelet was installed."""

    minor: int
    version: str
    runtime: Runtime
    runtime_version: str
    installed: Installed


@dataclass(frozen=True, slots=True)
class Kinds:
    """The possible kinds of a cluster's nodes where their labels do not give them."""

    minors: tuple[int, ...]
    installed: tuple[Installed, ...]

    def of(self, node: Node) -> Iterator[NodeKind]:
        """Every kind that this node can be."""
        for minor, version in self._versions(node.labels):
            runtime = known.labelled(node.labels.get("containerRuntime", ""), minor)
            for installed in self._installed(node.labels):
                said = node.labels.get("containerRuntimeVersion", "")
                yield NodeKind(minor, version, runtime, said or known.describe(runtime).usual_version, installed)

    def _versions(self, labels: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
        said = versions.parse(labels.get("kubeletVersion", ""))
        if said is not None:
            return ((said.minor, said.text),) if said.minor in fields.known_minors() else ()
        return tuple((minor, f"1.{minor}.0") for minor in self.minors)

    def _installed(self, labels: Mapping[str, str]) -> tuple[Installed, ...]:
        said = labels.get("layout", "")
        return (Installed(said),) if said in set(Installed) else self.installed


def kinds(api_server: str, nodes: Iterable[Node]) -> Kinds:
    """The minors are those that this API server allows, up to its own.

    Where some nodes have the label ``layout``, the others have Debian packages of kubeadm; where none has, plain units
    are possible too.
    """
    server = versions.known(api_server).minor
    oldest = server - (_SKEW if server >= _WIDER_SINCE else _SKEW_BEFORE)
    minors = tuple(minor for minor in fields.known_minors() if oldest <= minor <= server)
    said = any("layout" in node.labels for node in nodes)
    return Kinds(minors, (Installed.DEB,) if said else (Installed.DEB, Installed.PLAIN))
