"""What kubeadm must be told so that it keeps a plan's change: the fields, once for each distinct set of them.

Flags are not among them: they belong into ``nodeRegistration.kubeletExtraArgs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from rollout.core.model.plan import Change, Plan
from rollout.core.model.settings import Value
from rollout.core.model.verification import KUBEADM_CONFIG
from rollout.core.text import json_text

PATCH_FILE = "kubeletconfiguration+merge.yaml"
"""Target and kind of patch, as kubeadm reads them from the name."""

_LOCATING = ("--config=", "--config-dir=")
_HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@dataclass(frozen=True, slots=True)
class KubeadmPatch:
    """The same fields on ``nodes``; ``flags`` are arguments that the change needs besides."""

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
    nodes: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], list[str]] = {}
    changes = {group.name: group.change for group in plan.groups}
    for node in plan.nodes.values():
        change = changes[node.group]
        if any(file.path == KUBEADM_CONFIG for file in change.files):
            nodes.setdefault((change.effective, _flags(change)), []).append(node.name)
    made = (
        KubeadmPatch({name: json_text.parse(value) for name, value in effective}, flags, tuple(names))
        for (effective, flags), names in nodes.items()
    )
    return tuple(sorted(made, key=lambda patch: -len(patch.nodes)))


def _flags(change: Change) -> tuple[str, ...]:
    return tuple(argument for argument in change.arguments if not argument.startswith(_LOCATING))
