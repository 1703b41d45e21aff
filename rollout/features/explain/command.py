"""``rollout explain``: explains a setting, or the reference of a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from rollout.app.known_defects import own_defects
from rollout.app.planning import read_fleet
from rollout.cli.options import session_options
from rollout.cli.project import is_typed, no_cluster, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.plan_files import saved_fleet
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError
from rollout.features.explain.asking import explain_on_node, shown_by
from rollout.features.explain.rules import OnNode
from rollout.features.explain.words.explanation import (
    ConfigzAnswer,
    DefectDocument,
    ExplanationDocument,
    OnNodePart,
    explanation_lines,
    on_node_lines,
)
from rollout.features.explain.words.topics import TopicsDocument, reference_lines, row_lines, topic_lines, topics_with
from rollout.kubelet import versions
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.defects.rows import known as known_defects
from rollout.kubelet.explained.explanation import Explanation, every_name
from rollout.kubelet.explained.explanation import explain as explanation_of
from rollout.kubelet.explained.references import ReferenceDocument, about
from rollout.kubelet.runtimes.description import Runtime, RuntimeVersion, parse
from rollout.kubelet.runtimes.known import KNOWN

_RUNTIME = re.compile(r"(?P<name>.*?)(?:[ :@=-](?P<version>v?\d.*))?")


@registered(
    "Explain a setting, a known defect, or a [reference].",
    prints=(ExplanationDocument, ReferenceDocument, DefectDocument, TopicsDocument),
)
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("setting", required=False, default="", metavar="[FIELD|FLAG|INTENT|DEFECT|REFERENCE]")
@click.option("--list", "listed", is_flag=True, help="List everything that can be explained.")
@click.option("--search", default="", metavar="WORD", help="List what has this word in its name or text.")
@click.option(
    "--kubelet", default="", metavar="V", help="Show only what holds for this kubelet, such as 1.33 or 1.20.15."
)
@click.option(
    "--runtime",
    default="",
    metavar="R",
    help="Show only what holds for this runtime, such as crio or containerd-1.7.24.",
)
@click.option(
    "--node",
    "node_name",
    default="",
    metavar="NODE",
    help="Also show its value on this node: every source, and the one that wins.",
)
@project_option("cluster", help="With --node: the cluster.")
@click.option(
    "--snapshot", type=click.Path(path_type=Path), default=None, help="With --node: read this file, not the node."
)
@session_options
def explain(
    session: Session,
    setting: str,
    listed: bool,  # noqa: FBT001 - click's flag
    search: str,
    kubelet: str,
    runtime: str,
    node_name: str,
    cluster: str | None,
    snapshot: Path | None,
) -> None:
    """Explain a setting: effect, versions, defaults, traps, home; with --node also where its value comes from.

    Or explain the reference in brackets of a message, such as [drifted]: its cause and remedy; or a known defect by its name.

    `--search WORD` finds a name, `--list` shows all of them.

    Example: `rollout explain serializeImagePulls --kubelet 1.33`
    """
    if sum(map(bool, (setting, listed, search))) != 1:
        raise UsageError("what-to-explain", "give a name, or --list, or --search WORD")
    if not setting:
        _list(session, search)
        return
    reference = setting.strip("[]")
    if reference not in every_name() and f"--{reference}" not in every_name() and (entry := about(reference)):
        _print(session, entry, reference_lines(reference, entry))
        return
    own = own_defects(session.files())
    if row := next((each for each in (*known_defects(), *own) if each.id == reference), None):
        _print(session, DefectDocument(row), row_lines(row))
        return
    explanation = explanation_of(setting, _minor(kubelet), *_runtime(runtime), own)
    lines, document = explanation_lines(explanation), ExplanationDocument(explanation)
    if node_name:
        here, shown = _on_node(session, cluster, node_name, explanation, snapshot, own)
        lines = (line for part in (lines, on_node_lines(here, shown)) for line in part)
        document = ExplanationDocument(explanation, OnNodePart(here, shown))
    elif is_typed("cluster") or snapshot:
        raise UsageError("no-node", "--cluster and --snapshot need --node", hint="name a node")
    _print(session, document, lines)


def _list(session: Session, word: str) -> None:
    topics = topics_with(word, (*known_defects(), *own_defects(session.files())))
    if not topics:
        raise UsageError(
            "nothing-found", f"nothing has `{printable(word, 60)}` in its name or text", hint="`rollout explain --list`"
        )
    _print(session, TopicsDocument(topics), topic_lines(topics))


def _print(session: Session, document: object, lines: Iterable[str]) -> None:
    if session.output == "json":
        click.echo(documents.page(document))
    else:
        say("\n".join(lines))


def _on_node(
    session: Session, cluster: str | None, name: str, found: Explanation, snapshot: Path | None, own: Sequence[Defect]
) -> tuple[OnNode, ConfigzAnswer]:
    if not cluster:
        raise no_cluster()
    inventory = session.inventory(cluster)
    if name not in inventory.nodes:
        hint = did_you_mean(name, inventory.nodes)
        raise UsageError("unknown-node", f"{cluster} has no node `{printable(name, 80)}`", hint=hint)
    fleet = saved_fleet(snapshot) if snapshot else read_fleet(session, inventory, (name,))
    here = explain_on_node(inventory.nodes[name], fleet, found, session.traces.keep, own)
    return here, shown_by(here, inventory, session.sources(), session.kubeconfig)


def _minor(kubelet: str) -> int | None:
    if not kubelet:
        return None
    version = versions.parse(kubelet)
    if version is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is not a kubelet version", hint="such as 1.33")
    return version.minor


def _runtime(wanted: str) -> tuple[Runtime | None, RuntimeVersion | None]:
    """``containerd``, ``crio 1.32.4``, ``containerd-1.7.24``, ``cri-dockerd-0.3.15``."""
    if not wanted:
        return None, None
    match = _RUNTIME.fullmatch(wanted)
    name, version = (match["name"], match["version"] or "") if match else (wanted, "")
    runtime = next((each.runtime for each in KNOWN if _plain(each.runtime.value) == _plain(name)), None)
    known_version = parse(version) if version else None
    if runtime is None or (version and known_version is None):
        known = ", ".join(each.runtime.value for each in KNOWN)
        hint = f"one of {known}; with a version: containerd-1.7.24"
        raise UsageError("runtime-unknown", f"unknown runtime {wanted!r}", hint=hint)
    return runtime, known_version


def _plain(name: str) -> str:
    """``CRI-O``, ``crio`` and ``cri-o`` are the same."""
    return name.casefold().replace("-", "")
