"""The machine: ``step(state, event) -> (state, commands)``. Pure; the driver, resume and the simulator all use it.

Theory. What can become of a *node* is the table in ``transitions``. What can become of the *run* is the chain of
phases below; after every event the run is moved on as far as it can go. Nothing here does I/O, and time is only what
the event said.

    opening ── every node claimed ──▶ running ── wave at rest ──▶ soaking ── K passes ──▶ gating ─┐
       │                                ▲  │                         │                       │    │
       │ preflight, foreign claim       └──┼──────── next wave ──────┼───────────────────────┼────┘
       ▼                                   ▼ budget spent, no room,  ▼ gate not passed       ▼ last wave
    closing ◀──────────────────────────  halting: in-flight ends, what must go back goes back  closing ──▶ ended

Events that change nothing but ``now`` are not journaled (see ``app.driver``), so a tick is free to be frequent.
"""

from __future__ import annotations

from dataclasses import replace

from rollout.core.commands import Command
from rollout.core.draft import Draft
from rollout.core.events import FENCES, Answered, Event, InterruptAsked, Resumed, Ticked, Trigger, WaveJudged
from rollout.core.phases import advance
from rollout.core.state import Ending, Goal, Halt, NodeRecord, NodeState, Order, Phase, RunState, Verb
from rollout.core.verdict import Verdict


def opening(order: Order, counter: int, at: float) -> tuple[RunState, tuple[Command, ...]]:
    """The first state of a run and the claims it starts with."""
    start = NodeRecord(since=at)
    if order.goal is Goal.REVERT:
        start = replace(start, state=NodeState.UNKNOWN, want_back=True)
    state = RunState(
        order=order, counter=counter, phase=Phase.OPENING, wave=0, now=at, nodes=dict.fromkeys(order.nodes, start)
    )
    draft = Draft(state)
    for name in order.nodes:
        draft.ask(name, Verb.READ)
    return draft.finish()


def step(state: RunState, event: Event) -> tuple[RunState, tuple[Command, ...]]:
    """The next state, and what to do about it."""
    # Within a controller time never goes back; the clock of the next one may be behind, and is the one that counts.
    draft = Draft(replace(state, now=event.at if isinstance(event, Resumed) else max(state.now, event.at)))
    match event:
        case Ticked():
            pass
        case Answered():
            _answered(draft, event)
        case WaveJudged():
            _wave_judged(draft, event)
        case InterruptAsked():
            _interrupt(draft)
        case Resumed():
            _resumed(draft, event)
    advance(draft, ticked=isinstance(event, Ticked))
    return draft.finish()


def _answered(draft: Draft, event: Answered) -> None:
    record = draft.nodes.get(event.node)
    if record is None or record.asked is None or record.serial != event.serial:
        return  # an answer to a question that is no longer open
    draft.seen_counter(event.counter)
    draft.put(event.node, asked=None)
    if event.verb is Verb.CLEAN:
        draft.put(event.node, leftovers=event.leftovers)
        return
    if record.state in _LAST_WORDS:
        return  # it was given up, or its end is known: a resume asks again
    if event.trigger is Trigger.REFUSED and event.reference in FENCES:
        draft.fenced(event.node, event.reference, event.message)
        return
    if event.trigger is Trigger.GATES_PASSED and record.state is NodeState.CONFIRMED:
        draft.put(event.node, passes=record.passes + 1)
    draft.meet(event.node, event.trigger, event.reference, event.message)


_LAST_WORDS = frozenset(
    {NodeState.UNREACHABLE, NodeState.REVERTED, NodeState.FAILED, NodeState.REFUSED, NodeState.SKIPPED}
)


def _wave_judged(draft: Draft, event: WaveJudged) -> None:
    if draft.state.phase is not Phase.GATING or event.wave != draft.state.wave:
        return
    if event.verdict is Verdict.PASS:
        draft.set(gate_asked=False)
        draft.next_wave()
    else:
        draft.halt(Ending.HALTED, f"wave-gate-{event.verdict}", event.evidence)


def _interrupt(draft: Draft) -> None:
    draft.set(interrupted=True)
    if draft.state.halt is None and draft.state.phase not in (Phase.CLOSING, Phase.ENDED):
        halt = Halt(Ending.INTERRUPTED, "interrupted", "stopped by the operator; in-flight nodes end first", draft.now)
        draft.set(halt=halt, phase=Phase.HALTING)


def _resumed(draft: Draft, event: Resumed) -> None:
    """A new controller reads every node back, then goes on from where the run stood.

    A halt that had ended is accepted by being resumed: its nodes are no longer charged, and who was taken back for
    others' sake goes again. A halt that was still taking nodes back when its controller died goes on halting.
    """
    halt = draft.state.halt
    halted = halt is not None and halt.ending is Ending.HALTED
    accepted, halting = halted and draft.state.ending is not None, halted and draft.state.ending is None
    draft.set(
        counter=event.counter, phase=Phase.OPENING, halt=halt if halting else None, ending=None, interrupted=False,
        gate_asked=False, started=(), claims=1, highest=0,
    )  # fmt: skip
    again = draft.state.order.goal is Goal.APPLY and not halting
    for name, record in tuple(draft.nodes.items()):
        if again and record.state is NodeState.REVERTED and record.cause is None:
            draft.put(name, state=NodeState.PENDING, attempt=record.attempt + 1, want_back=False)
        elif again and record.state is NodeState.CONFIRMED:
            draft.put(name, want_back=False)
        settled = draft.now + draft.state.order.nodes[name].settle
        draft.put(
            name, asked=None, orphaned=True, reads=0, accepted=record.accepted or (accepted and bool(record.cause)),
            since=min(record.since, draft.now), busy_until=min(record.busy_until, settled),
        )  # fmt: skip
        if record.reference in FENCES:
            draft.put(name, reference="", message="")  # whether another run still has it, it will say
        draft.meet(name, Trigger.RESUMED)
    draft.first_open_wave()
