"""``rollback``: reverts a run by its journal, or, in an emergency, by what the nodes alone report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from rollout.app.chosen_run import chosen_run
from rollout.app.emergencies import LeftTo, Told, Unfinished, Waiting
from rollout.app.emergency_rounds import revert_nodes
from rollout.app.revert import NothingReverted, revert_run
from rollout.app.rollbacks import Emergency, RunsToRevert
from rollout.cli.options import PercentOption, limit_option, reason_option, session_options, yes_option
from rollout.cli.project import is_typed, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.cli.terminal import Terminal, run_documents
from rollout.composition.wiring import Session
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import EMERGENCY_LIMITS, Share
from rollout.core.presentation import emergency_text as text
from rollout.core.presentation.emergency_text import EMERGENCY_DOCUMENTS
from rollout.core.presentation.nothing_to_do import NothingToRevertDocument
from rollout.core.presentation.rollback_time import NoTimeBack, TimeBack
from rollout.core.text import durations
from rollout.core.text.terminal import printable
from rollout.errors import RolloutError, UsageError


@dataclass(frozen=True, slots=True)
class Emergencies:
    """The options that belong to ``--emergency``."""

    cluster: str
    from_nodes: bool
    every_run: bool
    until_done: bool
    at_most: str


def _documents() -> Kinds:
    return (*run_documents(), NothingToRevertDocument, *EMERGENCY_DOCUMENTS)


@registered("Revert a run, or all nodes in an emergency.", prints=_documents, needs_output=False)
@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@project_option("cluster", help="With --emergency: the cluster.")
@click.option(
    "--emergency", "from_nodes", is_flag=True, help="Use only what the nodes report: revert their newest run."
)
@click.option(
    "--every-run",
    is_flag=True,
    help="With --emergency: revert each node's newest transaction, of any run of the cluster.",
)
@click.option("--until-done", is_flag=True, help="With --emergency: retry unreachable nodes until all are reverted.")
@click.option(
    "--at-most", default="", metavar="TIME", help="With --until-done: stop retrying after this time, e.g. 2h."
)
@limit_option
@click.option("--pace", type=click.FloatRange(0.1), default=None, help="Restarts per second (default: 30).")
@click.option("--per-rack", type=PercentOption(), default=None, help="Largest share of a rack at once (default: 50%).")
@click.option(
    "--per-zone",
    type=PercentOption(),
    default=None,
    help="Largest share of a zone at once (default: 50% if there are several zones).",
)
@click.option(
    "--in-flight", type=click.IntRange(1, 2000), default=None, help="The most nodes in flight at once (default: 200)."
)
@click.option("--force", is_flag=True, help="Revert also where others changed files since; their bytes are kept.")
@yes_option
@reason_option
@session_options
def rollback(
    session: Session,
    runs: tuple[str, ...],
    limit: str,
    pace: float | None,
    per_rack: Share | None,
    per_zone: Share | None,
    in_flight: int | None,
    force: bool,  # noqa: FBT001 - click's flags
    yes: bool,  # noqa: FBT001
    **emergency: Any,
) -> int:
    """Revert a run: RUN by the journal, or --cluster C --emergency by what the nodes report.

    With --emergency, RUN... selects from the runs on the nodes.

    Example: `rollout rollback --cluster rno --emergency`
    """
    if not is_typed("cluster") and (yes or not emergency["from_nodes"]):
        emergency["cluster"] = ""  # nobody types its name: it is not taken from elsewhere
    asked = _checked(session, runs, Emergencies(**emergency))
    limits = replace(
        EMERGENCY_LIMITS,
        pace=pace or EMERGENCY_LIMITS.pace,
        per_rack=per_rack or EMERGENCY_LIMITS.per_rack,
        per_zone=per_zone or EMERGENCY_LIMITS.per_zone,
        in_flight=in_flight or EMERGENCY_LIMITS.in_flight,
    )
    terminal = EmergencyTerminal(session, yes)
    if not asked.from_nodes:
        ended = revert_run(session, terminal, runs[0], limit, limits, force=force)
        return terminal.nothing_reverted(ended) if isinstance(ended, NothingReverted) else terminal.result(ended)
    wanted, patience = RunsToRevert(runs, asked.every_run), _patience(asked)
    rescue = revert_nodes(session, terminal, asked.cluster, limit, wanted, limits, force=force, at_most=patience)
    if rescue.cordons is not None:
        terminal.cordons(rescue.cordons)
    if rescue.stopped:
        say("stopped at once; run the same command again to continue", err=True)
    return rescue.exit_code


class EmergencyTerminal(Terminal):
    """It also prints what an emergency finds and does, at once."""

    def told(self, what: Told, cluster: str) -> None:
        document, lines = _told(what, cluster)
        self.documents([document])
        self.show(lines)


def _told(what: Told, cluster: str) -> tuple[object, Iterable[str]]:
    """For programs, and for people."""
    match what:
        case Emergency():
            lines = (
                *text.seen_lines(what.seen, what.picked, what.already, cluster),
                *text.without_lines(what.without, cluster),
            )
            return text.seen_document(what.seen, what.picked, what.already, what.without), lines
        case TimeBack() | NoTimeBack():
            return text.predicted_document(what), text.predicted_lines(what)
        case Waiting():
            return text.waiting_document(what.owed, what.seconds), text.waiting_lines(what.owed, what.seconds)
        case LeftTo():
            return text.left_document(what.nodes), text.left_lines(what.nodes)
        case Unfinished():
            return text.unfinished_document(what.picked, what.owed), text.unfinished_lines(
                cluster, what.picked, what.owed
            )


def _checked(session: Session, runs: tuple[str, ...], asked: Emergencies) -> Emergencies:
    if asked.from_nodes != bool(asked.cluster) or (not asked.from_nodes and len(runs) != 1):
        raise UsageError(
            "run-or-emergency",
            "give RUN, or --cluster CLUSTER --emergency (RUN then selects one of its runs)",
            hint="" if runs or asked.from_nodes else _newest(session),
        )
    if not asked.from_nodes and (asked.every_run or asked.until_done):
        raise UsageError("only-in-an-emergency", "--every-run and --until-done need --emergency")
    if asked.every_run and runs:
        raise UsageError("run-or-every-run", "give RUN or --every-run, not both")
    if asked.at_most and not asked.until_done:
        raise UsageError("only-until-done", "--at-most needs --until-done")
    return asked


def _newest(session: Session) -> str:
    """It is not taken by itself: a person says what is reverted."""
    try:
        newest = chosen_run(session, session.past_runs(), "")
    except RolloutError:
        return ""
    return f"the newest is {newest}; `rollout runs` lists all"


def _patience(asked: Emergencies) -> float | None:
    """Seconds to keep retrying: 0 without ``--until-done``, ``None`` without ``--at-most``."""
    if not asked.until_done:
        return 0.0
    try:
        return durations.parse(asked.at_most) if asked.at_most else None
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--at-most {printable(asked.at_most, 60)!r}: {error}") from None
