"""Cordons with the mark of a run: set and lifted in one compare-and-swap each; cordons of others are never touched.

Next to the mark is the token counter of the controller that set the cordon. A controller that was frozen and resumes
has an older counter than its successor: it neither takes, keeps nor lifts the successor's cordon.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rollout.adapters.json_answers import mapping, text
from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.objects import COUNTER, MARK, mark, token
from rollout.core.model.pods import Cordon
from rollout.core.model.snapshot import is_beyond_belief
from rollout.errors import AwayError, RemoteError

TRIES = 5
"""Retries when something else writes the Node meanwhile; kubelets write theirs every few seconds at most."""

Json = Mapping[str, Any]


class Cordons:
    """Thread-safe."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def put_on(self, node: str, run: str, counter: int, until: float) -> Cordon:
        """Cordon a Node without a cordon, or renew the run's own with an older token. Returns the owner of its cordon."""
        for _ in range(TRIES):
            found = self._node(node, until)
            if found is None:
                raise RemoteError("no-such-node", f"the API server knows no Node {node}")
            whose = _whose(found, run, counter)
            if whose is not Cordon.NONE and not (whose is Cordon.OURS and token(found) != counter):
                return whose
            notes = {MARK: run, COUNTER: str(counter)}
            written = self._write(node, found, notes, {"unschedulable": True}, until)
            if written is not None:
                return _whose(written, run, counter)
        raise _contended(node)

    def lift(self, node: str, run: str, counter: int | None, until: float) -> Cordon:
        """Lift the cordon. Returns the owner of the cordon that is on the Node now; a deleted Node has none.

        ``run`` ``""``: any run's; ``counter`` ``None``: any token.
        """
        for _ in range(TRIES):
            found = self._node(node, until)
            if found is None:
                return Cordon.NONE
            whose = _whose(found, run, counter)
            if whose is Cordon.NEWER or not mark(found) or run not in ("", mark(found)):
                return whose
            written = self._write(node, found, {MARK: None, COUNTER: None}, {"unschedulable": None}, until)
            if written is not None:
                return _whose(written, run, counter)
        raise _contended(node)

    def _node(self, node: str, until: float) -> Json | None:
        try:
            return mapping(self._client.get(_path(node), _left(until)), "a Node")
        except RemoteError as error:
            if error.reference == "not-found":
                return None
            raise

    def _write(self, node: str, found: Json, notes: Json, spec: Json, until: float) -> Json | None:
        """The Node as written; ``None`` when it changed since it was read."""
        version = text(mapping(found.get("metadata"), "metadata").get("resourceVersion"), "resourceVersion")
        if not version:
            raise RemoteError("bad-answer", "the Node has no resourceVersion")
        wanted = {"metadata": {"resourceVersion": version, "annotations": notes}, "spec": spec}
        try:
            return mapping(self._client.patch(_path(node), wanted, _left(until)), "a Node")
        except RemoteError as error:
            if error.reference in ("conflict", "not-found"):
                return None
            raise


def _whose(node: Json, run: str, counter: int | None) -> Cordon:
    if mapping(node.get("spec"), "spec").get("unschedulable") is not True:
        return Cordon.NONE
    by = mark(node)
    if not by:
        return Cordon.OTHERS
    if by != run:
        return Cordon.ANOTHER_RUN
    return Cordon.NEWER if counter is not None and _is_newer(token(node), counter) else Cordon.OURS


def _is_newer(found: int, ours: int) -> bool:
    """An impossible counter counts as none. Otherwise every writer of the Node could keep its cordon for good."""
    return found > ours and not is_beyond_belief(found, ours)


def _contended(node: str) -> AwayError:
    return AwayError("conflict", f"something else kept changing the Node {node}")


def _path(node: str) -> str:
    return f"/api/v1/nodes/{quote(node, safe='')}"


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.001)
