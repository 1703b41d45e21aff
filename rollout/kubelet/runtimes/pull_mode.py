"""Does this containerd pull through its transfer service, or as a client of its own ("local pull")?

From 2.1 the transfer service is the default, and some keys of the CRI's image table make containerd fall back with a
warning (``CheckLocalImagePullConfigs``, ``internal/cri/config/config.go`` of 2.1.0 and 2.3.4). It decides which table a
limit of downloads is read from, and whether a ``config_path`` of several directories works (containerd #12415).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollout.kubelet.runtimes import toml_edit
from rollout.kubelet.runtimes.containerd_config import CRI_V2, CRI_V3, Config, ConfigFile

DOWNLOADS_KEY = "max_concurrent_downloads"

_FALLBACKS: tuple[tuple[tuple[str, ...], Callable[[Any], bool]], ...] = (
    (("use_local_image_pull",), lambda value: value is True),
    (("disable_snapshot_annotations",), lambda value: value is False),
    (("discard_unpacked_layers",), lambda value: value is True),
    (("registry", "mirrors"), bool),
    (("registry", "configs"), bool),
    (("registry", "auths"), bool),
    ((DOWNLOADS_KEY,), lambda value: value != 3),
    (("image_pull_with_sync_fs",), lambda value: value is True),
)
_ONLY_V3 = frozenset({"use_local_image_pull"})
_UNDER_CONTAINERD = frozenset({"disable_snapshot_annotations", "discard_unpacked_layers"})


def local_because(config: Config) -> tuple[str, ...]:
    """The keys that make this containerd pull locally, or the version that knows nothing else; ``()``: transfer service."""
    if config.containerd.number < (2, 1, 0):
        return ("containerd before 2.1",)
    return tuple(".".join(keys) for keys, falls_back in _FALLBACKS if _any(config, keys, falls_back))


def _any(config: Config, keys: tuple[str, ...], falls_back: Callable[[Any], bool]) -> bool:
    found = [value for file in config.files for value in _values(file, keys) if value is not None]
    return bool(found) and falls_back(found[-1])


def _values(file: ConfigFile, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of one file, as 2.x migrates them: what version 2 has under ``containerd`` moves, if it names runtimes."""
    v3 = toml_edit.value_at(file.document, (*CRI_V3, *keys))
    if keys[0] in _ONLY_V3:
        return (v3,)
    if keys[0] not in _UNDER_CONTAINERD:
        return v3, toml_edit.value_at(file.document, (*CRI_V2, *keys))
    named = toml_edit.value_at(file.document, (*CRI_V2, "containerd", "runtimes"))
    return v3, toml_edit.value_at(file.document, (*CRI_V2, "containerd", *keys)) if named is not None else None
