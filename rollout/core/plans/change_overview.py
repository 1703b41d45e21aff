"""All that a plan does, short enough to read before confirming it. Whatever else its file contains, this is what happens."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rollout.core.model.gates import CommandQuery, GateScope
from rollout.core.model.plan import Change, Plan
from rollout.core.plans import plan_codec
from rollout.core.text.terminal import counted, printable

_WHERE = {GateScope.NODE: "on each node", GateScope.WAVE: "here, for each wave"}


def does_lines(plan: Plan) -> tuple[str, ...]:
    """The plan's digest, each file with how many nodes it is written on, what is restarted, and the gates' commands."""
    changes = {group.name: group.change for group in plan.groups}
    changed = [changes[node.group] for node in plan.nodes.values()]
    return (f"plan {plan_codec.digest(plan)}", *_does(changed), *_commands(plan))


def _does(changed: Sequence[Change]) -> Iterator[str]:
    """One line per file or unit; most nodes first."""
    found = Counter(
        said
        for change in changed
        for said in (
            *(f"writes {file.path}" for file in change.files),
            *(f"restarts {unit}" for unit in change.units),
            *(f"sends SIGHUP to {unit}" for unit in change.hangups),
        )
    )
    order = ("writes", "restarts", "sends")
    for said in sorted(found, key=lambda said: (order.index(said.split()[0]), -found[said], said)):
        yield f"  {printable(said, 400)}  on {counted(found[said], 'node')}"


def _commands(plan: Plan) -> Iterator[str]:
    for gate in plan.gates:
        if isinstance(gate.asks, CommandQuery):
            yield f"  runs {_WHERE[gate.scope]}: {printable(shlex.join(gate.asks.words), 2000)}"
