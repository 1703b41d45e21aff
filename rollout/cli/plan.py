"""``rollout plan``: reads the nodes, changes nothing, and writes exactly what a run would do; ``plan show`` shows it again."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path

import click

from rollout.app.plan_file import preflight_text
from rollout.app.planning import Planned, plan_cluster
from rollout.cli.next_steps import say_next_steps
from rollout.cli.options import limit_option, session_options
from rollout.cli.project import no_cluster, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.files import write_privately
from rollout.composition.plan_files import plan_in, saved_fleet
from rollout.composition.wiring import Session
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.plan_colours import painted
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_markdown import plan_markdown
from rollout.core.plans.plan_text import plan_text
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.errors import UsageError
from rollout.features.own.command import newcomers_planned
from rollout.kubelet import versions
from rollout.kubelet.fields import known_minors

HAS_CHANGES = 10
"""Exit code of ``plan --exit-code`` when there is something to do."""
NOT_PLANNED = 4
"""Exit code when there is nothing to do only because nodes were unreachable or refused, or when ``apply`` would refuse the plan."""


_forms_option = project_option("output", type=click.Choice(["text", "json", "markdown"]))
"""``markdown``: for a pull request."""

_context_option = click.option(
    "--context", type=click.IntRange(0, 1000), default=None, metavar="N", help="Unchanged lines around each change of a diff."
)  # fmt: skip


@registered("Read the nodes, change nothing, write the plan.", prints=(PlanDocument,))
@click.group(invoke_without_command=True)
@project_option("cluster")
@click.option("--playbook", default="", help="Playbook to use instead of the inventory's.")
@click.option(
    "--set", "overrides", multiple=True, metavar="NAME=VALUE", help="Set NAME=VALUE; it overrides all other values."
)
@limit_option
@click.option("--snapshot", type=click.Path(path_type=Path), default=None, help="Plan from this file; no node is read.")
@click.option(
    "--save-snapshot", type=click.Path(path_type=Path), default=None, help="Write what was read to this file."
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="File to write instead of CLUSTER-….plan.json."
)
@click.option(
    "--assume-kubelet", default="", metavar="1.N", help="Treat kubelets newer than rollout knows as this version."
)
@click.option(
    "--newcomers", is_flag=True, help="Plan the nodes that lack an owned setting and that no run has changed."
)
@click.option("--exit-code", is_flag=True, help="Exit with 10 when there is something to do.")
@click.option("-v", "--verbose", "whole", is_flag=True, help="Show the diffs of a long plan, too.")
@_context_option
@partial(session_options, output=_forms_option)
def plan(
    session: Session,
    cluster: str,
    playbook: str,
    overrides: tuple[str, ...],
    limit: str,
    snapshot: Path | None,
    save_snapshot: Path | None,
    out: Path | None,
    assume_kubelet: str,
    newcomers: bool,  # noqa: FBT001 - click's flag
    exit_code: bool,  # noqa: FBT001 - click's flag
    whole: bool,  # noqa: FBT001 - click's flag
    context: int | None,
) -> int:
    """Read the nodes, change nothing, write CLUSTER-….plan.json.

    Example: `rollout plan --cluster rno --limit '@rack12&@gpu'`
    """
    if click.get_current_context().invoked_subcommand:
        return 0
    if not cluster:
        raise no_cluster()
    assumed = _assumed(assume_kubelet)

    def save(fleet: FleetSnapshot) -> None:
        if save_snapshot:
            write_privately(save_snapshot, snapshot_codec.encode(fleet))

    if newcomers:
        if overrides or snapshot or save_snapshot or assume_kubelet:
            raise UsageError(
                "newcomers-alone",
                "--newcomers plans owned settings on nodes as they are now: it takes --limit and --playbook only",
            )
        found = newcomers_planned(session, cluster, playbook, limit)
        if found is None:
            return 0
        planned = found
    else:
        planned = plan_cluster(
            session, cluster, playbook, overrides, limit, saved_fleet(snapshot) if snapshot else None, assumed, save
        )
    for line in planned.frozen:
        say(f"warning: {line}; apply refuses until `rollout cluster unfreeze --cluster {cluster}`", err=True)
    digest, content = plan_codec.sealed(planned.plan)
    path = out or (Path(plan_codec.file_name(planned.plan, digest)) if _is_of_use(planned.plan) else None)
    if path is not None:
        write_privately(path, content)
    _show(session, planned, path, digest, whole=whole, context=context)
    if planned.preflight.refused:
        return NOT_PLANNED
    return _exit_code(planned.plan, HAS_CHANGES if exit_code else 0)


def _is_of_use(made: Plan) -> bool:
    """A plan that changes nothing because each node was refused or not read can never be applied: nobody needs its file."""
    return made.has_work or not made.left_out


def _exit_code(made: Plan, with_changes: int) -> int:
    """A plan that changes nothing because nodes could not be read or planned is not a plan that is already applied."""
    if made.has_work:
        return with_changes
    return NOT_PLANNED if made.left_out else 0


def _assumed(text: str) -> int | None:
    """The minor of ``--assume-kubelet 1.37``."""
    if not text:
        return None
    known, version = known_minors(), versions.parse(text)
    if version is None or version.minor not in known:
        span = f"1.{known.start} to 1.{known.stop - 1}"
        raise UsageError(
            "assume-kubelet", f"--assume-kubelet takes a version that rollout knows ({span}), not {text!r}"
        )
    return version.minor


def _show(
    session: Session, planned: Planned, path: Path | None, digest: str, *, whole: bool, context: int | None
) -> None:
    made, preflight = planned.plan, planned.preflight
    if _shown_as_document(session.output, made, path or "", digest):
        return
    echo_plan(made, whole=whole, context=context)
    if preflight.refused:
        say(f"preflight: {preflight_text(preflight)}; apply would refuse this plan")
    if path is None:
        say("no plan file is written: there is nothing to apply")
        return
    say(f"written: {printable(str(path), LONGEST_PATH)}")
    say(f"digest: {digest}")
    if made.has_work and not preflight.refused:
        say_next_steps(session, made, path)


def _shown_as_document(output: str, made: Plan, path: Path | str, digest: str) -> bool:
    """Print JSON or Markdown. False: text is wanted."""
    if output == "json":
        click.echo(documents.page(PlanDocument(str(path), made)))
    elif output == "markdown":
        click.echo(plan_markdown(made, digest, str(path)), nl=False)
    return output != "text"


def echo_plan(made: Plan, *, whole: bool = False, context: int | None = None) -> None:
    """Print the text of a plan: wrapped on a terminal, and in colour there unless ``NO_COLOR`` is set."""
    text = plan_text(made, whole=whole, context=context)
    if sys.stdout.isatty():
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
        text = painted(text, shutil.get_terminal_size().columns, colours=not plain)
    click.echo(text)


@plan.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@_context_option
@_forms_option
def show(file: Path, context: int | None, output: str) -> None:
    """Show a saved plan: as text with all diffs, as JSON, or as Markdown for a pull request.

    Example: `rollout plan show rno.plan.json -o markdown`
    """
    made = plan_in(file)
    digest = plan_codec.digest(made)
    if not _shown_as_document(output, made, file, digest):
        echo_plan(made, whole=True, context=context)
        say(f"digest: {digest}")
