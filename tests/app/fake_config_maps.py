"""The ``ConfigMaps`` port in memory: a write with an old version is refused, as the API server does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rollout.app.ports import ConfigMap
from rollout.errors import AwayError, RemoteError

CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.33.4\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110   # one /24\nserializeImagePulls: true\n"


@dataclass
class FakeConfigMaps:
    """``before_write``: what happens between a read and the write. ``away``: how many requests get no answer. ``refuses``: what every write is answered with."""

    data: dict[str, dict[str, str]] = field(
        default_factory=lambda: {
            "kubeadm-config": {"ClusterConfiguration": CLUSTER},
            "kubelet-config": {"kubelet": KUBELET},
        }
    )
    version: int = 7
    away: float = 0
    forbidden: bool = False
    refuses: str = ""
    unreadable: frozenset[str] = frozenset()
    uid: str = "uid-1"
    before_write: Callable[[], None] = lambda: None
    writes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.data["kubelet-config"]["kubelet"]

    @text.setter
    def text(self, text: str) -> None:
        self.data["kubelet-config"]["kubelet"] = text
        self.version += 1

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:
        self._answer()
        if name in self.unreadable:
            raise RemoteError("forbidden", "no right to this name")
        found = self.data.get(name)
        return None if found is None else ConfigMap(namespace, name, str(self.version), dict(found), self.uid)

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        self.before_write()
        self._refuse()
        self._answer()
        self._same(found)
        self.writes.append(text)
        self.data[found.name][key] = text
        self.version += 1

    def touch(self, found: ConfigMap, timeout: float) -> None:
        self._refuse()
        self._answer()
        self._same(found)
        self.version += 2

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:
        return ()

    def _refuse(self) -> None:
        if self.refuses:
            raise (AwayError if self.refuses == "timeout" else RemoteError)(self.refuses, "not so")

    def _answer(self) -> None:
        if self.forbidden:
            raise RemoteError("forbidden", "no right")
        if self.away > 0:
            self.away -= 1
            raise AwayError("timeout", "no answer")

    def _same(self, found: ConfigMap) -> None:
        if found.version != str(self.version):
            raise RemoteError("conflict", "the object has been modified")


def kept(found: FakeConfigMaps) -> Mapping[str, str]:
    return dict(found.data["kubelet-config"])
