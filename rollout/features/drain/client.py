"""What a drain asks of the API server: evictions of pods, and cordons of nodes with the mark of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from rollout.adapters.http import HttpAnswer, decoded, listing, mapping, text
from rollout.adapters.kubernetes.client import DONE, ApiClient, said
from rollout.adapters.kubernetes.cluster import KubernetesCluster, Right, items, whole_list
from rollout.adapters.kubernetes.objects import COUNTER, MARK, mark, token
from rollout.adapters.kubernetes.pods import leaving_pod
from rollout.core.model.pods import LeavingPod
from rollout.core.model.snapshot import is_beyond_belief
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError
from rollout.features.drain.rules import Cordon, Eviction, EvictionAnswer

# Evictions: a pod is evicted with its own grace period, and the API server enforces its budgets.
#
# Source: pkg/registry/core/pod/rest/eviction.go of kubernetes 1.20 and later. 201: the pod's deletion has begun. 429
# with the cause ``DisruptionBudget``: a budget allows none now. 500: two budgets match. The API is ``policy/v1`` from
# 1.22 on and ``policy/v1beta1`` before; discovery tells which.


MOST_TEXT = 500
LONGEST = 3600.0
"""Upper limit in seconds for a retry delay that the server requests."""
_TWO_BUDGETS = "more than one PodDisruptionBudget"
_ANOTHER = ("UID in the precondition", "UID in precondition")
"""Two messages of the server for a name that meanwhile belongs to another pod."""


class Evictions:
    """Thread-safe."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._version = ""

    def ask(self, pod: LeavingPod, until: float) -> EvictionAnswer:
        """One attempt; ``RemoteError`` when the answer is not about the pod."""
        namespace, _, name = pod.name.partition("/")
        wanted = {
            "apiVersion": self._served(until),
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/eviction"
        answer = self._client.tell(path, wanted, _left(until))
        outcome = _outcome_of(answer, path)
        if outcome.eviction is Eviction.REFUSED and answer.status == 403:
            refusal = self._client.error_of(answer, "POST", path)
            if isinstance(refusal, AwayError):
                raise refusal
        return outcome

    def _served(self, until: float) -> str:
        """The group and version of evictions, asked for once."""
        with self._lock:
            if not self._version:
                document = mapping(self._client.get("/api/v1", _left(until)), "the answer")
                kinds = [mapping(entry, "a resource") for entry in listing(document.get("resources"), "resources")]
                kind = next((kind for kind in kinds if kind.get("name") == "pods/eviction"), None)
                if kind is None:
                    raise RemoteError("bad-answer", "the API server does not support evictions")
                self._version = f"{text(kind.get('group'), 'group')}/{text(kind.get('version'), 'version')}"
            return self._version


def _outcome_of(answer: HttpAnswer, path: str) -> EvictionAnswer:
    if answer.status in DONE:
        mapping(decoded(answer), "the answer")  # a login page shows no eviction
        return EvictionAnswer(Eviction.ACCEPTED)
    error = said(answer, path)
    if answer.status in (403, 429) and not _document(answer):
        raise AwayError(f"http-{answer.status}", error.message)  # of a proxy: no API server refused it
    if error.reference == "not-found" or (answer.status == 409 and any(words in error.message for words in _ANOTHER)):
        return EvictionAnswer(Eviction.GONE, error.message)
    if answer.status == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in _all_causes(answer)):
        return EvictionAnswer(Eviction.BLOCKED, error.message)  # its pods are about to be deleted anyway
    if answer.status == 403 or (answer.status == 500 and _TWO_BUDGETS in error.message):
        return EvictionAnswer(Eviction.REFUSED, error.message)
    if answer.status == 409:
        raise AwayError("conflict", error.message)
    causes = _causes(answer) if answer.status == 429 else ()
    if causes:
        message = " ".join((error.message, *causes))
        return EvictionAnswer(Eviction.BLOCKED, printable(message, MOST_TEXT), _retry_after(answer))
    raise error


def _causes(answer: HttpAnswer) -> tuple[str, ...]:
    """The budgets' message; a busy server also answers 429, without naming budgets."""
    budgets = (cause for cause in _all_causes(answer) if cause.get("reason") == "DisruptionBudget")
    return tuple(text(cause.get("message"), "message") for cause in budgets)


def _all_causes(answer: HttpAnswer) -> list[Mapping[str, Any]]:
    return [mapping(entry, "a cause") for entry in listing(_details(answer).get("causes"), "causes")]


def _retry_after(answer: HttpAnswer) -> float:
    asked = answer.headers.get("retry-after", "") or str(_details(answer).get("retryAfterSeconds", ""))
    return min(float(asked), LONGEST) if asked.isascii() and asked.isdigit() else 0.0


def _details(answer: HttpAnswer) -> Mapping[str, Any]:
    return mapping(_document(answer).get("details"), "details")


def _document(answer: HttpAnswer) -> Mapping[str, Any]:
    """The JSON in an answer; nothing of what is none."""
    try:
        return mapping(decoded(answer), "the answer")
    except RemoteError:
        return {}


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.001)


# Cordons with the mark of a run: set and lifted in one compare-and-swap each; cordons of others are never touched.
#
# Next to the mark is the token counter of the controller that set the cordon. A controller that was frozen and
# resumes has an older counter than its successor: it neither takes, keeps nor lifts the successor's cordon.


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
            document = self._node(node, until)
            if document is None:
                raise RemoteError("no-such-node", f"the API server knows no Node {node}")
            whose = _whose(document, run, counter)
            if whose is not Cordon.NONE and not (whose is Cordon.OURS and token(document) != counter):
                return whose
            notes = {MARK: run, COUNTER: str(counter)}
            written = self._write(node, document, notes, {"unschedulable": True}, until)
            if written is not None:
                return _whose(written, run, counter)
        raise _contended(node)

    def lift(self, node: str, run: str, counter: int | None, until: float) -> Cordon:
        """Lift the cordon. Returns the owner of the cordon that is on the Node now; a deleted Node has none.

        ``run`` ``""``: any run's; ``counter`` ``None``: any token.
        """
        for _ in range(TRIES):
            document = self._node(node, until)
            if document is None:
                return Cordon.NONE
            whose = _whose(document, run, counter)
            if whose is Cordon.NEWER or not mark(document) or run not in ("", mark(document)):
                return whose
            written = self._write(node, document, {MARK: None, COUNTER: None}, {"unschedulable": None}, until)
            if written is not None:
                return _whose(written, run, counter)
        raise _contended(node)

    def _node(self, node: str, until: float) -> Json | None:
        try:
            return _node_of(self._client.get(_path(node), _left(until)), node)
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
            return _node_of(self._client.patch(_path(node), wanted, _left(until)), node)
        except RemoteError as error:
            if error.reference in ("conflict", "not-found"):
                return None
            raise


def _node_of(answer: object, name: str) -> Json:
    """The Node of this name: what has no name has no cordon either, and says nothing about the Node."""
    document = mapping(answer, "a Node")
    if mapping(document.get("metadata"), "metadata").get("name") != name:
        raise RemoteError("bad-answer", f"the answer is not the Node {name}")
    return document


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


# Both, on the API server that gates ask too.


NEEDED: tuple[Right, ...] = (
    ("get", "", "nodes", ""),
    ("list", "", "nodes", ""),
    ("patch", "", "nodes", ""),
    ("list", "", "pods", ""),
    ("create", "", "pods/eviction", ""),
)


class DrainingCluster(KubernetesCluster):
    """The ``DrainCluster`` port on a real API server."""

    def __init__(self, client: ApiClient) -> None:
        super().__init__(client)
        self._api = client
        self._cordons, self._evictions = Cordons(client), Evictions(client)

    def missing_to_drain(self) -> tuple[str, ...]:
        return self.missing(NEEDED)

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        return self._cordons.put_on(node, run, counter, time.monotonic() + timeout)

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
        return self._cordons.lift(node, run, counter, time.monotonic() + timeout)

    def leaving(self, node: str, timeout: float) -> tuple[LeavingPod, ...]:
        """From the store: the cache may lag behind an eviction of a moment ago."""
        query = urlencode({"fieldSelector": f"spec.nodeName={node}"})
        listed = whole_list(self._api.get(f"/api/v1/pods?{query}", timeout), f"the pods of {node}")
        return tuple(map(leaving_pod, items(listed)))

    def evict(self, pod: LeavingPod, timeout: float) -> EvictionAnswer:
        return self._evictions.ask(pod, time.monotonic() + timeout)
