"""A container that the runtime does not create or start (``CreateContainerError``, ``RunContainerError``), by the form of the error.

Sources: the kubelet's pkg/kubelet/kuberuntime/kuberuntime_container.go, 1.20 to 1.36; containerd internal/cri/server/container_create.go
and container_start.go, 1.5 to 2.3; CRI-O server/container_create.go, 1.20 to 1.34; runc libcontainer/{init_linux,rootfs_linux,
process_linux}.go, 1.0 to 1.3; crun src/libcrun/container.c; moby daemon/start.go.
"""

from __future__ import annotations

import re

from rollout.features.diagnose.rules.container_config import ConfigCause
from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error

REASONS = frozenset({"CreateContainerError", "RunContainerError"})
LONGEST = 4096
"""Characters of an error that are read."""
_OUTER = re.compile(
    r"(?:rpc error: code = \w{1,20} desc = |failed to (?:create|start) containerd (?:task|container)(?: \"[0-9a-f]{6,64}\")?: |failed to create shim task: "
    r"|failed to start container \"[0-9a-f]{6,64}\": |Error response from daemon: |[Cc]ontainer create failed: |time=\"[^\"]{1,60}\" level=error msg=\""
    r"|OCI runtime create failed: |runc create failed: |runc did not terminate successfully: exit status \d{1,3}: |unable to start container process: "
    r"|error during container init: |starting container process caused: |\w{1,40}\.go:\d{1,5}: (?:container init caused: )?)"
)
"""What the programs on the way put ahead of the last error, one behind the other."""
_BEGINS = re.compile(
    r"failed to (?:create|start) containerd (?:task|container)[ :]|failed to start container \"|[Cc]ontainer create failed: |OCI runtime create failed: |failed to generate (?:container \"[^\"]{1,64}\" )?spec: "
)
"""How an error begins that is of no other step."""


def _form(form: str, told: str, fetch: str) -> tuple[re.Pattern[str], str, str]:
    return re.compile(form), told, fetch


_MOUNT_HINT = r"(?:: Are you trying to mount a directory onto a file .{0,200})?"
_FORMS = (
    _form(
        r'exec: \\?"(?P<of>[^"\\]{1,512})\\?": (?P<why>(?:stat [^:]{1,512}: )?no such file or directory|executable file not found in \$PATH|permission denied|is a directory)"?',
        "the runtime cannot run its command {of} in the image: {why}",
        "the command of the container in its pod, and the files of the image",
    ),
    _form(
        r"executable file `(?P<of>[^`]{1,512})` not found(?P<where>(?: in \$PATH)?): (?P<why>No such file or directory)",
        "the runtime cannot run its command {of} in the image: {why}",
        "the command of the container in its pod, and the files of the image",
    ),
    _form(
        rf'error mounting \\?"(?P<of>[^"\\]{{1,512}})\\?" to rootfs at \\?"(?P<at>[^"\\]{{1,512}})\\?": .{{0,800}}: (?P<why>not a directory|no such file or directory|permission denied|operation not permitted|invalid argument|read-only file system){_MOUNT_HINT}"?',
        "its mount of {of} at {at} cannot be made: {why}",
        "what stands at both places: in the image, and on the node",
    ),
    _form(
        r"(?:runContainer: operation timeout: |CreateCtr: context was either canceled or the deadline was exceeded: )?(?P<why>context deadline exceeded)",
        "the runtime did not finish in time ({why}): the kubelet ends such a request after its runtimeRequestTimeout",
        "the load of the node's disk, and the runtime's log at that time",
    ),
    _form(
        r'checking signature of "(?P<of>[^"]{1,512})": (?P<why>.{1,400})',
        "the signature of its image {of} cannot be verified: {why}",
        "the signature policy of the node, and the version of its runtime",
    ),
    _form(
        r"(?:.{0,400}: )?(?P<why>container init was OOM-killed \(memory limit too low\?\))",
        "its memory limit is too small for the runtime to start it",
        "the memory limit of the container in its pod",
    ),
)  # fmt: skip
_OF_THE_NODE = frozenset(
    {
        PullCause.SNAPSHOTS, PullCause.SNAPSHOTTER, PullCause.LEFTOVERS, PullCause.DISK_FULL, PullCause.QUOTA, PullCause.READ_ONLY,
        PullCause.DISK_ERROR,
    }
)  # fmt: skip
"""Causes that a step of the runtime has on a node whether it pulls an image or uses it."""


def cause_of_creation(error: str) -> ConfigCause | None:
    """``None``: the error is of no known form."""
    plain, begin = error[:LONGEST].removesuffix(": unknown"), 0
    while outer := _OUTER.match(plain, begin):
        begin = outer.end()
    for form, told, fetch in _FORMS:
        if match := form.fullmatch(plain, begin):
            return ConfigCause(told.format(**match.groupdict()), fetch.format(**match.groupdict()))
    read = read_error(plain) if begin else None
    if read is not None and read.cause in _OF_THE_NODE and read.confidence is Confidence.CERTAIN:
        return ConfigCause(str(read.cause), "the runtime's log of that time")
    return None


def is_creation(error: str) -> bool:
    """Whether an error without its reason is one of a container that is made or started."""
    return _BEGINS.match(error) is not None or cause_of_creation(error) is not None
