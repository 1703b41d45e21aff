"""The kubelets that a lab plays, and what people are told about them."""

from __future__ import annotations

import pytest

from rollout.core.reading.inventory_file import load_inventory
from rollout.lab import spec
from rollout.lab.of_cluster import serves, specification


@pytest.mark.parametrize(
    ("api_server", "label", "played"),
    [
        ("v1.37.0", "", "kubelet 1.36.1 with containerd"),
        ("v1.36.1", "", "kubelet 1.36.1 with containerd"),
        ("v1.34.2", "", "kubelet 1.34.2 with containerd"),
        ("v1.23.17", "", "kubelet 1.23.17 with dockershim"),
        ("v1.36.1", "v1.33.4", "kubelet 1.33.4 with containerd"),
    ],
)
def test_a_node_without_a_version_plays_a_kubelet_that_its_api_server_allows(
    api_server: str, label: str, played: str
) -> None:
    labels = f"{{labels: {{kubeletVersion: {label}}}}}" if label else "{}"
    inventory = load_inventory(f"cluster: c\napiServer: {api_server}\nnodes: {{n1: {labels}}}\n", "c.yaml")
    assert serves(specification(inventory, ["n1"], 1.0)) == f"1 node of c serves on loopback: {played}."


def test_a_current_kubelet_has_a_runtime_that_it_supports() -> None:
    kubelets = {"v1.35.1": "1.7.2", "v1.36.1": "2.1.4"}
    nodes = {version: spec.node("n1", "n1", "127.64.0.1", {"kubeletVersion": version}) for version in kubelets}
    assert {version: node.runtime_version for version, node in nodes.items()} == kubelets
