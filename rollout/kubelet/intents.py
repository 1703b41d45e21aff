"""Intents: settings with a home that depends on the node. One table: (intent, runtime, its version) → key, default,
class, or why not.

Read in the runtimes' sources: containerd 1.6.39, 1.7.0, 1.7.10, 2.0.0, 2.1.0, 2.2.0 and 2.3.4 (``internal/cri/config``,
``plugins/transfer``), CRI-O 1.30.10 to 1.36.3 (``pkg/config/config.go``), cri-dockerd 0.2.0 to 0.4.3
(``config/options.go``), moby (``daemon/reload.go``). The file and table are found on the node
(``rollout.kubelet.runtimes``).
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.playbook import Disruption
from rollout.kubelet.runtime_versions import Runtime, RuntimeVersion

DEADLINE = "imagePullProgressDeadline"
DOWNLOADS = "maxConcurrentDownloads"
MIRRORS = "registryMirrors"
INTENTS = (DEADLINE, DOWNLOADS, MIRRORS)

DEADLINE_FLAG = "--image-pull-progress-deadline"
"""The kubelet's flag for dockershim up to 1.23, and cri-dockerd's."""

Number = tuple[int, int, int]
_FIRST: Number = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Row:
    """The home of an intent on runtimes from ``since`` up to, not including, ``before``.

    ``refusal`` is why it has no home there. Otherwise ``key`` is its name there, ``default`` the value in force where
    it is not set (as Go and TOML write it), ``place`` the file or unit for people, ``unit`` the unit to restart or
    reload.
    """

    intent: str
    runtime: Runtime
    since: Number
    before: Number
    key: str = ""
    default: str = ""
    place: str = ""
    unit: str = ""
    disruption: Disruption = Disruption.NONE
    refusal: str = ""

    @property
    def versions(self) -> str:
        """The versions that it covers, for people: ``from 1.32.0 to before 1.32.4``; empty if it covers all known ones."""
        parts = (
            f"from {dotted(self.since)}" if self.since != _FIRST else "",
            f"before {dotted(self.before)}" if self.before not in _ENDS else "",
        )
        return " to ".join(part for part in parts if part)


def dotted(number: Number) -> str:
    """``1.32.4``."""
    return ".".join(map(str, number))


_CONTAINERD, _CRIO = Runtime.CONTAINERD, Runtime.CRIO
_CONTAINERD_END, _CRIO_END, _CRI_DOCKERD_END = (3, 0, 0), (2, 0, 0), (1, 0, 0)
_DOCKER_END = (1000, 0, 0)
_ENDS = frozenset({_CONTAINERD_END, _CRIO_END, _CRI_DOCKERD_END, _DOCKER_END})
"""The end of the known versions; a newer runtime is unknown, so its node is refused."""

_IMAGES = "the CRI images table of /etc/containerd/config.toml"
_TRANSFER = "[plugins.'io.containerd.transfer.v1.local'] of /etc/containerd/config.toml"


def _containerd_deadline(since: Number, before: Number, default: str) -> Row:
    unit, restart = "containerd.service", Disruption.RESTART_RUNTIME
    return Row(DEADLINE, _CONTAINERD, since, before, "image_pull_progress_timeout", default, _IMAGES, unit, restart)


def _crio_deadline(since: Number, before: Number, default: str) -> Row:
    place, unit = "/etc/crio/crio.conf.d/99-rollout.conf", "crio.service"
    restart = Disruption.RESTART_RUNTIME
    return Row(DEADLINE, _CRIO, since, before, "pull_progress_timeout", default, place, unit, restart)


def _no_crio_deadline(since: Number, before: Number) -> Row:
    known = "pull_progress_timeout exists from 1.30.11, 1.31.3 and 1.32.0; this CRI-O has no such key"
    return Row(DEADLINE, _CRIO, since, before, refusal=known)


def _downloads(since: Number, before: Number, place: str) -> Row:
    unit, restart = "containerd.service", Disruption.RESTART_RUNTIME
    return Row(DOWNLOADS, _CONTAINERD, since, before, "max_concurrent_downloads", "3", place, unit, restart)


def _dockerd_downloads(runtime: Runtime, before: Number) -> Row:
    place, unit = "/etc/docker/daemon.json", "docker.service"
    return Row(
        DOWNLOADS, runtime, _FIRST, before, "max-concurrent-downloads", "3", place, unit, Disruption.RELOAD
    )  # fmt: skip


_NO_MIRRORS_DOCKER = "dockerd's registry-mirrors covers docker.io only; rollout does not write it"
_NO_MIRRORS_CRIO = "on CRI-O mirrors are set in /etc/containers/registries.conf.d; rollout does not write it"
_NO_DOWNLOADS_CRIO = "rollout knows no limit on concurrent downloads for CRI-O"

ROWS: tuple[Row, ...] = (
    Row(DEADLINE, Runtime.DOCKERSHIM, _FIRST, _DOCKER_END, DEADLINE_FLAG, "1m0s", "the kubelet's flags",
        "kubelet.service", Disruption.RESTART_KUBELET),
    Row(DEADLINE, Runtime.CRI_DOCKERD, _FIRST, _CRI_DOCKERD_END, DEADLINE_FLAG, "1m0s", "the flags of cri-docker.service",
        "cri-docker.service", Disruption.RESTART_RUNTIME),
    Row(DEADLINE, _CONTAINERD, _FIRST, (1, 7, 0),
        refusal="image_pull_progress_timeout exists from containerd 1.7.0; an older one ignores it and pulls without a limit"),
    _containerd_deadline((1, 7, 0), (1, 7, 10), "1m0s"),
    _containerd_deadline((1, 7, 10), _CONTAINERD_END, "5m0s"),
    _no_crio_deadline(_FIRST, (1, 30, 11)),
    _crio_deadline((1, 30, 11), (1, 30, 14), "10s"),
    _crio_deadline((1, 30, 14), (1, 31, 0), "0s"),
    _no_crio_deadline((1, 31, 0), (1, 31, 3)),
    _crio_deadline((1, 31, 3), (1, 31, 9), "10s"),
    _crio_deadline((1, 31, 9), (1, 32, 0), "0s"),
    _crio_deadline((1, 32, 0), (1, 32, 4), "10s"),
    _crio_deadline((1, 32, 4), _CRIO_END, "0s"),
    _dockerd_downloads(Runtime.DOCKERSHIM, _DOCKER_END),
    _dockerd_downloads(Runtime.CRI_DOCKERD, _CRI_DOCKERD_END),
    _downloads(_FIRST, (2, 1, 0), _IMAGES),
    _downloads((2, 1, 0), _CONTAINERD_END, _TRANSFER),
    Row(DOWNLOADS, _CRIO, _FIRST, _CRIO_END, refusal=_NO_DOWNLOADS_CRIO),
    Row(MIRRORS, Runtime.DOCKERSHIM, _FIRST, _DOCKER_END, refusal=_NO_MIRRORS_DOCKER),
    Row(MIRRORS, Runtime.CRI_DOCKERD, _FIRST, _CRI_DOCKERD_END, refusal=_NO_MIRRORS_DOCKER),
    Row(MIRRORS, _CONTAINERD, _FIRST, (1, 5, 0),
        refusal="registry.config_path exists from containerd 1.5.0; an older one does not read hosts.toml"),
    Row(MIRRORS, _CONTAINERD, (1, 5, 0), (2, 2, 0), "config_path", "", "/etc/containerd/certs.d/HOST/hosts.toml",
        "containerd.service"),
    Row(MIRRORS, _CONTAINERD, (2, 2, 0), _CONTAINERD_END, "config_path", "/etc/containerd/certs.d:/etc/docker/certs.d",
        "/etc/containerd/certs.d/HOST/hosts.toml", "containerd.service"),
    Row(MIRRORS, _CRIO, _FIRST, _CRIO_END, refusal=_NO_MIRRORS_CRIO),
)  # fmt: skip
"""Every home, in order of intent, runtime and version; ``HOST`` stands for the registry's name."""


def row(intent: str, runtime: Runtime, version: RuntimeVersion | None) -> Row | None:
    """The row for this runtime. Without a version only if every version is alike; ``None``: nothing is known."""
    rows = [each for each in ROWS if each.intent == intent and each.runtime is runtime]
    if version is None:
        return rows[0] if len(rows) == 1 else None
    return next((each for each in rows if each.since <= version.number < each.before), None)


def refusal(intent: str, runtime: Runtime, version: RuntimeVersion | None) -> tuple[str, str] | None:
    """Why this intent has no home on this runtime: a stable reference and the reason; ``None`` if it has one."""
    if runtime is Runtime.UNKNOWN:
        return "runtime-unknown", f"rollout does not know this node's container runtime, so {intent} has no home here"
    found = row(intent, runtime, version)
    if found is not None:
        return ("setting-unsupported", f"{intent}: {found.refusal}") if found.refusal else None
    if version is None:
        return (
            "runtime-version-unknown",
            f"the node does not report its {runtime.value} version, and {intent} depends on it",
        )
    return (
        "runtime-version-unknown",
        f"rollout does not know {runtime.value} {version.text}, so {intent} has no home here",
    )
