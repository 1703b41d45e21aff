"""The last node list of each API server, kept for times when the API server does not answer or refuses the request.

Reverts, ``resume``, ``recover`` and ``verify`` must not need the API server. A plan does need it. The files are 0600
in the journal's folder, one for each kubeconfig and context; messages report their age.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from rollout.app.ports import ApiSources, NodeSources
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.core.text import json_text
from rollout.errors import RemoteError


@dataclass(frozen=True, slots=True)
class _Kept:
    taken: str
    nodes: tuple[LiveNode, ...]


class RememberingSources:
    """Asks ``sources``, and keeps the answers of API servers in ``folder``."""

    def __init__(self, sources: ApiSources, folder: Path) -> None:
        self._sources = sources
        self._folder = folder

    def ansible(self, path: str) -> str:
        return self._sources.ansible(path)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        nodes = self._sources.live(kubeconfig, context)
        kept = _Kept(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", nodes)
        path = _path(self._folder, kubeconfig, context)
        with suppress(OSError):  # optional: without the copy an emergency needs the API server
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(json_text.encode(kept)), encoding="utf-8")
            fresh.replace(path)
        return nodes

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        return self._sources.pods(kubeconfig, context, nodes)

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        return self._sources.configz(kubeconfig, context, node)


class RecallingSources:
    """Falls back to the last answer when an API server does not list its nodes; ``say`` reports it."""

    def __init__(self, sources: NodeSources, folder: Path, say: Callable[[str], None]) -> None:
        self._sources = sources
        self._folder = folder
        self._say = say

    def ansible(self, path: str) -> str:
        return self._sources.ansible(path)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        try:
            return self._sources.live(kubeconfig, context)
        except RemoteError as error:
            kept = _read(_path(self._folder, kubeconfig, context))
            if kept is None:
                raise
            self._say(f"the API server did not list its nodes ({error.message}); using its node list of {kept.taken}")
            return kept.nodes


def _path(folder: Path, kubeconfig: str, context: str) -> Path:
    return folder / f"nodes-{sha256(f'{kubeconfig} {context}'.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> _Kept | None:
    try:
        kept: _Kept = json_text.decode(_Kept, json_text.parse(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    return kept
