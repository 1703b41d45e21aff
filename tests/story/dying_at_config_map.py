"""``rollout`` that kills itself (SIGKILL) where it writes a ConfigMap: before the request (``DIE_WHEN=before``), or after its answer."""

from __future__ import annotations

import os
import signal

from rollout.adapters.kubernetes import config_maps
from rollout.adapters.kubernetes.config_maps import ApiConfigMaps
from rollout.app.ports import ConfigMap
from rollout.cli.main import main


def at(when: str) -> None:
    if os.environ["DIE_WHEN"] == when:
        os.kill(os.getpid(), signal.SIGKILL)


class DyingConfigMaps(ApiConfigMaps):
    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        at("before")
        super().write(found, key, text, timeout)
        at("after")


setattr(config_maps, "ApiConfigMaps", DyingConfigMaps)  # noqa: B010 - the composition root uses it from there
main()
