"""Goes on with a run that was interrupted or halted, and does what a run that ended has left to do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from rollout.app.call import CallPorts, CordonsResult, Operator
from rollout.app.chosen_run import chosen_run
from rollout.app.claims import Freed, held_by, set_free
from rollout.app.following import replay
from rollout.app.freezes import check_not_frozen
from rollout.app.node_access import only
from rollout.app.ports import Journal
from rollout.app.reading import read_receipts
from rollout.app.revert import RunResult, proofs_of
from rollout.app.runs import changes_since, highest_counter, leased, needs_of_run, resumable, with_pending_recovery
from rollout.app.runs import resume as resume_order
from rollout.core.model.frozen import dataclass
from rollout.core.plans.fleet_comparison import change_lines, field_lines
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.drift_text import NotAsked, no_answer_lines, not_done
from rollout.core.run.drains import restart_may_come
from rollout.core.run.events import Request, RequestWord
from rollout.core.run.state import Ending, Goal, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import StateError


@dataclass(frozen=True, slots=True)
class ClaimsEnded:
    """Of a run without pending recoveries: the claims that it had left on nodes."""

    run: str
    freed: tuple[Freed, ...]
    no_answer: tuple[NotAsked, ...] = ()

    @property
    def exit_code(self) -> int:
        return 4 if self.no_answer or any(node.still for node in self.freed) else 0


@dataclass(frozen=True, slots=True)
class OnlyCordons:
    """Of a run that halted or was interrupted: ``rollout resume`` does its pending recoveries."""

    state: RunState
    cordons: CordonsResult

    @property
    def exit_code(self) -> int:
        return 0 if self.cordons.all_lifted else 4


def resume_run(call: CallPorts, operator: Operator, run: str, *, promote: bool, most_left: bool = False) -> RunResult:
    """``run`` ``""``: the newest. ``promote``: also lift a pause, or a hold after a wave. ``most_left``: see ``changes_since``."""
    call = call.patient()
    journal = call.past()
    run = chosen_run(call, journal, run)
    state = resumable(journal, run)
    waiting = journal.requests(state.order.run, state.heard)
    operator.show(_request_lines(waiting, "request not handled yet"))
    promote = promote and bool(state.paused is not None or waiting)
    why = " after its halt" if state.halt else ""
    return continue_run(call, operator, journal, state, why, promote=promote, most_left=most_left)


def recover_run(
    call: CallPorts, operator: Operator, run: str, *, most_left: bool = False
) -> RunResult | ClaimsEnded | OnlyCordons:
    """Do the pending recoveries of a run that has ended, or else end its claims, or else lift its cordons. ``run`` ``""``: the newest."""
    journal = call.past()
    run = chosen_run(call, journal, run)
    try:
        state = with_pending_recovery(journal, run)
    except StateError as error:
        ended: ClaimsEnded | OnlyCordons | None = None
        if error.reference == "nothing-owed":
            ended = _end_claims(call, operator, journal, run)
        if error.reference == "not-done":
            ended = _lift_cordons(call, operator, journal, run)
        if ended is None:
            raise
        return ended
    waiting = journal.requests(state.order.run, state.heard)
    operator.show(_request_lines(waiting, "request not handled before the run ended, and ignored now"))
    config_map = state.order.config_map if state.owes_config_map else None
    owed = (
        fold(name for name, record in state.nodes.items() if record.owed), config_map.title if config_map else "",
    )  # fmt: skip
    why = f" to recover {' and '.join(filter(None, owed))}"
    return continue_run(call, operator, journal, state, why, most_left=most_left)


def _request_lines(waiting: Sequence[Request], heading: str) -> list[str]:
    """The requests of other terminals, for the operator to read before the confirmation."""
    return [f"{heading}: {printable(f'{each.word} by {each.who}: {each.reason}', 300)}" for each in waiting]


def _end_claims(call: CallPorts, operator: Operator, journal: Journal, run: str) -> ClaimsEnded | None:
    """End the claims that an ended run left on nodes. Changes nothing else there. ``None``: there are no claims."""
    state = replay(journal, run)
    inventory = call.inventory(state.order.cluster)
    access = call.access(inventory, tuple(name for name in state.order.nodes if name in inventory.nodes))
    with closing(call.nodes()) as nodes:
        reports = read_receipts(access, nodes, keep=call.keep)
        held = held_by(reports, run)
        away = not_done(reports)
        operator.tell(no_answer_lines(away))
        if not held:
            return None
        cluster = state.order.cluster
        operator.confirm(cluster, f"the claim of run {run} will end on {counted(len(held), 'node')} of {cluster}")
        counter = max(highest_token(reports), highest_counter(journal, cluster)) + 1
        return ClaimsEnded(run, set_free(only(access, tuple(held)), nodes, held, {run}, run, counter), away)


def _lift_cordons(call: CallPorts, operator: Operator, journal: Journal, run: str) -> OnlyCordons | None:
    """Lift the cordons of a run that ended, but not as done. ``None``: it left none, or has not ended.

    Those of nodes with an apply that may still come stay: a resume reads these nodes first.
    """
    state = replay(journal, run)
    cordoned = tuple(name for name, record in state.nodes.items() if record.cordoned and not restart_may_come(record))
    if state.phase is not Phase.ENDED or not cordoned:
        return None
    cluster = state.order.cluster
    inventory = call.inventory(cluster)
    operator.confirm(cluster, f"{counted(len(cordoned), 'node')} of {cluster} will be uncordoned")
    with leased(journal, cluster, run):  # a resumed run lifts them itself, and may drain again
        return OnlyCordons(state, call.lift_cordons_of(journal, inventory, state, cordoned))


def continue_run(
    call: CallPorts, operator: Operator, journal: Journal, state: RunState, why: str = "", *, promote: bool = False,
    most_left: bool = False,
) -> RunResult:  # fmt: skip
    """Continue a run, ``why``: as the operator reads it. A rollback that is done by that is proven."""
    cluster = state.order.cluster
    inventory = call.inventory_or_remembered(cluster)
    changes = changes_since(state, journal, inventory, call.jumps(inventory, state.order.nodes), most_left=most_left)
    operator.tell((*change_lines(changes), *field_lines(changes.fields)))
    call.check_still_approved(state, inventory)
    if state.order.goal is Goal.APPLY and state.halt is None and state.phase is not Phase.ENDED:
        check_not_frozen(journal, cluster)  # else nothing is applied any more: it ends what began
    with call.back_ends(inventory, needs_of_run(journal, state.order.run)) as back_ends:
        operator.confirm(cluster, f"run {state.order.run} on {cluster} will continue{why}")
        if promote:  # only now: an operator who declines requests nothing
            journal.ask(state.order.run, RequestWord.CONTINUE, call.who, call.reason, "")
        with call.tools(journal, state.order.limits.in_flight, back_ends, cluster=cluster) as tools:
            there = tuple(name for name in state.order.nodes if name not in changes.left)
            state = resume_order(state, call.access(inventory, there), tools, inventory.conditions, changes)
            if state.order.goal is Goal.REVERT and state.ending is Ending.DONE:
                return RunResult(state, proofs=proofs_of(call, journal, state, inventory, tools))
    return RunResult(state)
