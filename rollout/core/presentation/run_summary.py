"""How a run ended, in words that stay: what a version with other rules can still show of it.

Written down once, at the end. Names here are those of the journal's table ``summaries``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.run.state import Goal, NodeState, RunState
from rollout.core.text.nodesets import fold


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes, and which: a folded nodeset."""

    count: int
    nodes: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """``ended`` is seconds since the epoch. ``why``: the halt; ``""``: none. ``counter``: the highest token that it had or saw.

    ``nodes`` is node state → nodes; ``owed``, ``cordoned`` are nodesets of what was left to do. ``reverted`` (rollbacks
    only) is run → nodeset: whose change was reverted where.
    """

    ended: float
    ending: str
    exit_code: int
    why: str
    counter: int
    nodes: Mapping[str, Nodes]
    owed: str
    cordoned: str
    reverted: Mapping[str, str]


def run_summary(state: RunState) -> RunSummary:
    """Of a run that has ended."""
    told = summarize(state)
    together: dict[str, list[str]] = {}
    for name, record in state.nodes.items():
        together.setdefault(record.state.value, []).append(name)
    return RunSummary(
        ended=state.now,
        ending=state.ending.value if state.ending else "",
        exit_code=exit_code(state) or 0,
        why=told.halt,
        counter=max(state.counter, state.highest),
        nodes={kind.value: _nodes(together[kind.value]) for kind in NodeState if kind.value in together},
        owed=told.owed,
        cordoned=fold(name for name, record in state.nodes.items() if record.cordoned),
        reverted={run: fold(names) for run, names in reverted(state).items()},
    )


def reverted(state: RunState) -> Mapping[str, tuple[str, ...]]:
    """Of a rollback: run → the nodes on which that run's change was reverted; of another run: nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for name, record in state.nodes.items() if state.order.goal is Goal.REVERT else ():
        if record.state is NodeState.REVERTED:
            run = state.transaction(name).rpartition("-")[0]
            found[run] = (*found.get(run, ()), name)
    return found


def _nodes(names: list[str]) -> Nodes:
    return Nodes(len(names), fold(names))
