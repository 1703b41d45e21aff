"""Messages of a kubelet that cannot go on: a runtime that is down, a container or a volume that does not end.

Each is known by its whole form. Sources: the kubelet's pkg/kubelet/{kubelet,runtime,kuberuntime/kuberuntime_container,
kuberuntime/kuberuntime_manager}.go, pkg/kubelet/remote/remote_runtime.go and
pkg/volume/util/nestedpendingoperations/nestedpendingoperations.go, 1.10 to 1.36; containerd pkg/registrar/registrar.go and
internal/cri/server/container_stop.go; CRI-O server/container_create.go; cri-client pkg/remote_runtime.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout.core.model.frozen import dataclass

LONGEST = 4096
"""Characters of an error that are read."""
RUNTIME, NOT_KILLED, NOT_STOPPED = "runtime-down", "container-not-killed", "sandbox-not-stopped"
RESERVED, MOUNTED = "container-name-reserved", "volume-not-unmounted"
NETWORK = "network-not-ready"
OUTLIVES = "sigkill"
"""What reports a container that outlived SIGKILL: a runtime that starts it again under the same id, if it is asked to."""


@dataclass(frozen=True, slots=True)
class RepeatedTrouble:
    """``of``: what it is about, by name or id. ``by``: which check or call reports it. ``away``: the runtime's socket does not answer.

    ``key``: what no other has: of a volume see ``volume_key``, of a container its ending pod's uid. ``backoff``: how long the kubelet waits until the next try, if it says so.
    """

    id: str
    of: str = ""
    by: str = ""
    away: str = ""
    key: str = ""
    backoff: str = ""

    @property
    def fields(self) -> dict[str, str]:
        more = {"key": self.key, "backoff": self.backoff}
        return {
            "id": self.id,
            "of": self.of,
            "by": self.by,
            "away": self.away,
            **{name: text for name, text in more.items() if text},
        }


def volume_key(unique: str, pod: str) -> str:
    """A volume by its unique name, and in one pod where it is that pod's mount; ``""`` where its unique name is not known."""
    return f"{unique} {pod}".strip() if unique else ""


_SOCKET = re.compile(
    r"rpc ?error: code = Unavailable ?desc = connection error: desc = \\{0,8}\"transport: (?:Error while dialing:? )"
    r"(?:dial unix )?(?P<socket>[\w./-]{1,200}): connect: (?:connection refused|no such file or directory)\\{0,8}\""
)
_LATE = re.compile(r"rpc ?error: code = DeadlineExceeded ?desc = (?:context deadline exceeded|stream terminated .*)")
_DOWN = re.compile(
    r"(?:\[(?P<others>[^\[\]]{0,400}, )?)?container runtime is down(?P<more>, [^\[\]]{0,400})?(?: [^\[\]]{1,400})?\]?"
)
_NOT_YET = re.compile(r"\[?container runtime status check may not have completed yet(?:[,\]].*)?")
_NO_NETWORK = re.compile(
    r"\[?(?:[^\[\]]{0,400}, )?(?:container )?runtime network not ready: NetworkReady=false reason:\w{1,60} message:(?P<of>[^\],]{1,600})(?:, [^\]]{0,400})?\]?"
)
_KILL = re.compile(
    r'failed to "Kill(?P<what>Container|PodSandbox)" for "(?P<of>[\w.-]{1,253})" with Kill(?:Container|PodSandbox)Error: (?P<why>[^\n]{0,4000})'
)
_ENDING_POD = re.compile(r'failed to "KillPodSandbox" for "(?P<uid>[\w.-]{1,253})" with KillPodSandboxError: ')
_GONE = re.compile(
    r'"?rpc error: code = (?:NotFound desc = |Unknown desc = (?:Error response from daemon: )?No such container: )'
)
_DENIED = re.compile(r"signaling init process caused: (?:permission denied|operation not permitted)")
_BEFORE = re.compile(r"(?:error killing pod: )?\[?")
_NETWORK = re.compile(
    r'"?rpc error: code = \w+ desc = (?:\[?failed to destroy network for sandbox |networkPlugin \S{1,40} failed to teardown pod )'
)
_RESERVED = (
    re.compile(r'failed to reserve (?:container|sandbox) name "(?P<of>[\w.-]+)"(?:; check if another \w+ request is in progress)?: name "[\w.-]+" is reserved for .*'),
    re.compile(
        r"(?:Kubelet may be retrying requests that are timing out in \S{1,20} due to system load[.:]? (?:Currently at stage [\w ]{1,60}: )?(?:context deadline exceeded: )?)?"
        r"error reserving (?:ctr|pod) name (?P<of>[\w.-]+) for id [0-9a-f]+: name is reserved"
    ),
)  # fmt: skip
_BEFORE_RESERVED = re.compile(
    r"(?:failed to \"(?:StartContainer|CreatePodSandbox)\" for \"[^\"]{1,253}\" with \w{1,40}: \"?|Error: |Failed to create pod sandbox: )?"
    r"(?:Failed to create sandbox for pod \"[^\"]{1,253}\": )?(?:rpc error: code = \w{1,20} desc = )?"
)
_OPERATION = re.compile(
    r'Operation for ".*" failed\. No retries permitted until .* Error: "?(?P<what>UnmountVolume\.TearDown|UnmountDevice|UnmapVolume(?:\.UnmapBlockVolume)?|UnmapDevice(?:\.\w{1,40})?|error cleaning subPath mounts)(?: failed)? for volume "(?P<of>[^"]+)".*',
    re.DOTALL,
)
_VOLUME = re.compile(r' \(UniqueName: "(?P<unique>[^"]{1,512})"\)(?: pod "(?P<pod>[^"]{1,253})")?')
_BACK_OFF = re.compile(r"\(durationBeforeRetry (?P<backoff>[\dhmsnµ.]{1,20})\)")


def troubles_in(error: str) -> Iterator[RepeatedTrouble]:
    """The troubles that this error of a pod, of a volume or of the kubelet itself reports."""
    plain = re.sub(r"^spec\.\w+\{[^}]*\}: ", "", re.sub(r'(?<!\\)\\{1,64}"', '"', error[:LONGEST]).strip())
    if down := _DOWN.fullmatch(plain):
        # Before 1.13 it is always in brackets, and is printed at each start, before the first check of the runtime.
        alone = plain.startswith("[") and not down["others"] and not down["more"]
        yield RepeatedTrouble(RUNTIME, by="brackets" if alone else "kubelet")
    elif _NOT_YET.fullmatch(plain):
        yield RepeatedTrouble(RUNTIME, by="status")
    elif match := _OPERATION.fullmatch(plain):
        gone = "not found in the list of registered CSI drivers" in plain[match.end("of") :]
        volume, waits = _VOLUME.match(plain, match.end("of") + 1), _BACK_OFF.search(plain, 0, match.start("what"))
        yield RepeatedTrouble(
            MOUNTED, match["of"], by="driver" if gone else match["what"],
            key=volume_key(volume["unique"], volume["pod"] or "") if volume else "", backoff=waits["backoff"] if waits else "",
        )  # fmt: skip
    elif found := _reserved(plain):
        yield found
    else:
        yield from _kills(plain)


def _reserved(plain: str) -> RepeatedTrouble | None:
    before = _BEFORE_RESERVED.match(plain)
    rest = plain[before.end() :].rstrip('"') if before else plain
    match = next((match for form in _RESERVED if (match := form.fullmatch(rest))), None)
    return RepeatedTrouble(RESERVED, match["of"]) if match else None


def _kills(plain: str) -> Iterator[RepeatedTrouble]:
    """The first error stands at the beginning, the others of a list behind a comma."""
    before = _BEFORE.match(plain)
    at = before.end() if before else 0
    pod = _ENDING_POD.search(plain)
    while (match := _KILL.match(plain, at)) is not None:
        own, comma, _ = match["why"].partition(', failed to "Kill')
        away = _SOCKET.search(own)
        if match["what"] == "Container":
            how = "gone" if _GONE.match(own) else "denied" if _DENIED.search(own) else "pod"
            yield RepeatedTrouble(
                NOT_KILLED, match["of"], by=how, away=away["socket"] if away else "", key=pod["uid"] if pod else ""
            )
        else:
            by = "network" if _NETWORK.match(own) else "pod"
            yield RepeatedTrouble(NOT_STOPPED, match["of"], by=by, away=away["socket"] if away else "")
        if not comma:
            following = plain.find('\n, failed to "Kill', at)
            if following < 0:
                return
            at = following + 3
        else:
            at = match.start("why") + len(own) + 2


def network(reason: str, by: str) -> RepeatedTrouble | None:
    """The runtime reports no network for pods: what it tells, in a line of the kubelet or in its Node's condition."""
    match = _NO_NETWORK.fullmatch(reason[:LONGEST].strip())
    return RepeatedTrouble(NETWORK, match["of"], by=by) if match else None


def runtime_call(call: str, error: str) -> RepeatedTrouble | None:
    """A call of the runtime that failed because nothing answers: a list, or its status."""
    plain = error[:LONGEST]
    if away := _SOCKET.search(plain):
        return RepeatedTrouble(RUNTIME, call, by="socket", away=away["socket"])
    return RepeatedTrouble(RUNTIME, call, by="late") if _LATE.fullmatch(plain) else None


_REFUSED = re.compile(r"rpc ?error: code = (?:Unknown|Internal) ?desc = (?P<why>.{1,600})", re.DOTALL)


def status_call(error: str) -> RepeatedTrouble | None:
    """The runtime's own status: nothing answers, or the runtime answers with an error of its own."""
    if (away := runtime_call("Status", error)) is not None:
        return away
    match = _REFUSED.fullmatch(error[:LONGEST].strip())
    return (
        RepeatedTrouble(RUNTIME, "Status", by="refused", away=match["why"].removesuffix(": unknown")) if match else None
    )


def stop_call(container: str, error: str) -> RepeatedTrouble | None:
    """StopContainer failed. A container that is gone already has ended."""
    if re.match(r"rpc ?error: code = NotFound ", error):
        return None
    away = _SOCKET.search(error[:LONGEST])
    return RepeatedTrouble(NOT_KILLED, container, by="call", away=away["socket"] if away else "")


def sandbox_call(sandbox: str, error: str) -> RepeatedTrouble | None:
    """StopPodSandbox failed. A sandbox that is gone already has been stopped."""
    plain = error[:LONGEST]
    if re.match(r"rpc ?error: code = NotFound ", plain):
        return None
    away = _SOCKET.search(plain)
    by = "network" if _NETWORK.match(plain) or plain.startswith("failed to destroy network for sandbox ") else "call"
    return RepeatedTrouble(NOT_STOPPED, sandbox[:12], by=by, away=away["socket"] if away else "")
