"""Which program wrote a line: several share their words. ``command failed`` is of all programs of Kubernetes, ``panic:`` of all of Go."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rollout.features.diagnose.rules.facts import Kind
from rollout.kubelet.runtimes.known import DAEMONS

OF_KUBELETS = frozenset(
    {
        Kind.FATAL,
        Kind.START,
        Kind.ERROR,
        Kind.FLAG,
        Kind.NODE,
        Kind.CGROUP_V1,
        Kind.PLEG,
        Kind.BOOTSTRAP,
        Kind.UNCREDENTIALED,
        Kind.PULL_FAILED,
        Kind.BACK_OFF,
        Kind.QUEUED,
        Kind.UNQUEUED,
        Kind.PULLED,
        Kind.DELETED,
        Kind.REMOVED,
        Kind.HOOK,
        Kind.HOOK_DONE,
        Kind.HOOK_FAILED,
        Kind.NOT_REGISTERED,
        Kind.EXEC_FAILED,
        Kind.KILL,
        Kind.KILLED,
        Kind.DIED,
        Kind.NAMED,
        Kind.EVICTS,
        Kind.UNMOUNTED,
        Kind.CHANGED,
        Kind.REJECTED,
        Kind.RAN,
        Kind.STARTED,
        Kind.ARRIVED,
        Kind.VERSION,
    }
)
"""What a line of another program does not show, whatever its words: a program that repeats a log, or an application."""
OF_KUBELETS_AND_RUNTIMES = frozenset(
    {
        Kind.TROUBLE,
        Kind.UNCONFIGURED,
        Kind.PULL_CUT,
        Kind.PROGRESS,
        Kind.RUNTIME,
        Kind.RUNTIME_STARTED,
        Kind.RUNTIME_ENDED,
        Kind.PULL_STOPPED,
        Kind.NEXT_HOST,
        Kind.ASKED,
        Kind.UNLIMITED,
        Kind.STOP_ASKED,
        Kind.WAIT_ENDED,
    }
)
"""What a runtime reports of itself too. Other clients of a runtime, such as ``crictl``, print the kubelet's lines about its calls."""
OF_SYSTEMD = frozenset({Kind.EXIT, Kind.END_TOLD, Kind.GIVEN_UP, Kind.RESTARTS})
"""What systemd reports of the kubelet's unit. RKE2 reports the end of its kubelet itself; a unit's own process reports why it was not run."""
PROGRAM_FIELDS = ("SYSLOG_IDENTIFIER", "_COMM", "_SYSTEMD_UNIT")
"""Fields of journald that name the program of a line."""
_RUNTIMES = frozenset(name for daemon in DAEMONS for name in (daemon.name, daemon.program, daemon.agent_part) if name)
_OF_PACKAGE = re.compile(r"^(?:microk8s\.daemon-|docker-(?=\w))|-(?:current|latest|ce|ee)$")
"""What packages of runtimes put around their names: those of RHEL 7, of Docker before 18.09, of snaps."""
_KUBELET = re.compile(
    r"(?:kubelet|kubelet-wrapper|k3s|k3s-agent|k3s-server|rke2|rke2-agent|rke2-server|kubelite|k0s(?:-v\d[\w.+-]{0,60})?|k0sworker|k0scontroller"
    r"|localkube|microshift|edgecore|origin-node|atomic-openshift-node)"
)
_UNIT = re.compile(r"\(?(?:[\w.@\\-]{0,80}/){0,20}(?:snap\.)?(?P<name>[\w.@+-]{1,80}?)(?:\.service|\.exe|\.sh)?\)?")
_RUNS_ANY = re.compile(
    r"-|[0-9a-f]{12}|[0-9a-f]{64}|\(?(?:/[\w.-]{1,40}){0,9}/?(?:ba|da|)sh\)?|env|sudo|docker|podman|nerdctl|rkt|runc|hyperkube|unknown|root"
)
"""Programs that may run a kubelet or another program, a container's id, and no name."""
_OWN_WORDS = re.compile(
    r"failed to (?:run|parse|validate|load|construct|initiali[sz]e|create|merge) (?:the )?kubelet\b|KubeletConfiguration|kubelet configuration|"
    r"starting kubernetes: |\"?kubelet (?:exited|panic): |Shutdown request received: ",
    re.IGNORECASE,
)


def may_show(kind: Kind, names: Iterable[str]) -> bool:
    """Whether a line of a program with these names shows a fact of this kind. A line that names none may."""
    if kind in OF_KUBELETS:
        return is_kubelet(names) is not False
    if kind in OF_KUBELETS_AND_RUNTIMES:
        return is_kubelet(names) is not False or any(_is_runtime(_bare(name)) for name in names)
    if kind in OF_SYSTEMD:
        return is_kubelet(names) is not False or any(_bare(name) in ("systemd", "init") for name in names)
    return True


def _is_runtime(bare: str) -> bool:
    return bare in _RUNTIMES or _OF_PACKAGE.sub("", bare) in _RUNTIMES


def _bare(name: str) -> str:
    """A program's name without its folder and the kind of its unit."""
    match = _UNIT.fullmatch(name)
    return match["name"] if match else name


def is_kubelet(names: Iterable[str]) -> bool | None:
    """Whether one of these names of a program is of a kubelet or runs one; ``None``: they do not tell."""
    told: bool | None = None
    for name in names:
        bare = _bare(name).removeprefix("microk8s.daemon-").removesuffix("-eks.daemon")
        if _KUBELET.fullmatch(bare):
            return True
        if name and not _RUNS_ANY.fullmatch(name) and "kubelet" not in name:
            told = False
    return told


def has_own_words(text: str) -> bool:
    """Whether only a kubelet, or a program that runs one, ends with these words."""
    return _OWN_WORDS.match(text) is not None or "KubeletConfiguration" in text or "kubelet configuration" in text
