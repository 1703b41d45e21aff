"""A container or a pod's sandbox that the runtime does not create or start, by the form of the error.

Sources: the kubelet's pkg/kubelet/kuberuntime/{kuberuntime_container,kuberuntime_sandbox}.go, 1.7 to 1.36, and its dockershim;
containerd internal/cri/server/{container_create,container_start,sandbox_run,sandbox_service}.go, 1.1 to 2.3; CRI-O
server/{container_create,sandbox_run_linux}.go, 1.20 to 1.34; runc libcontainer/{init_linux,rootfs_linux,process_linux}.go, 1.0 to
1.3; crun src/libcrun/container.c; moby daemon/start.go; containernetworking libcni and pkg/invoke.
"""

from __future__ import annotations

import re

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.container_config import ConfigCause
from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error

REASONS = frozenset({"CreateContainerError", "RunContainerError"})
SANDBOX = "CreatePodSandboxError"
LONGEST = 4096
"""Characters of an error that are read."""
SHOWN = 300
"""Characters of a part of it that are shown."""
_OUTER = re.compile(
    r"(?:rpc error: code = \w{1,20} desc = |failed to (?:create|start) containerd (?:task|container)(?: \"[0-9a-f]{6,64}\")?: |failed to create shim task: "
    r"|Failed (?:to )?create (?:pod sandbox|sandbox for pod \"[^\"]{1,400}\"): |[Cc]reatePodSandbox for pod \"[^\"]{1,400}\" failed: "
    r"|failed to (?:start|create) sandbox(?: container(?: task)?)?(?: for pod)?(?: \"[^\"]{1,253}\")?: |error creating pod sandbox with name \"[^\"]{1,400}\": "
    r"|failed to start container \"[\w.-]{1,253}\": |Error response from daemon: |[Cc]ontainer create failed: |time=\"[^\"]{1,60}\" level=error msg=\""
    r"|OCI runtime create failed: |runc create failed: |runc did not terminate successfully: exit status \d{1,3}: |unable to start container process: "
    r"|error during container init: |starting container process caused: |\w{1,40}\.go:\d{1,5}: (?:container init caused: )?)"
)
"""What the programs on the way put ahead of the last error, one behind the other."""
_BEGINS = re.compile(
    r"failed to (?:create|start) containerd (?:task|container)[ :]|failed to start container \"|[Cc]ontainer create failed: |OCI runtime create failed: |failed to generate (?:container \"[^\"]{1,64}\" )?spec: "
)
"""How an error begins that is of no other step."""


_NETWORK = (
    r"(?:failed to set ?up network for sandbox \"[0-9a-f]{6,64}\": "
    r"|\[?failed to set up sandbox container \"[0-9a-f]{6,64}\" network for pod \"[^\"]{1,253}\": "
    r"|failed to create pod network sandbox \S{1,400}\([0-9a-f]{6,64}\): )?"
)
"""How runtimes begin an error of a sandbox's network."""
_WITHIN = r'(?:[^"]{0,400}: )?'
"""Steps ahead of the last error. They are free of quotes, because a name in quotes may be any text."""
_AND_LEFT = r"(?:, failed to clean up sandbox container .{0,2000})?"
"""Docker's second error, about the removal of what was made."""


def _form(form: str, told: str, fetch: str) -> tuple[re.Pattern[str], str, str]:
    return re.compile(form, re.DOTALL), told, fetch


_MOUNT_HINT = r"(?:: Are you trying to mount a directory onto a file .{0,200})?"
_LOG_OF_PLUGIN = "the log of the network plugin's pod on this node, and whether it runs; the files of /etc/cni/net.d and /opt/cni/bin"
_FORMS = (
    _form(
        rf'{_NETWORK}(?:[Nn]etworkPlugin cni failed to set up pod "[^"]{{1,400}}" network: )?{_WITHIN}failed to find plugin "(?P<of>[\w.-]{{1,100}})" in path (?P<at>\[[^\]]{{1,400}}\]){_AND_LEFT}',
        "its network cannot be set up: the node has no network plugin {of} in {at}",
        "the programs in that folder: they come with the network plugin, or with the node's package of CNI plugins",
    ),
    _form(
        rf'{_NETWORK}plugin type="(?P<of>[\w.-]{{1,100}})"(?: name="[^"]{{1,253}}")? failed \(add\): (?P<why>.{{1,2000}})',
        "its network cannot be set up: the network plugin {of} fails with `{why}`",
        _LOG_OF_PLUGIN,
    ),
    _form(
        rf'{_NETWORK}(?:[Nn]etworkPlugin cni failed to set up pod "[^"]{{1,400}}" network|error adding (?:pod \S{{1,400}}|container) to CNI network "[^"]{{1,253}}"): (?P<why>.{{1,2000}}?){_AND_LEFT}\]?',
        "its network cannot be set up: the network plugin fails with `{why}`",
        _LOG_OF_PLUGIN,
    ),
    _form(
        r'failed to set ?up network for sandbox "[0-9a-f]{6,64}": (?P<why>.{1,2000})',
        "its network cannot be set up: the network plugin fails with `{why}`",
        _LOG_OF_PLUGIN,
    ),
    _form(
        r'failed to get sandbox runtime: no runtime for "(?P<of>[^"]{1,253})" is configured',
        "the node's runtime has no handler {of}: the pod's RuntimeClass names it, or the runtime's own default does",
        "the handlers in the configuration of the node's runtime, and whether it was restarted since they were written",
    ),
    _form(
        r'(?:failed to find runtime handler|unable to find runtime handler) (?P<of>[\w.-]{1,253}) from runtime list map\[.{0,2000}',
        "the node's runtime has no handler {of}: the pod's RuntimeClass names it, or the runtime's own default does",
        "the handlers in the configuration of the node's runtime, and whether it was restarted since they were written",
    ),
    _form(
        r'expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "(?P<of>/[^"]{1,600})" instead|cri-o configured with systemd cgroup manager, but did not receive slice as parent: (?P<of2>/\S{1,600})',
        "the cgroup drivers differ: the runtime's is systemd, and the kubelet's is cgroupfs",
        "`cgroupDriver` of the kubelet, and SystemdCgroup or cgroup_manager of the runtime: both have to name the same",
    ),
    _form(
        r"cri-o configured with cgroupfs cgroup manager, but received systemd slice as parent: (?P<of>\S{1,600})",
        "the cgroup drivers differ: the runtime's is cgroupfs, and the kubelet's is systemd",
        "`cgroupDriver` of the kubelet, and SystemdCgroup or cgroup_manager of the runtime: both have to name the same",
    ),
    _form(
        r'(?:failed to generate (?:sandbox |container )?security options for (?:sandbox|container) "[^"]{1,253}": )?(?:failed to generate seccomp security options for container: )?cannot load seccomp profile "(?P<of>[^"]{1,512})": open \S{1,512}: (?P<why>no such file or directory|permission denied)',
        "the seccomp profile {of} cannot be read on the node: {why}",
        "the files below the kubelet's seccomp folder on this node, and the profile that the pod names",
    ),
    _form(
        rf"{_WITHIN}error loading seccomp filter(?: into kernel)?: (?:error loading seccomp filter: )?(?P<why>errno 524)",
        "the kernel refuses the seccomp filter ({why}): its memory for compiled filters is used up, see net.core.bpf_jit_limit",
        "`sysctl net.core.bpf_jit_limit` on the node, and its kernel's version: some leak this memory",
    ),
    _form(
        rf"{_WITHIN}(?:mkdir|write) (?P<of>/sys/fs/cgroup/\S{{1,600}}): (?P<why>no space left on device|cannot allocate memory)",
        "the kernel refuses the cgroup {of}: {why}. That is a limit of the kernel, not the disk",
        "the number of cgroups in /proc/cgroups, the kernel's log and version, and the CPUs of the parent's cpuset",
    ),
    _form(
        rf"{_WITHIN}failed to write \"?(?P<of>\d{{1,20}})\"?(?: to \S{{1,600}})?: write /sys/fs/cgroup/\S{{1,600}}/memory\.(?:limit_in_bytes|max): device or resource busy",
        "its memory limit of {of} bytes is smaller than what the runtime needs to start it: the kernel refuses the limit",
        "the memory limit of the container in its pod",
    ),
    _form(
        rf"{_WITHIN}(?:unable to )?create session key: (?P<why>disk quota exceeded)",
        "the kernel's quota of keys is used up ({why}): it is no quota of a disk",
        "/proc/key-users on the node, with kernel.keys.maxkeys",
    ),
    _form(
        rf"{_WITHIN}error running (?:prestart |createRuntime |startContainer )?hook(?: #\d{{1,3}})?: (?:error running hook: )?exit status \d{{1,3}}, stdout: .{{0,400}}?, stderr: (?P<why>.{{1,2000}})",
        "a hook of the runtime fails, a program of the node: `{why}`",
        "the program that the error names, on the node, and the hook in the runtime's configuration",
    ),
    _form(
        r"error reading from server: (?:read unix \S{1,100}->(?P<of>/\S{1,200}): read: connection reset by peer|EOF|unexpected EOF)",
        "the runtime ended while it worked on the request",
        "the runtime's log of that time, and how often its unit has started",
    ),
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
        rf'mounting "(?P<of>[^"]{{1,512}})" to rootfs (?:"[^"]{{1,512}}" )?at "(?P<at>[^"]{{1,512}})" caused: (?:[\w ]{{1,60}}: )?(?P<why>not a directory|no such file or directory|permission denied|operation not permitted|invalid argument|read-only file system)(?:: unknown)?{_MOUNT_HINT}"?',
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
        rf"{_WITHIN}(?P<why>container init was OOM-killed \(memory limit too low\?\))",
        "its memory limit is too small for the runtime to start it",
        "the memory limit of the container in its pod",
    ),
)  # fmt: skip
_OF_THE_NODE = frozenset(
    {
        PullCause.SNAPSHOTS, PullCause.SNAPSHOTTER, PullCause.LEFTOVERS, PullCause.DISK_FULL, PullCause.QUOTA, PullCause.READ_ONLY,
        PullCause.DISK_ERROR, PullCause.MOUNTS_FULL, PullCause.NODE_LIMIT,
    }
)  # fmt: skip
"""Causes that a step of the runtime has on a node whether it pulls an image or uses it."""


def cause_of_creation(error: str) -> ConfigCause | None:
    """``None``: the error is of no known form."""
    plain, begin = _flat(error[:LONGEST].strip()).removesuffix(": unknown"), 0
    while outer := _OUTER.match(plain, begin):
        begin = outer.end()
    for form, told, fetch in _FORMS:
        if match := form.fullmatch(plain, begin):
            names = {name: printable(text or "", SHOWN) for name, text in match.groupdict().items()}
            return ConfigCause(told.format(**names), fetch.format(**names))
    read = read_error(plain) if begin else None
    if read is not None and read.cause in _OF_THE_NODE and read.confidence is Confidence.CERTAIN:
        return ConfigCause(str(read.cause), "the runtime's log of that time")
    return None


def _flat(error: str) -> str:
    """Without the quotes that runc before 1.0 puts around each step, one within the other: ``caused "… caused \\"…\\""``."""
    if ' caused "' not in error:
        return error
    plain = re.sub(r'\\{1,64}"', '"', error).replace(' caused "', " caused: ")
    return re.sub(r'"{2,64}|"(?=: unknown)', "", plain)


def is_creation(error: str) -> bool:
    """Whether an error without its reason is one of a container that is made or started."""
    return _BEGINS.match(error) is not None or cause_of_creation(error) is not None
