"""Messages of a kubelet that cannot go on: a runtime that is down, a container or a volume that does not end.

Each is known by its whole form. Sources: the kubelet's pkg/kubelet/{kubelet,runtime,kuberuntime/kuberuntime_container,
kuberuntime/kuberuntime_manager}.go and pkg/volume/util/nestedpendingoperations/nestedpendingoperations.go, 1.20 to 1.36;
containerd pkg/registrar/registrar.go.
"""

from __future__ import annotations

import re

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class RepeatedError:
    """``form``: the error, whole; its groups are fields. ``cause``: of what they name. ``once``: whether one report is enough."""

    id: str
    form: re.Pattern[str]
    cause: str
    fetch: str
    once: bool = False


REPEATED = (
    RepeatedError(
        "runtime-down",
        re.compile(r"(?:.*[\[,] ?)?container runtime is down(?:[\],].*)?"),
        "the container runtime does not answer the kubelet: by the kubelet's own check it has been down for at least 30 s. Pods neither start nor end.",
        "the runtime's log before that time, and its state: systemctl status; a runtime that hangs is restarted, which keeps running containers if its unit has KillMode=process",
        once=True,
    ),
    RepeatedError(
        "container-not-killed",
        re.compile(r'(?:error killing pod: )?failed to "KillContainer" for "(?P<of>[\w.-]+)" with KillContainerError: .*'),
        "the runtime cannot end container {of}: each try fails. One known reason is a process in an uninterruptible wait for a disk or a mount, which SIGKILL does not end. A longer grace period does not help.",
        "on the node: the state of the container's processes (`ps -o pid,stat,wchan`, D is such a wait) and the runtime's log of StopContainer",
    ),
    RepeatedError(
        "container-name-reserved",
        re.compile(r'(?:failed to "StartContainer" for "[\w.-]+" with CreateContainerError: "?|Error: )failed to reserve container name "?(?P<of>[\w.-]+)"?: name .* is reserved for .*'),
        "the runtime still holds the name {of} for an earlier try to create the container, which the kubelet gave up at its time limit. Known reasons are a slow disk and a runtime that hangs; the image is not one.",
        "the runtime's log of the first CreateContainer, and the disk's load at that time; a restart of the runtime releases the name",
    ),
    RepeatedError(
        "volume-not-unmounted",
        re.compile(r'Operation for ".*" failed\. No retries permitted until .* Error: UnmountVolume\.TearDown failed for volume "(?P<of>[^"]+)".*', re.DOTALL),
        "volume {of} cannot be unmounted, so its pod does not leave the API. No grace period changes it.",
        "which process or mount still uses the volume on the node: findmnt and fuser -vm of its path",
    ),
)  # fmt: skip


LONGEST = 4096
"""Characters of an error that are read."""


def trouble_in(error: str) -> tuple[str, str]:
    """The id of the trouble that this error reports, and what it is about; ``("", "")``: it is none of these."""
    plain = re.sub(r"^spec\.\w+\{[^}]*\}: ", "", re.sub(r'(?<!\\)\\{1,64}"', '"', error[:LONGEST]).strip())
    for trouble in REPEATED:
        if match := trouble.form.fullmatch(plain):
            return trouble.id, match.groupdict().get("of") or ""
    return "", ""
