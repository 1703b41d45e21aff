"""The back ends of gates and drains, as one value. An API server that is not set raises ``no-endpoint``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn

from rollout.app.asked_gate import Asker
from rollout.app.node_drains import MakeDrains, no_drains
from rollout.app.ports import Cluster, ConfigMap, ConfigMaps
from rollout.core.model.frozen import dataclass
from rollout.core.model.live import LiveNode, PullCounter, Sight
from rollout.core.model.pods import PlacedPod
from rollout.errors import RemoteError


class NoCluster:
    """Stands for an API server that is not set."""

    def nodes(self) -> tuple[LiveNode, ...]:
        _absent()

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:  # noqa: ARG002 - the port's signature, as below
        _absent()

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:  # noqa: ARG002
        _absent()

    def pull_counter(self, node: str, timeout: float) -> PullCounter:  # noqa: ARG002
        _absent()

    def missing_to_count_pulls(self) -> tuple[str, ...]:
        _absent()

    def missing_rights(self) -> tuple[str, ...]:
        _absent()

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:  # noqa: ARG002
        _absent()


class NoConfigMaps:
    """Stands for those of an API server that is not set, or not asked: an emergency asks none."""

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:  # noqa: ARG002
        _absent()

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:  # noqa: ARG002
        _absent()

    def touch(self, found: ConfigMap, timeout: float) -> None:  # noqa: ARG002
        _absent()

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:  # noqa: ARG002
        _absent()


def _absent() -> NoReturn:
    raise RemoteError("no-endpoint", "no kubeconfig was named")


@dataclass(frozen=True, slots=True)
class Backends:
    """The back ends of gates and drains. ``askers``: of each kind of wave gate. ``wait`` sleeps that many seconds between two tries."""

    cluster: Cluster = field(default_factory=NoCluster)
    askers: Mapping[str, Asker] = field(default_factory=dict)
    drains: MakeDrains = no_drains
    config_maps: ConfigMaps = field(default_factory=NoConfigMaps)
    wait: Callable[[float], None] = time.sleep
