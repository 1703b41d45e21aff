"""``rollout explain``: what a setting is."""

from __future__ import annotations

import json
import re

import click

from rollout.errors import UsageError
from rollout.kubelet import versions
from rollout.kubelet.explained.explanation import explain as explanation_of
from rollout.kubelet.explained.explanation import runtimes
from rollout.kubelet.explained.explanation_text import explanation_document, explanation_lines


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="FIELD|FLAG|INTENT")
@click.option("--kubelet", default="", metavar="V", help="Only what holds for this kubelet: 1.33, 1.20.15.")
@click.option("--runtime", default="", metavar="R", help="Only what holds for this runtime.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def explain(name: str, kubelet: str, runtime: str, output: str) -> None:
    """What a setting does, its versions, defaults and traps, where it lives."""
    found = explanation_of(name, _minor(kubelet), _runtime(runtime))
    if output == "json":
        click.echo(json.dumps(explanation_document(found), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(explanation_lines(found)))


def _minor(kubelet: str) -> int | None:
    if not kubelet:
        return None
    found = versions.parse(kubelet)
    if found is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is no version of a kubelet", hint="such as 1.33")
    return found.minor


def _runtime(wanted: str) -> str:
    name = re.sub(r"[ @:]?v?\d.*$", "", wanted)
    if name and name.casefold().replace("-", "") not in {known.casefold().replace("-", "") for known in runtimes()}:
        raise UsageError(
            "runtime-unknown", f"rollout knows no runtime {wanted!r}", hint=f"one of {', '.join(runtimes())}"
        )
    return name
