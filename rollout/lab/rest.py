"""A request to the lab's API and its reply; refusals are those of a kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from rollout.lab.config_maps import LabConfigMap
from rollout.lab.objects import NodeMoment, Object
from rollout.lab.replicas import Replicas

_VERBS = {"POST": "create", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Reply:
    """Status code and JSON document, or ``text`` in its place."""

    code: int
    document: Object
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The nodes, and facts about the cluster for requests."""

    names: Sequence[str]
    see: Callable[[str], NodeMoment]
    version: str
    replicas: Replicas
    config_maps: Sequence[LabConfigMap]

    @property
    def minor(self) -> int:
        return int(self.version.split(".")[1])


@dataclass(frozen=True, slots=True)
class Query:
    """One request: the words of its path, its options and its body."""

    lookup: Lookup
    words: Mapping[str, str]
    options: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        return self.words["name"]


def status(code: int, reason: str, message: str, details: Mapping[str, str] | None = None) -> Reply:
    """A ``Status``, as in refusals of an API server."""
    kind = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    about = {} if details is None else {"details": details}
    return Reply(code, {**kind, "message": message, "reason": reason, **about, "code": code})


def unsupported(kind: str) -> Reply:
    """The answer to a PATCH of another kind."""
    return status(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {kind}")


def unauthorized() -> Reply:
    return status(401, "Unauthorized", "Unauthorized")


def forbidden(method: str, path: str) -> Reply:
    """The answer to a user without the right."""
    parts = urlsplit(path).path.strip("/").split("/")
    kind = next((word for word in ("leases", "pods", "nodes") if word in parts), parts[-1])
    kind += "/eviction" if parts[-1] == "eviction" else ""
    verb = _VERBS.get(method) or ("list" if parts[-1] == kind else "get")
    group = "coordination.k8s.io" if kind == "leases" else ""
    user = "system:serviceaccount:default:rollout"
    message = f'{kind} is forbidden: User "{user}" cannot {verb} resource "{kind}" in API group "{group}" at the cluster scope'
    return status(403, "Forbidden", message)


def not_found(kind: str, name: str) -> Reply:
    resource, _, group = kind.partition(".")
    details = {"name": name, **({"group": group} if group else {}), "kind": resource}
    return status(404, "NotFound", f'{kind} "{name}" not found', details)
