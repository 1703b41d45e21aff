"""``rollout diagnose``: from logs and events to the cause and the setting that fixes it."""

from __future__ import annotations

import json

import click

from rollout.adapters.diagnosis_files import STANDARD_INPUT, DiagnosisFiles
from rollout.app.diagnose import diagnose as diagnose_files
from rollout.errors import UsageError
from rollout.kubelet import versions
from rollout.kubelet.diagnosis.diagnosis_text import diagnosis_document, diagnosis_lines
from rollout.kubelet.diagnosis.finding import Order


@click.command()
@click.option(
    "--logs", multiple=True, metavar="FILE", help="A log of a kubelet or a runtime; `-` is standard input; .gz too."
)
@click.option("--events", multiple=True, metavar="FILE", help="Events as kubectl prints them: JSON, YAML or a table.")
@click.option(
    "--kubelet", default="", metavar="V", help="The kubelets' version, if the logs do not contain it: 1.20.2."
)
@click.option("--cluster", default="", help="The cluster's name in proposals.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
def diagnose(
    logs: tuple[str, ...], events: tuple[str, ...], kubelet: str, cluster: str, output: str, files: tuple[str, ...]
) -> None:
    """Find the cause in logs and events, with the lines that prove it and the plan that fixes it. Reads files only.

    The form of each file is found from its content: klog, journald, containerd, dockerd, kubectl's events.
    """
    paths = tuple(dict.fromkeys((*logs, *events, *files)))
    if not paths:
        hint = f"add --logs FILE or --events FILE; `{STANDARD_INPUT}` is standard input"
        raise UsageError("nothing-to-read", "no log and no events to read", hint=hint)
    found = diagnose_files(DiagnosisFiles(), paths, Order(cluster, _minor(kubelet)))
    if output == "json":
        click.echo(json.dumps(diagnosis_document(found), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(diagnosis_lines(found)))


def _minor(kubelet: str) -> int | None:
    if not kubelet:
        return None
    found = versions.parse(kubelet)
    if found is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is not a kubelet version", hint="such as 1.33")
    return found.minor
