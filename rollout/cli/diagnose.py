"""``rollout diagnose``: from logs, events and nodes to the cause and the setting that fixes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from rollout.adapters.diagnosis_files import STANDARD_INPUT, DiagnosisFiles
from rollout.app.diagnose import diagnose as diagnose_files
from rollout.app.diagnose import diagnose_nodes, together
from rollout.cli.options import limit_option, session_options
from rollout.composition.planning import read_fleet, saved_fleet
from rollout.composition.wiring import Session
from rollout.core.text.nodesets import select
from rollout.errors import UsageError
from rollout.kubelet import versions
from rollout.kubelet.diagnosis.diagnosis import Diagnosis
from rollout.kubelet.diagnosis.diagnosis_text import diagnosis_document, diagnosis_lines
from rollout.kubelet.diagnosis.finding import ProposalTarget


@click.command()
@click.option(
    "--logs", multiple=True, metavar="FILE", help="A log of a kubelet or a runtime; `-` is standard input; .gz too."
)
@click.option("--events", multiple=True, metavar="FILE", help="Events as kubectl prints them: JSON, YAML or a table.")
@click.option(
    "--kubelet", default="", metavar="V", help="The kubelets' version, if the logs do not contain it: 1.20.2."
)
@click.option(
    "--snapshot", type=click.Path(path_type=Path), default=None, help="Nodes as `plan --save-snapshot` wrote them."
)
@click.option("--cluster", default="", help="The cluster: its nodes are read if no file is given.")
@limit_option
@click.argument("files", nargs=-1, metavar="[FILE]...")
@session_options
def diagnose(
    session: Session,
    logs: tuple[str, ...],
    events: tuple[str, ...],
    kubelet: str,
    snapshot: Path | None,
    cluster: str,
    limit: str,
    files: tuple[str, ...],
) -> None:
    """Find the cause in logs and events, with the lines that prove it and the plan that fixes it. Changes nothing.

    The form of each file is found from its content: klog, journald, containerd, dockerd, kubectl's events.
    Of nodes it reports settings that are in their files and not in force.
    """
    paths = tuple(dict.fromkeys((*logs, *events, *files)))
    if not paths and not snapshot and not cluster:
        hint = f"add --logs FILE or --events FILE (`{STANDARD_INPUT}` is standard input), --snapshot FILE or --cluster NAME"
        raise UsageError("nothing-to-read", "no log, no events and no nodes to read", hint=hint)
    found = together(tuple(_parts(session, paths, snapshot, (cluster, limit), _minor(kubelet))))
    if session.output == "json":
        click.echo(json.dumps(diagnosis_document(found), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(diagnosis_lines(found)))


def _parts(
    session: Session, paths: tuple[str, ...], snapshot: Path | None, nodes: tuple[str, str], minor: int | None
) -> Iterator[Diagnosis]:
    cluster, limit = nodes
    if paths:
        yield diagnose_files(DiagnosisFiles(), paths, ProposalTarget(cluster, minor))
    if snapshot:
        saved = saved_fleet(snapshot)
        yield diagnose_nodes(saved, ProposalTarget(cluster or saved.cluster, minor))
    elif not paths:
        inventory = session.inventory(cluster)
        selection = select(limit, inventory) if limit else tuple(inventory.nodes)
        yield diagnose_nodes(read_fleet(session, inventory, selection), ProposalTarget(cluster, minor))


def _minor(kubelet: str) -> int | None:
    if not kubelet:
        return None
    found = versions.parse(kubelet)
    if found is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is not a kubelet version", hint="such as 1.33")
    return found.minor
