"""``not-in-force``: a setting that is in a node's files and not in its running process, from what a plan reads.

Four ways to it: the file was edited and nothing restarted; a flag or a drop-in overrides it; the kubelet drops a field that
it does not know, with a warning at most; the command line in the unit's files is not that of the process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollout.core.model.inventory import Node
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.text.terminal import printable, seconds_text
from rollout.features.diagnose.rules.facts import SourceLine
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget, merged
from rollout.kubelet import fields, values, versions
from rollout.kubelet.configuration.config_file import LoadError, document
from rollout.kubelet.configuration.outcome import Layer
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments, sources, unloaded
from rollout.kubelet.node.layout import KUBELET_UNITS, LayoutError
from rollout.kubelet.node.sources import FitNode

ID = "not-in-force"
_RISK = "each kubelet restarts, which puts all edited values of its files in force; the plan lists those that no setting asks for."


@dataclass(frozen=True, slots=True)
class _Late:
    """One value that is written and not in force. ``setting``: what a plan would set, ``""`` if that is not known."""

    cause: str
    file: str
    key: str
    setting: str = ""
    since: str = ""


def not_in_force(
    nodes: Iterable[Snapshot | Unread], target: ProposalTarget
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings of all nodes, equal ones together; and a note for each node that could not be judged."""
    findings: list[Finding] = []
    notes: list[str] = []
    for node in nodes:
        why = f"{node.reference}: {node.message}" if isinstance(node, Unread) else ""
        try:
            findings += [] if isinstance(node, Unread) else _of_node(node, target)
        except LayoutError as error:
            why = f"{error.reference}: {error}"
        if why:
            notes.append(f"{node.node} not judged: {printable(why)}")
    together = merged(findings)
    return tuple(_with_nodes(each, target) for each in together), tuple(notes)


def _of_node(node: Snapshot, target: ProposalTarget) -> list[Finding]:
    version = versions.parse(node.kubelet_version)
    if version is None or version.minor not in fields.known_minors():
        raise LayoutError("kubelet-version-unknown", f"kubelet {node.kubelet_version or 'without a version'}")
    fit = sources.find(node, version, Node(node.node, "", "", ""))
    return [_finding(each, node, target) for each in (*_edited(fit), *_flags(fit), *_overridden(fit), *_dropped(fit))]


def _finding(late: _Late, node: Snapshot, target: ProposalTarget) -> Finding:
    proposal = target.plan((node.node,), late.setting) if late.setting else ""
    fetch = "" if proposal else "rollout explain SETTING --node NODE, and rollout check --kubelet-config FILE"
    where = SourceLine(f"{node.node}:{late.file}", *_line(node, late))
    return Finding(
        ID,
        Confidence.CERTAIN,
        (node.node,),
        late.since,
        late.cause,
        (where,),
        proposal,
        _RISK if proposal else "",
        fetch,
    )


def _with_nodes(each: Finding, target: ProposalTarget) -> Finding:
    """The proposal for all nodes of a finding."""
    setting = each.proposal.partition(" --set ")[2]
    if not setting:
        return each
    return Finding(
        each.id,
        each.confidence,
        each.nodes,
        each.since,
        each.cause,
        each.evidence,
        target.plan(each.nodes, setting),
        each.risk,
    )


def _line(node: Snapshot, late: _Late) -> tuple[int, str]:
    """The first line of the file that has the key; line 1 if none has."""
    state = node.files.get(late.file)
    text = (state.content or b"").decode("utf-8", "replace") if state else ""
    begins = re.compile(rf"\s*[\"']?{re.escape(late.key)}[\"']?\s*[:=]|.*{re.escape(late.key)}\b")
    for number, line in enumerate(text.splitlines(), 1):
        if begins.match(line):
            return number, printable(line)
    return 1, printable(late.cause)


def _edited(fit: FitNode) -> Iterator[_Late]:
    ages = {entry.path: entry for entry in fit.snapshot.stale}
    for edit in unloaded.of_kubelet(fit):
        field = edit.field[0]
        cause = f"{edit.told}: {edit.file} was edited after the kubelet started, and the kubelet reads it only at its start."
        yield _Late(
            cause,
            edit.file,
            edit.field[-1],
            _setting(field, fit),
            _age(ages[edit.file].seconds if edit.file in ages else None),
        )
    units = {entry.unit for entry in fit.snapshot.stale} - KUBELET_UNITS
    for each in unloaded.of_runtime(fit.snapshot, units):
        yield _Late(
            f"{each.told}: which of its values are in force is not known.",
            each.file,
            "",
            "",
            _age(ages[each.file].seconds),
        )


def _age(seconds: int | None) -> str:
    return "" if seconds is None else f"{seconds_text(seconds)} after the process started"


def _setting(field: str, fit: FitNode) -> str:
    """``maxPods=110``, quoted for a shell if it must be."""
    value = fit.outcome.effective.get(field)
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return f"{field}={text}" if re.fullmatch(r"[\w.:/%-]+", text) else ("" if "'" in text else f"'{field}={text}'")


def _flags(fit: FitNode) -> Iterator[_Late]:
    asked, runs = fit.layout.asked, fit.layout.running[1:]
    names = dict.fromkeys(word.partition("=")[0] for word in (*asked, *runs) if word.startswith("--"))
    for name in names:
        now, then = (arguments.last(words, name) for words in (asked, runs))
        new, old = (given.value if given else "not set" for given in (now, then))
        if new != old:
            flag = fields.flag(name.removeprefix("--")) or fields.flag(name)
            cause = f"{name}: {old} → {new}: the unit's files changed after the kubelet started."
            setting = _setting(flag.field, fit) if flag and flag.field and "." not in flag.field else ""
            if name == DEADLINE_FLAG and now:
                setting = _wanted(DEADLINE, new)
            yield _Late(cause, fit.layout.origin(name) if now else fit.layout.unit, name, setting)


def _overridden(fit: FitNode) -> Iterator[_Late]:
    for file in unloaded.files_of(fit.sources):
        try:
            written = document(file).value
        except LoadError:
            continue
        for key, value in written.items() if isinstance(written, dict) else ():
            origin, effective = fit.outcome.origins.get(key), fit.outcome.effective.get(key)
            if origin is None or origin.where == file.path or values.is_in_force(effective, value, (key,)):
                continue
            if (
                value in ("", None) or value == [] or value == {}
            ):  # kubeadm writes `containerRuntimeEndpoint: ""`: it asks for nothing
                continue
            if origin.layer is Layer.FLAG:
                cause = f"{key} is {_shown(value)} in {file.path}, but a flag sets {_shown(effective)} ({origin.where}): a flag overrides the file."
            elif origin.layer is Layer.DROP_IN:
                cause = f"{key} is {_shown(value)} in {file.path}, but the drop-in {origin.where} sets {_shown(effective)}: it is read later."
            else:
                continue
            yield _Late(cause, file.path, key, _wanted(key, value))


def _wanted(key: str, value: Value) -> str:
    """What the file asks for, if it is one word or number."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{key}={text}" if re.fullmatch(r"[\w.:/%-]+", text) else ""


def _shown(value: Value) -> str:
    return values.shown(value)


def _dropped(fit: FitNode) -> Iterator[_Late]:
    for path in fit.outcome.ignored:
        file = fit.sources.config.path if fit.sources.config else ""
        known = "it is spelled in another way, or of another version"
        cause = f"{path} has no effect: a kubelet {fit.version.short} does not know this field, drops it and starts ({known})."
        yield _Late(cause, file, path.rpartition(".")[2])
