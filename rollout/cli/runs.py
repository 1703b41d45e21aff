"""``apply`` and ``resume``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from rollout.app.apply import apply_plan, apply_saved
from rollout.app.claims import released
from rollout.app.ports import Journal, Nodes
from rollout.app.resume import ClaimsEnded, OnlyCordons, continue_run, recover_run, resume_run
from rollout.app.revert import RunResult
from rollout.cli.options import limit_option, reason_option, session_options, yes_option
from rollout.cli.project import project_here
from rollout.cli.proposals import in_any_thread
from rollout.cli.registry import Kinds, registered
from rollout.cli.terminal import Terminal
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.model.approvals import Approval
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.presentation.drift_text import NotAsked
from rollout.core.presentation.emergency_text import PROOF_DOCUMENTS
from rollout.core.presentation.nothing_to_do import NothingToDo, NothingToDoDocument
from rollout.core.presentation.summary import exit_code
from rollout.core.run.state import RunState
from rollout.core.text import documents
from rollout.core.text.terminal import counted
from rollout.errors import UsageError
from rollout.features.drain.asking.cordons import CordonsDocument

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


def _apply_documents() -> Kinds:
    from rollout.features.late_watch.command import late_documents
    from rollout.features.sequence.words import SequenceDocument

    return (*_run_documents(), NothingToDoDocument, SequenceDocument, *late_documents())


def _run_documents() -> Kinds:
    from rollout.core.presentation.event_documents import RUN_DOCUMENTS

    return (*RUN_DOCUMENTS, *PROOF_DOCUMENTS)


def _resume_documents() -> Kinds:
    return (RecoverDocument, CordonsDocument, *_run_documents())


@registered("Apply a plan: canary, growing waves, gates.", prints=_apply_documents, needs_output=False)
@click.command()
@click.argument("plan_file", required=False, type=click.Path(path_type=Path))
@click.option("--cluster", default="", help="Plan and apply in one step, without a plan file.")
@click.option(
    "--sequence", type=click.Path(path_type=Path), default=None, help="Apply the plans of several clusters in stages."
)
@click.option("--playbook", default="", help="With --cluster: the playbook.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --cluster: set NAME=VALUE; it overrides all other values.",
)
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
        from rollout.features.sequence.asking import PlanRuns
        from rollout.features.sequence.command import apply_sequence

        begun, continued, late = in_any_thread(_apply_fresh), in_any_thread(_resume_as_is), in_any_thread(ask_once)
        runs = PlanRuns(Session.approvals_of, begun, continued, late)
        return apply_sequence(session, sequence, runs, yes=yes)
    if (plan_file is None) == (not cluster):
        raise UsageError(
            "plan-or-cluster",
            "give either a plan file or --cluster",
            hint="`rollout plan` writes a plan file; with --cluster, the cluster is planned and applied in one step",
        )
    if plan_file is not None and (playbook or overrides or limit):
        raise UsageError(
            "plan-is-fixed", "a plan file is applied unchanged: --playbook, --set and --limit need --cluster"
        )
    if plan_file is None and digest:
        raise UsageError("plan-is-made-now", "--digest needs a plan file: with --cluster the plan is made now")
    terminal = ApplyTerminal(session, yes)
    if plan_file is not None:
        if not plan_file.exists() and str(plan_file) in project_here().clusters():
            hint = f"`--cluster {plan_file}` plans and applies it in one step"
            raise UsageError("plan-or-cluster", f"{plan_file} is a cluster, not the file of a plan", hint=hint)
        return _apply_ended(terminal, apply_saved(session, terminal, plan_in(plan_file), plan_file, digest))
    from rollout.app.planning import plan_and_apply  # what makes plans takes 0.15 s to import

    return _apply_ended(terminal, plan_and_apply(session, terminal, cluster, playbook, overrides, limit))


class ApplyTerminal(Terminal):
    """It also prints a plan that is made and applied in one step."""

    def planned(self, plan: Plan) -> None:
        if self.session.output == "text":
            from rollout.cli.plan import echo_plan

            echo_plan(plan, whole=True)


def _apply_ended(terminal: Terminal, ended: RunState | NothingToDo) -> int:
    return terminal.nothing_to_do(ended) if isinstance(ended, NothingToDo) else exit_code(ended) or 0


def _apply_fresh(
    session: Session, nodes: Nodes, plan: Plan, inventory: Inventory, approvals: tuple[Approval, ...]
) -> int:
    """One cluster of a sequence, which was confirmed as a whole."""
    terminal = Terminal(session)
    return _apply_ended(terminal, apply_plan(session, terminal, nodes, plan, inventory, approvals, fresh=False))


def _resume_as_is(session: Session, journal: Journal, state: RunState) -> int:
    terminal = Terminal(session)
    return terminal.result(continue_run(session, terminal, journal, state))


@registered(
    "Resume a run that was interrupted or halted.",
    prints=_resume_documents,
    needs_output=False,
    changes_with=("--recover-only",),
)
@click.command()
@click.argument("run", required=False, default="")
@click.option("--promote", is_flag=True, help="Also lift a pause, or a hold after a wave.")
@click.option(
    "--recover-only", is_flag=True, help="Only do the pending recoveries of a run that has ended; apply nothing."
)
@click.option(
    "--most-left",
    is_flag=True,
    help="Go on without the run's nodes that the inventory does not list, also if they are more than half of them.",
)
@yes_option
@reason_option
@session_options
def resume(
    session: Session,
    run: str,
    promote: bool,  # noqa: FBT001 - click's flags
    recover_only: bool,  # noqa: FBT001
    most_left: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
) -> int:
    """Resume a run that was interrupted, halted or lost its controller (without RUN: the newest).

    With --recover-only: do the pending recoveries of a run that has ended, on nodes that were unreachable. If it has none: end
    the claims that it left on nodes. For a run that halted or was interrupted, only its cordons are lifted.

    Example: `rollout resume --yes`
    """
    terminal = Terminal(session, yes)
    if not recover_only:
        return terminal.result(resume_run(session, terminal, run, promote=promote, most_left=most_left))
    if promote:
        raise UsageError("recover-alone", "--recover-only applies nothing: it takes no --promote")
    return _recovered(terminal, run, most_left=most_left)


def _recovered(terminal: Terminal, run: str, *, most_left: bool) -> int:
    """The exit code of ``--recover-only``."""
    ended = recover_run(terminal.session, terminal, run, most_left=most_left)
    match ended:
        case RunResult():
            return terminal.result(ended)
        case ClaimsEnded():
            _claims_ended(terminal, ended)
        case OnlyCordons(state, cordons):
            terminal.cordons(cordons)
            run = state.order.run
            terminal.show([f"run {run} ended {state.ending}; for its pending recoveries: rollout resume {run}"])
    return ended.exit_code


def _claims_ended(terminal: Terminal, ended: ClaimsEnded) -> None:
    free, still = released(ended.freed)
    if terminal.session.output == "json":
        click.echo(documents.page(RecoverDocument(ended.run, free, still, ended.no_answer)))
    for name, why in still.items():
        terminal.show([f"{name}: {why}"])
    free_count = counted(len(ended.freed) - len(still), "node")
    terminal.show([f"run {ended.run} has no pending recovery; its claim was ended on {free_count}"])


@dataclass(frozen=True, slots=True)
class RecoverDocument:
    """A run without pending recoveries. ``released``: the nodeset of which its claim was ended; ``not_released``: node → why.

    ``no_answer``: nodes of the run that were not read, and may still have its claim.
    """

    run: str
    released: str
    not_released: Mapping[str, str]
    no_answer: tuple[NotAsked, ...]
