"""The ``ConfigMaps`` port on a real API server: one key of one object, written with the resourceVersion that was read.

The API server refuses such a write with 409 if anybody has written the object since (optimistic locking).
"""

from __future__ import annotations

from urllib.parse import quote

from rollout.adapters.http import mapping, text
from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.cluster import KubernetesCluster, Right
from rollout.app.ports import ConfigMap
from rollout.errors import RemoteError
from rollout.kubelet.kubeadm import CLUSTER_CONFIGURATION

NEEDED = ("get", "patch")
"""The verbs that are needed on the ConfigMap."""

_TOUCHED = "rollout/touched"


class ApiConfigMaps:
    """Thread-safe."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:
        try:
            document = mapping(self._client.get(_path(namespace, name), timeout), "a ConfigMap")
        except RemoteError as error:
            if error.reference == "not-found":
                return None
            raise
        metadata = mapping(document.get("metadata"), "metadata")
        version, uid = (text(metadata.get(key), key) for key in ("resourceVersion", "uid"))
        if not version or not uid:
            raise RemoteError("bad-answer", "the ConfigMap has no resourceVersion, or no uid")
        data = {key: text(value, f"data.{key}") for key, value in mapping(document.get("data"), "data").items()}
        return ConfigMap(namespace, name, version, data, uid)

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        wanted = {"metadata": {"resourceVersion": found.version}, "data": {key: text}}
        self._client.patch(_path(found.namespace, found.name), wanted, timeout)

    def touch(self, found: ConfigMap, timeout: float) -> None:
        """By an annotation that is set and removed: a write without a difference gets no new resourceVersion."""
        path = _path(found.namespace, found.name)
        wanted = {"metadata": {"resourceVersion": found.version, "annotations": {_TOUCHED: "true"}}}
        written = mapping(self._client.patch(path, wanted, timeout), "a ConfigMap")
        version = text(mapping(written.get("metadata"), "metadata").get("resourceVersion"), "resourceVersion")
        wanted = {"metadata": {"resourceVersion": version, "annotations": {_TOUCHED: None}}}
        self._client.patch(path, wanted, timeout)

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:
        cluster = KubernetesCluster(self._client)
        needed: tuple[Right, ...] = tuple((verb, "", "configmaps", namespace) for verb in NEEDED)
        known = cluster.missing(needed[:1], CLUSTER_CONFIGURATION[0])
        return (*cluster.missing(needed, name), *(f"{right} ({CLUSTER_CONFIGURATION[0]})" for right in known))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
