"""``own``: a setting that every node must have, also one that joins later."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from rollout.app.apply import apply_saved
from rollout.app.following import headers_of, replay_if_readable
from rollout.app.load import INVENTORY_FOLDER, path_of
from rollout.app.planning import Planned
from rollout.app.verify import VerifiedCluster
from rollout.cli.next_steps import say_next_steps
from rollout.cli.options import SessionNeeds, echo_lines, reason_option, session_options, yes_option
from rollout.cli.project import cluster_option, no_cluster, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.cli.terminal import Terminal, run_documents
from rollout.composition.files import write_privately
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.drift_text import DriftDocument, drift_document
from rollout.core.presentation.nothing_to_do import NothingToDo
from rollout.core.presentation.owned_text import OwnedNodes, owned_nodes_lines, unlisted_lines
from rollout.core.presentation.summary import exit_code
from rollout.core.text import documents
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, StateError, UsageError
from rollout.features.own.asking.owned import (
    OwnedComparison,
    check_none_frozen,
    compare_owned,
    counting_runs,
    end_ownership,
    end_rolled_back,
    note_comparison,
    own_run,
    plan_newcomers,
    same_change,
)
from rollout.features.own.rules import NewcomersThen
from rollout.features.own.words import OwnedDocument, nodes_lack, owned_document_lines, owned_runs


@registered("Own a run's settings, for nodes that join later, too.", prints=(OwnedDocument,))
@click.command()
@click.argument("run", required=False, default="")
@project_option("cluster", help="With --list: the cluster.")
@click.option("--list", "listed", is_flag=True, help="Show what the cluster owns.")
@click.option("--end", is_flag=True, help="End the ownership of RUN.")
@reason_option
@partial(session_options, needs=SessionNeeds.RECORD | SessionNeeds.API)
def own(session: Session, run: str, cluster: str, listed: bool, end: bool) -> int:  # noqa: FBT001 - click's flags
    """Own the settings of a run that has ended (without RUN: the newest), for nodes that join its selection later, too.

    `rollout verify` then compares every live node with them, and `rollout plan --newcomers` plans those that were never changed.

    Example: `rollout own --reason OPS-1881`
    """
    if listed and (run or end):
        raise UsageError("list-alone", "--list shows what a cluster owns: it takes no run and no --end")
    if not listed:
        cluster = end_ownership(session, run) if end else own_run(session, run)
    if not cluster:
        raise no_cluster()
    if listed and not headers_of(session.past_runs(), cluster):
        path_of(session.files(), INVENTORY_FOLDER, cluster, "cluster")  # a misspelled cluster owns nothing, either
    document = OwnedDocument(cluster, owned_runs(counting_runs(session.past_runs(), cluster)))
    if session.output == "json":
        click.echo(documents.page(document))
    else:
        echo_lines(owned_document_lines(document))
    return 0


def compared(session: Session, cluster: str, limit: str) -> tuple[VerifiedCluster, OwnedNodes | None]:
    """For `rollout verify`: the comparison, kept in the journal. ``None``: nothing is owned any more."""
    _say_ended(session, cluster)
    verified, comparison = compare_owned(session, cluster, limit)
    if comparison is None:
        return verified, None
    _tell(session, comparison)
    return verified, comparison.found


def _say_ended(session: Session, cluster: str) -> None:
    try:
        for text in end_rolled_back(session, cluster):
            say(text, err=True)
    except StateError as error:
        say(
            f"the end of the ownership was not recorded in the journal: {error}",
            err=True,
        )


def _tell(session: Session, comparison: OwnedComparison) -> None:
    """Keep the comparison, and tell people once of other nodes that lack a setting. A person who may only read the journal sees it all the same."""
    try:
        if not note_comparison(session, comparison):
            return
    except StateError as error:
        say(f"the comparison was not recorded in the journal: {error}", err=True)
        return
    journal = session.past()
    state = replay_if_readable(journal, comparison.found.runs[-1].run)
    if state is None:
        return
    with session.notices(journal) as senders:
        for sender in senders:
            sender.tell(nodes_lack(state, comparison.found), state)


def newcomers_planned(session: Session, cluster: str, playbook: str, limit: str) -> Planned | None:
    """For `rollout plan --newcomers`. ``None``: no node is to be planned, and the operator has read why."""
    _, comparison = _comparison(session, cluster)
    for line in unlisted_lines(comparison.found):
        say(line.strip(), err=True)
    found = plan_newcomers(session, comparison, playbook, limit)
    _say_waiting(found.waiting)
    if found.planned is None and not found.waiting:
        where = f" within {printable(limit, 160)}" if limit else ""
        setting = f"an owned setting of playbook {printable(playbook, 80)}" if playbook else "an owned setting"
        say(f"nothing to plan: of the nodes of {cluster}{where} that no run has changed, none lacks {setting}")
    return found.planned


def _comparison(session: Session, cluster: str) -> tuple[VerifiedCluster, OwnedComparison]:
    _say_ended(session, cluster)
    verified, comparison = compare_owned(session, cluster, "")
    if comparison is None:
        hint = "`rollout own RUN` owns what a finished run brought"
        raise UsageError("nothing-owned", f"{cluster} owns no setting", hint=hint)
    return verified, comparison


def _say_waiting(waiting: Mapping[str, str]) -> None:
    for why, names in folded(waiting).items():
        say(
            f"not planned yet: {counted(len(names), 'node')} {printable(fold(names), 160)}: {for_all(why, names)}",
            err=True,
        )


def _newcomers_documents() -> Kinds:
    return (DriftDocument, *run_documents())


@registered(
    "Report, plan or change nodes that joined later.",
    prints=_newcomers_documents,
    needs_output=False,
)
@click.command()
@cluster_option
@yes_option
@reason_option
@session_options
def newcomers(session: Session, cluster: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Compare a cluster with its owned settings, and do for nodes that no run has changed what `newcomers` of the playbook says.

    `report`: name them. `plan`: also write CLUSTER-newcomers.plan.json. `apply`: also apply that plan, in its change windows, with
    its approvals and within its limits. For a timer. Exits with 10 if nodes lack an owned setting and nothing was applied.

    Example: `rollout newcomers --cluster rno --yes`
    """
    verified, comparison = _comparison(session, cluster)
    _tell(session, comparison)
    found, terminal = comparison.found, Terminal(session, yes)
    terminal.documents([drift_document(verified.checks, verified.unread, found)])
    terminal.show(owned_nodes_lines(found, session.clock.now()))
    left = 10 if found.lacking else 4 if found.is_partial else 0
    if not found.newcomers:
        return left
    made = plan_newcomers(session, comparison, "", "")
    _say_waiting(made.waiting)
    if made.planned is None or made.then is NewcomersThen.REPORT:
        return left
    file = Path(f"{cluster}-newcomers.plan.json")
    plan = _kept(session, file, made.planned.plan)
    if made.then is NewcomersThen.PLAN:
        return left
    if found.ages_unknown:
        hint = "set `endpoints: {kubeconfig: …}` in the inventory, or apply the plan yourself"
        message = f"not applied: how long the new nodes have been Ready is not known: {found.ages_unknown}"
        raise UsageError("readiness-unknown", message, hint=hint)
    check_none_frozen(comparison)
    now = session.start_times.by(plan.conditions)()
    if not now.is_open:
        terminal.show([f"not applied now: {now.why}"])
        return left
    ended = apply_saved(session, terminal, plan, file, "")
    return terminal.nothing_to_do(ended) if isinstance(ended, NothingToDo) else exit_code(ended) or 0


def _kept(session: Session, file: Path, plan: Plan) -> Plan:
    """The plan in the file. It is written anew only for another change: people may have approved it."""
    with suppress(InputError):  # one of another version is replaced
        if file.exists() and same_change(before := plan_in(file), plan):
            return before
    write_privately(file, plan_codec.encode(plan))
    say(f"written: {file}")
    say_next_steps(session, plan, file)
    return plan
