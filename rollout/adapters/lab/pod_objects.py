"""A lab node's pods as an API server would hold them."""

from __future__ import annotations

from rollout.adapters.lab import pods
from rollout.adapters.lab.objects import Object, Seen, digest, metadata, scheme, uid

_REJECTED = "Pod Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110"


def all_pods(seen: Seen) -> list[Object]:
    """``v1.Pod``: the node's two, and one that waits for its image while it cannot be pulled."""
    state = seen.machine.pods
    if not state.started:
        return []
    found = [_pod(seen, 0, made=state.boots), _pod(seen, 1, made=state.made)]
    if state.rejected:
        found[1]["status"] = {
            "phase": "Failed",
            "reason": "OutOfpods",
            "message": _REJECTED,
            "startTime": seen.when(state.started),
        }
    return [*found, _waiting(seen)] if state.pulling else found


def _pod(seen: Seen, index: int, made: int) -> Object:
    namespace, name = pods.NAMES[index]
    state, image = seen.machine.pods, f"registry.example/{name}:1.{index}"
    begun = seen.when(state.container_started if made else state.started)
    ready = "True" if seen.ready == "True" else "False"
    return {
        **_pod_head(seen, namespace, name, image),
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": word, "status": ready if word.endswith("Ready") else "True", "lastTransitionTime": begun}
                for word in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": seen.spec.known_as,
            "startTime": seen.when(state.started),
            "containerStatuses": [
                {
                    "name": name,
                    "state": {"running": {"startedAt": begun}},
                    "lastState": _ended(seen, name, made, begun),
                    "ready": True,
                    "started": True,
                    "restartCount": made,
                    "image": image,
                    "imageID": f"registry.example/{name}@sha256:{digest(image)}",
                    "containerID": _container(seen, name, made),
                }
            ],
            "qosClass": "BestEffort",
        },
    }


def _ended(seen: Seen, name: str, made: int, when: str) -> Object:
    if not made:
        return {}
    last = {"exitCode": 137, "reason": "Error", "containerID": _container(seen, name, made - 1)}
    return {"terminated": {**last, "startedAt": seen.when(seen.machine.pods.started), "finishedAt": when}}


def _waiting(seen: Seen) -> Object:
    image = "registry.example/batch:2.0"
    message = f'Back-off pulling image "{image}"'
    return {
        **_pod_head(seen, "default", "batch", image),
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
            "hostIP": seen.spec.known_as,
            "startTime": seen.when(seen.machine.pods.lease.since),
            "containerStatuses": [
                {
                    "name": "batch",
                    "state": {"waiting": {"reason": "ImagePullBackOff", "message": message}},
                    "lastState": {},
                    "ready": False,
                    "started": False,
                    "restartCount": 0,
                    "image": image,
                    "imageID": "",
                }
            ],
            "qosClass": "BestEffort",
        },
    }


def _pod_head(seen: Seen, namespace: str, name: str, image: str) -> Object:
    owner = "DaemonSet" if namespace == "kube-system" else "ReplicaSet"
    whole = f"{name}-{seen.spec.name}"
    return {
        "metadata": {
            **metadata(seen, whole, f"pod/{whole}"),
            "namespace": namespace,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": owner,
                    "name": name,
                    "uid": uid(f"{owner}/{name}"),
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": seen.spec.name,
            "restartPolicy": "Always",
            "containers": [{"name": name, "image": image, "resources": {}}],
        },
    }


def _container(seen: Seen, name: str, made: int) -> str:
    return f"{scheme(seen.spec)}://{digest(f'{seen.spec.name}/{name}/{made}')}"
