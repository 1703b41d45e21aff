"""Records the run anew: ``python -m tests.core.run.recorded.make``. Do so only together with a new ``RULES``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rollout.core.model.playbook import Budget, Cause, Limits, PullsInFlight, RevertScope, Scope, Share
from rollout.core.run.events import ContinueAsked
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Phase, RunState, State
from rollout.core.run.transitions import Move
from tests.core.run.drawn import Case, moves
from tests.core.run.test_used_approvals import Approved
from tests.orders import make_order
from tests.plays import EVER, Play

FILE = Path(__file__).parent / "run.jsonl"
MOVES = Path(__file__).parent / "moves.txt"
"""One digest over every move of a node."""
WAVES = (("canary", lambda n: n in ("a-1", "b-1")), ("first", lambda n: n.endswith("-2")), ("rest", lambda _: True))


def told(state: RunState | tuple[tuple[Case, Move], ...]) -> str:
    """One digest over a whole state, or every move of a node, independent of the names of its fields."""
    return sha256(json.dumps(values(state), sort_keys=True).encode()).hexdigest()


def values(kept: Any) -> Any:
    """A value as JSON; of a dataclass the values of its fields, in their order."""
    if isinstance(kept, Move):
        return [values(each) for each in (kept.to, kept.then, kept.charge, kept.owed, kept.why, *kept.also.values())]
    if is_dataclass(kept):
        kind = [kept.state] if isinstance(kept, State) else []  # the states of a node may have no fields
        return [*kind, *(values(getattr(kept, each.name)) for each in fields(kept))]
    if isinstance(kept, Mapping):
        return {"/".join(key) if isinstance(key, tuple) else str(key): values(value) for key, value in kept.items()}
    if isinstance(kept, frozenset):
        return sorted(values(each) for each in kept)
    return [values(each) for each in kept] if isinstance(kept, tuple) else kept


def play() -> Play:
    """Rehearsed, gated, held, crashed, resumed, drained, lost, unhealthy and pulling nodes, halted, resumed again.

    The engine is away at its opening and at the first resume. At the last one, another run has changed the node that was silent.
    """
    order = make_order(
        {"a": 8, "b": 8}, WAVES, rehearsal=True, wave_gates=True, hold=frozenset({"canary"}),
        limits=Limits(per_rack=Share(count=2)), on_failure=RevertScope.WAVE,
        budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=2)),), pulls=PullsInFlight(60.0),
        drain=45.0, drained=lambda name: name.startswith("b"),
    )  # fmt: skip
    game = Approved(order)
    game.fleet.engine_away.append((0.0, 3.0))
    game.sicken("a-5")
    game.cut_off("b-6")
    game.pull("a-1", ("redis",), until=40.0)
    game.pull("b-3", ("model",))
    game.nodes["b-4"].evictions_from = EVER
    game.nodes["b-5"].cordon_stays_until = 300.0
    game.run(until=lambda s: s.paused is not None)
    game.fleet.engine_away.append((game.timeline.now, game.timeline.now + 3.0))
    game.crash_and_resume()
    game.go_on(until=lambda s: s.phase is Phase.SOAKING and s.paused is not None)
    game.feed(ContinueAsked(game.now, "ops@desk", "a quiet night", 1))
    game.go_on()
    game.reconnect("b-6")
    game.changed = frozenset({"b-6"})
    game.crash_and_resume()
    game.go_on()
    return game


def main() -> None:
    game = play()
    lines = [encode_order(game.order), *map(encode_event, game.journal), told(game.state)]
    FILE.write_text("\n".join(lines) + "\n")
    MOVES.write_text(told(moves()) + "\n")


if __name__ == "__main__":
    main()
