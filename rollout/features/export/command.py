"""``rollout export``: what other tools need so that they do not undo a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rollout.app.node_histories import plans_in_force
from rollout.cli.options import session_options
from rollout.cli.project import is_typed, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import LONGEST_PATH, counted, printable
from rollout.errors import InputError, Problem, UsageError
from rollout.features.export.rules import (
    PATCH_FILE,
    KubeadmPatch,
    KubeadmPatchesDocument,
    kubeadm_document,
    kubeadm_lines,
    kubeadm_patches,
    patches_in_force,
)


@registered("Export what keeps other tools from undoing a change.", prints=(KubeadmPatchesDocument,))
@click.group()
def export() -> None:
    """Export what other tools need so that they do not undo a change."""


@export.command()
@click.argument("plan", required=False, default="")
@project_option("cluster", help="Without a plan: the changes that are in force on this cluster.")
@click.option(
    "--patches",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Write patch files into this folder.",
)
@session_options
def kubeadm(session: Session, plan: str, cluster: str, patches: Path | None) -> None:
    """Show what ConfigMap kubelet-config or kubeadm's --patches must contain to keep changes in an upgrade.

    With --cluster: the confirmed changes of all runs in the journal, without those that were rolled back since.

    Example: `rollout export kubeadm --cluster rno`
    """
    if plan and not is_typed("cluster"):
        cluster = ""
    found = _patches(session, plan, cluster)
    if cluster:
        say(
            f"by this journal alone: what a run of another journal reverted counts as in force; `rollout verify --cluster {cluster}` reads the nodes",
            err=True,
        )
    if patches is not None:
        _write(patches, found)
    elif session.output == "json":
        click.echo(documents.page(kubeadm_document(found)))
    else:
        say("\n".join(kubeadm_lines(found)))


def _patches(session: Session, path: str, cluster: str) -> tuple[KubeadmPatch, ...]:
    if bool(path) == bool(cluster):
        raise UsageError("which-plan", "give a plan file, or --cluster for the changes that are in force there")
    return (
        patches_in_force(plans_in_force(session.past(), cluster)) if cluster else kubeadm_patches(plan_in(Path(path)))
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
