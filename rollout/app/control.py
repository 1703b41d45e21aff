"""Requests to a run from another terminal: written into the journal, handled by the controller within seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from rollout.app.call import CallPorts, Operator
from rollout.app.chosen_run import chosen_run_at_work
from rollout.app.following import Follower, attendance, is_at_work
from rollout.app.freezes import check_not_frozen
from rollout.app.journal_away import AWAY
from rollout.app.ports import Journal
from rollout.core.presentation.summary_text import last_heartbeat
from rollout.core.run.events import OperatorRequest, RequestWord
from rollout.core.run.state import Phase, RunState
from rollout.errors import StateError

PATIENCE = 10.0
"""Seconds to wait until the controller has handled a request."""

STEP = 0.2
ALREADY_PAUSED = "paused-already"


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """The last state of the run that was seen. ``heard`` false: the request still waits.

    ``undone``: it was done, and a later request or a halt has changed that already.
    """

    state: RunState
    heard: bool
    undone: bool = False

    @property
    def exit_code(self) -> int:
        return 0 if self.heard else 5


def ask_run(
    call: CallPorts,
    run: str,
    word: RequestWord,
    wait: Callable[[float], None],
    revert: str = "",
    operator: Operator | None = None,
) -> RequestStatus:
    """``ask`` of the run; ``run`` ``""``: of the one in progress. ``operator``: confirms what starts more nodes."""
    journal = call.past()
    name = chosen_run_at_work(call, journal, run)
    if operator is not None:
        cluster = _possible(journal, name, word).state.order.cluster
        operator.confirm(cluster, f"run {name} on {cluster} will start more nodes")
    return ask(journal, name, word, call.who, call.reason, revert, wait)


def ask(
    journal: Journal, run: str, word: RequestWord, who: str, reason: str, revert: str, wait: Callable[[float], None]
) -> RequestStatus:
    """Record a request for the controller of ``run`` and wait until it is handled. Raises if none can handle it.

    Whether it took effect is decided by the state that it met: others may have been handled right before and after it.
    """
    follower = _possible(journal, run, word)
    number = journal.ask(run, word, who, reason, revert)
    waited, met = 0.0, None
    while met is None and waited < PATIENCE and follower.state.phase is not Phase.ENDED:
        wait(STEP)
        waited += STEP
        met = _met(follower, number)
    state = follower.state
    if met is None and state.phase is Phase.ENDED:
        journal.withdraw(number)  # a later resume must not do what is reported here as not done
        _too_late(state, word)
    if met is None:
        return RequestStatus(state, heard=False)
    if met.phase in (Phase.CLOSING, Phase.ENDED):
        _too_late(state, word)
    _check_state(met, word)
    return RequestStatus(state, heard=True, undone=_undone(state, word))


def _possible(journal: Journal, run: str, word: RequestWord) -> Follower:
    """The run as it is now. Raises if no controller would do it."""
    follower = Follower(journal, run)
    follower.catch_up()
    _check(journal, follower.state, word)
    return follower


def _met(follower: Follower, number: int) -> RunState | None:
    """The state before the controller handled the request, once it has. The request is recorded: an outage changes nothing."""
    met = None
    try:
        for event, before, _ in follower.steps():
            if isinstance(event, OperatorRequest) and event.request == number:
                met = before
    except StateError as error:
        if error.reference != AWAY:
            raise
    return met


def _undone(state: RunState, word: RequestWord) -> bool:
    if word is RequestWord.ABORT:
        return False
    return state.halt is not None or (state.paused is None) is (word is RequestWord.PAUSE)


def _too_late(state: RunState, word: RequestWord) -> NoReturn:
    now = state.halt.message if state.halt else f"{state.ending or state.phase}"
    hint = f"`rollout rollback {state.order.run}` reverts it" if word is RequestWord.ABORT else ""
    raise StateError("too-late", f"run {state.order.run} was already ending when it got the request: {now}", hint=hint)


def _check(journal: Journal, state: RunState, word: RequestWord) -> None:
    run = state.order.run
    if state.phase is Phase.ENDED:
        raise StateError("run-ended", f"run {run} has ended: {state.ending}", hint=f"`rollout report {run}`")
    if not is_at_work(journal, state.order.cluster, run):
        hint = (
            f"`rollout resume {run}{' --promote' if word is RequestWord.CONTINUE else ''}` or `rollout rollback {run}`"
        )
        last = last_heartbeat(attendance(journal, state.order.cluster, run))
        raise StateError("no-controller", f"no controller is at work on run {run}{last}", hint=hint)
    if word is RequestWord.CONTINUE:
        check_not_frozen(journal, state.order.cluster)
    _check_state(state, word)


def _check_state(state: RunState, word: RequestWord) -> None:
    """Whether a controller would do it in this state."""
    run = state.order.run
    if state.halt is not None:
        raise StateError("halting-already", f"run {run} is already halting: {state.halt.message}")
    if word is RequestWord.CONTINUE and state.paused is None:
        window = f"; its change window is closed: {state.closed.why}" if state.closed else ""
        raise StateError("not-paused", f"run {run} is neither paused nor held{window}")
    if word is RequestWord.PAUSE and state.paused is not None:
        raise StateError(ALREADY_PAUSED, f"run {run} is already paused: {state.paused.reason or 'no reason given'}")
