"""``rollout explain``: what a setting is."""

from __future__ import annotations

import json
import re

import click

from rollout.errors import UsageError
from rollout.kubelet import versions
from rollout.kubelet.explained.explanation import explain as explanation_of
from rollout.kubelet.explained.explanation_text import explanation_document, explanation_lines
from rollout.kubelet.runtime_versions import Runtime, RuntimeVersion, parse


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="FIELD|FLAG|INTENT")
@click.option("--kubelet", default="", metavar="V", help="Only what holds for this kubelet: 1.33, 1.20.15.")
@click.option("--runtime", default="", metavar="R", help="Only what holds for this runtime: crio, containerd-1.7.24.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def explain(name: str, kubelet: str, runtime: str, output: str) -> None:
    """What a setting does, its versions, defaults and traps, where it lives."""
    found = explanation_of(name, _minor(kubelet), *_runtime(runtime))
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


def _runtime(wanted: str) -> tuple[Runtime | None, RuntimeVersion | None]:
    """``containerd``, ``crio 1.32.4``, ``containerd-1.7.24``."""
    if not wanted:
        return None, None
    name, _, version = (
        wanted.partition(found[0]) if (found := re.search(r"[ :@=-](?=v?\d)", wanted)) else (wanted, "", "")
    )
    runtime = next((known for known in Runtime if _plain(known.value) == _plain(name)), None)
    known_version = parse(version) if version else None
    if runtime is None or runtime is Runtime.UNKNOWN or (version and known_version is None):
        known = ", ".join(each.value for each in Runtime if each is not Runtime.UNKNOWN)
        hint = f"one of {known}; with a version: containerd-1.7.24"
        raise UsageError("runtime-unknown", f"rollout knows no runtime {wanted!r}", hint=hint)
    return runtime, known_version


def _plain(name: str) -> str:
    """``CRI-O``, ``crio`` and ``cri-o`` are one."""
    return name.casefold().replace("-", "")
