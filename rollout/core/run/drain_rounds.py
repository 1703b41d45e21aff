"""What nodes that are drained or have a cordon of ours are asked on ticks. The rules are in ``drains``."""

from __future__ import annotations

from rollout.core.run import drains
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.facts import NodeList
from rollout.core.run.postponed import may_be_asked
from rollout.core.run.state import Drained, Draining, Ending, NodeRecord, NodeState, Phase, Verb
from rollout.core.run.state_builder import StateBuilder, ask, transition
from rollout.core.run.transitions import Decision


def go_round(builder: StateBuilder) -> None:
    """The next round of drains. Nodes that must not be drained any more are pending again; unneeded cordons are lifted."""
    if builder.state.phase is Phase.OPENING or _is_over(builder):
        return
    for name, record in builder.nodes.those(builder.nodes.listed(NodeList.CORDONED)):
        if record.asked:
            continue
        if isinstance(record.current, Draining | Drained):
            _next_round(builder, name, record.current)
        elif not drains.keeps_its_cordon(builder.state, builder.nodes, name) and _is_due(builder, record):
            ask(builder, name, Verb.UNCORDON)


def _is_over(builder: StateBuilder) -> bool:
    """Whether the run has ended, or another one has its nodes and must find our cordons as they are."""
    claimed = builder.state.halt is not None and builder.state.halt.ending is Ending.CLAIMED
    return claimed or builder.state.ending is not None


def _next_round(builder: StateBuilder, name: str, at: Draining | Drained) -> None:
    if not drains.may_go_on(builder.state):
        transition(builder, name, Decision.STOP_DRAINING)
    elif isinstance(at, Draining) and builder.now >= at.again:
        ask(builder, name, Verb.DRAIN)


def _is_due(builder: StateBuilder, record: NodeRecord) -> bool:
    """A run that continues retries for as long as it lasts; a run that is ending retries only for its waiting time."""
    if not record.uncordons:
        return True
    goes_on = builder.state.phase is not Phase.CLOSING
    return builder.now >= record.retry_at and (goes_on or record.uncordons < drains.MOST_TRIES)


def count_anew(builder: StateBuilder) -> None:
    """At a run's end, and when it is resumed: earlier attempts do not count towards the waiting time.

    One attempt stays counted: a cordon that could not be lifted once does not take room from the limits again.
    """
    for name, record in builder.nodes.those(builder.nodes.listed(NodeList.CORDONED)):
        if record.uncordons:
            builder.put(name, uncordons=1, retry_at=builder.now)


def is_to_free(builder: StateBuilder, name: str) -> bool:
    """Whether its cordon is about to be lifted, and so makes room."""
    return drains.is_open(builder.record(name)) and not drains.keeps_its_cordon(builder.state, builder.nodes, name)


def are_open(builder: StateBuilder) -> bool:
    """Whether the run's end waits for cordons."""
    cordoned = builder.nodes.those(builder.nodes.listed(NodeList.CORDONED))
    return not _is_over(builder) and any(drains.is_open(record) for _, record in cordoned)


def change_the_empty(builder: StateBuilder, allowed: int) -> int:
    """Restart drained nodes, as the pace allows; returns how many. They already have their room."""
    drained = builder.nodes.those(builder.nodes.listed(NodeList.DRAINING))
    empty = [name for name, record in drained if _may_restart(builder, record)]
    for name in empty[:allowed]:
        transition(builder, name, Decision.RESTART_EMPTY)
    return len(empty[:allowed])


def _may_restart(builder: StateBuilder, record: NodeRecord) -> bool:
    at = record.current
    return isinstance(at, Drained) and not record.asked and may_be_asked(at.postponed, builder.now)


def uncordoned(builder: StateBuilder, event: Answered) -> None:
    """Its cordon is lifted, or the attempt is repeated; it is pending recovery when a run has waited long enough."""
    if event.trigger is Trigger.UNCORDONED:
        without_cordon(builder, event.node)
        return
    record = builder.record(event.node)
    behind = drains.left_behind(record)
    tries = record.uncordons + 1
    builder.put(event.node, uncordons=tries, retry_at=builder.now + drains.AGAIN_EVERY)
    if tries >= drains.MOST_TRIES:
        kept = tuple(words for words in record.leftovers if words not in behind)
        builder.put(event.node, owed=True, leftovers=(*kept, drains.left_words(event.message)))


def without_cordon(builder: StateBuilder, name: str) -> None:
    """It has no cordon of ours, so its recovery is done, and no leftover of it remains."""
    record = builder.record(name)
    behind = drains.left_behind(record)
    leftovers = tuple(words for words in record.leftovers if words not in behind)
    owed = record.owed and not (behind and record.state in _NOTHING_ELSE)
    builder.put(name, cordoned=False, uncordons=0, leftovers=leftovers, owed=owed)


def owes_a_cordon(record: NodeRecord) -> bool:
    """Whether a node pending recovery only needs its cordon lifted."""
    return record.owed and bool(drains.left_behind(record)) and record.state in _NOTHING_ELSE


_NOTHING_ELSE = frozenset(
    {NodeState.CONFIRMED, NodeState.REVERTED, NodeState.SKIPPED, NodeState.PENDING, NodeState.REFUSED, NodeState.GONE}
)
"""States in which only a cordon can be pending recovery."""
