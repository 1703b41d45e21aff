"""What changes want on nodes, for the tools that make new nodes; and what ``rollout export kubeadm`` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Annotated

import yaml

from rollout.core.model.plan import Change, FileChange, Plan
from rollout.core.model.settings import Value
from rollout.core.model.verification import KUBEADM_CONFIG
from rollout.core.plans.wanted_fields import wanted_fields
from rollout.core.text import diff, nodesets
from rollout.core.text.documents import PrintedKey, Shown
from rollout.core.text.terminal import counted, printable
from rollout.kubelet import fields as kubelet_fields
from rollout.kubelet.configuration.yaml_words import resolve

# What kubeadm's configuration must contain so that it keeps a plan's change: the fields, once for each distinct set.
#
# Flags are not included: they belong in ``nodeRegistration.kubeletExtraArgs``.


class _Dumper(yaml.SafeDumper):
    """PyYAML quotes what it reads as no text itself: not ``1e9``, ``08`` or ``y``, which a kubelet reads as a number or as true."""

    def text(self, value: str) -> yaml.ScalarNode:
        in_quotes = resolve("", value) != value or not _BREAKS.isdisjoint(value)
        return self.represent_scalar("tag:yaml.org,2002:str", value, style='"' if in_quotes else None)


_BREAKS = frozenset("\x85\u2028\u2029")
"""Ends of a line in YAML 1.1, and letters in YAML 1.2."""

_Dumper.add_representer(str, _Dumper.text)


def yaml_of(document: Mapping[str, Value]) -> str:
    """YAML that each version of YAML reads as this document."""
    return str(
        yaml.dump(
            dict(document), Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False, width=1000
        )
    )


PATCH_FILE = "kubeletconfiguration+merge.yaml"
"""The name tells kubeadm the target and the kind of patch."""

_LOCATING = ("--config=", "--config-dir=")
_HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@dataclass(frozen=True, slots=True)
class KubeadmPatch:
    """The same fields on ``nodes``; ``flags`` are arguments that the change also needs."""

    fields: Mapping[str, Value]
    flags: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def body(self) -> str:
        """The fields as YAML."""
        return yaml_of(dict(sorted(self.fields.items())))

    @property
    def text(self) -> str:
        """The patch file."""
        return _HEAD + self.body


@dataclass(frozen=True, slots=True)
class NewNodeSettings:
    """What ``nodes`` have and nodes that join later need: ``fields`` and ``flags`` of the kubelet.

    ``others``: what a change does in files that are not the kubelet's. ``by_default``: fields that are in force without being
    written.
    """

    fields: Mapping[str, Value]
    flags: tuple[str, ...]
    others: tuple[str, ...] = ()
    by_default: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def patches_in_force(plans: Iterable[tuple[Plan, Collection[str]]]) -> tuple[KubeadmPatch, ...]:
    """The patches of plans, the largest first. ``plans``: the oldest first, each with the nodes on which its change is in force.

    On a node with several changes the newest value of a field or flag counts.
    """
    return tuple(KubeadmPatch(each.fields, each.flags, each.nodes) for each in _by_value(plans, _of_kubeadm))


def settings_in_force(plans: Iterable[tuple[Plan, Collection[str]]]) -> tuple[NewNodeSettings, ...]:
    """The same of every layout of a node, not only of kubeadm's."""
    return _by_value(plans, _of_change)


def _by_value(
    plans: Iterable[tuple[Plan, Collection[str]]], wanted_by: Callable[[Change], NewNodeSettings | None]
) -> tuple[NewNodeSettings, ...]:
    """What each distinct set of nodes has, the largest first."""
    of_node: dict[str, NewNodeSettings] = {}
    for plan, names in plans:
        of_group = {group.name: wanted_by(group.change) for group in plan.groups}
        for name in names:
            wanted = of_group.get(plan.nodes[name].group) if name in plan.nodes else None
            if wanted is not None:
                of_node[name] = _over(of_node[name], wanted) if name in of_node else wanted
    nodes: dict[str, list[str]] = {}
    for name, wanted in of_node.items():
        nodes.setdefault(_key(wanted), []).append(name)
    made = (replace(of_node[names[0]], nodes=tuple(names)) for names in nodes.values())
    return tuple(sorted(made, key=lambda each: -len(each.nodes)))


def _key(wanted: NewNodeSettings) -> str:
    return json.dumps([wanted.fields, wanted.flags, wanted.others, wanted.by_default], sort_keys=True)


def _over(older: NewNodeSettings, newer: NewNodeSettings) -> NewNodeSettings:
    """Both changes: the newer value of each field and flag."""
    fields = {name: value for name, value in older.fields.items() if name not in newer.by_default}
    flags = {flag.partition("=")[0]: flag for flag in (*older.flags, *newer.flags)}
    return NewNodeSettings(
        _merged(fields, newer.fields),
        tuple(flags.values()),
        tuple(dict.fromkeys((*older.others, *newer.others))),
        tuple(name for name in dict.fromkeys((*older.by_default, *newer.by_default)) if name not in newer.fields),
    )


def _of_kubeadm(change: Change) -> NewNodeSettings | None:
    if any(file.path == KUBEADM_CONFIG for file in change.files):
        return NewNodeSettings(wanted_fields(change, KUBEADM_CONFIG), _flags(change))
    return None


def _of_change(change: Change) -> NewNodeSettings | None:
    """Without the flags that only repeat a field."""
    empty: Mapping[str, Value] = {}
    fields = reduce(_merged, (wanted_fields(change, file.path) for file in change.files), empty)
    flags = _flags(change)
    others = tuple(
        f"{file.path}: {reason}"
        for file in change.files
        if not _is_kubelets(file, change, flags)
        for reason in file.reasons
    )
    by_default = tuple(name for name, _ in change.effective if name not in fields)
    kept = tuple(flag for flag in flags if not _repeats(flag, fields))
    return NewNodeSettings(fields, kept, others, by_default) if fields or kept or others or by_default else None


def _is_kubelets(file: FileChange, change: Change, flags: Sequence[str]) -> bool:
    names = {reason.partition(":")[0] for reason in file.reasons}
    text = file.after.decode(errors="replace")
    return (
        file.path == change.config_path
        or any(name.startswith("--") or kubelet_fields.field(name.partition(".")[0]) for name in names)
        or any(flag.removeprefix("--") in text for flag in flags)
    )


def _repeats(flag: str, fields: Mapping[str, Value]) -> bool:
    known = kubelet_fields.flag(flag.partition("=")[0])
    found: Value = dict(fields)
    for part in known.field.split(".") if known is not None and known.field else ("",):
        found = found.get(part) if isinstance(found, dict) else None
    return found is not None


def _merged(older: Mapping[str, Value], newer: Mapping[str, Value]) -> dict[str, Value]:
    """The newer value of each field; of a map, of each of its keys."""
    found = dict(older)
    for name, value in newer.items():
        known = found.get(name)
        found[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found


def _flags(change: Change) -> tuple[str, ...]:
    """Each as one word: a value can be the word that follows."""
    words = change.arguments
    starts = [at for at, word in enumerate(words) if word.startswith("-")]
    flags = ("=".join(words[start:end]) for start, end in pairwise([*starts, len(words)]))
    return tuple(flag for flag in flags if not flag.startswith(_LOCATING))


_CONFIG_MAP = (
    "# For every node: put these fields into the key `kubelet` of the ConfigMap, which is text;",
    "#     kubectl -n kube-system edit configmap kubelet-config        (kubelet-config-1.N before 1.24)",
    f"# or, from kubeadm 1.25 on, for single machines: save this as {PATCH_FILE} in a folder there and run",
    "#     kubeadm upgrade node --patches FOLDER",
)


def kubeadm_lines(patches: Sequence[KubeadmPatch]) -> Iterator[str]:
    """One YAML document per patch; its comments tell how to use it."""
    if not patches:
        yield "# no change edits a file that kubeadm writes: kubeadm needs no patch"
    for at, patch in enumerate(patches):
        if at:
            yield "---"
        yield f"# {counted(len(patch.nodes), 'node')}: {printable(nodesets.fold(patch.nodes), 160)}"
        yield from _CONFIG_MAP
        if len(patches) > 1:
            yield "# All nodes share one ConfigMap, and these patches differ: put only their common fields into it."
        for flag in patch.flags:
            yield f"# A flag, not a field: {diff.redacted(flag)} belongs in nodeRegistration.kubeletExtraArgs."
        yield from patch.text.splitlines()


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    namespace: str
    name: str
    key: str


def _file(_patch: KubeadmPatch) -> str:
    return PATCH_FILE


_PATCH = Shown(
    "The ``fields`` for ``nodes`` (a nodeset), as a patch file of this name; ``flags`` are arguments that they need too.",
    (
        PrintedKey("", "file", write=_file), PrintedKey("fields", kind=Mapping[str, object]), "flags",
        PrintedKey("nodes", "count", write=len, kind=int), PrintedKey("nodes", write=nodesets.fold),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KubeadmPatchesDocument:
    """What kubeadm's ConfigMap or its patches must contain to keep a plan's change."""

    config_map: ConfigMapKey
    patches: tuple[Annotated[KubeadmPatch, _PATCH], ...]


def kubeadm_document(patches: Sequence[KubeadmPatch]) -> KubeadmPatchesDocument:
    """The same for programs."""
    return KubeadmPatchesDocument(ConfigMapKey("kube-system", "kubelet-config", "kubelet"), tuple(patches))
