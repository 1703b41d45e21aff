"""``rollout diagnose pod``: how long the end of a pod may take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rollout.adapters.kubernetes.pods import leaving_pod
from rollout.cli.options import pod_name
from rollout.cli.project import is_typed, output_option, project_here, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.files import text_in
from rollout.composition.wiring import cluster_in
from rollout.core.model.pods import LeavingPod
from rollout.core.text import documents, durations
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import read_yaml
from rollout.errors import InputError, Problem, RemoteError, UsageError
from rollout.features.budget.client import pod_of_cluster
from rollout.features.budget.rules import PodBudgetDocument, pod_budget, pod_budget_document, pod_budget_lines
from rollout.kubelet import versions


@registered("Compute how long the end of a pod may take.", within="diagnose", prints=(PodBudgetDocument,))
@click.command("pod")
@click.argument("pod", metavar="FILE|NS/NAME")
@project_option("cluster", help="The cluster of the pod NS/NAME; its node gives the kubelet.")
@project_option("kubeconfig")
@click.option(
    "--kubelet",
    default="",
    metavar="V",
    help="Version of the node's kubelet, such as 1.27.3. Later ranges show what an upgrade changes.",
)
@click.option("--within", default="", metavar="DURATION", help="A limit to compare with, such as 30s.")
@output_option
def budget(pod: str, cluster: str, kubeconfig: str, kubelet: str, within: str, output: str) -> None:
    """How long the end of a pod may take by its spec and the kubelet's version, and which rule adds which second.

    FILE is the pod, or a workload with a template, in YAML or JSON. NS/NAME is a pod of the API server of --cluster.

    Example: `rollout diagnose pod shop/web-0 --cluster rno`
    """
    limit, minor = _limit(within), _minor(kubelet)
    is_file = Path(pod).exists()
    if cluster and (is_typed("cluster") or not is_file):
        leaving, version = pod_of_cluster(cluster_in(project_here().folder, cluster), kubeconfig, pod_name(pod))
        minor = minor if minor is not None else _minor_of(version)
    else:
        leaving = _pod(pod)
    found = pod_budget(leaving, minor, limit)
    if output == "json":
        click.echo(documents.page(pod_budget_document(found)))
    else:
        say("\n".join(pod_budget_lines(found)))


def _minor_of(version: str) -> int | None:
    found = versions.parse(version)
    return found.minor if found else None


def _pod(file: str) -> LeavingPod:
    """A manifest has no uid, and a template no name: those of its workload count. Raises ``InputError``."""
    document = read_yaml(text_in(file), file)
    if document.problems:
        raise InputError(document.problems)
    root: Any = document.root.plain() if document.root else None
    if not isinstance(root, Mapping) or not isinstance(root.get("spec"), Mapping):
        raise _problem(file, "it has no `spec`")
    template = root["spec"].get("template")
    pod: Mapping[str, Any] = template if isinstance(template, Mapping) else root
    if not pod["spec"].get("containers") if isinstance(pod.get("spec"), Mapping) else True:
        raise _problem(file, "it is no pod and no workload: neither `spec` nor `spec.template.spec` has containers")
    meta: dict[str, Any] = {"uid": "-", "namespace": "default", "name": Path(file).stem}
    for part in (root, pod):
        given = part.get("metadata")
        meta |= {key: value for key, value in given.items() if value} if isinstance(given, Mapping) else {}
    try:
        return leaving_pod({**pod, "metadata": meta})
    except RemoteError as error:
        raise _problem(file, error.message) from None


def _problem(file: str, message: str) -> InputError:
    return InputError((Problem("bad-pod", f"{printable(file)}: {printable(message)}"),))


def _minor(kubelet: str) -> int | None:
    found = versions.parse(kubelet) if kubelet else None
    if kubelet and found is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is not a kubelet version", hint="such as 1.33")
    return found.minor if found else None


def _limit(within: str) -> float | None:
    if not within:
        return None
    try:
        return durations.parse(within)
    except durations.DurationError as error:
        raise UsageError("bad-limit", f"--within {printable(within)}: {error}") from None
