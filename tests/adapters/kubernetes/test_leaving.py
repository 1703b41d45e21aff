"""Invalid pods from an API server: each is read, or refused as a bad answer.

The arithmetic accepts every pod that is read.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollout.adapters.kubernetes.pods import leaving_pod
from rollout.core.model.pods import LeavingPod
from rollout.errors import RemoteError
from rollout.kubelet.restarts.termination import budget

POD: dict[str, Any] = {
    "metadata": {
        "uid": "0123", "namespace": "default", "name": "web", "annotations": {"kubernetes.io/config.source": "api"},
        "deletionTimestamp": "2026-11-20T12:00:00Z", "deletionGracePeriodSeconds": 30, "finalizers": ["example.com/held"],
        "ownerReferences": [{"kind": "ReplicaSet", "controller": True}],
    },
    "spec": {
        "terminationGracePeriodSeconds": 30, "volumes": [{"name": "scratch", "emptyDir": {}}],
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
        "containers": [{"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}],
    },
    "status": {"phase": "Running"},
}  # fmt: skip

lies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def paths(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    found = [((*above, key), value) for key, value in entries]
    below = [path for at, value in found if isinstance(value, dict | list) for path in paths(value, at)]
    return [at for at, _ in found] + below


@given(st.sampled_from(paths(POD)), lies)
def test_any_invalid_value_at_any_place_of_a_pod(place: tuple[Any, ...], lie: Any) -> None:
    document = copy.deepcopy(POD)
    *above, key = place
    holder: Any = document
    for step in above:
        holder = holder[step]
    holder[key] = lie
    pod = read(document)
    if pod is None:
        return
    for minor in (20, 23, 28, 33):
        seconds = budget(pod, minor).seconds
        assert seconds is not None
        assert seconds >= 1


@given(lies)
def test_any_invalid_value_instead_of_a_pod(lie: Any) -> None:
    assert read(lie) is None, "a pod needs a name and a uid"


def read(document: Any) -> LeavingPod | None:
    """``None``: it was refused as a bad answer; any other exception is a bug."""
    refused = ""
    try:
        return leaving_pod(document)
    except RemoteError as error:
        refused = error.reference
    assert refused == "bad-answer"
    return None
