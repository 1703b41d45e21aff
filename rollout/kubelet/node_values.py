"""The values of one node that conditions of tables ask for: of its kubelet, its runtime and its snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.configuration.outcome import KubeletOutcome
from rollout.kubelet.node import arguments
from rollout.kubelet.node.layout import Layout, LayoutError
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.runtimes import known
from rollout.kubelet.runtimes.description import Description

_FACTS = ("cgroup",)
"""The facts of a snapshot that conditions name: nodes that differ in others only are alike."""
_KUBEADM_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"


def now(fit: FitNode) -> NodeValues:
    """The values with the files as they are."""
    runtime = known.describe(known.runtime_of(fit))
    try:
        read: Mapping[str, Value] | None = runtime.values(fit.snapshot)
    except LayoutError:
        read = None
    read_facts = {name: fit.snapshot.facts[name] for name in _FACTS if name in fit.snapshot.facts}
    facts = {**read_facts, "runtime": runtime.runtime.value, **_kubeadm(fit.snapshot)}
    return NodeValues(fit.version.minor, fit.outcome.effective, _flags(fit.layout, runtime), read, facts)


def after(
    fit: FitNode, before: NodeValues, outcome: KubeletOutcome, then: Layout, wanted: Mapping[str, Setting]
) -> NodeValues:
    """The values once the change is made. ``wanted``: the intents with a home in the runtime's own configuration."""
    runtime = known.describe(known.runtime_of(fit))
    version = runtime.version(fit.snapshot.runtimes)
    rows = {name: runtime.row(name, version) for name in wanted}
    set_ = {
        row.key: wanted[name].value
        for name, row in rows.items()
        if row is not None and not isinstance(wanted[name].value, dict)
    }
    read = None if before.runtime is None else {**before.runtime, **set_}
    return NodeValues(before.minor, outcome.effective, _flags(then, runtime), read, before.facts)


def _flags(layout: Layout, runtime: Description) -> Mapping[str, str]:
    """The flags of the command line; those that configure a runtime inside the kubelet have their defaults."""
    defaults = {row.key: row.default for row in runtime.rows if row.in_kubelet}
    return {**defaults, **{flag.name: flag.value for flag in arguments.given(layout.asked)}}


def _kubeadm(snapshot: Snapshot) -> Mapping[str, str]:
    """Whether kubeadm's file of flags has any: ``kubeadm-flags`` is ``empty`` or ``set``, and missing without the file."""
    state = snapshot.files.get(_KUBEADM_FLAGS)
    if state is None or state.content is None:
        return {}
    empty = state.content.strip() in (b'KUBELET_KUBEADM_ARGS=""', b"KUBELET_KUBEADM_ARGS=")
    return {"kubeadm-flags": "empty" if empty else "set"}
