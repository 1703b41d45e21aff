"""What ``rollout export kubeadm`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rollout.core.plans.kubeadm_patches import PATCH_FILE, KubeadmPatch
from rollout.core.text import diff, nodesets
from rollout.core.text.terminal import counted, printable

VERSION = 1
_CONFIG_MAP = (
    "# For every node: put these fields into the key `kubelet` of the ConfigMap, which is text;",
    "#     kubectl -n kube-system edit configmap kubelet-config        (kubelet-config-1.N before 1.24)",
    f"# or, from kubeadm 1.25 on, for single machines: save this as {PATCH_FILE} in a folder there and call",
    "#     kubeadm upgrade node --patches FOLDER",
)


def kubeadm_lines(patches: Sequence[KubeadmPatch]) -> Iterator[str]:
    """A YAML document a patch; what to do with it is in its comments."""
    if not patches:
        yield "# the plan edits no file that kubeadm writes: there is nothing for kubeadm to know"
    for at, patch in enumerate(patches):
        if at:
            yield "---"
        yield f"# {counted(len(patch.nodes), 'node')}: {printable(nodesets.fold(patch.nodes), 160)}"
        yield from _CONFIG_MAP
        if len(patches) > 1:
            yield "# The ConfigMap is one for all nodes, and these patches differ: keep in it what they have in common."
        for flag in patch.flags:
            yield f"# A flag, not a field: {diff.redacted(flag)} belongs into nodeRegistration.kubeletExtraArgs."
        yield from patch.text.splitlines()


def kubeadm_document(patches: Sequence[KubeadmPatch]) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "version": VERSION,
        "configMap": {"namespace": "kube-system", "name": "kubelet-config", "key": "kubelet"},
        "patches": [
            {
                "file": PATCH_FILE,
                "fields": dict(patch.fields),
                "flags": list(patch.flags),
                "count": len(patch.nodes),
                "nodes": nodesets.fold(patch.nodes),
            }
            for patch in patches
        ],
    }
