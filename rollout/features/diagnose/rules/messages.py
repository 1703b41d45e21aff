"""What a message means: kubelets in words (up to 1.20) and in keys (from 1.21), systemd, and the container runtimes.

Sources: the kubelet's pkg/kubelet/{kubelet,pod_workers,kuberuntime/*,images/*,pleg/generic}.go in 1.13, 1.20, 1.21 to
1.36; systemd src/core/service.c. The packages of runtimes have the forms of theirs (``PullMessage``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from rollout.features.diagnose.rules.container_errors import REASONS, of_sync
from rollout.features.diagnose.rules.facts import BareFact, Kind
from rollout.features.diagnose.rules.pod_events import event_found, inspected, no_sandbox, not_pulled
from rollout.features.diagnose.rules.troubles import (
    LONGEST,
    NOT_KILLED,
    OUTLIVES,
    RepeatedTrouble,
    network,
    runtime_call,
    sandbox_call,
    status_call,
    stop_call,
    troubles_in,
)
from rollout.kubelet.runtimes.description import PullStep
from rollout.kubelet.runtimes.known import KNOWN

Fields = Mapping[str, str]
_LOGS = tuple(dict.fromkeys(line for runtime in KNOWN for line in runtime.logs))
_STEPS = {
    PullStep.RECEIVED: Kind.RUNTIME_STARTED,
    PullStep.PROGRESS: Kind.PROGRESS,
    PullStep.CUT: Kind.PULL_CUT,
    PullStep.ENDED: Kind.RUNTIME_ENDED,
    PullStep.STOPPED: Kind.PULL_STOPPED,
    PullStep.NEXT_HOST: Kind.NEXT_HOST,
    PullStep.UNLIMITED: Kind.UNLIMITED,
    PullStep.ASKED: Kind.ASKED,
    PullStep.STARTED: Kind.RUNTIME,
}
QPS = "pull QPS exceeded"
"""The kubelet's error of a pull over registryPullQPS."""


OF_ANY_CLIENT = "PullImage from image service failed"
"""The client of the runtime reports a failed pull: it is the kubelet's, and also that of ``crictl``."""


def over_qps(error: str) -> bool:
    """Whether it is that error itself: a registry's answer may contain the same words behind others."""
    return error.lstrip('\\" ').startswith(QPS)


_ID = r'(?:\{"(?P<scheme>\w+)" "(?P<id>[0-9a-f]{6,64})"\}|"(?P<scheme2>\w[\w.-]*)://(?P<id2>[0-9a-f]{6,64})")'
_POD = r'"(?P<name>[^"_]+)_(?P<namespace>[^"_(]+)\([^)"]*\)"'
_IMAGE = r'"(?P<image>[^"]+)"'

_UNITS = (
    "kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "snap.microk8s.daemon-kubelite", "snap.microk8s.daemon-kubelet",
    "snap.kubelet-eks.daemon",
)  # fmt: skip
"""Units of systemd that run a kubelet: of packages; k3s and RKE2, which run it in or under their own process; snaps."""

# Words of kubelets up to 1.20, of k3s and RKE2, and of systemd: the beginning of a message, and the whole of it.
_WORDS: tuple[tuple[Kind, str, str], ...] = (
    (Kind.ARRIVED, 'SyncLoop (ADD, "api")', rf': {_POD}$'),  # a kubelet that starts lists all pods of its node
    (Kind.DELETED, 'SyncLoop (DELETE, "api")', rf': {_POD}'),
    (Kind.REMOVED, 'SyncLoop (REMOVE, "api")', rf': {_POD}'),
    (Kind.REMOVED, 'Pod "', r'(?P<name>[^"_]+)_(?P<namespace>[^"_(]+)\([^)"]*\)" fully terminated and removed from etcd'),
    (Kind.DIED, "SyncLoop (PLEG): ", rf'{_POD}, event: .*Type:"ContainerDied", Data:"(?P<id>[0-9a-f]+)"'),
    (Kind.HOOK, "Running preStop hook for container ", _ID),
    (Kind.HOOK_DONE, "preStop hook for container ", rf"{_ID} completed"),
    (Kind.HOOK_DONE, "preStop hook for container ", rf"{_ID} did not complete in (?P<late>\d{{1,9}}) seconds"),
    (Kind.HOOK_FAILED, "preStop hook for container ", r'"(?P<container>[\w.-]{1,253})" failed: (?P<error>.*)'),
    (Kind.KILL, "Killing container ", rf"{_ID}(?P<override>, but using) (?:a )?(?P<grace>-?\d+) second grace period override"),
    (Kind.KILL, "Killing container ", rf"{_ID} with (?:a )?(?P<grace>-?\d+) second grace period"),
    (Kind.KILLED, "Container ", rf"{_ID} exited normally"),
    (Kind.UNMOUNTED, "UnmapDevice succeeded for volume ", r'"(?P<of>[^"]{1,253})"(?: \(UniqueName: "(?P<unique>[^"]{1,512})"\))?'),
    (Kind.UNMOUNTED, "UnmapVolume succeeded for volume ", r'"(?P<unique>[^"]{1,512})" \(OuterVolumeSpecName: "(?P<of>[^"]{1,253})"\)(?: pod "(?P<holder>[^"]{1,253})")?'),
    (Kind.UNMOUNTED, "UnmountDevice succeeded for volume ", r'"(?P<of>[^"]{1,253})"(?: \(UniqueName: "(?P<unique>[^"]{1,512})"\))?'),
    (Kind.UNMOUNTED, "UnmountVolume.TearDown succeeded for volume ", r'"(?P<unique>[^"]{1,512})" \(OuterVolumeSpecName: "(?P<of>[^"]{1,253})"\)(?: pod "(?P<holder>[^"]{1,253})")?'),
    (Kind.EVICTS, "eviction manager: must evict pod(s) to reclaim ", r"\S+"),
    (Kind.PULL_FAILED, "Pull image ", rf"{_IMAGE} failed: (?P<error>.*)"),
    (Kind.START, "Version: ", r"(?P<version>v?1\.\d+\.\d+\S*)"),
    (Kind.VERSION, "Container runtime ", r"(?P<by>[\w-]{1,40}) initialized, version: (?P<version>[^ ,]{1,60}), "),
    (Kind.FLAG, "FLAG: --", r'(?P<flag>[\w-]+)="(?P<value>.*)"'),
    (Kind.NODE, "Successfully registered node ", r"(?P<registered>(?P<node>[\w.-]+))"),
    (Kind.NODE, "Attempting to register node ", r"(?P<node>[\w.-]+)"),
    (Kind.FATAL, "Error: failed to parse kubelet flag", r"(?P<error>.*)"),
    (Kind.FATAL, "panic: ", r"(?P<error>.*)"),
    (Kind.FATAL, "starting kubernetes: ", r"(?P<error>(?P<server>.*))"),  # k3s and RKE2, pkg/cli/server: level=fatal
    (Kind.EXIT, "Kubelet exited: exit status ", r"(?P<status>\d+)"),  # RKE2, pkg/podexecutor and pkg/pebinaryexecutor
    *(
        (Kind.EXIT, f"{unit}.service: {main} process exited", r", code=\w+, status=(?P<status>\S+)")
        for unit in _UNITS for main in ("Main", "main")  # systemd up to 219 writes it small
    ),
    *(
        (Kind.END_TOLD, f"{unit}.service: {begins}", rest)
        for unit in _UNITS
        for begins, rest in (
            ("Failed at step ", r"(?P<error>[A-Z_]{2,40} spawning .+)"),
            ("Watchdog timeout", r"(?P<error> \(limit \S{1,20}\))!$"),
            ("A process of this unit has been killed by the OOM killer", r"(?P<error>)\.$"),
        )
    ),  # systemd src/core/{execute,service,unit}.c
    *((Kind.GIVEN_UP, f"{unit}.service: Start request repeated too quickly", r"") for unit in _UNITS),
    *((Kind.RESTARTS, f"{unit}.service: Scheduled restart job", r", restart counter is at (?P<count>\d+)") for unit in _UNITS),
)  # fmt: skip
_IN_WORDS = (
    *((kind, begins, rest, "") for kind, begins, rest in _WORDS),
    *((_STEPS[line.step], line.begins, line.rest, line.by) for line in _LOGS if not line.keys),
    *((Kind.STOP_ASKED, *known.stop_asked, known.id_scheme) for known in KNOWN if known.stop_asked[0]),
)
KEY = 5
"""Characters by which a message is looked up: no beginning is shorter."""
_COMPILED: dict[str, list[tuple[Kind, str, re.Pattern[str], str]]] = {}
for _kind, _begins, _rest, _by in _IN_WORDS:
    _COMPILED.setdefault(_begins[:KEY], []).append((_kind, _begins, re.compile(_rest), _by))

# Messages of kubelets from 1.21 on, which have keys, and the keys that matter.
_KEYED: Mapping[str, tuple[Kind, tuple[tuple[str, str], ...]]] = {
    "SyncLoop DELETE": (Kind.DELETED, (("pods", "pod"),)),
    "SyncLoop REMOVE": (Kind.REMOVED, (("pods", "pod"),)),
    "Pod fully terminated and removed from etcd": (Kind.REMOVED, (("pod", "pod"),)),
    "Running preStop hook": (Kind.HOOK, ()),
    "PreStop hook completed": (Kind.HOOK_DONE, ()),
    "PreStop hook not completed in grace period": (Kind.HOOK_DONE, (("gracePeriod", "late"),)),
    "PreStop hook failed": (Kind.HOOK_FAILED, (("err", "error"),)),
    "Killing container with a grace period override": (Kind.KILL, (("gracePeriod", "grace"), ("=yes", "override"))),
    "Killing container with a grace period": (Kind.KILL, (("gracePeriod", "grace"),)),
    "Container exited normally": (Kind.KILLED, ()),
    "Eviction manager: must evict pod(s) to reclaim": (Kind.EVICTS, ()),
    "Pulling image without credentials": (Kind.UNQUEUED, (("image", "image"),)),
    "Failed to pull image": (Kind.PULL_FAILED, (("image", "image"), ("err", "error"))),
    OF_ANY_CLIENT: (Kind.PULL_FAILED, (("image", "image"), ("err", "error"))),
    "Kubelet version": (Kind.START, (("kubeletVersion", "version"),)),
    "Attempting to register node": (Kind.NODE, (("node", "node"),)),
    "Successfully registered node": (Kind.NODE, (("node", "node"), ("=yes", "registered"))),
    "Container runtime initialized": (Kind.VERSION, (("containerRuntime", "by"), ("version", "version"))),
    "command failed": (Kind.FATAL, (("err", "error"),)),
    "Failed to run kubelet": (Kind.FATAL, (("err", "error"),)),
    **{
        line.begins: (_STEPS[line.step], (*line.keys, *((f"={line.by}", "by"),) * bool(line.by)))
        for line in _LOGS
        if line.keys
    },
}
_CONTAINER = (("pod", "pod"), ("containerName", "container"), ("containerID", "id"))
_OF_CONTAINERS = frozenset({Kind.HOOK, Kind.HOOK_DONE, Kind.HOOK_FAILED, Kind.KILL, Kind.KILLED})

_PLEG = re.compile(r"pleg was last seen active (?P<elapsed>\S+) ago; threshold is (?P<threshold>[\w.]*\w)")
NEVER = "2562047h47m16.85"
"""How Go prints the longest duration: the time since a moment that has not come. Kubelets before 1.14 say so at each start."""
_CGROUP = "kubelet is configured to not run on a host using cgroup v1"
_CHANGED = re.compile(r"Container (?P<container>[\w.-]+) definition changed, will be restarted")
_SYNC = re.compile(
    r'failed to \\?"StartContainer\\?" for \\?"(?P<container>[\w.-]+)\\?" with (?P<reason>ErrImagePull|ImagePullBackOff|RegistryUnavailable|SignatureValidationFailed): (?P<error>.*)'
)
_NOT_ASKED = re.compile(
    r'failed to \\?"StartContainer\\?" for \\?"(?P<container>[\w.-]+)\\?" with (?:InvalidImageName|ErrImageNeverPull|ImageInspectError): '
)
_BACK_OFF_IMAGE = re.compile(r'Back-off pulling image [\\"]*(?P<image>[^\\"]+)')
_OLD_POD = re.compile(r'\("(?P<name>[^"_]+)_(?P<namespace>[^"_(]+)\((?P<uid>[\w-]{0,64})')
_STATUS = re.compile(r"\{Name:(?P<container>[\w.-]+) State:(?:(?!\{Name:).)*?ContainerID:\w+://(?P<id>[0-9a-f]+)")
_OLD_STATUS_POD = re.compile(r'Status for pod "(?P<name>[^"_]+)_(?P<namespace>[^"_(]+)\(')
_OLD_EVENT = re.compile(
    r'Event\(v1\.ObjectReference\{Kind:"(?P<kind>\w*)", Namespace:"(?P<namespace>[^"]*)", Name:"(?P<name>[^"]*)".*?'
    r"FieldPath:\"(?P<path>[^\"]*)\"\}\): type: '(?P<type>\w+)' reason: '(?P<reason>\w+)' (?P<message>.*)",
    re.DOTALL,
)
_FIELD_PATH = re.compile(r"\{([\w.-]+)\}")


def found_in(message: str, keys: Fields | None, others: Fields | None = None) -> Iterator[BareFact]:
    """What a message shows; ``keys``: those of a message that has some, ``None`` for one in words. ``others``: keys behind one in words."""
    specials = _SPECIALS.get(message[:KEY], ())
    if found := next((reader for begins, reader in specials if message.startswith(begins)), None):
        yield from found(message, keys or others or {})
    elif keys is not None:
        yield from _keyed(message, keys)
    else:
        yield from _worded(message)


def container_of(path: str) -> str:
    """``spec.containers{web}`` → ``web``."""
    match = _FIELD_PATH.search(path)
    return match[1] if match else ""


def _worded(message: str) -> Iterator[BareFact]:
    for kind, begins, rest, by in _COMPILED.get(message[:KEY], ()):
        if message.startswith(begins) and (match := rest.match(message, len(begins))):
            fields = _plain(match) | ({"by": by} if by else {})
            if kind is Kind.END_TOLD:
                fields["error"] = begins.partition(".service: ")[2] + fields["error"]
            yield BareFact(kind, fields)
            return


def _plain(match: re.Match[str]) -> dict[str, str]:
    """The groups of a match as fields."""
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    if "namespace" in groups:
        groups["pod"] = f"{groups.pop('namespace')}/{groups.pop('name')}"
    if "id2" in groups:
        groups["id"] = groups.pop("id2")
        groups["scheme"] = groups.pop("scheme2")
    if "override" in groups:
        groups["override"] = "yes"
    if "failed" in groups:
        groups["error"] = groups.pop("failed") or "failed"
    return groups


def _keyed(message: str, keys: Fields) -> Iterator[BareFact]:
    if message not in _KEYED:
        return
    kind, wanted = _KEYED[message]
    fields = {to: keys.get(key, "") if key[0] != "=" else key[1:] for key, to in wanted}
    if kind in _OF_CONTAINERS:
        fields |= {to: keys.get(key, "") for key, to in _CONTAINER}
        scheme, _, id_ = fields["id"].rpartition("://")
        fields |= {"id": id_.strip('"}'), "scheme": scheme.strip('"{')}
    yield from (
        (BareFact(kind, fields | {"pod": pod}) for pod in _pods(fields["pod"]))
        if "pod" in fields
        else [BareFact(kind, fields)]
    )


def _pods(text: str) -> list[str]:
    """``["a/b","c/d"]``, ``[a/b]`` or ``a/b`` as names."""
    return [name for name in re.split(r'[\[\]", ]+', text) if name]


# Messages that are more than a form with values.


def _errors(message: str, keys: Fields) -> Iterator[BareFact]:
    """The lines of a kubelet that will not work on pods, or not start."""
    condition = _CONDITION.search(keys.get("condition", "") or message)
    yield from not_ready(condition["message"] if condition else keys.get("err", "") or _SKIPPING.sub("", message))
    text = f"{message} {keys.get('err', '')}"
    if _CGROUP in text:
        yield BareFact(Kind.CGROUP_V1, {"error": text[text.index(_CGROUP) :]})
    if message in ("command failed", "Failed to run kubelet"):
        yield BareFact(Kind.FATAL, _failed(keys.get("err", "")))
    elif message.startswith(("failed to run Kubelet: ", "Failed to run kubelet: ")):
        yield BareFact(Kind.FATAL, {"error": message.partition(": ")[2]})


def not_ready(reason: str) -> Iterator[BareFact]:
    """Why a kubelet does not work on pods, in its own words: of a line, or of its Node's condition."""
    if (match := _PLEG.search(reason)) and not match["elapsed"].startswith(NEVER):
        yield BareFact(Kind.PLEG, match.groupdict())
    yield from (_trouble(trouble) for trouble in troubles_in(reason))
    if off := network(reason, "condition"):
        yield _trouble(off)


def _no_network(message: str, keys: Fields) -> Iterator[BareFact]:
    """What the kubelet prints every five seconds while it is so."""
    told = keys.get("networkReady", "") or message.partition("not ready: ")[2]
    if off := network(f"runtime network not ready: {told}", "line"):
        yield _trouble(off)


_PLUGIN = re.compile(
    r"error execing credential provider plugin (?P<plugin>[\w.-]{1,100}) for image (?P<image>\S{1,400}): (?P<error>.{1,2000})",
    re.DOTALL,
)


def _uncredentialed(message: str, keys: Fields) -> Iterator[BareFact]:
    """A plugin that gives no credentials for an image: pkg/credentialprovider/plugin. The pull goes on without them."""
    if match := _PLUGIN.fullmatch(keys.get("err", "") or message.partition("provider: ")[2]):
        error = {"error": match["error"].strip(": \n")}
        yield BareFact(Kind.UNCREDENTIALED, match.groupdict() | error)


_BOOTSTRAP = re.compile(
    r"[Pp]art of the existing bootstrap client certificate.{0,400} is expired: .{1,100}"
    r"|[Uu]nable to (?:load|read|parse) (?:TLS (?:configuration|cert) from )?existing bootstrap client config .{1,2000}",
    re.DOTALL,
)


def _bootstrap(message: str, _keys: Fields) -> Iterator[BareFact]:
    """Why a kubelet that starts cannot use its client certificate: pkg/kubelet/certificate/bootstrap."""
    if _BOOTSTRAP.fullmatch(message):
        yield BareFact(Kind.BOOTSTRAP, {"error": message[:LONGEST]})


def _unhandled(message: str, keys: Fields) -> Iterator[BareFact]:
    """From 1.31 on: the error that was a message of its own before."""
    yield from _container_failed(message, keys)
    yield from _bootstrap(keys.get("err", ""), {})


def _failed(error: str) -> dict[str, str]:
    """Its first words tell that it is a kubelet's; they are no part of the reason."""
    return {"error": error.removeprefix(_RUN), **({"own": "yes"} if error.startswith(_RUN) else {})}


_OLD_SYNC = re.compile(r"Error syncing pod [^ ]{1,64} \(\"[^\"]{1,400}\"\), skipping: ")
_CONDITION = re.compile(
    r'(?:Status:False .{0,400}?Message:|"status":"False".{0,400}?"message":")(?P<message>[^{}"]{1,4096})'
)
"""Of ``Node became not ready``: as Go prints it, and as JSON from 1.26 on."""
_SKIPPING = re.compile(r"[Ss]kipping pod synchronization - ")
_EXITED = re.compile(r"(?:Shutdown request received: )?\"?kubelet (?:exited|panic): (?P<error>.+)")
_RUN = "failed to run Kubelet: "


def _exited(message: str, _keys: Fields) -> Iterator[BareFact]:
    """The kubelet in the process of k3s: pkg/daemons/executor/embed.go. One that is stopped ends with no error."""
    match = _EXITED.match(message)
    if match is None or match["error"].strip('"') in ("<nil>", "context canceled"):
        return
    error = match["error"].removeprefix(_RUN)
    if _CGROUP in error:
        yield BareFact(Kind.CGROUP_V1, {"error": error[error.index(_CGROUP) :]})
    yield BareFact(Kind.FATAL, {"error": error})


def _plain_quotes(text: str) -> str:
    """Without the backslashes of texts in texts."""
    return re.sub(r'(?<!\\)\\{1,64}"', '"', text)


_HOLDING = ("CreatePodSandbox", "unmounted volumes", "unattached volumes")


def _sync(message: str, keys: Fields) -> Iterator[BareFact]:
    error = keys.get("err", "") or message
    old = _OLD_POD.search(message)
    pod = keys.get("pod", "") or (f"{old['namespace']}/{old['name']}" if old else "")
    told = _OLD_SYNC.sub("", error)
    troubles = [_trouble(trouble, pod) for trouble in troubles_in(told)]
    uid = keys.get("podUID", "") or (old["uid"] if old else "")
    if uid and told.startswith("error killing pod: "):  # the pod ends, so its containers do not start again
        troubles = [BareFact(each.kind, {**each.fields, "key": uid}) for each in troubles]
    yield from troubles
    if troubles:
        return
    if any(reason in error for reason in REASONS):
        yield from of_sync(_plain_quotes(told), pod)
    match = _SYNC.search(error)
    if match is None:
        if not_asked := _NOT_ASKED.search(error):
            plain, of = (
                _plain_quotes(error[not_asked.end() :][:LONGEST]),
                {"pod": pod, "container": not_asked["container"]},
            )
            if why := not_pulled(plain):
                yield BareFact(Kind.PULL_FAILED, of | why)
            elif lacking := inspected(plain):
                yield BareFact(lacking.kind, {**of, **lacking.fields})
            return
        if "CreatePodSandbox" in told:
            yield from no_sandbox(pod, _plain_quotes(told[:LONGEST]), "sync")
        if any(word in error for word in _HOLDING):
            yield BareFact(Kind.HELD, {"pod": pod})
        return
    fields = {"pod": pod, "container": match["container"]}
    image = _BACK_OFF_IMAGE.search(match["error"])
    if match["reason"] == "ImagePullBackOff":
        name = {"image": image["image"] if image else ""}
        yield BareFact(Kind.BACK_OFF, fields | name)
        _, cut, failed = match["error"].partition(": ErrImagePull: ")  # from 1.32 on
        if cut:
            yield BareFact(Kind.PULL_FAILED, fields | name | {"error": failed.strip('\\"')})
    else:
        yield BareFact(Kind.PULL_FAILED, fields | {"image": "", "error": match["error"].strip('\\"')})


_FAILED_CONTAINER = re.compile(r"container &Container\{Name:(?P<container>[\w.-]+),Image:(?P<image>[^,]+),")
_START_FAILED = "start failed in pod "
_IN_POD = re.compile(r"(?P<name>[^_ ]+)_(?P<namespace>[^_(]+)\([^)]*\): ErrImagePull: (?P<error>.*)")


def _container_failed(message: str, keys: Fields) -> Iterator[BareFact]:
    """From 1.31 on it is the error of another message."""
    text = keys.get("err", "") or message
    at = text.find("container &Container{")
    container = _FAILED_CONTAINER.match(text, at) if at >= 0 else None
    behind = text.rfind(_START_FAILED)
    pod = _IN_POD.match(text, behind + len(_START_FAILED)) if container and behind >= container.end() else None
    if container and pod:
        named = {"pod": f"{pod['namespace']}/{pod['name']}", "error": pod["error"]}
        yield BareFact(Kind.PULL_FAILED, {**container.groupdict(), **named})


def _arrived(_message: str, keys: Fields) -> Iterator[BareFact]:
    """One new pod. A kubelet that starts lists all pods of its node."""
    pods = _pods(keys.get("pods", ""))
    if len(pods) == 1:
        yield BareFact(Kind.ARRIVED, {"pod": pods[0]})


def _changed(message: str, keys: Fields) -> Iterator[BareFact]:
    if match := _CHANGED.search(keys.get("containerMessage", "") or message):
        yield BareFact(Kind.CHANGED, {"pod": keys.get("pod", ""), "container": match["container"]})


_ENDED_BY = (
    "Failed to start ContainerManager", "Failed to start cAdvisor", "Failed to initialize internal modules",
    "Failed to load kubelet config file", "Failed to parse kubelet flag", "Failed to validate kubelet flags",
    "Failed to validate kubelet configuration", "Failed to set feature gates from initial flags-based config",
    "Failed to set feature gates from initial flags and config file", "Failed to construct kubelet dependencies",
    "Failed to listen and serve",
)  # fmt: skip
"""Errors behind which a kubelet from 1.21 on ends at once with status 1: pkg/kubelet/kubelet.go, cmd/kubelet/app/server.go."""


def _ended_by(message: str, keys: Fields) -> Iterator[BareFact]:
    if message in _ENDED_BY:
        yield BareFact(Kind.FATAL, {"error": f"{message}: {keys.get('err', '')}"})


_UNABLE, _WAITS, _REJECTED = (
    "Unable to register node ",
    "Waiting to retrieve agent configuration; server is not ready: ",
    "Node password rejected, duplicate hostname",
)
_UNREGISTERED = re.compile(
    r'Unable to register node "(?P<node>[\w.-]{1,253})" with API server: (?P<error>.*)', re.DOTALL
)


def _not_registered(message: str, keys: Fields) -> Iterator[BareFact]:
    """A try to register the node that failed; the agent of k3s and RKE2 asks its server before its kubelet begins."""
    if message.startswith(_UNABLE):
        old = _UNREGISTERED.fullmatch(message)
        error, node = (old["error"], old["node"]) if old else (keys.get("err", ""), keys.get("node", ""))
    else:
        error, node = message.removeprefix(_WAITS), ""
    if error:
        by = "kubelet" if message.startswith(_UNABLE) else "agent"
        yield BareFact(Kind.NOT_REGISTERED, {"error": error[:2000], "by": by, **({"node": node} if node else {})})


def _operation(message: str, _keys: Fields) -> Iterator[BareFact]:
    yield from (_trouble(trouble) for trouble in troubles_in(message))


def _trouble(trouble: RepeatedTrouble, pod: str = "", container: str = "") -> BareFact:
    return BareFact(Kind.TROUBLE, {**trouble.fields, "pod": pod, "cid": container})


_CALL = re.compile(
    r"(?P<call>\w{4,40})(?: with filter(?: (?:&?\w{1,40}\{.{0,600}\}|nil|<nil>))?)? from (?:runtime|image) service failed(?:: (?P<error>.*))?",
    re.DOTALL,
)


def _called(message: str, keys: Fields) -> Iterator[BareFact]:
    """A list of the runtime, or its status, that failed."""
    if match := _CALL.fullmatch(message):
        call, error = match["call"], match["error"] or keys.get("err", "")
        trouble = status_call(error) if call == "Status" else runtime_call(call, error)
        yield from [_trouble(trouble)] if trouble else []


def _unsound(message: str, keys: Fields) -> Iterator[BareFact]:
    trouble = status_call(keys.get("err", "") or message.partition("failed: ")[2])
    yield from [_trouble(trouble)] if trouble else []


_NOT_RUN = re.compile(r"ExecSync (?P<id>[0-9a-f]{6,64}) '.*' from runtime service failed: (?P<error>.*)", re.DOTALL)


def _not_run(message: str, keys: Fields) -> Iterator[BareFact]:
    """A command that the runtime did not run in a container: that of a hook, or of a probe. One past its deadline has run."""
    old = _NOT_RUN.fullmatch(message)
    id_, error = (old["id"], old["error"]) if old else (keys.get("containerID", ""), keys.get("err", ""))
    if (
        id_
        and error
        and not re.match(r"rpc ?error: code = DeadlineExceeded |command .{0,400} timed out", error, re.DOTALL)
    ):
        yield BareFact(Kind.EXEC_FAILED, {"id": id_.rpartition("://")[2], "error": error[:LONGEST]})


_STOPPED = re.compile(
    r"(?:StopContainer \"(?P<id>[0-9a-f]{6,64})\" from runtime service failed|"
    r"Container \"\w[\w.-]{0,40}://(?P<id2>[0-9a-f]{6,64})\" termination failed with gracePeriod -?\d{1,9}): (?P<error>.*)",
    re.DOTALL,
)


def _not_stopped(message: str, keys: Fields) -> Iterator[BareFact]:
    """A container that the runtime did not stop: as the kubelet's client of the runtime and its manager report it."""
    id_ = (re.search(r"([0-9a-f]{6,64})\W*$", keys.get("containerID", "")) or [""])[0].rstrip('"}')
    error, by = keys.get("err", ""), "call"
    if old := _STOPPED.fullmatch(message):
        id_, error = old["id"] or old["id2"], old["error"]
        by = "call" if old["id"] else "manager"
    elif keys.get("containerName"):
        by = "manager"
    trouble = stop_call(keys.get("containerName", ""), error) if id_ and error else None
    if trouble:
        fact = _trouble(trouble, keys.get("pod", ""), id_)
        yield BareFact(fact.kind, {**fact.fields, "by": by})


_SANDBOX = re.compile(
    r"StopPodSandbox (?:for )?\"(?P<id>[0-9a-f]{6,64})\"(?: from runtime service)? failed(?:: (?P<error>.*))?",
    re.DOTALL,
)


def _sandbox(message: str, keys: Fields) -> Iterator[BareFact]:
    """A sandbox that was not stopped: by the kubelet's client of the runtime, or by the runtime's own log."""
    old = _SANDBOX.fullmatch(message)
    id_ = old["id"] if old else keys.get("podSandboxID", "")
    error = (old["error"] if old else "") or keys.get("err", "") or keys.get("error", "")
    trouble = sandbox_call(id_, error) if id_ and (error or old) else None
    yield from [_trouble(trouble)] if trouble else []


_RUNTIME_STOP = re.compile(r'StopContainer for "(?P<id>[0-9a-f]{6,64})" failed')
_OUTLIVES_SIGKILL = re.compile(
    r"Container (?:(?P<id>[0-9a-f]{12,64}) )?failed to exit within \d{1,6} ?s(?:econds)? of kill - trying direct SIGKILL"
)
_CANCELLED = re.compile(
    r'An error occurs during waiting for container "(?P<id>[0-9a-f]{6,64})" to be (?:stopped|killed)'
)


def _runtime_stop(message: str, _keys: Fields) -> Iterator[BareFact]:
    """The same from the runtime's own log."""
    if match := _RUNTIME_STOP.fullmatch(message):
        yield _trouble(RepeatedTrouble(NOT_KILLED, by="runtime"), "", match["id"])
    else:
        yield from _worded(message)


def _outlives(message: str, keys: Fields) -> Iterator[BareFact]:
    """A runtime that killed a container and waits for its end. Other messages begin with the same word."""
    match = _OUTLIVES_SIGKILL.fullmatch(message)
    if match is not None:
        id_ = match["id"] or keys.get("container", "")
        yield from [_trouble(RepeatedTrouble(NOT_KILLED, by=OUTLIVES), "", id_)] if id_ else []
    elif message in _KEYED:
        yield from _keyed(message, keys)
    else:
        yield from _worded(message)


def _wait_cancelled(message: str, keys: Fields) -> Iterator[BareFact]:
    """Its error, which is a key of the line, tells a cancelled wait from one that is over."""
    if match := _CANCELLED.fullmatch(message):
        yield BareFact(Kind.WAIT_ENDED, {"id": match["id"], "error": keys.get("error", "")})


_RUNS_SANDBOX = re.compile(
    r'RunPodSandbox for (?:&PodSandboxMetadata\{Name:|name:")(?P<name>[^",]{1,253})"?[, ]+(?:U|u)id:"?[^", ]{1,64}"?[, ]+(?:N|n)amespace:"?(?P<namespace>[^", ]{1,63})"?.{0,60} failed, error'
)
_MAKES_SANDBOX = re.compile(
    r'[cC]reatePodSandbox for pod "(?P<name>[^"_]{1,253})_(?P<namespace>[^"_(]{1,63})[^"]{0,70}" failed: (?P<error>.*)',
    re.DOTALL,
)


def _no_sandbox(message: str, keys: Fields) -> Iterator[BareFact]:
    """A sandbox that was not made: by the kubelet's manager of containers, and by containerd's own log."""
    old = _RUNS_SANDBOX.fullmatch(message) or _MAKES_SANDBOX.fullmatch(message)
    error = (old["error"] if old and old.re is _MAKES_SANDBOX else "") or keys.get("err", "") or keys.get("error", "")
    pod = f"{old['namespace']}/{old['name']}" if old else keys.get("pod", "")
    if error and (old or message in ("CreatePodSandbox for pod failed", "Failed to create sandbox for pod")):
        yield from no_sandbox(pod, error, message.partition(" ")[0])


def _status(message: str, _keys: Fields) -> Iterator[BareFact]:
    if pod := _OLD_STATUS_POD.match(message):
        named = f"{pod['namespace']}/{pod['name']}"
        for match in _STATUS.finditer(message):
            yield BareFact(Kind.NAMED, {"pod": named, **match.groupdict()})


def _old_event(message: str, _keys: Fields) -> Iterator[BareFact]:
    if match := _OLD_EVENT.match(message):
        pod = f"{match['namespace']}/{match['name']}"
        yield from event_found(match["kind"], pod, container_of(match["path"]), match["reason"], match["message"])


def _event(_message: str, keys: Fields) -> Iterator[BareFact]:
    yield from event_found(
        keys.get("kind", ""), keys.get("object", ""), container_of(keys.get("fieldPath", "")),
        keys.get("reason", ""), keys.get("message", ""),
    )  # fmt: skip


def _pleg_died(_message: str, keys: Fields) -> Iterator[BareFact]:
    event = keys.get("event", "")
    if "ContainerDied" in event and (match := re.search(r'"?Data"?: ?"?([0-9a-f]{6,})', event)):
        yield BareFact(Kind.DIED, {"pod": keys.get("pod", ""), "id": match[1]})


def _container(message: str, keys: Fields) -> Iterator[BareFact]:
    """Up to 1.20: it did not end, or it did."""
    if "termination failed" in message:
        yield from _not_stopped(message, keys)
    else:
        yield from _worded(message)


_SPECIAL: tuple[tuple[str, Callable[[str, Fields], Iterator[BareFact]]], ...] = (
    ("Event(v1.ObjectReference", _old_event),
    ("Event occurred", _event),
    ("Status for pod ", _status),
    ("Error syncing pod", _sync),
    ('Operation for "', _operation),
    ("container &Container{Name:", _container_failed),
    ("Unhandled Error", _unhandled),
    ("Failed getting credential from external registry", _uncredentialed),
    ("Container runtime network not ready", _no_network),
    *((begins, _not_registered) for begins in (_UNABLE, _WAITS, _REJECTED)),
    *(
        (begins, _bootstrap)
        for begins in ("part of the existing bootstrap ", "Part of the existing bootstrap ", "unable to ", "Unable to ")
    ),
    ("SyncLoop ADD", _arrived),
    ("SyncLoop (PLEG): event for pod", _pleg_died),
    ("Message for Container of pod", _changed),
    ("Container spec hash changed", _changed),
    ("skipping pod synchronization", _errors),
    ("Skipping pod synchronization", _errors),
    ("Node became not ready", _errors),
    ("command failed", _errors),
    ("failed to run Kubelet: ", _errors),
    ("Failed to run kubelet", _errors),
    ("kubelet is configured to not run", _errors),
    ("kubelet exited: ", _exited),
    ("kubelet panic: ", _exited),
    ("Shutdown request received: ", _exited),
    *((begins, _ended_by) for begins in _ENDED_BY),
    *((begins, _sync) for begins in ('[failed to "Kill', 'failed to "Kill')),
    ("Container runtime sanity check failed", _unsound),
    *(
        (call, _called)
        for call in ("ListContainers", "ListPodSandbox", "ListImages", "Status from runtime", "Version from runtime")
    ),
    ("StopPodSandbox", _sandbox),
    ("ExecSync ", _not_run),
    *(
        (begins, _no_sandbox)
        for begins in (
            "CreatePodSandbox for pod ",
            "createPodSandbox for pod ",
            "Failed to create sandbox for pod",
            "RunPodSandbox for ",
        )
    ),
    ("StopContainer for ", _runtime_stop),
    ("StopContainer", _not_stopped),
    ('Container "', _container),
    ("Container termination failed", _not_stopped),
    ("Kill container failed", _not_stopped),
    ("killContainer for pod failed", _not_stopped),
    ("An error occurs during waiting for container ", _wait_cancelled),
    ("Container ", _outlives),
)

_SPECIALS: dict[str, list[tuple[str, Callable[[str, Fields], Iterator[BareFact]]]]] = {}
for _begin, _reader in _SPECIAL:
    _SPECIALS.setdefault(_begin[:KEY], []).append((_begin, _reader))

_EVENT_WORDS = (
    "KillContainerError", "KillPodSandboxError", "reserve container name", "reserve sandbox name", "error reserving ", "low on resource",
    "ack-off pulling image ", "ulling image ", "uccessfully pulled image ", "ailed to pull image ", "ailed to inspect image ", "definition changed", "spec hash changed",
    "Error: secret", "Error: configmap", "Error: couldn't find key", "runAsNonRoot", "breaks non-root policy", "Error: failed to sync",
    "Created container", "tarted container", "ontainer started", "Error: object", "Error: services", "subPath", "Error: cannot find volume", "containerd task", "containerd container", "ailed to start container", "ontainer create failed", "Error: context deadline", "Error: checking sig", "OutOf", "NodeAffinity", "UnexpectedAdmissionError", "tarting kubelet", "PreStopHook failed", "lifecycle hook (",
)  # fmt: skip
_STATE_WORDS = (
    "pleg was last seen active",
    "container runtime is down",
    "container runtime status check",
    "runtime network not ready",
    _CGROUP,
)
_WORDS_BEHIND: Mapping[str, tuple[str, ...]] = {
    "Event(v1.ObjectReference": _EVENT_WORDS,
    "Event occurred": _EVENT_WORDS,
    "Error syncing pod": (
        "ImagePullBackOff",
        "ErrImagePull",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        *sorted(REASONS),
        *_HOLDING,
        "KillContainerError",
        "KillPodSandboxError",
        "reserve container name",
        "reserve sandbox name",
        "error reserving ",
    ),
    'Operation for "': (
        "UnmountVolume.TearDown",
        "UnmountDevice",
        "UnmapVolume",
        "UnmapDevice",
        "error cleaning subPath mounts",
    ),
    "ListContainers": ("service failed",),
    "ListPodSandbox": ("service failed",),
    "ListImages": ("service failed",),
    "StopContainer": ("service failed",),
    "ExecSync ": ("service failed",),
    "StopPodSandbox": ("failed",),
    "RunPodSandbox for ": ("failed, error",),
    "StopContainer for ": ("failed", "with timeout"),
    'Container "': ("exited normally", "termination failed"),
    "container &Container{Name:": ("ErrImagePull",),
    "Unhandled Error": ("ErrImagePull", "existing bootstrap client"),
    "unable to ": ("existing bootstrap client config",),
    "Unable to ": ("existing bootstrap client config",),
    "SyncLoop (PLEG): ": ("ContainerDied",),
    "SyncLoop (PLEG): event for pod": ("ContainerDied",),
    "skipping pod synchronization": _STATE_WORDS,
    "Skipping pod synchronization": _STATE_WORDS,
    "Node became not ready": _STATE_WORDS,
    'Pod "': ("fully terminated",),
    "Shutdown request received: ": ("kubelet exited: ",),
    "Killing container ": ("grace period",),
    "Container ": ("exited normally", "of kill - trying direct SIGKILL"),
    **{
        line.begins: tuple(dict.fromkeys(each.behind for each in _LOGS if each.begins == line.begins)) for line in _LOGS
    },
}

WANTED: Mapping[str, tuple[str, ...]] = {
    begins: _WORDS_BEHIND.get(begins, ("",))
    for begins in (*(begins for begins, _ in _SPECIAL), *(begins for _, begins, *_ in _IN_WORDS), *_KEYED)
}
"""How the messages begin that mean something here, and words of which one follows. Lines with other messages are passed over."""
