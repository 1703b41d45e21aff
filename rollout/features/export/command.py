"""``rollout export``: what other tools need so that they do not undo a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rollout.app.node_histories import plans_in_force
from rollout.cli.options import record_options
from rollout.cli.project import is_typed, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import LONGEST_PATH, counted, printable
from rollout.errors import InputError, Problem, UsageError
from rollout.features.export.asking import in_force_of
from rollout.features.export.rules.plan_texts import ExportedText
from rollout.features.export.rules.settings import (
    PATCH_FILE,
    KubeadmPatch,
    KubeadmPatchesDocument,
    kubeadm_document,
    kubeadm_lines,
    patches_in_force,
    settings_in_force,
)
from rollout.features.export.words import (
    DROP_IN,
    FORMATS,
    NewNodesDocument,
    comments,
    exported,
    exported_lines,
    planned_texts,
)


@registered(
    "Export the settings to kubeadm and other tools that make nodes.", prints=(KubeadmPatchesDocument, NewNodesDocument)
)
@click.group()
def export() -> None:
    """Export what other tools need so that they do not undo a change."""


@export.command()
@click.argument("plan", required=False, default="")
@project_option("cluster", help="Without PLAN: export the changes that are in force on this cluster.")
@click.option(
    "--patches",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Write patch files into this folder.",
)
@record_options
def kubeadm(session: Session, plan: str, cluster: str, patches: Path | None) -> None:
    """Show what ConfigMap kubelet-config or kubeadm's --patches must contain to keep changes in an upgrade.

    With --cluster: the confirmed changes of all runs in the journal, without those that were rolled back since.

    Example: `rollout export kubeadm --cluster rno`
    """
    cluster = _cluster(plan, cluster)
    read = plan_in(Path(plan)) if plan else None
    past = session.past_runs()
    found = patches_in_force(plans_in_force(past, cluster) if read is None else ((read, in_force_of(past, read)),))
    _say_whose(cluster)
    if patches is not None:
        _write(patches, found)
    if session.output == "json":
        click.echo(documents.page(kubeadm_document(found)))
    elif patches is None:
        say("\n".join(kubeadm_lines(found)))


@export.command("new-nodes")
@click.argument("form", metavar="FORMAT", type=click.Choice(tuple(FORMATS)))
@click.argument("plan", required=False, default="")
@project_option("cluster", help="Without PLAN: export the changes that are in force on this cluster.")
@click.option(
    "--path",
    default=DROP_IN,
    show_default=True,
    help="The drop-in on a new node (butane, cloud-init, ignition).",
)
@record_options
def new_nodes(session: Session, form: str, plan: str, cluster: str, path: str) -> None:
    """Show the settings as text to commit for the tool that makes nodes.

    FORMAT: butane, cloud-init, ignition, k3s, k3s-drop-in, kops, kubespray, mco, nodeadm, rke2, rke2-drop-in or talos.
    Comments name what the format has no place for; those of ignition are on standard error.

    With a plan: its own texts, where its playbook has `newNodes`. Once a run has begun it, for the nodes where it is in force.
    With --cluster: the confirmed changes of all runs in the journal, without those that were rolled back since.

    Example: `rollout export new-nodes nodeadm --cluster rno`
    """
    cluster = _cluster(plan, cluster)
    read = plan_in(Path(plan)) if plan else None
    texts: tuple[ExportedText, ...] | None = None
    if read is None:
        plans = plans_in_force(session.past_runs(), cluster, path="")
    else:
        plans = ((read, in_force_of(session.past_runs(), read)),)
        if plans[0][1] == tuple(read.nodes):
            texts = planned_texts(read, form, path if is_typed("path") else "")
    if texts is None:
        texts = exported(form, settings_in_force(plans), path)
    _say_whose(cluster)
    if session.output == "json":
        click.echo(documents.page(NewNodesDocument(form, texts)))
        return
    if not FORMATS[form].comments:
        for line in (line for text in texts for line in comments(text)):
            say(line, err=True)
    say("\n".join(exported_lines(form, texts)))


def _cluster(plan: str, cluster: str) -> str:
    """The cluster that is exported; ``""``: the plan file is."""
    cluster = "" if plan and not is_typed("cluster") else cluster
    if bool(plan) == bool(cluster):
        raise UsageError("which-plan", "give a plan file, or --cluster for the changes that are in force there")
    return cluster


def _say_whose(cluster: str) -> None:
    if cluster:
        say(
            f"this journal alone decides what is in force: a revert by a run of another journal is not seen; `rollout verify --cluster {cluster}` reads the nodes",
            err=True,
        )


def _write(folder: Path, patches: Sequence[KubeadmPatch]) -> None:
    """One patch goes into the folder itself. Several get a folder each: kubeadm applies every patch in a folder."""
    for at, patch in enumerate(patches, 1):
        path = (folder if len(patches) == 1 else folder / str(at)) / PATCH_FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(patch.text, encoding="utf-8")
        except OSError as exc:
            raise InputError((Problem("file-not-writable", f"{path}: {exc.strerror}"),)) from exc
        say(
            f"{printable(str(path), LONGEST_PATH)}: {counted(len(patch.nodes), 'node')}  {printable(fold(patch.nodes), 160)}"
        )
    if not patches:
        say("nothing written: no change edits a file that kubeadm writes")
