"""``apply``, ``resume`` and ``recover``."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click

from rollout.adapters.zones import SystemZones
from rollout.app.apply_precheck import look_before, runs_that_applied
from rollout.app.change_windows import WAITS, closed_lines
from rollout.app.following import plan_of, replay
from rollout.app.freezes import check_nodes_not_frozen, check_not_frozen
from rollout.app.maintenance import held_by, set_free
from rollout.app.plan_file import check_preflight
from rollout.app.ports import Journal, Nodes
from rollout.app.reading import only, read_receipts
from rollout.app.runs import (
    changes_since,
    check_nothing_unfinished,
    check_plan,
    highest_counter,
    leased,
    needs_of_run,
    resumable,
    start_apply,
    with_pending_recovery,
)
from rollout.app.runs import resume as resume_run
from rollout.cli.cordons import CordonsDocument, lift_those_of
from rollout.cli.options import known_run, limit_option, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.cli.upkeep import released
from rollout.composition.back_ends import check_backends, gate_backends, needs_to_plan
from rollout.composition.operators import operator, own_logins
from rollout.composition.plan_files import plan_in, preflight_text
from rollout.composition.waiting_plans import how_to_approve
from rollout.composition.wiring import Session
from rollout.core.model.approvals import Approval
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.apply_readiness import Now, PlanDecision, Standings, does_lines
from rollout.core.plans.fleet_comparison import change_lines, field_lines, fleet_changes, promotion_lines
from rollout.core.plans.receipt_history import highest_token
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.freeze_text import frozen_in
from rollout.core.presentation.nothing_to_do import (
    NothingToDo,
    NothingToDoDocument,
    Why,
    nothing_document,
    nothing_lines,
    nothing_to_change,
)
from rollout.core.presentation.summary import exit_code
from rollout.core.run.events import Request, RequestWord
from rollout.core.run.order import promoted
from rollout.core.run.state import Ending, Goal, Phase, RunState
from rollout.core.text import documents
from rollout.core.text.nodesets import fold, select
from rollout.core.text.terminal import counted, printable
from rollout.errors import StateError, UsageError
from rollout.features.approvals.asking import Approvals, check_not_used, journaled, rules_for
from rollout.features.approvals.client.files import signatures_beside
from rollout.features.approvals.client.signatures import SshSignatures

# A plan file that is named on the command line.


_DIGEST = re.compile(r"[0-9a-f]{12,64}")


def _given_digest(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """An empty digest is a mistake, such as an unset shell variable. It never means any plan."""
    if value is None:
        return ""
    if not _DIGEST.fullmatch(value.lower()):
        raise UsageError(
            "digest-not-usable",
            f"--digest takes 12 to 64 hexadecimal digits of the plan's digest, not {value[:80]!r}",
            hint="`rollout plan` prints the digest",
        )
    return value.lower()


digest_option = click.option(
    "--digest",
    default=None,
    metavar="HEX",
    callback=_given_digest,
    help="Accept only the plan with this digest, as `rollout plan` printed it (at least 12 digits).",
)


def check_digest(plan: Plan, digest: str, path: Path) -> None:
    """``UsageError`` if the file contains another plan than ``digest`` names (a prefix is enough; ``""``: any plan)."""
    found = plan_codec.digest(plan)
    if not found.startswith(digest):
        raise UsageError(
            "plan-digest",
            f"nothing was touched: {path} is the plan {found}, not the plan {digest} that --digest names",
            hint="apply the file that was reviewed, or review this one",
        )


def _apply_documents() -> Kinds:
    from rollout.features.late_watch.command import late_documents
    from rollout.features.sequence.words import SequenceDocument

    return (*_resume_documents(), NothingToDoDocument, SequenceDocument, *late_documents())


def _resume_documents() -> Kinds:
    from rollout.adapters.progress import RUN_DOCUMENTS
    from rollout.core.presentation.emergency_text import PROOF_DOCUMENTS

    return (*RUN_DOCUMENTS, *PROOF_DOCUMENTS)


@registered("Apply a plan: canary, growing waves, gates.", prints=_apply_documents, needs_output=False)
@click.command()
@click.argument("plan_file", required=False, type=click.Path(path_type=Path))
@click.option("--cluster", default="", help="Plan and apply in one step, without a plan file.")
@click.option(
    "--sequence", type=click.Path(path_type=Path), default=None, help="Apply the plans of several clusters in stages."
)
@click.option("--playbook", default="", help="With --cluster: the playbook.")
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="With --cluster: an additional setting.")
@limit_option
@digest_option
@yes_option
@reason_option
@session_options
def apply(
    session: Session,
    plan_file: Path | None,
    cluster: str,
    sequence: Path | None,
    playbook: str,
    overrides: tuple[str, ...],
    limit: str,
    digest: str,
    yes: bool,  # noqa: FBT001 - click's flag
) -> int:
    """Apply a plan: canary, growing waves, gates. Halts and reverts by itself.

    Example: `rollout apply rno.plan.json --reason OPS-1881`
    """
    if sequence is not None:
        if plan_file is not None or cluster or playbook or overrides or limit or digest:
            raise UsageError("sequence-alone", "--sequence takes no plan file and no option that makes or selects one")
        from rollout.features.late_watch.command import ask_once
        from rollout.features.sequence.command import PlanRuns, apply_sequence

        runs = PlanRuns(_approvals, _apply_fresh, _resume_as_is, ask_once)
        return apply_sequence(session, sequence, runs, yes=yes)
    if (plan_file is None) == (not cluster):
        raise UsageError("plan-or-cluster", "give either a plan file or --cluster")
    if plan_file is not None and (playbook or overrides or limit):
        raise UsageError(
            "plan-is-fixed", "a plan file is applied unchanged: --playbook, --set and --limit need --cluster"
        )
    if plan_file is None and digest:
        raise UsageError("plan-is-made-now", "--digest needs a plan file: with --cluster the plan is made now")
    with closing(session.nodes()) as nodes:  # one connection a node, from the first reading to the end
        if plan_file is not None:
            plan, inventory = _read_plan(session, plan_file, digest)
        else:
            plan, inventory = _plan_now(session, nodes, cluster, playbook, overrides, limit)
        approvals = _approvals(session, plan, inventory, plan_file)
        return _applied(session, nodes, plan, inventory, approvals, yes=yes, fresh=plan_file is None)


def _approvals(session: Session, plan: Plan, inventory: Inventory, plan_file: Path | None) -> tuple[Approval, ...]:
    """The approvals beside the plan. ``InputError``: it may not be applied."""
    rules = rules_for(plan, inventory)
    if not rules:
        return ()
    if plan_file is None:
        hint = f"{_again(plan)}; then `rollout approve PLAN --key FILE`, then `rollout apply PLAN`"
        raise UsageError("approval-missing", "a plan that needs approvals is applied from its file", hint=hint)
    how = how_to_approve(plan_file)
    checks = Approvals(session.files(), SshSignatures())
    return checks.checked(plan, rules, signatures_beside(plan_file), own_logins(), how, time.time())


def _applied(
    session: Session,
    nodes: Nodes,
    plan: Plan,
    inventory: Inventory,
    approvals: tuple[Approval, ...],
    *,
    yes: bool,
    fresh: bool,
) -> int:
    """``fresh``: the plan was made just now over these connections."""
    changes = fleet_changes(plan, inventory, session.jumps(inventory, plan.nodes))
    for line in (*change_lines(changes), *promotion_lines(promoted(plan, changes))):
        say(line, err=session.output != "text")
    preflight = check_preflight(plan, changes)
    if preflight.refused:
        raise UsageError("preflight", f"nothing was touched: {preflight_text(preflight)}")
    if not plan.nodes:
        return _tell(session, nothing_to_change(plan))
    check_nothing_unfinished(session.past(), plan.cluster)
    check_not_frozen(session.past(), plan.cluster)
    there = tuple(name for name in plan.nodes if name not in changes.left)
    if not fresh and _is_applied(session, nodes, plan, inventory, there):
        runs = runs_that_applied(session.past(), plan)
        return _tell(session, NothingToDo(plan, Why.ALREADY_APPLIED, runs, changes))
    if approvals:
        reports = read_receipts(session.access(inventory, there), nodes, keep=session.traces.keep)
        check_not_used(plan, session.past(), reports)
    what = f"{counted(len(there), 'node')} of {plan.cluster} will be changed"
    with gate_backends(inventory, needs_of(plan), session.kubeconfig) as backends:
        words = (*does_lines(plan), *closed_lines(plan.calendars, SystemZones(), WAITS))
        say("\n".join(words), err=session.output != "text")
        typed_confirmation(plan.cluster, what, yes=yes)
        with session.tools(
            session.journal(), plan.limits.in_flight, backends, nodes=nodes, cluster=plan.cluster
        ) as tools:
            access = session.access(inventory, there)
            state = start_apply(plan, access, tools, approvals, changes, inventory.calendar)
    return exit_code(state) or 0


def _apply_fresh(
    session: Session, nodes: Nodes, plan: Plan, inventory: Inventory, approvals: tuple[Approval, ...]
) -> int:
    return _applied(session, nodes, plan, inventory, approvals, yes=True, fresh=False)


def _resume_as_is(session: Session, journal: Journal, state: RunState) -> int:
    return _go_on(session, journal, state, "", yes=True)


def _read_plan(session: Session, path: Path, digest: str) -> tuple[Plan, Inventory]:
    plan = plan_in(path)
    check_digest(plan, digest, path)
    inventory = session.inventory(plan.cluster)
    check_plan(plan, inventory, str(path), session.jumps(inventory, plan.nodes))
    return plan, inventory


def _is_applied(session: Session, nodes: Nodes, plan: Plan, inventory: Inventory, there: tuple[str, ...]) -> bool:
    """Whether every node that is still there has the plan's bytes. ``UsageError``: the plan fits no node any more."""
    access = session.access(inventory, there)
    found = look_before(plan, access, nodes, session.past(), session.traces.keep)
    check_nodes_not_frozen(plan.cluster, found.frozen)
    answer = found.answer()
    if answer is PlanDecision.PLAN_AGAIN:
        raise UsageError("plan-is-stale", _stale(found), hint=_again(plan))
    return answer is PlanDecision.ALREADY_APPLIED


def _again(plan: Plan) -> str:
    return f"plan again, {SAME_SETTINGS}: `{plan_again(plan.cluster, plan.limit, plan.playbook)}`"


def _stale(found: Standings) -> str:
    """The reason why the plan fits no node."""
    said = (
        (Now.DRIFTED, "changed since the plan"),
        (Now.AS_PLANNED, "already as planned"),
        (Now.UNREAD, "could not be read"),
    )
    parts = [f"{what}: {printable(fold(names), 300)}" for now, what in said if (names := found.named(now))]
    return f"nothing was touched: the plan fits no node any more; {'; '.join(parts)}"


def _plan_now(
    session: Session, nodes: Nodes, cluster: str, playbook: str, overrides: tuple[str, ...], limit: str
) -> tuple[Plan, Inventory]:
    """What makes plans takes 0.15 s to import, and a plan file needs none of it."""
    from rollout.app.load_playbook import load_policy
    from rollout.cli.plan import echo_plan
    from rollout.composition.planning import make_plan, read_over, the_playbook

    check_not_frozen(session.past(), cluster)
    files = session.files()
    inventory = session.inventory(cluster)
    policy = load_policy(files, playbook or the_playbook(files, inventory))
    check_backends(inventory, needs_to_plan(inventory, policy, session.kubeconfig), session.kubeconfig)
    selection = select(limit, inventory) if limit else tuple(inventory.nodes)
    fleet = read_over(nodes, session, inventory, selection)
    check_nodes_not_frozen(cluster, frozen_in(fleet))
    plan = make_plan(session, inventory, policy, fleet, selection, limit, overrides)
    if session.output == "text":
        echo_plan(plan, whole=True)
    return plan, inventory


def _tell(session: Session, nothing: NothingToDo) -> int:
    """The exit code."""
    if session.output == "json":
        click.echo(documents.line(nothing_document(nothing)))
    else:
        say("\n".join(nothing_lines(nothing)))
    return nothing.exit_code


@registered("Resume a run that was interrupted or halted.", prints=_resume_documents, needs_output=False)
@click.command()
@click.argument("run", required=False, default="")
@click.option("--promote", is_flag=True, help="Also lift a pause, or a hold after a wave.")
@yes_option
@reason_option
@session_options
def resume(session: Session, run: str, promote: bool, yes: bool) -> int:  # noqa: FBT001 - click's flags
    """Resume a run that was interrupted, halted or lost its controller (without RUN: the newest).

    Example: `rollout resume --yes`
    """
    session = session.patient()
    journal = session.past()
    state = resumable(journal, known_run(session, journal.listed(), run))
    waiting = journal.requests(state.order.run, state.heard)
    _show(session, waiting, "request not handled yet")
    promote = promote and bool(state.paused is not None or waiting)
    return _go_on(session, journal, state, " after its halt" if state.halt else "", yes=yes, promote=promote)


def _recover_documents() -> Kinds:
    return (RecoverDocument, CordonsDocument, *_resume_documents())


@registered(
    "Do the pending recoveries of a run that has ended.",
    prints=_recover_documents,
    needs_output=False,
    goes_on_when_repeated=True,
    old_names=("catch-up",),
)
@click.command()
@click.argument("run", required=False, default="")
@yes_option
@reason_option
@session_options
def recover(session: Session, run: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Do the pending recoveries of a run that has ended, on nodes that were unreachable (without RUN: the newest run).

    If the run has no pending recovery: end the claims that it left on nodes. For a run that halted or was interrupted,
    only its cordons are lifted. `rollout resume` does the rest.

    Example: `rollout recover`
    """
    journal = session.past()
    named = known_run(session, journal.listed(), run)
    try:
        state = with_pending_recovery(journal, named)
    except StateError as error:
        if error.reference == "nothing-owed" and (freed := _release(session, journal, named)) is not None:
            return freed
        if error.reference == "not-done" and (lifted := _lift(session, journal, named)) is not None:
            return lifted
        raise
    _show(
        session,
        journal.requests(state.order.run, state.heard),
        "request not handled before the run ended, and ignored now",
    )
    owed = fold(name for name, record in state.nodes.items() if record.owed)
    return _go_on(session, journal, state, f" to recover {owed}", yes=yes)


def _release(session: Session, journal: Journal, run: str) -> int | None:
    """End the claims that an ended run left on nodes. Changes nothing else there. ``None``: there are no claims."""
    state = replay(journal, run)
    inventory = session.inventory(state.order.cluster)
    access = session.access(inventory, tuple(name for name in state.order.nodes if name in inventory.nodes))
    nodes = session.nodes()
    try:
        reports = read_receipts(access, nodes, keep=session.traces.keep)
        held = held_by(reports, run)
        if not held:
            return None
        counter = max(highest_token(reports), highest_counter(journal, state.order.cluster)) + 1
        freed = set_free(only(access, tuple(held)), nodes, held, {run}, run, counter)
    finally:
        nodes.close()
    free, still = released(freed)
    if session.output == "json":
        click.echo(documents.page(RecoverDocument(run, free, still)))
        return 4 if still else 0
    for name, why in still.items():
        say(f"{name}: {why}")
    say(f"run {run} has no pending recovery; its claim was ended on {counted(len(freed) - len(still), 'node')}")
    return 4 if still else 0


@dataclass(frozen=True, slots=True)
class RecoverDocument:
    """A run without pending recoveries. ``released``: the nodeset of which its claim was ended; ``not_released``: node → why."""

    run: str
    released: str
    not_released: Mapping[str, str]


def _lift(session: Session, journal: Journal, run: str) -> int | None:
    """Lift the cordons of a run that ended, but not as done. ``None``: it left none, or has not ended."""
    state = replay(journal, run)
    cordoned = tuple(name for name, record in state.nodes.items() if record.cordoned)
    if state.phase is not Phase.ENDED or not cordoned:
        return None
    inventory = session.inventory(state.order.cluster)
    with leased(journal, state.order.cluster, run):  # a resumed run lifts them itself, and may drain again
        lifted = lift_those_of(session, journal, inventory, state, cordoned)
    if session.output == "text":
        say(f"run {run} ended {state.ending}; for its pending recoveries: rollout resume {run}")
    return 0 if lifted is not None and not lifted.failed else 4


def _show(session: Session, waiting: Sequence[Request], heading: str) -> None:
    """Print the requests of other terminals before the operator confirms."""
    for request in waiting if session.output == "text" else ():
        say(f"{heading}: {printable(f'{request.word} by {request.who}: {request.reason}', 300)}")


def _check_approvals(session: Session, journal: Journal, state: RunState, inventory: Inventory) -> None:
    """The signatures in the journal, by today's rules and signers. The person that applied does not count here either."""
    header = journal.header(state.order.run)
    plan = plan_of(header) if state.order.goal is Goal.APPLY else None
    rules = rules_for(plan, inventory)
    if plan is not None and rules:
        how = f"correct the file of signers, or `rollout rollback {state.order.run}`"
        applier = header.who.partition("@")[0]
        Approvals(session.files(), SshSignatures()).checked(plan, rules, journaled(state), {applier}, how, None)


def _go_on(session: Session, journal: Journal, state: RunState, why: str, *, yes: bool, promote: bool = False) -> int:
    cluster = state.order.cluster
    inventory = session.inventory_or_remembered(cluster)
    changes = changes_since(state, journal, inventory, session.jumps(inventory, state.order.nodes))
    for line in (*change_lines(changes), *field_lines(changes.fields)):
        say(line, err=session.output != "text")
    _check_approvals(session, journal, state, inventory)
    if state.order.goal is Goal.APPLY and state.halt is None and state.phase is not Phase.ENDED:
        check_not_frozen(journal, cluster)  # else nothing is applied any more: it ends what began
    with gate_backends(inventory, needs_of_run(journal, state.order.run), session.kubeconfig) as backends:
        typed_confirmation(cluster, f"run {state.order.run} on {cluster} will continue{why}", yes=yes)
        if promote:  # only now: an operator who declines requests nothing
            journal.ask(state.order.run, RequestWord.CONTINUE, operator(), session.reason, "")
        with session.tools(journal, state.order.limits.in_flight, backends, cluster=cluster) as tools:
            there = tuple(name for name in state.order.nodes if name not in changes.left)
            state = resume_run(state, session.access(inventory, there), tools, inventory.calendar, changes)
            if state.order.goal is Goal.REVERT and state.ending is Ending.DONE:
                from rollout.cli.rollback import proven  # an apply needs none of it

                return proven(session, journal, state, inventory, tools)
    return exit_code(state) or 0
