"""One node as planning sees it: how its kubelet is started, from what, and what that kubelet makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.inventory import Node
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.configuration.outcome import Level, Outcome, Sources
from rollout.kubelet.node import drift, layout, sources
from rollout.kubelet.node.layout import Layout, LayoutError
from rollout.kubelet.runtime_versions import Runtime
from rollout.kubelet.versions import Version


@dataclass(frozen=True, slots=True)
class Found:
    """``outcome`` is what the kubelet makes of ``sources`` today: it starts, else the node was refused."""

    node: Node
    snapshot: Snapshot
    version: Version
    layout: Layout
    sources: Sources
    outcome: Outcome
    runtime: Runtime


def find(snapshot: Snapshot, version: Version, node: Node) -> Found:
    """What was found, or ``LayoutError``. A kubelet that runs although by us it would not start is not understood."""
    now = layout.find(snapshot)
    if now.flag("--dynamic-config-dir"):
        said = f"--dynamic-config-dir={now.flag('--dynamic-config-dir')}"
        raise LayoutError("config-dir-in-use", f"{said}: the API server decides what the kubelet's configuration is")
    given = sources.sources_of(snapshot, now)
    outcome = sources.outcome(version, given)
    if not outcome.starts:
        drift.check(now, ())
        message = f"this kubelet runs, but by our reading it would not start with what is on the node: {fatal(outcome)}"
        raise LayoutError("config-not-understood", message)
    runtime = layout.runtime(now, version, outcome.effective.get("containerRuntimeEndpoint"))
    return Found(node, snapshot, version, now, given, outcome, runtime)


def fatal(outcome: Outcome) -> str:
    """Why the kubelet does not start, in its own words."""
    said = [message.text for message in outcome.messages if message.level is Level.FATAL]
    return "; ".join(said) or "it gives no reason"
