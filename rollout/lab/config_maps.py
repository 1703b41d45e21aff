"""kubeadm's ConfigMaps in the lab: those of a cluster that kubeadm made, with resourceVersions. They last as long as the lab runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollout.kubelet.kubeadm import CLUSTER_CONFIGURATION, KEY, NAMESPACE, config_map_name
from rollout.lab.configs import config
from rollout.lab.objects import Object, uid


@dataclass(slots=True)
class LabConfigMap:
    """``version``: its resourceVersion."""

    namespace: str
    name: str
    data: dict[str, str]
    notes: dict[str, str] = field(default_factory=dict)
    version: int = 1

    @property
    def document(self) -> Object:
        metadata = {
            "namespace": self.namespace, "name": self.name, "uid": uid(f"configmap/{self.namespace}/{self.name}"),
            "resourceVersion": str(self.version), "annotations": dict(self.notes),
        }  # fmt: skip
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": dict(self.data)}

    def merge(self, data: Mapping[str, str | None], notes: Mapping[str, str | None]) -> None:
        """A merge patch. Without a difference the version stays, as on an API server."""
        before = (dict(self.data), dict(self.notes))
        for kept, wanted in ((self.data, data), (self.notes, notes)):
            for key, value in wanted.items():
                if value is None:
                    kept.pop(key, None)
                else:
                    kept[key] = value
        self.version += before != (self.data, self.notes)


def of_kubeadm(version: str) -> tuple[LabConfigMap, ...]:
    """Those that ``kubeadm init`` of the API server's version made."""
    name, key = CLUSTER_CONFIGURATION
    cluster = f"apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n"
    minor = int(version.split(".")[1])
    return (
        LabConfigMap(NAMESPACE, name, {key: cluster}),
        LabConfigMap(NAMESPACE, config_map_name(cluster), {KEY: config(minor, "")}),
    )
