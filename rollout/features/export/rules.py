"""What ``rollout export kubeadm`` prints."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import yaml

from rollout.core.model.plan import Change, Plan
from rollout.core.model.settings import Value
from rollout.core.model.verification import KUBEADM_CONFIG
from rollout.core.plans.wanted_fields import wanted_fields
from rollout.core.text import diff, json_text, nodesets
from rollout.core.text.documents import PrintedKey, Shown
from rollout.core.text.terminal import counted, printable

# What kubeadm's configuration must contain so that it keeps a plan's change: the fields, once for each distinct set.
#
# Flags are not included: they belong in ``nodeRegistration.kubeletExtraArgs``.


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
        return str(yaml.safe_dump(dict(self.fields), default_flow_style=False, allow_unicode=True, sort_keys=True))

    @property
    def text(self) -> str:
        """The patch file."""
        return _HEAD + self.body


def kubeadm_patches(plan: Plan) -> tuple[KubeadmPatch, ...]:
    """Largest first; ``()`` where the plan edits no file that kubeadm writes."""
    return patches_in_force([(plan, tuple(plan.nodes))])


def patches_in_force(plans: Iterable[tuple[Plan, Collection[str]]]) -> tuple[KubeadmPatch, ...]:
    """The same of several plans, the oldest first, each with the nodes on which its change is in force.

    On a node with several changes the newest value of a field or flag counts.
    """
    fields: dict[str, Mapping[str, Value]] = {}
    flags: dict[str, Mapping[str, str]] = {}
    for plan, names in plans:
        changes = {group.name: group.change for group in plan.groups if _edits(group.change)}
        of_group = {name: (wanted_fields(change, KUBEADM_CONFIG), _flags(change)) for name, change in changes.items()}
        for name in names:
            if name in plan.nodes and plan.nodes[name].group in of_group:
                wanted, arguments = of_group[plan.nodes[name].group]
                fields[name] = _merged(fields.get(name, {}), wanted)
                flags[name] = {**flags.get(name, {}), **{each.partition("=")[0]: each for each in arguments}}
    nodes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, wanted in fields.items():
        nodes.setdefault((json.dumps(wanted, sort_keys=True), tuple(flags[name].values())), []).append(name)
    made = (KubeadmPatch(json_text.parse(text), said, tuple(names)) for (text, said), names in nodes.items())
    return tuple(sorted(made, key=lambda patch: -len(patch.nodes)))


def _edits(change: Change) -> bool:
    return any(file.path == KUBEADM_CONFIG for file in change.files)


def _merged(older: Mapping[str, Value], newer: Mapping[str, Value]) -> dict[str, Value]:
    """The newer value of each field; of a map, of each of its keys."""
    found = dict(older)
    for name, value in newer.items():
        known = found.get(name)
        found[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found


def _flags(change: Change) -> tuple[str, ...]:
    return tuple(argument for argument in change.arguments if not argument.startswith(_LOCATING))


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
