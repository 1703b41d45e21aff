"""One pod of a cluster's API server, with the kubelet that runs it."""

from __future__ import annotations

from rollout.adapters.kubernetes.pods import leaving_pod, placed_pod
from rollout.adapters.node_sources import cluster_state
from rollout.core.model.inventory import Inventory
from rollout.core.model.pods import LeavingPod
from rollout.errors import RemoteError, UsageError

NODE_SECONDS = 15.0


def pod_of_cluster(inventory: Inventory, kubeconfig: str, pod: str) -> tuple[LeavingPod, str]:
    """A pod of the API server, ``namespace/name``, and the version of its node's kubelet, ``""`` if that cannot be read."""
    with cluster_state(inventory, kubeconfig) as cluster:
        if cluster is None:
            message = f"the inventory of {inventory.cluster} has no kubeconfig"
            raise UsageError("no-kubeconfig", message, hint="add --kubeconfig FILE, or give the pod as a file")
        document = next(cluster.pod_documents("", pod), None)
        if document is None:
            raise UsageError("no-such-pod", f"the API server has no pod {pod}")
        try:
            version = cluster.placed(placed_pod(document).node, NODE_SECONDS)[0].kubelet_version
        except RemoteError:
            version = ""
        return leaving_pod(document), version
