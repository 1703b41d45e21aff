"""A lab node's pods as objects of the API."""

from __future__ import annotations

from collections.abc import Sequence

from rollout.lab import pods
from rollout.lab.objects import NodeMoment, Object, digest, metadata, scheme, uid
from rollout.lab.replicas import Replica

_FIRST = "2021-03-01T10:00:00Z"
"""When the first replicas were made: after their nodes and DaemonSets."""
_REJECTED = "Pod Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110"


def all_pods(seen: NodeMoment, replicas: Sequence[Replica]) -> list[Object]:
    """``v1.Pod``: the DaemonSet's, the node's replicas, and one that waits for an image that cannot be pulled."""
    state = seen.machine.pods
    if not state.started:
        return []
    pods = [_daemon(seen), *(_replica(seen, replica) for replica in replicas)]
    return [*pods, _waiting(seen)] if state.pulling else pods


def unplaced(seen: NodeMoment, replica: Replica) -> Object:
    """A pod that no node has room for; ``seen`` is its previous node."""
    pod = _pod_head(seen, "default", "web", replica.name, "registry.example/web:1.1")
    pod["metadata"]["creationTimestamp"] = seen.when(replica.made)
    del pod["spec"]["nodeName"]
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes are available"}
    return {**pod, "status": {"phase": "Pending", "conditions": [why], "qosClass": "BestEffort"}}


def _daemon(seen: NodeMoment) -> Object:
    namespace, name = pods.NAMES[0]
    state, whole = seen.machine.pods, f"{name}-{seen.spec.name}"
    number = state.boots + state.daemons
    pod = _pod_head(seen, namespace, name, whole, f"registry.example/{name}:1.0")
    if state.daemons:
        pod["metadata"]["uid"] = uid(f"pod/{whole}/{state.daemons}")
    return {**pod, "status": _running(seen, pod, name, number, state.container_started if number else state.started)}


def _replica(seen: NodeMoment, replica: Replica) -> Object:
    namespace, name = pods.NAMES[1]
    state = seen.machine.pods
    pod = _pod_head(seen, namespace, name, replica.name, f"registry.example/{name}:1.1")
    pod["metadata"]["creationTimestamp"] = _FIRST if replica.first else seen.when(replica.made)
    pod["spec"]["terminationGracePeriodSeconds"] = state.grace
    if "userNamespaces" in seen.spec.labels:
        pod["spec"]["hostUsers"] = False
    if state.ending == pods.SLOW:
        pod["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/drain"]}}}
    if state.ending == pods.HELD:
        pod["metadata"]["finalizers"] = ["example.com/held"]
    if replica.deleted is not None:
        pod["metadata"]["deletionTimestamp"] = seen.when(replica.deleted + replica.grace)
        pod["metadata"]["deletionGracePeriodSeconds"] = replica.grace
    if replica.first and state.rejected:
        begun = seen.when(state.started)
        return {**pod, "status": {"phase": "Failed", "reason": "OutOfpods", "message": _REJECTED, "startTime": begun}}
    if state.low and replica.placed <= (state.lease.since or seen.now):
        begun = seen.when(state.started)
        return {**pod, "status": {"phase": "Failed", "reason": "Evicted", "message": state.low, "startTime": begun}}
    number = state.made if replica.first else state.boots - replica.boots
    since = (state.started if replica.first else replica.placed) if not number else state.container_started
    return {**pod, "status": _running(seen, pod, name if replica.first else replica.name, number, since)}


def _running(seen: NodeMoment, pod: Object, thing: str, made: int, since: float) -> Object:
    """The status of a pod with one container that runs since then; ``thing`` distinguishes containers."""
    ready, begun = "True" if seen.ready == "True" else "False", seen.when(since)
    (container,) = pod["spec"]["containers"]
    return {
        "phase": "Running",
        "conditions": [
            {"type": word, "status": ready if word.endswith("Ready") else "True", "lastTransitionTime": begun}
            for word in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": seen.spec.known_as,
        "startTime": begun if not made else seen.when(seen.machine.pods.started),
        "containerStatuses": [
            {
                "name": container["name"],
                "state": {"running": {"startedAt": begun}},
                "lastState": _ended(seen, thing, made, begun),
                "ready": True,
                "started": True,
                "restartCount": made,
                "image": container["image"],
                "imageID": f"registry.example/{container['name']}@sha256:{digest(container['image'])}",
                "containerID": _container(seen, thing, made),
            }
        ],
        "qosClass": "BestEffort",
    }


def _ended(seen: NodeMoment, name: str, made: int, when: str) -> Object:
    if not made:
        return {}
    last = {"exitCode": 137, "reason": "Error", "containerID": _container(seen, name, made - 1)}
    return {"terminated": {**last, "startedAt": seen.when(seen.machine.pods.started), "finishedAt": when}}


def _waiting(seen: NodeMoment) -> Object:
    image = "registry.example/batch:2.0"
    message = f'Back-off pulling image "{image}"'
    return {
        **_pod_head(seen, "default", "batch", f"batch-{seen.spec.name}", image),
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


def events(seen: NodeMoment) -> list[Object]:
    """``v1.Event``: those of the pod that waits for an image."""
    state, name, image = seen.machine.pods, seen.spec.name, "registry.example/batch:2.0"
    if not (state.started and state.pulling):
        return []
    error = f'Failed to pull image "{image}": rpc error: code = NotFound desc = manifest unknown'
    told = (
        ("Pulling", f'Pulling image "{image}"'),
        ("Failed", error),
        ("BackOff", f'Back-off pulling image "{image}"'),
    )
    when = seen.when(state.lease.since)
    about = {"kind": "Pod", "namespace": "default", "name": f"batch-{name}", "fieldPath": "spec.containers{batch}"}
    return [
        {
            "metadata": {**metadata(seen, f"batch-{name}.{reason}", f"event/{name}/{reason}"), "namespace": "default"},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": name},
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }
        for reason, message in told
    ]


def _pod_head(seen: NodeMoment, namespace: str, name: str, whole: str, image: str) -> Object:
    owner = "DaemonSet" if namespace == "kube-system" else "ReplicaSet"
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
            "terminationGracePeriodSeconds": pods.GRACE,
            "containers": [{"name": name, "image": image, "resources": {}}],
        },
    }


def _container(seen: NodeMoment, name: str, made: int) -> str:
    return f"{scheme(seen.spec)}://{digest(f'{seen.spec.name}/{name}/{made}')}"
