"""The smallest harm that each gate could see in a wave: on how many of its nodes at least.

A gate that is asked of each node sees one node. What a gate of a wave sees, its kind says; of most it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Plan, Wave
from rollout.core.text.terminal import counted, printable


@dataclass(frozen=True, slots=True)
class SmallestHarm:
    """``nodes``: fewer harmed nodes of the wave cannot fail this gate; ``None``: not known."""

    gate: str
    nodes: int | None


def smallest_harms(plan: Plan, wave: Wave) -> tuple[SmallestHarm, ...]:
    """For each gate, in the order of the plan."""
    kinds = Counter(plan.nodes[name].group for name in wave.nodes)
    fewest = min(kinds.values(), default=0)
    return tuple(
        SmallestHarm(gate.name, 1 if gate.scope is GateScope.NODE else gate.asks.least_harmed(fewest))
        for gate in plan.gates
    )


def harm_words(plan: Plan, wave: Wave) -> str:
    """``smallest harm noticed: on 1 of 4 nodes by unit, healthz; on 2 of 4 nodes by latency; not known of alerts``."""
    found: dict[int | None, list[str]] = {}
    for harm in smallest_harms(plan, wave):
        found.setdefault(harm.nodes, []).append(harm.gate)
    return f"smallest harm noticed: {'; '.join(_groups(found, len(wave.nodes))) or 'none, without a gate'}"


def _groups(found: dict[int | None, list[str]], total: int) -> Iterator[str]:
    for nodes in sorted(nodes for nodes in found if nodes is not None):
        yield f"on {nodes} of {counted(total, 'node')} by {printable(', '.join(found[nodes]), 300)}"
    if None in found:
        yield f"not known of {printable(', '.join(found[None]), 300)}"
